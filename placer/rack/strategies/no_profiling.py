"""No profiling: Lemur's placements as if all NFs took the same cycles (section 5.3, figure 2f)."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from placer.rack.chain import Chain
from placer.rack.heuristics.coalescing import placements
from placer.rack.heuristics.fixed_layouts import CoreAllocation, nothing, plan_of
from placer.rack.plan import Layout, RackPlan
from placer.rack.rack import CoreCost, Rack
from placer.rack.strategies import Notify, register


@register("no-profiling")
def no_profiling(chains: Sequence[Chain], rack: Rack, *, time_limit: float, notify: Notify) -> RackPlan:
    """Layouts and cores are chosen with equal cycles, cores spread evenly; the rates are those of the true cycles.

    Every NF is taken to cost the mean of all NFs on servers. Of the three placements, the one that would carry most is
    taken.
    """
    found = placements(chains, with_equal_cycles(rack), time_limit, notify)
    if not found:
        return nothing(rack, "NFs run nowhere, or those on the switch exceed its stages")
    believed = max((_even(layouts) for layouts in found), key=_aggregate)
    allocation = CoreAllocation(rack, [Layout(layout.chain, rack, layout.sites) for layout in believed.layouts])
    for number, cores in enumerate(believed.cores):
        allocation.give(number, cores)
    return plan_of(allocation)


def _even(layouts: Sequence[Layout]) -> CoreAllocation:
    allocation = CoreAllocation(layouts[0].rack, layouts)
    allocation.spread_evenly()
    return allocation


def _aggregate(allocation: CoreAllocation) -> tuple[bool, Fraction]:
    """Whether the cores suffice, and the sum of the rates that they allow."""
    return allocation.fits, sum(
        (allocation.largest_rate(chain) for chain in range(len(allocation.layouts))), Fraction()
    )


def with_equal_cycles(rack: Rack) -> Rack:
    """The rack, where every NF takes the same cycles on servers and SmartNICs."""
    on_servers = [cost.server.cycles for cost in rack.costs.values() if cost.server]
    cycles = sum(on_servers, Fraction()) / len(on_servers) if on_servers else Fraction(1)

    def equal(cost: CoreCost | None) -> CoreCost | None:
        return cost and replace(cost, cycles=cycles)

    costs = {nf: replace(one, server=equal(one.server), smartnic=equal(one.smartnic)) for nf, one in rack.costs.items()}
    return replace(rack, costs=costs)
