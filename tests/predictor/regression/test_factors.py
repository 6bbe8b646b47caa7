"""Factors of covariances against those of LAPACK, and covariances against the compiled ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictor.regression.processes import factorise, matern, matern_exactly, solve, square_distances


def _covariance(size: int, seed: int) -> np.ndarray:
    points = np.random.default_rng(seed).standard_normal((size, 3))
    covariance: np.ndarray = matern_exactly(square_distances(points, points)) + 0.01 * np.eye(size)
    return covariance


@given(st.integers(1, 40), st.integers(0, 1_000))
def test_a_factor_is_the_inverse_of_choleskys(size: int, seed: int) -> None:
    """Row by row as LAPACK computes it, and it solves."""
    covariance = _covariance(size, seed)
    inverse_factor = factorise(covariance)
    assert inverse_factor == pytest.approx(
        np.linalg.inv(np.linalg.cholesky(covariance))[np.tril_indices(size)], rel=1e-9, abs=1e-9
    )
    values = np.arange(size, dtype=float)
    assert covariance @ solve(inverse_factor, values) == pytest.approx(values, rel=1e-9, abs=1e-9)


def test_a_factor_by_hand() -> None:
    """Of [[4, 2], [2, 5]] the factor is [[2, 0], [1, 2]], and the inverse of that [[1/2, 0], [-1/4, 1/2]]."""
    covariance = np.array([[4.0, 2.0], [2.0, 5.0]])
    assert factorise(covariance).tolist() == [0.5, -0.25, 0.5]
    assert covariance.tolist() == [[4.0, 2.0], [2.0, 5.0]]


def test_what_is_no_covariance_is_refused() -> None:
    """Two errors cannot be more alike than equal."""
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        factorise(np.array([[1.0, 2.0], [2.0, 1.0]]))


@given(st.floats(0, 1e6))
def test_the_covariance_is_that_of_compiled_code(squared: float) -> None:
    """Predictions are made with the compiled one, factors with this."""
    assert matern_exactly(np.array([squared]))[0] == pytest.approx(matern(squared), rel=1e-14, abs=1e-300)
