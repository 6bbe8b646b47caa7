"""Replanning whose plan keeps every SLO under predicted contention."""

import time
from collections.abc import Sequence
from dataclasses import replace

from placer.rack.chain import Chain
from placer.rack.contention.co_location import CycleGrowth
from placer.rack.contention.loop import LEAST_SECONDS, ContendedPlan, plan_under_contention
from placer.rack.plan import RackPlan, Status
from placer.rack.rack import Rack
from placer.rack.replanning.moves import OldPlaces, list_moves
from placer.rack.replanning.replan import Notify, Replanned, replan


def replan_under_contention(
    chains: Sequence[Chain],
    rack: Rack,
    old: OldPlaces,
    growth: CycleGrowth,
    *,
    most_moves: int | None = None,
    time_limit: float = 60.0,
    notify: Notify = lambda message: None,
) -> tuple[Replanned, ContendedPlan]:
    """As `replan`, with cycles that grow beside neighbours by prediction: of the plans on the way, that with few moves.

    `time_limit`: seconds for the plan by cycles alone, and again for the rounds after it.
    """
    until = time.monotonic() + 2 * time_limit
    found: list[Replanned] = []

    def solve(given: Sequence[Chain], on: Rack) -> RackPlan:
        left = min(max(until - time.monotonic(), LEAST_SECONDS), time_limit)
        found.append(replan(given, on, old, most_moves=most_moves, time_limit=left, notify=notify))
        return found[-1].plan

    def worth(plan: RackPlan) -> tuple[float, ...]:
        return -len(list(list_moves(plan, old))), plan.marginal_mbps

    contended = plan_under_contention(
        chains, rack, growth, solve, time_limit=2 * time_limit, notify=notify, worth=worth
    )
    alone, plan = found[0], contended.plan
    if not alone.plan.chains:
        return alone, contended
    moves = tuple(list_moves(plan, old))
    if plan.chains and len(moves) != len(alone.moves):  # the bound is that of plans with other moves
        plan, predicted = (
            replace(each, status=Status.FEASIBLE, bound_mbps=None) for each in (plan, contended.predicted)
        )
        contended = replace(contended, plan=plan, predicted=predicted)
    return Replanned(plan, moves, alone.least_moves), contended
