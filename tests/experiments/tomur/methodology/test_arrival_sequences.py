"""Sequences of arrivals evaluated on several cores, and the cost of profiling."""

import numpy as np
import pytest

from experiments import Setting
from experiments.tomur.methodology.arrival_sequences import each_sequence, fleet_of
from experiments.tomur.methodology.profiling_cost import errors, full_errors, grid
from experiments.tomur.methodology.simulated_card import CARD_SPEC
from experiments.tomur.table6_online import _oracles
from placer.strategies.contention_aware import ContentionAware

FOUR = Setting(scale=0.04)
RISK = 0.1  # given: to choose one takes most of the time of a sequence

Score = tuple[float, float]


def _scores(seed: int) -> list[tuple[list[str | None], Score]]:
    """NICs, wastage and SLA violations of a sequence on the first card, with exact and with predicted throughputs."""
    fleet, scores = fleet_of(CARD_SPEC), []
    arrivals = fleet.arrivals(seed, 16)
    fewest = fleet.fewest_nics(arrivals)
    for oracles in (fleet.truth, _oracles(CARD_SPEC, RISK)):
        plan = ContentionAware(fleet.catalogue, oracles=oracles).place(arrivals)
        scores.append(([one.nic for one in plan.placements], fleet.score(plan, fewest)))
    return scores


@pytest.mark.long
def test_two_processes_return_what_one_returns() -> None:
    """Four sequences give the same results in the same order on one and on two processes."""
    serial, parallel = (list(each_sequence(FOUR, _scores, jobs)) for jobs in (1, 2))
    assert len(serial) == 4
    assert len({str(one) for one in serial}) == 4  # else their order would not show
    assert parallel == serial


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
    assert mapes["adaptive"] < mapes["full"] + 1.0 and mapes["random"] > 2 * mapes["adaptive"]


def test_the_grid_is_every_traffic_profile_with_every_contention_level() -> None:
    """Each traffic profile of the grid has the same number of runs, and a fifth of all runs is held out."""
    full = grid(NF, RUNS)
    _, profile_of = np.unique(full.traffic, axis=0, return_inverse=True)
    _, times = np.unique(profile_of, return_counts=True)
    assert len(set(times.tolist())) == 1 and len(full.throughput) == times[0] * len(times) >= RUNS
    assert full.held_out.mean() == pytest.approx(0.2, abs=0.03)
