"""Optimal: the plan with the largest marginal throughput, proven."""

from __future__ import annotations

from collections.abc import Sequence

from placer.rack.chain import Chain
from placer.rack.place import best_plan
from placer.rack.plan import RackPlan
from placer.rack.rack import Rack
from placer.rack.strategies import Notify, register


@register("optimal")
def optimal(chains: Sequence[Chain], rack: Rack, *, time_limit: float, notify: Notify) -> RackPlan:
    """The best plan; after the time limit the best one so far, with the bound that was reached."""
    return best_plan(chains, rack, time_limit=time_limit, notify=notify)
