"""What every predictor must do, trained on a profile."""

import math
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from predictor import Models, Predictor, load_models, train
from profiles import InputError, TrafficProfile, Workload
from profiles.profile import Profile, read_profile

RECORDED_PROFILE = "bluefield-2-simulated"
RECORDED_NFS = ("FlowMonitor", "NAT")
MOST_ERROR = 1e-9  # relative difference that the order of an addition may make

EXECUTABLE_SUFFIXES = {".pkl", ".pickle", ".joblib", ".py", ".pyc", ".so", ".dill"}


def check_predictor(name: str, profile: Profile | None = None) -> None:
    """Train a registered predictor and check the facts that hold for every predictor.

    Throughputs are positive and finite, one per workload; neither the order in a co-location nor the batch changes
    them; intervals contain them; what is saved executes nothing and answers the same when loaded; NFs that are not in
    the profile are refused. `name`: as on the command line. `profile`: what to train on; by default two NFs of the
    recorded simulated BlueField-2. Raises `AssertionError` with the first fact that does not hold."""
    models = train(profile or _record(), (name,))
    predictor = models.predictors[name]
    co_locations = _co_locations(models)
    _check_answers(predictor, co_locations)
    _check_order_and_batch(predictor, co_locations)
    _check_details(predictor, co_locations)
    _check_saved(models, name, co_locations)
    _check_unknown(predictor, co_locations[0][0].traffic)


def _record() -> Profile:
    with as_file(files("traces") / RECORDED_PROFILE) as folder:
        profile = read_profile(folder)
    return replace(profile, nfs={name: profile.nfs[name] for name in RECORDED_NFS})


def _co_locations(models: Models) -> list[tuple[Workload, ...]]:
    """Every NF alone, every pair, and one of each, at default traffic."""
    alone = [Workload(nf, models.default_traffic) for nf in models.nfs]
    pairs = [(one, other) for place, one in enumerate(alone) for other in alone[place:]]
    return [*((workload,) for workload in alone), *pairs, tuple(alone)]


def _check_answers(predictor: Predictor, co_locations: Sequence[tuple[Workload, ...]]) -> None:
    answers = predictor.throughput(co_locations)
    assert len(answers) == len(co_locations), f"{len(answers)} answers to {len(co_locations)} co-locations"
    for co_location, answer in zip(co_locations, answers, strict=True):
        assert len(answer) == len(co_location), f"{len(answer)} throughputs for {len(co_location)} workloads"
        assert all(kpps > 0 and math.isfinite(kpps) for kpps in answer), f"throughputs are {answer} kpps"
    for (workload,), answer in [(c, a) for c, a in zip(co_locations, answers, strict=True) if len(c) == 1]:
        solo = float(predictor.solo([workload])[0])
        assert math.isclose(solo, answer[0], rel_tol=1e-6), f"{workload.nf}: solo {solo}, alone on a NIC {answer[0]}"


def _check_order_and_batch(predictor: Predictor, co_locations: Sequence[tuple[Workload, ...]]) -> None:
    batch = predictor.throughput(co_locations)
    for co_location, answer in zip(co_locations, batch, strict=True):
        single = predictor.throughput([co_location])[0]
        assert np.allclose(single, answer, rtol=MOST_ERROR), f"the batch changes {co_location}: {single}, {answer}"
        turned = predictor.throughput([co_location[::-1]])[0][::-1]
        assert np.allclose(turned, answer, rtol=MOST_ERROR), f"the order changes {co_location}: {turned}, {answer}"


def _check_details(predictor: Predictor, co_locations: Sequence[tuple[Workload, ...]]) -> None:
    answers = zip(predictor.predict(co_locations), predictor.throughput(co_locations), strict=True)
    for predictions, throughputs in answers:
        for one, kpps in zip(predictions, throughputs, strict=True):
            assert math.isclose(one.throughput_kpps, kpps, rel_tol=1e-6), "`predict` and `throughput` differ"
            assert one.bottleneck, "a prediction names no bottleneck"
            if one.low_kpps is not None and one.high_kpps is not None:
                assert one.low_kpps <= kpps <= one.high_kpps, f"{kpps} is outside {one.low_kpps} to {one.high_kpps}"


def _check_saved(models: Models, name: str, co_locations: Sequence[tuple[Workload, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "models"
        models.save(home)
        found = [path.name for path in home.rglob("*") if path.suffix in EXECUTABLE_SUFFIXES]
        assert not found, f"loading could execute {found}: save numbers and text only"
        loaded = load_models(home).predictors[name]
        pairs = zip(loaded.throughput(co_locations), models.predictors[name].throughput(co_locations), strict=True)
        assert all(np.array_equal(one, other) for one, other in pairs), "loaded models answer differently"


def _check_unknown(predictor: Predictor, traffic: TrafficProfile) -> None:
    try:
        predictor.throughput([[Workload("NoSuchNf", traffic)]])
    except InputError:
        return
    raise AssertionError("an NF that is not in the profile is not refused with InputError")
