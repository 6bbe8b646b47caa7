"""The errors behind table 8 and figure 8, for one NF, a coarse grid and two seeds."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.tomur.methodology.profiling_cost import errors, full_errors, grid

NF, RUNS, QUOTA = "FlowMonitor", 2400, 150


@pytest.fixture(scope="module")
def mapes() -> dict[str, float]:
    """The mean error (%) of each method with contention that NFs can cause."""
    means = {"full": float(full_errors(NF, RUNS).realistic.mean())}
    for method in ("random", "adaptive"):
        means[method] = float(np.mean([errors(NF, method, QUOTA, seed, RUNS).realistic.mean() for seed in range(2)]))
    return means


@pytest.mark.long
def test_adaptive_is_near_full_and_random_is_not(mapes: dict[str, float]) -> None:
    """Table 8: with a sixteenth of the runs, adaptive is within 1 point of full, and random errs twice as much."""
    assert mapes["adaptive"] < mapes["full"] + 1.0
    assert mapes["random"] > 2 * mapes["adaptive"]


def test_the_grid_is_every_traffic_profile_with_every_contention_level() -> None:
    """Each traffic profile of the grid has the same number of runs, and a fifth of all runs is held out."""
    full = grid(NF, RUNS)
    _, profile_of = np.unique(full.traffic, axis=0, return_inverse=True)
    _, times = np.unique(profile_of, return_counts=True)
    assert len(set(times.tolist())) == 1
    assert len(full.throughput) == times[0] * len(times) >= RUNS
    assert full.held_out.mean() == pytest.approx(0.2, abs=0.03)
