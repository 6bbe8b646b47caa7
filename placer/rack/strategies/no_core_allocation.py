"""No core allocation: Lemur's placements with one core for each subgroup (section 5.3, figure 2f)."""

from collections.abc import Sequence

from placer.rack.chain import Chain
from placer.rack.heuristics.coalescing import aggressive_with_one_core, placements
from placer.rack.heuristics.fixed_layouts import CoreAllocation, nothing, plan_of
from placer.rack.plan import RackPlan
from placer.rack.rack import Rack
from placer.rack.strategies import Notify, register
from placer.rack.strategies.lemur import best_of


@register("no-core-allocation")
def no_core_allocation(chains: Sequence[Chain], rack: Rack, *, time_limit: float, notify: Notify) -> RackPlan:
    """Of Lemur's three placements the best one, where no subgroup gets an extra core."""
    found = placements(chains, rack, time_limit, notify, aggressive_with_one_core)
    if not found:
        return nothing(rack, "NFs run nowhere, or those on the switch exceed its stages")
    return best_of([plan_of(CoreAllocation(rack, layouts)) for layouts in found])
