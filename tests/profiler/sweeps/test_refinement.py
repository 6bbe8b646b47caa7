"""Further points go where a curve bends or jumps, on linear and logarithmic axes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.sweeps.refinement import Axis, further_points, relative_noise

AXIS = Axis(0.0, 100.0)
EVEN = np.linspace(0, 100, 21).tolist()


def test_a_straight_line_is_filled_evenly() -> None:
    """Where nothing bends, the widest gaps are halved."""
    assert further_points(AXIS, {x: [10 + x] for x in (0.0, 20.0, 40.0, 80.0, 100.0)}, 1, 10) == [60.0]


def test_a_bend_draws_points_to_both_of_its_sides() -> None:
    """By hand: flat up to 42, then falling; only intervals beside the bend are halved."""
    runs = {x: [100.0 if x < 42 else 100 - (x - 42)] for x in EVEN}
    assert sorted(further_points(AXIS, runs, 3, 40)) == [37.5, 42.5, 47.5]


def test_a_jump_is_halved_first() -> None:
    """A step between 60 and 65."""
    assert further_points(AXIS, {x: [100.0 if x < 62 else 50.0] for x in EVEN}, 1, 40) == [62.5]


def test_a_jump_is_not_halved_for_ever() -> None:
    """Once its interval is narrow, points go elsewhere."""
    runs = {x: [100.0 if x < 62 else 50.0] for x in EVEN}
    for _ in range(20):
        for x in further_points(AXIS, runs, 1, 40):
            runs[x] = [100.0 if x < 62 else 50.0]
    x = sorted(runs)
    assert min(b - a for a, b in pairwise(x)) >= 100 / 40 / 16 and len(runs) == 41


def test_noise_draws_no_points() -> None:
    """A flat curve with 2 % noise is filled evenly: nearly all points halve an interval of full width."""
    rng = np.random.default_rng(3)
    chosen = further_points(AXIS, {x: (100 + 2 * rng.normal(size=3)).tolist() for x in EVEN}, 10, 40)
    assert len(chosen) == 10 and len(set(chosen)) == 10


def test_the_noise_is_that_of_the_repeats() -> None:
    """2 %, from three repeats; from neighbours where there are none; an outlier hardly changes it."""
    rng = np.random.default_rng(4)
    runs = {x: (100 * (1 + 0.02 * rng.normal(size=3))).tolist() for x in np.linspace(0, 1, 200).tolist()}
    assert 0.018 < relative_noise(runs) < 0.022
    assert 0.016 < relative_noise({x: found[:1] for x, found in runs.items()}) < 0.024
    runs[0.0][0] = 1000.0
    assert 0.018 < relative_noise(runs) < 0.022


def test_there_may_be_nothing_left_to_measure() -> None:
    """Every whole number is measured."""
    assert further_points(Axis(1, 4, whole=True), {1.0: [1.0], 2.0: [5.0], 3.0: [1.0], 4.0: [1.0]}, 3, 10) == []


def test_points_are_even_on_the_scale() -> None:
    """By hand: halves of a linear range, decades of a logarithmic one."""
    assert Axis(0, 10).even(5) == [0, 2.5, 5, 7.5, 10] and Axis(1, 1000, "log").even(4) == [1, 10, 100, 1000]


def test_whole_numbers_stay_whole() -> None:
    """Also where rounding makes several positions the same: as many points as wanted, or all that there are."""
    assert Axis(1, 100, "log", whole=True).even(6) == [1, 3, 6, 16, 40, 100]
    assert Axis(1, 10_000, "log", whole=True).even(30)[:5] == [1, 2, 3, 4, 5]
    assert len(Axis(1, 10_000, "log", whole=True).even(30)) == 30
    assert Axis(3, 6, whole=True).even(50) == [3, 4, 5, 6]


def test_between_neighbouring_whole_numbers_is_nothing() -> None:
    """Between others is their middle on the scale."""
    assert Axis(1, 100, whole=True).between(4, 5) is None and Axis(1, 100, whole=True).between(4, 6) == 5
    assert Axis(1, 10_000, "log", whole=True).between(1, 3) == 2
    assert Axis(1, 10_000, "log").between(1, 10_000) == 100


@given(st.floats(1e-3, 1e6), st.floats(1.001, 1e6), st.integers(2, 60), st.sampled_from(["linear", "log"]))
def test_values_rise_and_have_both_ends(start: float, factor: float, count: int, scale: str) -> None:
    """Any range of floats: so many different values, and each position leads back to its value."""
    axis = Axis(start, start * factor, scale)  # type: ignore[arg-type]
    values = axis.even(count)
    assert len(values) == count and values == sorted(set(values))
    assert (values[0], values[-1]) == (axis.start, axis.end)
    assert [axis.position(value) for value in values] == pytest.approx(
        [n / (count - 1) for n in range(count)], abs=1e-3
    )


@given(st.integers(1, 1000), st.integers(1, 10_000), st.integers(2, 60), st.sampled_from(["linear", "log"]))
def test_whole_values_are_as_many_as_wanted(start: int, width: int, count: int, scale: str) -> None:
    """Any range of whole numbers."""
    values = Axis(start, start + width, scale, whole=True).even(count)  # type: ignore[arg-type]
    assert len(values) == min(count, width + 1) and values == sorted({float(int(value)) for value in values})
    assert (values[0], values[-1]) == (start, start + width)
