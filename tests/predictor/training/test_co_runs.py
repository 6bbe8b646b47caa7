"""Measured co-locations as people record them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from predictor import Models, train
from predictor.training.co_runs import _noise, compare_by_name
from predictor.training.recorded import collect_runs, left_out, select_profiled
from profiles import InputError, Workload
from profiles.profile import Profile
from tests.predictor.made_up import CRYPTO, DEFAULT, LOOKUP, PLAIN, profile

NAMES = (CRYPTO.name, LOOKUP.name, PLAIN.name)


@pytest.fixture(scope="module")
def made() -> Profile:
    """Three made-up NFs, without co-locations."""
    return profile([PLAIN, CRYPTO, LOOKUP])


def _rows(run: object, members: list[tuple[str, float]]) -> list[dict[str, object]]:
    return [{"run": run, "nf": nf, **DEFAULT.as_dict(), "throughput_kpps": kpps} for nf, kpps in members]


def _with(made: Profile, **tables: list[dict[str, object]]) -> Profile:
    nfs = {
        name: replace(nf, co_locations=pd.DataFrame(tables.get(name.replace("-", "_"), [])))
        for name, nf in made.nfs.items()
    }
    return replace(made, nfs=nfs)


def _recorded(made: Profile, **tables: list[dict[str, object]]) -> dict[tuple[Workload, ...], np.ndarray]:
    return collect_runs(_with(made, **tables))


def test_a_run_in_two_folders_counts_once_in_any_order(made: Profile) -> None:
    """Written into the folders of both NFs, each first in its own, a run is one run; the same again is a repeat."""
    one, other = NAMES[:2]
    first = [(one, 100.0), (other, 200.0)]
    here = [*_rows(1, first), *_rows(2, [(one, 101.0), (other, 203.0)])]
    there = [*_rows("a", first[::-1])]
    ((co_location, runs),) = _recorded(made, **{one.replace("-", "_"): here, other.replace("-", "_"): there}).items()
    assert [workload.nf for workload in co_location] == sorted([one, other])
    assert sorted(map(tuple, runs.tolist())) == sorted(
        [tuple(kpps for _, kpps in sorted(first)), tuple(kpps for _, kpps in sorted([(one, 101.0), (other, 203.0)]))]
    )


def test_repeats_without_noise_are_repeats(made: Profile) -> None:
    """Two runs of one folder with equal throughputs are two, also where the other folder holds one of them again."""
    one, other = NAMES[:2]
    pair, alone = [(one, 100.0), (other, 200.0)], [(one, 110.0)]
    here = [row for run, members in enumerate([pair, pair, alone, alone, alone]) for row in _rows(run, members)]
    tables = {one.replace("-", "_"): here, other.replace("-", "_"): _rows("a", pair[::-1])}
    runs = {len(co_location): kpps.tolist() for co_location, kpps in _recorded(made, **tables).items()}
    assert runs == {2: [[kpps for _, kpps in sorted(pair)]] * 2, 1: [[110.0]] * 3}


def test_a_testbed_without_noise_is_answered_as_measured_alone(made: Profile, models: Models) -> None:
    """An NF that was run alone three times with the same result, 4 % above its model, has that throughput."""
    elsewhere = replace(DEFAULT, flows=12_345.0)  # the profile has other runs at default traffic
    workload = Workload(NAMES[0], elsewhere)
    kpps = 1.04 * float(models.predictors["tomur"].solo([workload])[0])
    runs = [{**row, **elsewhere.as_dict()} for run in range(3) for row in _rows(run, [(workload.nf, kpps)])]
    profiled_alone = replace(made, nfs={workload.nf: made.nfs[workload.nf]})
    measured = train(_with(profiled_alone, **{workload.nf.replace("-", "_"): runs}), ["tomur"])
    assert measured.predictors["tomur"].solo([workload])[0] == pytest.approx(kpps, rel=1e-6)


def test_co_locations_with_nfs_outside_the_profile_are_left_out(made: Profile) -> None:
    """A warning names the NFs that are missing; an NF alone is no co-location."""
    one = NAMES[0]
    rows = [*_rows(1, [(one, 1.0), ("Stranger", 2.0)]), *_rows(2, [(one, 3.0)])]
    runs = _recorded(made, **{one.replace("-", "_"): rows})
    assert list(select_profiled(runs, made)) == [(Workload(one, DEFAULT),)]
    assert left_out(runs, made) == "1 of 1 co-locations left out: no profile of Stranger"
    assert left_out(select_profiled(runs, made), made) is None


def test_a_run_that_exceeds_the_nic_is_refused(made: Profile) -> None:
    """One number for several runs makes a co-location that no NIC holds."""
    one = NAMES[0]
    with pytest.raises(InputError, match=r"co-locations.csv: run: a run of 40 NFs takes \d+ cores of a NIC with \d+"):
        train(_with(made, **{one.replace("-", "_"): _rows(1, [(one, 1.0 + n) for n in range(40)])}))


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_wrong_units_are_refused(made: Profile, models: Models, factor: float) -> None:
    """Throughputs in packets or millions of packets per second are nothing like the NF alone."""
    names = CRYPTO.name, PLAIN.name
    co_location = [Workload(name, DEFAULT) for name in names]
    predicted = models.predictors["tomur"].throughput([co_location])[0].tolist()
    measured = [(one.nf, kpps * factor) for one, kpps in zip(co_location, predicted, strict=True)]
    rows = [row for run in range(6) for row in _rows(run, [(nf, kpps * (1 + run / 100)) for nf, kpps in measured])]
    with pytest.raises(InputError, match="times as fast as"):
        two = replace(made, nfs={name: made.nfs[name] for name in names})
        train(_with(two, **{names[0].replace("-", "_"): rows}), ["tomur"])


def test_noise_is_each_nf_s_own(made: Profile) -> None:
    """An NF whose repeats differ by 3 % gets that noise; the others, with 0.3 %, get theirs."""
    rng = np.random.default_rng(0)
    noisy, *quiet = NAMES
    scale = {noisy: 0.03, **dict.fromkeys(quiet, 0.003)}
    co_locations = {
        tuple(Workload(name, replace(DEFAULT, flows=1000.0 + at)) for name in NAMES): np.exp(
            [[scale[name] * rng.standard_normal() for name in NAMES] for _ in range(2)]
        )
        for at in range(60)
    }
    noise = _noise(co_locations)
    assert noise[noisy] == pytest.approx(0.03**2, rel=0.4)
    for name in quiet:
        assert noise[name] == pytest.approx(0.003**2, rel=0.4)


def test_rows_of_one_co_location_share_a_number(models: Models) -> None:
    """Two equal NFs in a co-location are two rows of it, to be left out together."""
    one = NAMES[0]
    co_locations = {
        (Workload(one, DEFAULT),) * 2: np.array([[100.0, 101.0]]),
        (Workload(one, DEFAULT),) * 3: np.ones((1, 3)),
    }
    ((_, rows),) = compare_by_name(models.models, co_locations)
    assert sorted(rows.co_location.tolist()) == [0, 0, 1, 1, 1]
