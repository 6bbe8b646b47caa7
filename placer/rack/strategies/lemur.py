"""Lemur: the paper's own heuristic (Yen et al., section 3.2), here under the model of `plan.py`.

The paper's supplement charges a subgroup that several branches share for one of them only, and its program counts one
core for a component with a merge but rates its parts apart. Here a subgroup pays for all packets that reach it, so
plans are not the paper's where chains merge.
"""

import time
from collections.abc import Sequence

from placer.rack.chain import Chain
from placer.rack.heuristics.coalescing import best_cores, placements
from placer.rack.heuristics.fixed_layouts import nothing
from placer.rack.plan import RackPlan
from placer.rack.rack import Rack
from placer.rack.strategies import Notify, register


@register("lemur")
def lemur(chains: Sequence[Chain], rack: Rack, *, time_limit: float, notify: Notify) -> RackPlan:
    """Of the baseline and its two coalesced placements, the one that gives the largest marginal throughput."""
    until = time.monotonic() + time_limit
    tried = placements(chains, rack, time_limit / 2, notify)
    found: list[RackPlan] = []
    for number, layouts in enumerate(tried):
        left = max(until - time.monotonic(), 0.0)
        found.append(best_cores(rack, layouts, time_limit=left / (len(tried) - number)))
    return best_of(found) if found else nothing(rack, "NFs run nowhere, or those on the switch exceed its stages")


def best_of(plans: Sequence[RackPlan]) -> RackPlan:
    """The plan with the largest marginal throughput; without any, the answer to the first placement."""
    return max(plans, key=lambda plan: plan.marginal_mbps if plan.chains else float("-inf"))
