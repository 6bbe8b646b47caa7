"""Corrections by measured co-locations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predictor.contention.neighbours import NeighbourCorrection, NeighbourInputs, loneliness
from predictor.training.calibrate import fit_neighbours

NAMES = ("a", "b")


def _row(a: int, b: int, own: float = 0.0) -> list[float]:
    """Inputs for `a` and `b` instances of two NFs at default traffic, next to an NF at traffic `own`."""
    return [a, b, *[0.0] * 6, own, 0.0, 0.0]


def _correction(errors: list[float], noise: float, own: float = 0.2) -> NeighbourCorrection:
    inputs = np.array([_row(2, 0), _row(0, 2), _row(1, 1)][: len(errors)])
    lengths = np.array([2.0, 2.0, *[0.5] * 9])
    return NeighbourCorrection(NAMES, lengths, 0.8, own, inputs, np.array(errors), np.full(len(errors), noise))


def test_a_measured_co_location_is_answered_as_measured() -> None:
    """Without noise the error is the measured one, and nothing stays unknown."""
    correction = _correction([1.5, -0.5, 0.3], noise=0.0)
    error, deviation = correction(np.array([_row(2, 0), _row(0, 2), _row(1, 1)]))
    assert error == pytest.approx([1.5, -0.5, 0.3], abs=1e-3)
    assert deviation == pytest.approx([0.0, 0.0, 0.0], abs=0.02)


def test_one_noisy_run_by_hand() -> None:
    """One run, variance 1 of errors and 1 of noise: half of what it shows counts, half of the variance stays."""
    error, deviation = _correction([1.0], noise=1.0)(np.array([_row(2, 0)]))
    assert error == pytest.approx([0.5], rel=1e-6)
    assert deviation**2 == pytest.approx([0.5], rel=1e-6)


def test_far_from_what_was_measured_the_usual_spread_stays() -> None:
    """Other traffic than any measured has no correction and the whole variance, 0.8 and 0.2."""
    error, deviation = _correction([1.5, -0.5, 0.3], noise=0.1)(np.array([_row(2, 0, own=50.0)]))
    assert error == pytest.approx([0.0], abs=1e-6)
    assert deviation == pytest.approx([1.0], abs=1e-6)


def test_a_similar_co_location_is_corrected_in_part() -> None:
    """One more instance of the NF that errs: the correction has the same sign, and is smaller and less certain."""
    measured, similar = np.array([_row(2, 0)]), np.array([_row(3, 0)])
    correction = _correction([1.5], noise=0.0)
    (at,), (there,) = correction(measured)
    (near,), (spread,) = correction(similar)
    assert 0 < near < at
    assert there < spread < 1.0


def test_left_out_errors_are_those_of_a_correction_without_the_row() -> None:
    """The closed form equals leaving the first row out by hand."""
    correction = _correction([1.5, -0.5, 0.3], noise=0.1)
    without = NeighbourCorrection(
        NAMES, correction.lengths, 0.8, 0.2, correction.inputs[1:], correction.errors[1:], correction.noise[1:]
    )
    (expected,), (deviation,) = without(correction.inputs[:1])
    error, variance = correction.left_out()
    assert error[0] == pytest.approx(1.5 - expected)
    assert variance[0] == pytest.approx(deviation**2)


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
    rows = NeighbourInputs(nf, deviation, 2).of(member, (np.array([0, 0, 0]), np.array([0, 1, 2])))
    assert rows[:, :2].tolist() == [[1.0, 1.0], [1.0, 1.0], [2.0, 0.0]]
    assert rows[0, 2:8].tolist() == [0.5, 0.0, 0.0, 0.0, 0.0, 1.0]
    assert rows[1, 8:].tolist() == [0.5, 0.0, 0.0]


def test_a_fit_finds_errors_that_belong_to_neighbours() -> None:
    """NF b costs 2 spreads more per instance than predicted; co-locations left out err by a fifth of that."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, (80, 2))
    counts = counts[counts.sum(axis=1) > 0]
    inputs = np.array([_row(a, b) for a, b in counts.tolist()])
    errors = -2.0 * counts[:, 1] + 0.1 * rng.standard_normal(len(counts))
    fitted = fit_neighbours(NAMES, inputs[:50], errors[:50], np.full(50, 0.01))
    assert fitted is not None
    assert np.abs(fitted(inputs[50:])[0] - errors[50:]).mean() < 0.4


def test_few_co_locations_teach_nothing() -> None:
    """Below twenty there is no correction."""
    assert fit_neighbours(NAMES, np.array([_row(1, 0)] * 19), np.ones(19), np.ones(19)) is None


def test_equal_rows_are_left_out_together() -> None:
    """Two instances of an NF in one co-location do not stand for each other: the third row alone is what remains."""
    inputs = np.array([_row(1, 1), _row(1, 1), _row(0, 2)])
    lengths = np.array([2.0, 2.0, *[0.5] * 9])
    errors, noise = np.array([1.0, 1.2, 0.4]), np.full(3, 0.1)
    left, variance = NeighbourCorrection(NAMES, lengths, 0.8, 0.2, inputs, errors, noise).left_out()
    remaining = NeighbourCorrection(NAMES, lengths, 0.8, 0.2, inputs[2:], errors[2:], noise[2:])
    (expected, _), (deviation, _) = remaining(inputs[:2])
    assert left[:2] == pytest.approx(errors[:2] - expected)
    assert variance[:2] == pytest.approx([deviation**2] * 2)


def test_the_most_competitors_are_those_at_default_traffic() -> None:
    """Rows at other traffic of the NF do not count; without any at default traffic, nothing is known."""
    inputs = np.array([_row(1, 1), _row(0, 2), _row(3, 3, own=0.4)])
    lengths, errors = np.array([2.0, 2.0, *[0.5] * 9]), np.zeros(3)
    assert NeighbourCorrection(NAMES, lengths, 0.8, 0.2, inputs, errors, errors).most_competitors == 2
    beyond = NeighbourCorrection(NAMES, lengths, 0.8, 0.2, inputs[2:], errors[2:], errors[2:])
    assert beyond.most_competitors == np.inf
