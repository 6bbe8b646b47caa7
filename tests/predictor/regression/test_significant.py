"""Significant digits: what differs by rounding alone becomes equal, and nothing else is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictor.regression.significant import VALUE_BITS, significant

numbers = st.floats(-1e300, 1e300, allow_subnormal=False)


@given(numbers)
def test_rounding_a_second_time_changes_nothing(value: float) -> None:
    """Stages may round what an earlier stage has rounded."""
    once = significant(value)
    assert significant(once) == once


@given(st.floats(1e-200, 1e200), st.integers(1, 40))
def test_a_value_keeps_that_many_binary_digits(value: float, bits: int) -> None:
    """The error is at most half of the last digit kept."""
    assert abs(significant(value, bits) / value - 1.0) <= 2.0**-bits


def test_digits_are_those_of_the_magnitude_that_is_given() -> None:
    """What is far below the last digit of 1 becomes 0, as a difference of sums near 1 has no further digits."""
    step = 2.0 ** (1 - VALUE_BITS)
    assert significant([1e-12, 0.4 * step, 0.6 * step, 1.0 + 1e-12], of=1.0).tolist() == [0.0, 0.0, step, 1.0]


@given(st.floats(0.1, 10.0))
def test_values_that_differ_by_rounding_become_equal(value: float) -> None:
    """Unless they are on both sides of the middle between two rounded values."""
    exact = significant(value)
    assert significant(float(exact) * (1 + 1e-14)) == significant(float(exact) * (1 - 1e-14)) == exact


def test_what_is_no_number_stays() -> None:
    """Infinite values stand for what was not measured."""
    found = significant([np.inf, -np.inf, np.nan, 0.0])
    assert found.tolist()[:2] == [np.inf, -np.inf]
    assert np.isnan(found[2])
    assert found[3] == 0.0


def test_a_column_each_has_its_own_magnitude() -> None:
    """`of` is divided by as numpy does."""
    found = significant([[1.0 + 2.0**-30, 1024.0 + 2.0**-30]], of=np.array([1.0, 1024.0]))
    assert found.tolist() == [[1.0, 1024.0]]
    assert significant([1.0 + 2.0**-30], 40).tolist() == pytest.approx([1.0 + 2.0**-30], abs=0)
