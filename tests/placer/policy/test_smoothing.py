"""Frequencies that are smoothed as far as they differ by chance only."""

from __future__ import annotations

import numpy as np

from placer.policy.forecast import smooth


def test_what_differs_by_chance_is_taken_for_alike() -> None:
    """Of 100 arrivals of five equally likely workloads, counts scatter by chance: all stay within 4 % of a fifth."""
    likely, _ = smooth(np.array([[17.0, 24.0, 21.0, 18.0, 20.0]]), np.full(5, 0.2))
    assert np.abs(likely[0] - 0.2).max() < 0.008


def test_what_differs_by_more_than_chance_is_believed() -> None:
    """Of 100 arrivals, 80 of one workload: it stays above 76 %."""
    likely, _ = smooth(np.array([[80.0, 5.0, 5.0, 5.0, 5.0]]), np.full(5, 0.2))
    assert likely[0, 0] > 0.76


def test_groups_that_are_alike_are_pooled() -> None:
    """What is expected of all is worth more arrivals where groups are alike than where each has its own."""
    alike = np.array([[5.0, 6.0, 5.0, 4.0], [6.0, 5.0, 4.0, 5.0]])
    apart = np.array([[20.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 20.0]])
    assert smooth(alike, np.full(4, 0.25))[1] > 10 * smooth(apart, np.full(4, 0.25))[1]


def test_without_arrivals_the_expectation_is_returned() -> None:
    """Nothing was counted."""
    expected = np.array([0.7, 0.3])
    assert np.allclose(smooth(np.zeros((1, 2)), expected)[0], expected)
