"""What table 8 and figure 8 are made of, small: one NF, a coarse grid, two seeds."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.methodology.profiling_cost import errors, full_errors, grid

NF, RUNS, QUOTA = "FlowMonitor", 2400, 150


@pytest.fixture(scope="module")
def likely() -> dict[str, float]:
    """Per method, the mean error (%) beside contention that NFs can exert."""
    told = {"full": float(full_errors(NF, RUNS).likely.mean())}
    for method in ("random", "adaptive"):
        told[method] = float(np.mean([errors(NF, method, QUOTA, seed, RUNS).likely.mean() for seed in range(2)]))
    return told


def test_adaptive_is_near_full_and_random_is_not(likely: dict[str, float]) -> None:
    """Table 8: with a sixteenth of the runs, adaptive errs within 1 point of full, random twice as much as adaptive."""
    assert likely["adaptive"] < likely["full"] + 1.0
    assert likely["random"] > 2 * likely["adaptive"]


def test_the_grid_is_every_traffic_beside_every_contention() -> None:
    """Each traffic profile of the grid was run beside the same contention levels, and a fifth is held out."""
    full = grid(NF, RUNS)
    _, profile_of = np.unique(full.traffic, axis=0, return_inverse=True)
    _, times = np.unique(profile_of, return_counts=True)
    assert len(set(times.tolist())) == 1
    assert len(full.throughput) == times[0] * len(times) >= RUNS
    assert full.held_out.mean() == pytest.approx(0.2, abs=0.03)
