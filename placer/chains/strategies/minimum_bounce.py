"""Minimum bounce: as few changes between switch and servers as possible (Lemur, section 5.1; E2)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from placer.chains.chain import Chain
from placer.chains.fixed_layouts import CoreAllocation, chosen_layouts, nothing, plan_of
from placer.chains.layout import Layout
from placer.chains.layouts import Layouts
from placer.chains.plan import RackPlan
from placer.chains.rack import Rack
from placer.chains.strategies import Notify, register


@register("minimum-bounce")
def minimum_bounce(chains: Sequence[Chain], rack: Rack, *, time_limit: float, notify: Notify) -> RackPlan:
    """Per chain the fewest subgroups, then the largest rate with its even part of the cores; these as they are."""
    part = max(len(chains) // max(len(rack.servers), 1), 1)

    def choose(layouts: Layouts, one_server: Rack) -> int:
        groups = (~np.isnan(layouts.cycles)).sum(axis=1)
        fewest = np.flatnonzero(groups == groups.min())
        return max((int(row) for row in fewest), key=lambda row: (_rate(layouts, row, one_server, part), -row))

    found = chosen_layouts(chains, rack, choose)
    if found is None:
        return nothing(rack, "an NF runs nowhere")
    allocation = CoreAllocation(rack, found)
    allocation.spread_evenly()
    return plan_of(allocation)


def _rate(layouts: Layouts, row: int, rack: Rack, chains: int) -> Fraction:
    """What a chain reaches with its part of the cores, and what the NIC of the server carries of it alone, Mbps."""
    sites = tuple(int(site) for site in layouts.sites[row])
    layout = Layout(layouts.chain, rack, sites)
    allocation = CoreAllocation(rack, [layout])
    for number, device in enumerate(rack.devices):
        used = sum(group.device == number for group in layout.subgroups)
        allocation.spare[number] = max(device.cores // chains - used, 0)
    allocation.spread_evenly()
    nic = [rack.servers[server].nic_mbps / share for (server, _), share in layout.nic_shares.items() if share]
    return min([allocation.largest_rate(0), *nic])
