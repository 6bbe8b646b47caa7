"""Gaussian processes, their factors and compiled kernels, and significant digits."""

import math
import time
from pathlib import Path

import numpy as np
import platformdirs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from predictor.regression import processes
from predictor.regression.compiled import (
    KERNEL_FOLDERS,
    announce_compiling,
    digest_of_sources,
    dot,
    exponential,
    pad,
    running_s,
)
from predictor.regression.gaussian_process import GaussianProcess, side_by_side
from predictor.regression.significant import VALUE_BITS, significant


def test_interpolates_a_smooth_function() -> None:
    """Sixty noisy points of a sine are followed within the noise."""
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0, 6, size=(60, 1))
    smooth = GaussianProcess.fit(inputs, np.sin(inputs) + 0.01 * rng.standard_normal((60, 1)))
    between = np.linspace(0.5, 5.5, 50)[:, None]
    assert np.abs(smooth(between) - np.sin(between)).max() < 0.03


def test_keeps_the_edge_value_beyond() -> None:
    """Beyond the measured range the value is that of the edge."""
    inputs = np.linspace(0, 1, 20)[:, None]
    smooth = GaussianProcess.fit(inputs, inputs**2)
    np.testing.assert_allclose(smooth(np.array([[5.0]])), smooth(np.array([[1.0]])))


def test_anchored_fades_to_zero_beyond() -> None:
    """An anchored function is nothing far from what was measured, and not near there either."""
    smooth = GaussianProcess.fit(np.linspace(0, 1, 20)[:, None], np.ones((20, 1)), anchored=True)
    assert abs(smooth(np.array([[1000.0]]))[0, 0]) < 1e-3 and smooth(np.array([[0.5]]))[0, 0] > 0.9
    assert smooth.nearness(np.array([[0.5], [1000.0]]))[1] < 0.01


def test_one_setting_measured_often_does_not_outvote_the_trend() -> None:
    """Fifty runs of one setting that deviates pull the trend there less than fifty runs of many settings would."""
    rng = np.random.default_rng(0)
    line = np.linspace(0, 1, 40)
    inputs = np.concatenate([line, np.full(50, 0.5)])[:, None]
    outputs = np.concatenate([line + 0.02 * rng.standard_normal(40), 0.7 + 0.002 * rng.standard_normal(50)])[:, None]
    settings = np.concatenate([np.arange(40), np.full(50, 99)])
    middle = np.array([[0.5]])
    grouped, ungrouped = GaussianProcess.fit(inputs, outputs, settings), GaussianProcess.fit(inputs, outputs)
    assert abs(grouped(middle)[0, 0] - 0.5) < 0.5 * abs(ungrouped(middle)[0, 0] - 0.5)


def test_left_out_is_what_a_fit_without_the_setting_would_miss() -> None:
    """The closed form equals leaving each setting out and solving again with the same lengths, to the digits kept."""
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0, 6, size=(30, 1))
    outputs = np.sin(inputs) + 0.1 * rng.standard_normal((30, 1))
    settings = np.arange(30) // 3
    smooth = GaussianProcess.fit(inputs, outputs, settings, anchored=True)
    rows = settings == 4
    near = (inputs - smooth.low) * smooth.scale
    distance = np.sqrt(5 * ((near - near.T) ** 2))
    covariance = (1 + distance + distance**2 / 3) * np.exp(-distance)
    noisy = covariance + smooth.noise[0] * np.eye(30) + smooth.noise[1] * (settings[:, None] == settings)
    expected = covariance[rows][:, ~rows] @ np.linalg.solve(noisy[~rows][:, ~rows], outputs[~rows])
    np.testing.assert_allclose(smooth.left_out(outputs, settings)[rows], outputs[rows] - expected, atol=1e-7)


def test_constants_need_no_points() -> None:
    """What does not change is its mean, and a constant among changing outputs does no harm."""
    inputs = np.linspace(0, 1, 10)[:, None]
    assert not len(GaussianProcess.fit(inputs, np.full((10, 1), 3.0)).points)
    both = GaussianProcess.fit(inputs, np.column_stack([inputs, np.full(10, 3.0)]))
    np.testing.assert_allclose(both(inputs)[:, 1], 3.0)


@given(st.floats(-700, 0))
def test_the_exponential_is_that_of_the_library(exponent: float) -> None:
    """To two units in the last place."""
    assert exponential(exponent) == pytest.approx(math.exp(exponent), rel=5e-16, abs=0)


def test_the_exponential_of_very_little_is_nothing() -> None:
    """Below the smallest normal number, and of minus infinity."""
    assert exponential(0.0) == 1.0 and 0.0 <= exponential(-800.0) < 1e-300
    assert 0.0 <= exponential(-math.inf) < 1e-300


def test_a_dot_product_ends_where_it_should() -> None:
    """Only the first two products count."""
    assert dot(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]), 2) == 14.0


def test_padding_is_zero() -> None:
    """A shorter array is filled up at its ends."""
    assert pad([np.ones((1, 2)), np.ones((2, 1))]).tolist() == [[[1, 1], [0, 0]], [[1, 0], [1, 0]]]


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
        processes.add_squared(both, 1, row, column, column + 1, squared)
    assert processes.value_at(both, 1, squared) == pytest.approx(small(row[None, :2])[0, 0], rel=1e-12)
    assert processes.value_at(side_by_side([GaussianProcess.none(2)]), 0, np.empty(0)) == 0.0


def test_machine_code_is_of_alldigest_of_sources_of_today() -> None:
    """The cache is compared by the digest of all of them: a kernel has others compiled into it."""
    assert exponential._cache._cache_file._source_stamp == digest_of_sources(KERNEL_FOLDERS)  # type: ignore[attr-defined]


def test_machine_code_outlives_an_installation() -> None:
    """It lies in the user's cache, under a name without the place or the time of the installed files."""
    kept = Path(exponential._cache._cache_file._index_path)  # type: ignore[attr-defined]
    digest = digest_of_sources(KERNEL_FOLDERS)[:12]
    assert kept.parent.parent == platformdirs.user_cache_path("nf-placer") / "kernels"
    assert kept.stem.startswith("predictor.regression.compiled.exponential-") and kept.stem.endswith(digest)


def test_compiling_is_announced_once_to_who_asked_last_and_takes_no_time() -> None:
    """A kernel that is compiled already is not announced, nor is the next one. A clock stands still meanwhile."""
    first, last = list[str](), list[str]()
    announce_compiling(first.append)
    announce_compiling(last.append)
    one, other = njit(lambda x: x + 1), njit(lambda x: x + 2)
    began, running = time.monotonic(), running_s()
    assert one(1) == 2 and one(2) == 3 and other(1) == 3
    assert 0 < running_s() - running < time.monotonic() - began
    assert not first
    assert len(last) == 1 and last[0].startswith("compiling")


@given(st.integers(1, 40), st.integers(0, 1_000))
def test_a_factor_is_the_inverse_of_choleskys(size: int, seed: int) -> None:
    """Row by row as LAPACK computes it, and it solves."""
    points = np.random.default_rng(seed).standard_normal((size, 3))
    covariance: np.ndarray = processes.matern_exactly(processes.square_distances(points, points)) + 0.01 * np.eye(size)
    inverse_factor = processes.factorise(covariance)
    assert inverse_factor == pytest.approx(
        np.linalg.inv(np.linalg.cholesky(covariance))[np.tril_indices(size)], rel=1e-9, abs=1e-9
    )
    values = np.arange(size, dtype=float)
    assert covariance @ processes.solve(inverse_factor, values) == pytest.approx(values, rel=1e-9, abs=1e-9)


def test_a_factor_by_hand() -> None:
    """Of [[4, 2], [2, 5]] the factor is [[2, 0], [1, 2]], and the inverse of that [[1/2, 0], [-1/4, 1/2]]."""
    covariance = np.array([[4.0, 2.0], [2.0, 5.0]])
    assert processes.factorise(covariance).tolist() == [0.5, -0.25, 0.5]
    assert covariance.tolist() == [[4.0, 2.0], [2.0, 5.0]]


def test_what_is_no_covariance_is_refused() -> None:
    """Two errors cannot be more alike than equal."""
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        processes.factorise(np.array([[1.0, 2.0], [2.0, 1.0]]))


@given(st.floats(0, 1e6))
def test_the_covariance_is_that_of_compiled_code(squared: float) -> None:
    """Predictions are made with the compiled one, factors with this."""
    assert processes.matern_exactly(np.array([squared]))[0] == pytest.approx(
        processes.matern(squared), rel=1e-14, abs=1e-300
    )


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
    assert found.tolist()[:2] == [np.inf, -np.inf] and np.isnan(found[2]) and found[3] == 0.0


def test_a_column_each_has_its_own_magnitude() -> None:
    """`of` is divided by as numpy does."""
    assert significant([[1.0 + 2.0**-30, 1024.0 + 2.0**-30]], of=np.array([1.0, 1024.0])).tolist() == [[1.0, 1024.0]]
    assert significant([1.0 + 2.0**-30], 40).tolist() == pytest.approx([1.0 + 2.0**-30], abs=0)
