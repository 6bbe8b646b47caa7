"""Runs a strategy with contention in the loop."""

from __future__ import annotations

import time
from collections.abc import Sequence

from placer.rack.chain import Chain
from placer.rack.contention.co_location import CycleGrowth
from placer.rack.contention.loop import ContendedPlan, plan_under_contention
from placer.rack.plan import RackPlan
from placer.rack.rack import Rack
from placer.rack.run_strategy import run_strategy
from placer.rack.strategies import CHAIN_STRATEGIES, Notify

LEAST_SECONDS = 0.1
"""For a round that begins near the end of the time."""


def run_contended(
    name: str,
    chains: Sequence[Chain],
    rack: Rack,
    growth: CycleGrowth,
    *,
    time_limit: float = 60.0,
    notify: Notify = lambda message: None,
) -> ContendedPlan:
    """The plan of a strategy that keeps every SLO by prediction, with the bound of the program by cycles alone.

    Parameters
    ----------
    time_limit
        Seconds for the plan by cycles alone, and again for the rounds after it.

    Raises
    ------
    InputError
        When there is no such strategy.
    """
    strategy = CHAIN_STRATEGIES.find(name)
    until: float | None = None

    def solve(chains: Sequence[Chain], rack: Rack) -> RackPlan:
        nonlocal until
        if until is None:
            plan = run_strategy(name, chains, rack, time_limit=time_limit, notify=notify)
            until = time.perf_counter() + time_limit
            return plan
        left = max(until - time.perf_counter(), LEAST_SECONDS)
        return strategy(chains, rack, time_limit=left, notify=notify)

    return plan_under_contention(chains, rack, growth, solve, time_limit=2 * time_limit, notify=notify)
