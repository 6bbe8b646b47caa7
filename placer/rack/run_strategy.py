"""Runs a strategy on chains and a rack, and proves how far its plan is from the best one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from placer.rack.chain import Chain
from placer.rack.place import best_plan
from placer.rack.plan import RackPlan, Status
from placer.rack.rack import Rack
from placer.rack.strategies import CHAIN_STRATEGIES, Notify

EQUAL_MARGINALS = 1e-9
"""Relative: a marginal throughput this near its bound is optimal."""


def run_strategy(
    name: str,
    chains: Sequence[Chain],
    rack: Rack,
    *,
    time_limit: float = 60.0,
    notify: Notify = lambda message: None,
) -> RackPlan:
    """The plan of a strategy, with a bound; `seconds` are those of the strategy alone.

    Parameters
    ----------
    name
        Of the strategy. Where it gives no bound, that of `optimal` is taken.
    time_limit
        Seconds for the strategy, and again for the bound.

    Raises
    ------
    InputError
        When there is no such strategy.
    """
    strategy = CHAIN_STRATEGIES.find(name)
    begin = time.perf_counter()
    plan = strategy(chains, rack, time_limit=time_limit, notify=notify)
    plan = replace(plan, seconds=time.perf_counter() - begin)
    if plan.bound_mbps is not None or plan.status is Status.INFEASIBLE:
        return plan
    return _bound(plan, best_plan(chains, rack, time_limit=time_limit, notify=notify))


def _bound(plan: RackPlan, best: RackPlan) -> RackPlan:
    if not plan.chains:
        return replace(plan, status=Status.INFEASIBLE if best.status is Status.INFEASIBLE else Status.UNKNOWN,
                       bound_mbps=best.bound_mbps)  # fmt: skip
    if best.bound_mbps is None:
        return plan
    bound = max(best.bound_mbps, plan.marginal_mbps)
    proven = bound <= plan.marginal_mbps + EQUAL_MARGINALS * max(plan.marginal_mbps, 1.0)
    return replace(plan, bound_mbps=bound, status=Status.OPTIMAL if proven else Status.FEASIBLE)
