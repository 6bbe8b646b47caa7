"""Greedy: hardware preferred, with cores where they are needed first (Lemur, section 5.1)."""

from collections.abc import Sequence
from fractions import Fraction

from placer.rack.chain import Chain
from placer.rack.heuristics.fixed_layouts import CoreAllocation, LayoutChoice, most_on_hardware, nothing, plan_of
from placer.rack.plan import RackPlan
from placer.rack.rack import Rack
from placer.rack.strategies import Notify, register


@register("greedy")
def greedy(chains: Sequence[Chain], rack: Rack, *, time_limit: float, notify: Notify) -> RackPlan:
    """Cores until each chain reaches its t_min; the rest to chains by index, each up to its largest rate."""
    layouts = LayoutChoice(rack, most_on_hardware, time_limit, notify).layouts(chains)
    if layouts is None:
        return nothing(rack, "an NF runs nowhere")
    allocation = CoreAllocation(rack, layouts)
    for number, chain in enumerate(chains):
        _raise(allocation, number, chain.slo.t_min_mbps)
    for number, chain in enumerate(chains):
        _raise(allocation, number, chain.slo.t_max_mbps)
    return plan_of(allocation)


def _raise(allocation: CoreAllocation, chain: int, wanted: Fraction) -> None:
    """Give spare cores to the slowest subgroup of a chain while that raises its rate and it is below what is wanted."""
    while allocation.fits and (rate := allocation.largest_rate(chain)) < wanted:
        group = allocation.slowest(chain)
        if group is None or allocation.rate(chain, group) != rate:
            return
        if allocation.spare[allocation.layouts[chain].subgroups[group].device] <= 0:
            return
        allocation.add_core(chain, group)
