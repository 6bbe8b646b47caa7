"""Inputs as shares of their measured range."""

from __future__ import annotations

import numpy as np
import pytest

from predictor.chains.input_scale import InputScale


def test_the_measured_range_becomes_zero_to_one() -> None:
    """A narrow range linearly, a wide one by logarithms, one from zero by logarithms after the smallest value."""
    inputs = np.array([[10.0, 64, 0], [15, 320, 10], [20, 1600, 1000]])
    scaled = InputScale.of(inputs)(inputs)
    assert scaled[:, 0].tolist() == [0, 0.5, 1]
    assert scaled[:, 1] == pytest.approx([0, 0.5, 1])
    assert scaled[[0, 2], 2] == pytest.approx([0, 1]) and 0.1 < scaled[1, 2] < 0.2


def test_an_input_that_never_varied_is_zero_everywhere() -> None:
    scale = InputScale.of(np.array([[5.0], [5.0]]))
    assert scale(np.array([[5.0], [70.0]])).tolist() == [[0], [0]]
    assert scale.outside(np.array([[5.0], [70.0]])).tolist() == [False, True]


def test_outside_is_beyond_the_smallest_and_the_largest() -> None:
    scale = InputScale.of(np.array([[0.1], [0.3]]))
    assert scale.outside(np.array([[0.1], [0.2], [0.1 + 0.2], [0.31], [0.0]])).tolist() == [
        False, False, False, True, True,
    ]  # fmt: skip


def test_zero_and_negative_values_outside_a_wide_range_stay_finite() -> None:
    scale = InputScale.of(np.array([[1.0], [1000.0]]))
    assert np.isfinite(scale(np.array([[0.0], [-5.0], [1e9]]))).all()
