"""The placements between which Lemur's heuristic chooses (section 3.2): a baseline, and two ways to coalesce it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from placer.chains.chain import Chain
from placer.chains.heuristics.coalescing import Rule, aggressive, coalesced, conservative, strict
from placer.chains.heuristics.fixed_layouts import LayoutChoice, most_on_hardware
from placer.chains.layout import SWITCH, Layout
from placer.chains.rack import CoreCost, Rack
from placer.chains.stages.stage_oracles import stage_oracle

Notify = Callable[[str], None]
Placement = list[Layout]
"""A layout for each chain."""


def placements(
    chains: Sequence[Chain], rack: Rack, time_limit: float, notify: Notify, aggressively: Rule = aggressive
) -> list[Placement]:
    """The baseline, and it with strict and aggressive, and with strict and conservative coalescing, where they differ.

    Parameters
    ----------
    time_limit, notify
        As of `LayoutChoice`.
    aggressively
        The rule of aggressive coalescing.
    """
    first = baseline(chains, rack, time_limit, notify)
    if first is None:
        return []
    every_rule = ((), (strict, aggressively), (strict, conservative))
    found: list[Placement] = []
    for rules in every_rule:
        placement = [coalesced(layout, rules) for layout in first]
        if placement not in found:
            found.append(placement)
    return found


def baseline(chains: Sequence[Chain], rack: Rack, time_limit: float, notify: Notify) -> Placement | None:
    """As many NFs on the switch as possible; while they exceed its stages, the one with fewest cycles leaves it.

    Cycles count as often as packets reach the NF, as for subgroups.
    """
    layouts = LayoutChoice(rack, most_on_hardware, time_limit, notify).layouts(chains)
    if layouts is None:
        return None
    stages = stage_oracle(rack, chains)
    while not stages.fits(frozenset((chain, nf) for chain, layout in enumerate(layouts) for nf in layout.on_switch)):
        leaving = [
            (chains[number].reach[nf] * cost.cycles, number, nf, device)
            for number, layout in enumerate(layouts)
            for nf in layout.on_switch
            for device, cost in [_server_of(layout, nf, layouts)]
            if cost is not None
        ]
        if not leaving:
            return None
        _, number, nf, device = min(leaving)
        sites = layouts[number].sites
        layouts[number] = replace(layouts[number], sites=(*sites[:nf], device, *sites[nf + 1 :]))
    return layouts


def _server_of(layout: Layout, nf: int, layouts: Placement) -> tuple[int, CoreCost | None]:
    """The server of a chain, or the one with most cores left, and what an NF costs there."""
    rack = layout.rack
    servers = [number for number, device in enumerate(rack.devices) if not device.is_smartnic and device.cores]
    own = {rack.devices[site].server for site in layout.sites if site != SWITCH}
    usable = [number for number in servers if not own or rack.devices[number].server in own]
    if not usable:
        return SWITCH, None
    used = [sum(group.device == number for one in layouts for group in one.subgroups) for number in usable]
    device = max(zip(usable, used, strict=True), key=lambda pair: (rack.devices[pair[0]].cores - pair[1], -pair[0]))[0]
    return device, rack.cost_on(layout.chain.nfs[nf].nf, rack.devices[device])
