"""The best cores for layouts that are fixed: for each server the search over all allocations of its cores."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from placer.rack.heuristics.fixed_layouts import CoreAllocation, nothing, plan_of
from placer.rack.layout import SWITCH_SITE, Layout
from placer.rack.layouts import lay_out_sites
from placer.rack.options import Options, options_at
from placer.rack.plan import RackPlan
from placer.rack.rack import Rack
from placer.rack.search.branch_and_bound import Search
from placer.rack.stages.block_stages import TableId


class AnyTables:
    """A switch that all tables fit: whether these do is checked once, for the plan."""

    def fits(self, tables: frozenset[TableId]) -> bool:
        return True


def best_cores(rack: Rack, layouts: Sequence[Layout], *, time_limit: float) -> RackPlan:
    """The plan with these layouts, each on one server at most, that has the largest marginal throughput.

    Parameters
    ----------
    time_limit
        Seconds; where they end the search, the best allocation so far is taken.
    """
    until = time.monotonic() + time_limit
    allocation = CoreAllocation(rack, layouts)
    if not allocation.fits:
        return nothing(rack, "more subgroups than cores")
    for server in range(len(rack.servers)):
        numbers = [number for number, layout in enumerate(layouts) if server in _servers(layout)]
        options = [_options(layouts[number]) for number in numbers]
        slow = [layouts[number].chain.name for number, one in zip(numbers, options, strict=True) if not len(one)]
        if slow:
            return nothing(rack, f"no number of cores reaches t_min of {', '.join(slow)}")
        if not numbers:
            continue
        found = Search(rack, options, AnyTables(), max(until - time.monotonic(), 0.0)).run()
        if found.chosen is None:
            name = rack.servers[server].name
            if found.bound > float("-inf"):
                return nothing(rack, f"the time was over before there were cores of {name} for its chains")
            names = ", ".join(layouts[number].chain.name for number in numbers)
            return nothing(rack, f"cores and NIC of {name} do not reach t_min of {names}")
        for number, one, row in zip(numbers, options, found.chosen, strict=True):
            allocation.give(number, [int(one.group_cores[row, group.nfs[0]]) for group in layouts[number].subgroups])
    return plan_of(allocation)


def _servers(layout: Layout) -> set[int]:
    return {layout.rack.devices[site].server for site in layout.sites if site != SWITCH_SITE}


def _options(layout: Layout) -> Options:
    return options_at(lay_out_sites(layout.chain, layout.rack, np.array([layout.sites])), layout.rack)
