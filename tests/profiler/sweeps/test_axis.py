"""Points on a scale."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.sweeps.refinement import Axis


def test_points_are_even_on_the_scale() -> None:
    """By hand: halves of a linear range, decades of a logarithmic one."""
    assert Axis(0, 10).even(5) == [0, 2.5, 5, 7.5, 10]
    assert Axis(1, 1000, "log").even(4) == [1, 10, 100, 1000]


def test_whole_numbers_stay_whole() -> None:
    """Also where rounding makes several positions the same: as many points as wanted, or all that there are."""
    assert Axis(1, 100, "log", whole=True).even(6) == [1, 3, 6, 16, 40, 100]
    assert Axis(1, 10_000, "log", whole=True).even(30)[:5] == [1, 2, 3, 4, 5]
    assert len(Axis(1, 10_000, "log", whole=True).even(30)) == 30
    assert Axis(3, 6, whole=True).even(50) == [3, 4, 5, 6]


def test_between_neighbouring_whole_numbers_is_nothing() -> None:
    """Between others is their middle on the scale."""
    assert Axis(1, 100, whole=True).between(4, 5) is None
    assert Axis(1, 100, whole=True).between(4, 6) == 5
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
    assert len(values) == min(count, width + 1)
    assert values == sorted({float(int(value)) for value in values})
    assert (values[0], values[-1]) == (start, start + width)
