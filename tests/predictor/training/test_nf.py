"""What is inferred of an NF from its runs: processors, noise, execution pattern; fitted curves in solo models."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from predictor import Models, load_models, train
from predictor.contention.execution import Execution
from predictor.contention.neighbours import NeighbourCorrection
from predictor.contention.solo import SoloFit, SoloThroughput
from predictor.fitting.fitted_model import CurveBreak
from predictor.model_folder import write_arrays
from predictor.training.measurements import NfMeasurements, Runs
from predictor.training.recorded import ASSUMED_NOISE, noise_of_a_run
from predictor.training.solo_fits import OWN_RUNS, fit_solo, is_above_zero, longest_line, with_fit_of_runs
from profiles import InputError
from profiles.arrays import Floats
from profiles.profile import service_column
from tests.predictor.fitting.made_up_models import made_up
from tests.predictor.made_up import CRYPTO, DEFAULT, LOOKUP, PLAIN, Engine, MadeUpNf, measure, play, profile


@pytest.mark.parametrize(
    ("pipeline", "engines", "queues"),
    [
        # each value with each other one
        (True, 1, 1),
        (True, 2, 2),
        (False, 1, 2),
        (False, 2, 1),
        *(
            pytest.param(*others, marks=pytest.mark.long)
            for others in ((True, 1, 2), (True, 2, 1), (False, 1, 1), (False, 2, 2))
        ),
    ],
)
@pytest.mark.long
def test_pattern_and_queues_are_found(pipeline: bool, engines: int, queues: int) -> None:
    """Pattern, queues and evidence of NFs with one or two accelerators, and one or two queues on each."""
    uses = {f"engine{at}": Engine(queues, 3e-4 * (1 + at), 4e-4 * (1 + 0.5 * at)) for at in range(engines)}
    found = train(profile([MadeUpNf("nf", pipeline, 7e-4, uses)], seed=queues), ["tomur"]).completed_nf_json["nf"]
    assert found["execution_pattern"] == ("pipeline" if pipeline else "run-to-completion")
    assert found["queues"] == dict.fromkeys(uses, queues)
    evidence = found["evidence"]["mape_pct"]  # type: ignore[index]
    assert set(evidence) == {"pipeline", "run-to-completion"}
    assert evidence[found["execution_pattern"]] == min(evidence.values()) < 1.5


@pytest.mark.parametrize("equal_time", [True, False])
def test_turns_of_equal_time_are_told_from_turns_of_one_request(equal_time: bool) -> None:
    """By how little the bench's service time matters; queues and service time are found in either case."""
    engine = Engine(2, 4e-4, 6e-4, equal_time)
    made = profile([MadeUpNf("nf", True, 5e-4, {"crypto": engine})])
    longest = 4 * engine.service_ms(DEFAULT)
    benches = pd.DataFrame([{**DEFAULT.as_dict(), service_column("crypto"): share * longest} for share in (0.1, 1.0)])
    models = train(replace(made, benches=benches), ["tomur"])
    assert models.completed_nf_json["nf"].get("slice_ms") == ({"crypto": longest} if equal_time else None)
    (use,) = models.models["nf"].execution.uses
    assert use.queues == 2
    np.testing.assert_allclose(use.service(np.array([DEFAULT.as_tuple()])), engine.service_ms(DEFAULT), rtol=0.03)


def test_service_time_of_a_pipeline(models: Models) -> None:
    """Equation 5: the time per packet and per match that the accelerator was given."""
    (use,) = models.models["crypto-pipeline"].execution.uses
    traffic = np.array([DEFAULT.as_tuple(), (16000.0, 1500.0, 0.0)])
    expected = [CRYPTO.engines["crypto"].service_ms(DEFAULT), CRYPTO.engines["crypto"].packet_ms]
    np.testing.assert_allclose(use.service(traffic), expected, rtol=0.03)


def test_solo_throughput_over_traffic(models: Models) -> None:
    """Alone, at traffic that was never measured, within 2 %."""
    for flows, size, mtbr in ((300, 200, 900), (50000, 1200, 100), (2000, 800, 500)):
        traffic = replace(DEFAULT, flows=float(flows), packet_size=float(size), mtbr=float(mtbr))
        expected = play(CRYPTO, CRYPTO.core_time(traffic, 0, 0), traffic, {})
        predicted = models.models["crypto-pipeline"].solo_kpps(np.array([traffic.as_tuple()]))
        np.testing.assert_allclose(predicted, expected, rtol=0.02)


def test_without_nf_json_one_queue_and_a_pipeline_are_assumed_with_a_warning() -> None:
    """A profile written by hand, with neither testbed.json nor nf.json, trains, with a warning of what was assumed."""
    made = profile([MadeUpNf("nf", False, 8e-4, {"crypto": Engine(2, 3e-4, 5e-4)})])
    by_hand = replace(made, testbed=None, nfs={"nf": replace(made.nfs["nf"], description=None)})
    warnings: list[str] = []
    found = train(by_hand, ["tomur"], warn=warnings.append).completed_nf_json["nf"]
    assert (found["execution_pattern"], found["queues"]) == ("pipeline", {"crypto": 1})
    assert warnings == ["nf: no nf.json, one queue per accelerator and a pipeline are assumed"]


@pytest.mark.parametrize(
    ("missing", "file", "message"),
    [
        ("memory", "nf/memory.csv", "5 runs, at least 10 are needed"),
        ("accelerators", "nf/crypto.csv", "no runs, at least 1 is needed"),
    ],
)
def test_too_few_runs_are_refused(missing: str, file: str, message: str) -> None:
    """The refusal names the file and how many runs are needed."""
    measured = measure(replace(CRYPTO, name="nf"))
    poor = replace(measured, memory=measured.memory[:5]) if missing == "memory" else replace(measured, accelerators={})
    with pytest.raises(InputError) as refused:
        train(replace(profile([CRYPTO]), nfs={"nf": poor}))
    (fault,) = refused.value.faults
    assert fault.file == file and message in fault.message


def test_noise_is_assumed_until_it_was_seen() -> None:
    """Without repeats, and hardly less after two runs that happen to agree."""
    once, twice = np.zeros((1, 2)), np.zeros((2, 2))
    assert noise_of_a_run([]) == noise_of_a_run([once, once]) == pytest.approx(ASSUMED_NOISE)
    assert 0.8 * ASSUMED_NOISE < noise_of_a_run([once, twice]) < ASSUMED_NOISE


@pytest.mark.parametrize("scale", [0.002, 0.03])
def test_noise_is_that_of_many_repeats(scale: float) -> None:
    """Whatever the co-locations reach on average, and however many members they have."""
    rng = np.random.default_rng(0)
    runs = [at + scale * rng.standard_normal((5, 1 + at % 3)) for at in range(200)]
    assert noise_of_a_run(runs) == pytest.approx(scale, rel=0.1)


REPO = Path(__file__).parents[3]

PROCESSORS = {
    "as it is": {},
    "an older one's matrix products": {"OPENBLAS_CORETYPE": "Prescott"},
    "an older one's exponentials and sums": {
        "NPY_DISABLE_CPU_FEATURES": "AVX512_ICL AVX512_SKX X86_V4 X86_V3 AVX2 FMA3"
    },
    "an older one's compiled code": {"NUMBA_CPU_NAME": "nehalem", "NUMBA_CPU_FEATURES": ""},
}
"""Processors that libraries are made to believe in, by environment variables."""


def digests(folder: Path) -> dict[str, str]:
    """Of every file of a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "models.json")
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Digests of models by processor; all are trained at the same time."""
    folders = {name: tmp_path_factory.mktemp("models") for name in PROCESSORS}
    command = [sys.executable, "-W", "ignore", "-m", "tests.predictor.training.test_nf"]
    running = [
        subprocess.Popen(
            [*command, str(folder / "models")],
            cwd=REPO,
            env=os.environ | PROCESSORS[name] | {"XDG_CACHE_HOME": str(folder)},
        )
        for name, folder in folders.items()
    ]
    assert [one.wait(timeout=300) for one in running] == [0] * len(running)
    return {name: digests(folder / "models") for name, folder in folders.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROCESSORS if PROCESSORS[name]])
def test_models_are_the_same_bytes_on_another_processor(name: str, trained: dict[str, dict[str, str]]) -> None:
    """Libraries round sums, products and exponentials differently there; models must not show it."""
    assert trained[name] == trained["as it is"]


if __name__ == "__main__":
    np.seterr(all="ignore")
    train(profile([PLAIN, CRYPTO, LOOKUP])).save(Path(sys.argv[1]))
    # the profile has too few co-locations for a correction by neighbours
    rng = np.random.default_rng(0)
    inputs, errors = rng.integers(0, 3, (60, 11)).astype(float), rng.standard_normal(60)
    correction = NeighbourCorrection(("a", "b"), np.full(11, 2.0), 0.7, 0.2, inputs, errors, np.full(60, 0.1))
    write_arrays(Path(sys.argv[1]) / "neighbours.npz", correction.as_arrays())


KNEE = made_up(
    (1.0, 20000.0, 200000.0), ("constant", (1000.0,)), ("inverse", (400.0, 6e6)),
    x="flows", y="throughput_kpps", breaks=[CurveBreak(20000, 19000, 21000, -300.0)],
)  # fmt: skip
"""1000 kpps up to 20,000 flows, then a cliff of 300 kpps and a slow fall."""


def truth(traffic: Floats) -> Floats:
    """The knee, times what the packet size costs."""
    return np.asarray(KNEE.predict(traffic[:, 0]) * (1 - traffic[:, 1] / 5000))


def runs(count: int, noise: float = 0.01, seed: int = 0) -> NfMeasurements:
    """An NF that was measured alone at random traffic."""
    rng = np.random.default_rng(seed)
    flows = np.exp(rng.uniform(0, np.log(200000), count))
    traffic = np.column_stack([flows, rng.uniform(64, 1500, count), rng.uniform(0, 1000, count)])
    kpps = truth(traffic) * np.exp(noise * rng.standard_normal(count))
    none = np.zeros((count, 0))
    alone = Runs(traffic, np.ones((count, 7)), none, none, kpps)
    return replace(NfMeasurements.of(measure(PLAIN), 1), solo=alone, alone=alone)


def solo_error(throughput: SoloThroughput) -> float:
    """Mean error (%) at traffic that was not measured."""
    rng = np.random.default_rng(9)
    flows = np.exp(rng.uniform(np.log(1000), np.log(200000), 200))
    traffic = np.column_stack([flows, rng.uniform(64, 1500, 200), rng.uniform(0, 1000, 200)])
    return float(100 * np.abs(throughput.kpps(traffic) / truth(traffic) - 1).mean())


def test_a_curve_with_the_true_breakpoint_serves_and_halves_the_error() -> None:
    """The solo model with the curve is closer to the noise-free truth, and both errors are kept."""
    nf = runs(60)
    solo = fit_solo(nf, Execution("pipeline"))
    assert solo is not None
    fitted = with_fit_of_runs(solo, nf, Execution("pipeline"), KNEE)
    found = fitted.fit_of_runs
    assert found is not None and found.serves
    assert found.error_pct < found.error_without_pct and fitted.throughput.curve is KNEE
    assert solo_error(fitted.throughput) < 0.5 * solo_error(solo.throughput)


def test_a_wrong_curve_is_kept_aside() -> None:
    """A curve with its cliff elsewhere does not serve: the throughput of the solo model is the same as without."""
    nf = runs(60)
    solo = fit_solo(nf, Execution("pipeline"))
    assert solo is not None
    first, last = KNEE.segments
    wrong = replace(
        KNEE,
        segments=(replace(first, end=300.0), replace(last, start=300.0, parameters=(400.0, 1e5))),
        breakpoints=(CurveBreak(300, 290, 310, -300.0),),
    )
    fitted = with_fit_of_runs(solo, nf, Execution("pipeline"), wrong)
    assert fitted.fit_of_runs is not None and not fitted.fit_of_runs.serves
    assert fitted.throughput is solo.throughput


def test_without_a_line_of_runs_no_curve_is_fitted() -> None:
    """Runs at random traffic vary all attributes at once."""
    nf = runs(30)
    solo = fit_solo(nf, Execution("pipeline"))
    assert solo is not None and with_fit_of_runs(solo, nf, Execution("pipeline"), OWN_RUNS) is solo


def test_the_longest_line_has_twelve_values_of_one_attribute() -> None:
    """Eleven are too few; twelve with the same rest of the traffic are a line, other runs are not of it."""
    line = np.column_stack([np.geomspace(1, 1000, 12), np.full(12, 64.0), np.zeros(12)])
    other = np.array([[5.0, 1500.0, 0.0]])
    assert longest_line((0, 1, 2), np.concatenate([line[1:], other])) is None
    found = longest_line((0, 1, 2), np.concatenate([line, other]))
    assert found is not None and (found.attribute, found.rows.tolist()) == (0, [True] * 12 + [False])


def test_a_curve_that_falls_below_zero_is_no_throughput() -> None:
    """400 + 6e6 / flows is above zero, 400 - flows is not."""
    assert is_above_zero(KNEE) and not is_above_zero(made_up((1.0, 1000.0), ("linear", (400.0, -1.0))))


@pytest.mark.parametrize("serves", [True, False])
def test_a_fit_of_runs_is_saved_with_the_models(models: Models, tmp_path: Path, serves: bool) -> None:
    """Loaded models have the curve and the comparison, and predict the same; the same models are the same bytes."""
    (name, nf), *_ = models.models.items()
    assert nf.solo is not None
    throughput = replace(nf.solo.throughput, curve=None)
    if serves:
        traffic = np.random.default_rng(0).uniform(1, 1000, (20, 3))
        throughput = SoloThroughput.fit(throughput.attributes, traffic, KNEE.predict(traffic[:, 0]), KNEE)
    solo = replace(nf.solo, throughput=throughput, fit_of_runs=SoloFit(KNEE, 20, 1.25, 1.5, serves))
    replace(models, models={**models.models, name: replace(nf, solo=solo)}).save(tmp_path / "models")
    loaded = load_models(tmp_path / "models").models[name].solo
    assert loaded is not None and loaded.fit_of_runs == solo.fit_of_runs
    at = np.array([[20000.0, 500.0, 300.0], [150000.0, 64.0, 0.0]])
    np.testing.assert_array_equal(loaded.kpps(at), solo.kpps(at))
