"""Corrections of predictions: by calibration, by neighbours, and in compiled code."""

import pickle
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from predictor import Models, TomurPredictor, load_models, train
from predictor.contention.calibration import Calibration, _shrink
from predictor.contention.checks import CLOSE, MET, VIOLATED, write_rough_logarithms
from predictor.contention.equilibrium import EquilibriumModel
from predictor.contention.neighbours import NeighbourCorrection, NeighbourInputs, loneliness
from predictor.contention.nf_model import NfModel
from predictor.contention.solo import MeasuredAlone
from predictor.contention.workload_table import WorkloadTable
from predictor.regression.gaussian_process import GaussianProcess
from predictor.regression.packed import PackedArrays, flags, numbers_1d, whole_2d
from predictor.regression.significant import significant
from predictor.training.calibrate import fit_neighbours
from profiles import TrafficProfile, Workload
from profiles.profile import Profile, rate_column, service_column
from tests.effort import examples
from tests.predictor.made_up import CRYPTO, DEFAULT, LOOKUP, PLAIN, counters, profile

NAMES = (PLAIN.name, CRYPTO.name, LOOKUP.name)
SPREAD = 0.01

workloads = st.builds(
    Workload,
    st.sampled_from(NAMES),
    st.builds(TrafficProfile, st.floats(1, 2e5), st.floats(64, 1500), st.floats(0, 1000)) | st.just(DEFAULT),
)


@pytest.fixture(scope="module")
def corrected(models: Models) -> dict[str, NfModel]:
    """The made-up NFs, as if co-runs had shown errors of theirs; the last NF has no correction by neighbours."""
    rng = np.random.default_rng(0)
    traffic = np.array([DEFAULT.as_tuple()])
    found = {}
    for name, model in models.models.items():
        width = 4 + len(model.accelerators)
        rows = rng.uniform(
            [0, 4, 0, -1, *[0] * len(model.accelerators)], [12, 7, 3, 0, *[2] * (width - 4)], (30, width)
        )
        process = GaussianProcess.fit(rows, 0.1 * np.sin(rows.sum(axis=1, keepdims=True)), anchored=True)
        counts = rng.integers(0, 3, (25, len(models.models))).astype(float)
        inputs = np.concatenate([counts, rng.uniform(-0.5, 0.5, (25, 3 * len(models.models) + 3))], axis=1)
        lengths = np.full(inputs.shape[1], 2.0)
        errors = rng.standard_normal(25)
        neighbours = NeighbourCorrection(tuple(models.models), lengths, 0.7, 0.2, inputs, errors, np.full(25, 0.1))
        found[name] = replace(
            model,
            calibration=Calibration(process, np.zeros(30)),
            neighbours=None if name == NAMES[-1] else neighbours,
            alone=MeasuredAlone(traffic, np.array([0.02]), np.array([SPREAD])),
        )
    return found


@pytest.mark.long
@settings(max_examples=examples(60))
@given(co_location=st.lists(workloads, min_size=2, max_size=5))
def test_a_prediction_is_composed_of_its_models(corrected: dict[str, NfModel], co_location: list[Workload]) -> None:
    """The equilibrium times the factors of both corrections, at most the throughput alone; and the spread left."""
    model = EquilibriumModel(WorkloadTable(corrected))
    equilibrium = model.solve([co_location])
    given = equilibrium.batch.order[0]
    predictor = TomurPredictor(corrected)
    (kpps,) = predictor.throughput([co_location])
    (wary,) = predictor.throughput([co_location], risk=0.05)
    for name, at, conditions in model.conditions(equilibrium):
        nf = corrected[name]
        usual = nf.error_model.at(conditions)
        error, left = nf.neighbours(conditions.neighbours) if nf.neighbours else (np.zeros(1), np.ones(1))
        assert nf.calibration is not None and nf.alone is not None
        factor = nf.calibration(conditions) * np.exp(error * usual)
        expected = np.minimum(equilibrium.throughput[at] * factor, equilibrium.solo[at])
        assert kpps[given[at[1]]] == pytest.approx(expected, rel=1e-9)
        if nf.neighbours:
            alone = np.array([nf.alone.at(TrafficProfile(*row))[1] for row in conditions.traffic])
            left = np.hypot(left, alone / usual)
        lowered = expected * np.minimum(nf.error_model.lower(usual * left, 0.05), 1.0)
        assert wary[given[at[1]]] == pytest.approx(lowered, rel=1e-9)


@settings(max_examples=examples(100), deadline=None)
@given(
    co_location=st.lists(workloads, min_size=2, max_size=5),
    shares=st.lists(st.floats(0.97, 1.01) | st.floats(1 - 1e-7, 1 + 1e-7), min_size=5, max_size=5),
    risk=st.sampled_from((None, 0.001, 0.05, 0.22)),
)
def test_a_check_answers_what_throughput_says(
    corrected: dict[str, NfModel], co_location: list[Workload], shares: list[float], risk: float | None
) -> None:
    """It computes a part of the uncertainty, and says so where rounding would decide."""
    predictor, together = TomurPredictor(corrected), tuple(sorted(co_location))
    checks, kpps = predictor.checks(risk), significant(predictor.throughput([together], risk=risk)[0])
    assert checks is not None
    required = [got * share for got, share in zip(kpps.tolist(), shares, strict=False)]
    verdict, about = checks.meets(together, required)
    assert verdict in (CLOSE, MET if (kpps >= required).all() else VIOLATED)
    if verdict == CLOSE:
        assert any(abs(share - 1) < 2e-6 for share in shares)
    if verdict == MET:
        assert (about >= required).all()
    alone = significant(predictor.throughput([together[:1]], risk=risk)[0])
    assert checks.solo(together[0]) == alone[0]


@pytest.mark.long
def test_rough_estimates_fall_with_what_neighbours_use(models: Models) -> None:
    """Alone nothing is lost; a neighbour with 20 times the flows costs more, and two cost more than one."""
    checks = TomurPredictor(models.models).checks(None)
    assert checks is not None
    few, many = (Workload(PLAIN.name, TrafficProfile(flows, 1500, 0)) for flows in (1_000, 20_000))
    small, large = checks.row(few), checks.row(many)
    member = np.array([[small, 0, 0], [small, small, 0], [small, large, 0], [small, large, large]])
    logarithms = np.zeros(member.shape)
    write_rough_logarithms(*checks.arrays, member, np.array([1, 2, 2, 3]), logarithms)
    alone, *beside = logarithms[:, 0].tolist()
    assert alone == 0 >= beside[0] > beside[1] > beside[2]


def test_copied_models_are_read_where_they_are() -> None:
    """Kernels read models by their address, which a copy must not share: the original may be gone."""
    packed = PackedArrays((np.array([1.0, 2.5]), (np.array([[3, 4]]), np.array([False, True]))))
    copies = [pickle.loads(pickle.dumps(packed)), deepcopy(packed)]
    del packed
    assert [_read(copied.address) for copied in copies] == [(2.5, 4, True)] * 2
    assert len({copied.address for copied in copies}) == 2


@njit
def _read(packed):  # type: ignore[no-untyped-def]
    return numbers_1d(packed, 0)[1], whole_2d(packed, 1)[0, 1], flags(packed, 2)[1]


@settings(max_examples=20, deadline=None)
@given(co_locations=st.lists(st.lists(workloads, min_size=1, max_size=5).map(tuple), min_size=2, max_size=9))
def test_a_prediction_does_not_depend_on_what_else_is_asked(
    corrected: dict[str, NfModel], co_locations: list[tuple[Workload, ...]]
) -> None:
    """Errors of one NF are computed side by side, and equal workloads once; answers are the same to the bit."""
    together = TomurPredictor(corrected).throughput(co_locations, risk=0.05)
    for co_location, kpps in zip(co_locations, together, strict=True):
        (alone,) = TomurPredictor(corrected).throughput([co_location], risk=0.05)
        assert alone.tolist() == kpps.tolist()
        of_equal = {(one, value) for one, value in zip(co_location, alone.tolist(), strict=True)}
        assert len(of_equal) == len(set(co_location))


@pytest.fixture(scope="module")
def made() -> Profile:
    """One NF, without co-runs."""
    return profile([CRYPTO])


@pytest.fixture(scope="module")
def plain(made: Profile) -> Models:
    """Trained on that."""
    return train(made, ["tomur"])


@pytest.fixture(scope="module")
def after_co_runs(made: Profile, plain: Models) -> Models:
    """Trained with twelve co-runs in which the NF is 8 % slower."""
    return train(_with_co_runs(made, plain, 0.92, 12), ["tomur"])


def _with_co_runs(made: Profile, plain: Models, factor: float, count: int, seed: int = 0) -> Profile:
    """Co-runs in which the NF is slower than modelled by `factor`, on average, with 1 % noise."""
    rng = np.random.default_rng(seed)
    service = rng.uniform(1, 4, size=count) * CRYPTO.engines["crypto"].service_ms(DEFAULT)
    table = pd.DataFrame({**DEFAULT.as_dict(), **counters(5e7, 5.0), service_column("crypto"): service})
    table[rate_column("crypto")] = np.nan
    modelled = plain.predictors["tomur"].predict_contention(CRYPTO.name, table)
    table["throughput_kpps"] = modelled * factor * (1 + 0.01 * rng.standard_normal(count))
    return replace(made, nfs={CRYPTO.name: replace(made.nfs[CRYPTO.name], co_runs=table)})


@pytest.mark.long
def test_co_runs_correct_the_prediction_near_them(plain: Models, after_co_runs: Models) -> None:
    """A bench that is 8 % heavier than its profile states: corrected and marked near the co-runs, not far away."""
    co_location = [Workload(CRYPTO.name, DEFAULT)] * 2
    before, after = (one.predictors["tomur"].predict([co_location])[0][0] for one in (plain, after_co_runs))
    assert (before.calibrated, after.calibrated) == (False, True)
    assert after.throughput_kpps == pytest.approx(0.92 * before.throughput_kpps, rel=0.015)
    far = [Workload(CRYPTO.name, replace(DEFAULT, flows=1.0, packet_size=64.0, mtbr=0.0))] * 2
    before, after = (one.predictors["tomur"].predict([far])[0][0] for one in (plain, after_co_runs))
    assert not after.calibrated and after.throughput_kpps == pytest.approx(before.throughput_kpps, rel=0.02)


@pytest.mark.long
def test_co_runs_with_noise_alone_change_nothing(made: Profile, plain: Models) -> None:
    """Errors that are only noise are not learnt."""
    assert train(_with_co_runs(made, plain, 1.0, 12), ["tomur"]).models[CRYPTO.name].calibration is None


@pytest.mark.long
def test_correction_survives_saving(after_co_runs: Models, tmp_path: Path) -> None:
    """A loaded model corrects as the saved one."""
    after_co_runs.save(tmp_path / "models")
    co_location = [[Workload(CRYPTO.name, DEFAULT)] * 2]
    loaded = load_models(tmp_path / "models")
    assert loaded.predictors["tomur"].predict(co_location) == after_co_runs.predictors["tomur"].predict(co_location)


def test_correction_is_applied_as_far_as_it_surely_helps() -> None:
    """Gains on all rows: nearly in full; on one row of eight, or none on average: not at all."""
    assert _shrink(np.full(8, 0.1)) == 1.0
    assert 0.5 < _shrink(np.array([0.1, 0.05, 0.15, 0.1, 0.02, 0.12, 0.08, 0.1])) < 1.0
    assert _shrink(np.array([1.0, 0, 0, 0, 0, 0, 0, 0])) == 0.0
    assert _shrink(np.array([0.1, -0.1, 0.1, -0.1, -0.05])) == 0.0


COLUMNS = ("a", "b")


def _row(a: int, b: int, own: float = 0.0) -> list[float]:
    """Inputs for `a` and `b` instances of two NFs at default traffic, next to an NF at traffic `own`."""
    return [a, b, *[0.0] * 6, own, 0.0, 0.0]


def _correction(errors: list[float], noise: float, own: float = 0.2) -> NeighbourCorrection:
    inputs = np.array([_row(2, 0), _row(0, 2), _row(1, 1)][: len(errors)])
    lengths = np.array([2.0, 2.0, *[0.5] * 9])
    return NeighbourCorrection(COLUMNS, lengths, 0.8, own, inputs, np.array(errors), np.full(len(errors), noise))


def test_a_measured_co_location_is_answered_as_measured() -> None:
    """Without noise the error is the measured one, and nothing stays unknown."""
    error, deviation = _correction([1.5, -0.5, 0.3], noise=0.0)(np.array([_row(2, 0), _row(0, 2), _row(1, 1)]))
    assert error == pytest.approx([1.5, -0.5, 0.3], abs=1e-3)
    assert deviation == pytest.approx([0.0, 0.0, 0.0], abs=0.02)


def test_one_noisy_run_by_hand() -> None:
    """One run, variance 1 of errors and 1 of noise: half of what it shows counts, half of the variance stays."""
    error, deviation = _correction([1.0], noise=1.0)(np.array([_row(2, 0)]))
    assert error == pytest.approx([0.5], rel=1e-6) and deviation**2 == pytest.approx([0.5], rel=1e-6)


def test_far_from_what_was_measured_the_usual_spread_stays() -> None:
    """Other traffic than any measured has no correction and the whole variance, 0.8 and 0.2."""
    error, deviation = _correction([1.5, -0.5, 0.3], noise=0.1)(np.array([_row(2, 0, own=50.0)]))
    assert error == pytest.approx([0.0], abs=1e-6) and deviation == pytest.approx([1.0], abs=1e-6)


def test_a_similar_co_location_is_corrected_in_part() -> None:
    """One more instance of the NF that errs: the correction has the same sign, and is smaller and less certain."""
    measured, similar = np.array([_row(2, 0)]), np.array([_row(3, 0)])
    correction = _correction([1.5], noise=0.0)
    (at,), (there,) = correction(measured)
    (near,), (spread,) = correction(similar)
    assert 0 < near < at and there < spread < 1.0


def test_left_out_errors_are_those_of_a_correction_without_the_row() -> None:
    """The closed form equals leaving the first row out by hand."""
    correction = _correction([1.5, -0.5, 0.3], noise=0.1)
    without = NeighbourCorrection(
        COLUMNS, correction.lengths, 0.8, 0.2, correction.inputs[1:], correction.errors[1:], correction.noise[1:]
    )
    (expected,), (deviation,) = without(correction.inputs[:1])
    error, variance = correction.left_out()
    assert error[0] == pytest.approx(1.5 - expected) and variance[0] == pytest.approx(deviation**2)


def test_a_pair_deviates_more_by_itself_than_three() -> None:
    """One competitor has four times the own variance of two, and nine times that of three."""
    assert loneliness(np.array([_row(1, 0), _row(1, 1), _row(2, 1)])).tolist() == [4.0, 1.0, pytest.approx(4 / 9)]


def test_it_survives_as_arrays() -> None:
    """What was saved corrects as before, to the bit; also where the factor was not saved, as in older models."""
    correction = _correction([1.5, -0.5, 0.3], noise=0.1)
    arrays = correction.as_arrays()
    older = {name: array for name, array in arrays.items() if name not in ("weights", "inverse_factor")}
    rows = np.array([_row(1, 0), _row(2, 2)])
    for saved in (arrays, older):
        assert np.array_equal(correction(rows), NeighbourCorrection.from_arrays(saved)(rows))


def test_what_was_saved_is_not_computed_again() -> None:
    """A factor that says otherwise is believed, and only by the correction that it was saved with."""
    correction = _correction([1.5, -0.5, 0.3], noise=0.1)
    rows = np.array([_row(2, 0), _row(1, 1)])
    other = NeighbourCorrection.from_arrays(correction.as_arrays() | {"weights": np.zeros(3)})
    assert other(rows)[0].tolist() == [0.0, 0.0]
    assert replace(other, errors=correction.errors)(rows)[0] == pytest.approx(correction(rows)[0])


def test_a_factor_of_other_rows_is_refused() -> None:
    """Compiled code would read beyond its end."""
    arrays = _correction([1.5, -0.5, 0.3], noise=0.1).as_arrays()
    with pytest.raises(ValueError, match="does not belong to 3 rows"):
        NeighbourCorrection.from_arrays(arrays | {"inverse_factor": np.ones(3)})


def test_inputs_count_the_others() -> None:
    """In a co-location of two instances of one NF and one of another, each is described by the other two."""
    nf = np.array([0, 0, 1])
    deviation = np.array([[0.0, 0.0, 0.0], [0.5, 0.0, 0.0], [0.0, 0.0, 1.0]])
    member = np.array([[0, 1, 2]])
    rows = NeighbourInputs(nf, np.ones(3), deviation, 2).of(member, (np.array([0, 0, 0]), np.array([0, 1, 2])))
    assert rows[:, :2].tolist() == [[1.0, 1.0], [1.0, 1.0], [2.0, 0.0]]
    assert rows[0, 2:8].tolist() == [0.5, 0.0, 0.0, 0.0, 0.0, 1.0] and rows[1, 8:].tolist() == [0.5, 0.0, 0.0]


def test_a_fit_finds_errors_that_belong_to_neighbours() -> None:
    """NF b costs 2 spreads more per instance than predicted; co-locations left out err by a fifth of that."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, (80, 2))
    counts = counts[counts.sum(axis=1) > 0]
    inputs = np.array([_row(a, b) for a, b in counts.tolist()])
    errors = -2.0 * counts[:, 1] + 0.1 * rng.standard_normal(len(counts))
    fitted = fit_neighbours(COLUMNS, inputs[:50], errors[:50], np.full(50, 0.01))
    assert fitted is not None and np.abs(fitted(inputs[50:])[0] - errors[50:]).mean() < 0.4


def test_few_co_locations_teach_nothing() -> None:
    """Below twenty there is no correction."""
    assert fit_neighbours(COLUMNS, np.array([_row(1, 0)] * 19), np.ones(19), np.ones(19)) is None


def test_equal_rows_are_left_out_together() -> None:
    """Two instances of an NF in one co-location do not stand for each other: the third row alone is what remains."""
    inputs = np.array([_row(1, 1), _row(1, 1), _row(0, 2)])
    lengths = np.array([2.0, 2.0, *[0.5] * 9])
    errors, noise = np.array([1.0, 1.2, 0.4]), np.full(3, 0.1)
    left, variance = NeighbourCorrection(COLUMNS, lengths, 0.8, 0.2, inputs, errors, noise).left_out()
    remaining = NeighbourCorrection(COLUMNS, lengths, 0.8, 0.2, inputs[2:], errors[2:], noise[2:])
    (expected, _), (deviation, _) = remaining(inputs[:2])
    assert left[:2] == pytest.approx(errors[:2] - expected)
    assert variance[:2] == pytest.approx([deviation**2] * 2)


def test_the_most_competitors_are_those_at_default_traffic() -> None:
    """Rows at other traffic of the NF do not count; without any at default traffic, nothing is known."""
    inputs = np.array([_row(1, 1), _row(0, 2), _row(3, 3, own=0.4)])
    lengths, errors = np.array([2.0, 2.0, *[0.5] * 9]), np.zeros(3)
    assert NeighbourCorrection(COLUMNS, lengths, 0.8, 0.2, inputs, errors, errors).most_competitors == 2
    beyond = NeighbourCorrection(COLUMNS, lengths, 0.8, 0.2, inputs[2:], errors[2:], errors[2:])
    assert beyond.most_competitors == np.inf
