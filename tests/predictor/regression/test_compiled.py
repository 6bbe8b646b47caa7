"""What compiled kernels share: an exponential, sums, arrays padded to one shape, and what is said of compiling."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from predictor.regression.compiled import KERNEL_FOLDERS, _sources, announce_compiling, dot, exponential, pad
from predictor.regression.gaussian_process import GaussianProcess, side_by_side
from predictor.regression.processes import add_squared, value_at


@given(st.floats(-700, 0))
def test_the_exponential_is_that_of_the_library(exponent: float) -> None:
    """To two units in the last place."""
    assert exponential(exponent) == pytest.approx(math.exp(exponent), rel=5e-16, abs=0)


def test_the_exponential_of_very_little_is_nothing() -> None:
    """Below the smallest normal number, and of minus infinity."""
    assert exponential(0.0) == 1.0
    assert 0.0 <= exponential(-800.0) < 1e-300
    assert 0.0 <= exponential(-math.inf) < 1e-300


def test_a_dot_product_ends_where_it_should() -> None:
    """Only the first two products count."""
    assert dot(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]), 2) == 14.0


def test_padding_is_zero() -> None:
    """A shorter array is filled up at its ends."""
    both = pad([np.ones((1, 2)), np.ones((2, 1))])
    assert both.tolist() == [[[1, 1], [0, 0]], [[1, 0], [1, 0]]]


def test_a_process_is_the_same_next_to_a_larger_one() -> None:
    """Of two inputs and ten points next to one of three inputs and thirty points; what pads it has no effect."""
    rng = np.random.default_rng(0)
    large, small = (
        GaussianProcess.fit(inputs, np.sin(inputs.sum(axis=1, keepdims=True)))
        for inputs in (rng.uniform(0, 3, (30, 3)), rng.uniform(0, 3, (10, 2)))
    )
    row, squared = np.array([1.0, 2.0, 1e9]), np.zeros(30)
    both = side_by_side([large, small])
    for column in range(3):
        add_squared(both, 1, row, column, column + 1, squared)
    assert value_at(both, 1, squared) == pytest.approx(small(row[None, :2])[0, 0], rel=1e-12)
    assert value_at(side_by_side([GaussianProcess.none(2)]), 0, np.empty(0)) == 0.0


def test_machine_code_is_of_all_sources_of_today() -> None:
    """The cache is compared by the digest of all of them: a kernel has others compiled into it."""
    assert exponential._cache._cache_file._source_stamp == _sources(KERNEL_FOLDERS)  # type: ignore[attr-defined]


def test_compiling_is_announced_once_to_who_asked_last() -> None:
    """A kernel that is compiled already is not announced, nor is the next one."""
    first, last = list[str](), list[str]()
    announce_compiling(first.append)
    announce_compiling(last.append)
    one, other = njit(lambda x: x + 1), njit(lambda x: x + 2)
    assert one(1) == 2 and one(2) == 3 and other(1) == 3
    assert not first
    assert len(last) == 1 and last[0].startswith("compiling")
