"""Subgroups of a chain that become one when the NFs between them leave the switch (Lemur, section 3.2, step 2).

A layout bounces where packets leave a server for an NF on the switch and return. With that NF on the server both
subgroups are one, which may do with fewer cores but takes more cycles for a packet. Three rules say when to do so.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations

import numpy as np

from placer.rack.chain import Chain, TableId
from placer.rack.heuristics.fixed_layouts import CoreAllocation, LayoutChoice, most_on_hardware, nothing, plan_of
from placer.rack.layout_arrays import CAP_TOLERANCE, lay_out_sites
from placer.rack.options import Options, options_at
from placer.rack.plan import SWITCH_SITE, Layout, RackPlan, Subgroup
from placer.rack.rack import CoreCost, Device, Rack
from placer.rack.search.branch_and_bound import Search
from placer.rack.stages.stage_oracles import stage_oracle


@dataclass(frozen=True)
class Joining:
    """Two subgroups that become one. `before`, `after`: layouts of the chain."""

    before: Layout
    after: Layout
    parts: tuple[Subgroup, Subgroup]  # the two, in the layout before

    @property
    def joined(self) -> Subgroup:
        """What they become."""
        return next(group for group in self.after.subgroups if self.parts[0].nfs[0] in group.nfs)


Rule = Callable[[Joining], bool]  # whether to join


def coalesce(layout: Layout, rules: Sequence[Rule]) -> Layout:
    """The layout after joining subgroups, two at a time, while one of the rules allows it."""
    while joining := next((found for found in joinings(layout) if any(rule(found) for rule in rules)), None):
        layout = joining.after
    return layout


def strict(joining: Joining) -> bool:
    """Two cores for the joined subgroup make it faster than a core for each part; one core, if it has no replicas."""
    layout = joining.before
    return _rate(layout, joining.joined, 2) > min(_rate(layout, part, 1) for part in joining.parts)


def conservative(joining: Joining) -> bool:
    """The chain does not become slower, with a core for each subgroup."""
    return _slowest(joining.after) >= _slowest(joining.before) and keeps_latency(joining)


def aggressive(joining: Joining) -> bool:
    """The SLO is not violated: all cores that the chain could have reach its t_min."""
    layout, joined = joining.after, joining.joined
    others = sum(group.device == joined.device for group in layout.subgroups) - 1
    most = layout.rack.devices[joined.device].cores - others
    return _reaches(layout, joined, most) and keeps_latency(joining)


def aggressive_with_one_core(joining: Joining) -> bool:
    """As `aggressive`, where no subgroup gets more than one core."""
    return _reaches(joining.after, joining.joined, 1) and keeps_latency(joining)


def keeps_latency(joining: Joining) -> bool:
    """Whether the chain keeps its largest latency, or comes nearer to it."""
    limit = joining.after.chain.slo.d_max_us
    if limit is None:
        return True
    return joining.after.latency_us <= max(limit * (1 + Fraction(CAP_TOLERANCE)), joining.before.latency_us)


def joinings(layout: Layout) -> Iterator[Joining]:
    """All ways to join two subgroups by NFs on one path between them; long paths first, as in the authors' program."""
    found: dict[tuple[int, ...], Joining] = {}
    for one, other in permutations(layout.subgroups, 2):
        if one.device == other.device:
            for path in _paths(layout, one, other):
                sites = tuple(one.device if at in path else site for at, site in enumerate(layout.sites))
                found.setdefault(sites, Joining(layout, replace(layout, sites=sites), (one, other)))
    moved = {sites: sum(site == SWITCH_SITE for site in sites) for sites in found}
    return (found[sites] for sites in sorted(found, key=lambda sites: (moved[sites], sites)))


def _paths(layout: Layout, one: Subgroup, other: Subgroup) -> Iterator[frozenset[int]]:
    """The NFs on each path from one subgroup to another that passes only NFs that could leave the switch for them."""
    device = layout.rack.devices[one.device]
    waiting = [(at, frozenset[int]()) for at in one.nfs]
    while waiting:
        at, passed = waiting.pop()
        for edge in layout.chain.edges_from(at):
            if passed and edge.head in other.nfs:
                yield passed
            elif layout.sites[edge.head] == SWITCH_SITE and _runs_on(layout, edge.head, device):
                waiting.append((edge.head, passed | {edge.head}))


def _runs_on(layout: Layout, at: int, device: Device) -> bool:
    return layout.rack.cost_on(layout.chain, at, device) is not None


def _reaches(layout: Layout, group: Subgroup, cores: int) -> bool:
    return _rate(layout, group, cores) >= layout.chain.slo.t_min_mbps * (1 - Fraction(CAP_TOLERANCE))


def _slowest(layout: Layout) -> Fraction | float:
    return min(_rate(layout, group, 1) for group in layout.subgroups)


def _rate(layout: Layout, group: Subgroup, cores: int) -> Fraction | float:
    """Mbps on cores, of which a subgroup without replicas uses one; infinite without cycles."""
    usable = cores if group.cycles_of_replicas is not None else 1
    rate = group.rate(usable, layout.rack.devices[group.device], layout.chain.packet_bits)
    return float("inf") if rate is None else rate


# The placements between which Lemur's heuristic chooses (section 3.2): a baseline, and two ways to coalesce it.


Notify = Callable[[str], None]
Placement = list[Layout]  # a layout for each chain


def placements(
    chains: Sequence[Chain], rack: Rack, time_limit: float, notify: Notify, aggressively: Rule = aggressive
) -> list[Placement]:
    """The baseline, and it with strict and aggressive, and with strict and conservative coalescing, where they differ.

    `aggressively`: the rule of aggressive coalescing.
    """
    first = baseline(chains, rack, time_limit, notify)
    if first is None:
        return []
    every_rule = ((), (strict, aggressively), (strict, conservative))
    found: list[Placement] = []
    for rules in every_rule:
        placement = [coalesce(layout, rules) for layout in first]
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
    own = {rack.devices[site].server for site in layout.sites if site != SWITCH_SITE}
    usable = [number for number in servers if not own or rack.devices[number].server in own]
    if not usable:
        return SWITCH_SITE, None
    used = [sum(group.device == number for layout in layouts for group in layout.subgroups) for number in usable]
    device = max(zip(usable, used, strict=True), key=lambda pair: (rack.devices[pair[0]].cores - pair[1], -pair[0]))[0]
    return device, rack.cost_on(layout.chain, nf, rack.devices[device])


class AnyTables:
    """A switch that all tables fit: whether these do is checked once, for the plan."""

    def fits(self, tables: frozenset[TableId]) -> bool:
        return True


def best_cores(rack: Rack, layouts: Sequence[Layout], *, time_limit: float) -> RackPlan:
    """The plan with these layouts, each on one server at most, that has the largest marginal throughput.

    `time_limit`: seconds; where they end the search, the best allocation so far is taken.
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
