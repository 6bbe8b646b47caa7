"""Plans from layouts that a strategy has chosen: cores for their subgroups, then the best rates.

A strategy that does not search all layouts chooses one for each chain and gives out cores (`CoreAllocation`).
`plan_of` then finds the best rates, and refuses what violates an SLO or a limit of the rack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from placer.chains.chain import Chain
from placer.chains.layout import SWITCH, Layout, Subgroup
from placer.chains.layouts import TOLERANCE, Layouts, all_layouts
from placer.chains.plan import ChainPlan, RackPlan, Status, refined_rates
from placer.chains.rack import Rack, Server
from placer.chains.stages import BlockStages

Choose = Callable[[Layouts, Rack], int]
"""The row of a chain's layouts that a strategy takes; the rack has one of the servers."""


class CoreAllocation:
    """Whole cores for the subgroups of chains whose layouts are fixed; at first one for each.

    Parameters
    ----------
    layouts
        Per chain.
    """

    def __init__(self, rack: Rack, layouts: Sequence[Layout]) -> None:
        self.rack = rack
        self.layouts = layouts
        self.cores = [[1] * len(layout.subgroups) for layout in layouts]
        self.spare = [device.cores for device in rack.devices]
        for layout in layouts:
            for group in layout.subgroups:
                self.spare[group.device] -= 1

    @property
    def fits(self) -> bool:
        """Whether no device has fewer cores than were given out."""
        return min(self.spare, default=0) >= 0

    def rate(self, chain: int, group: int) -> Fraction | None:
        """The largest rate of the chain that a subgroup's cores allow, Mbps; None without a bound."""
        subgroup = self.layouts[chain].subgroups[group]
        device = self.rack.devices[subgroup.device]
        return subgroup.rate(self.cores[chain][group], device, self.layouts[chain].chain.packet_bits)

    def largest_rate(self, chain: int) -> Fraction:
        """That all subgroups of a chain and its t_max allow, Mbps."""
        rates = [self.rate(chain, group) for group in range(len(self.cores[chain]))]
        return min([self.layouts[chain].chain.slo.t_max_mbps, *(rate for rate in rates if rate is not None)])

    def slowest(self, chain: int, device: int | None = None) -> int | None:
        """The slowest of a chain's replicable subgroups, on one device or any; None where there is none."""
        found: list[tuple[Fraction, int]] = []
        for number, group in enumerate(self.layouts[chain].subgroups):
            rate = self.rate(chain, number)
            if _replicable(group) and rate is not None and device in (None, group.device):
                found.append((rate, number))
        return min(found)[1] if found else None

    def add_core(self, chain: int, group: int) -> None:
        """Give a spare core to a subgroup."""
        self.cores[chain][group] += 1
        self.spare[self.layouts[chain].subgroups[group].device] -= 1

    def spread_evenly(self) -> None:
        """Give the spare cores of each device in turn to chains with a replicable subgroup there, to its slowest."""
        for device in range(len(self.spare)):
            slowest = [self.slowest(chain, device) for chain in range(len(self.layouts))]
            entitled = [chain for chain, group in enumerate(slowest) if group is not None]
            while entitled and self.spare[device] > 0:
                for chain in entitled[: self.spare[device]]:
                    group = self.slowest(chain, device)
                    assert group is not None
                    self.add_core(chain, group)


def _replicable(group: Subgroup) -> bool:
    return group.cycles_of_replicas is not None


def chosen_layouts(chains: Sequence[Chain], rack: Rack, choose: Choose) -> list[Layout] | None:
    """A layout for each chain, each with one server, the one with most cores left; None where a chain has none.

    Latency is not looked at: `plan_of` refuses what is too slow.
    """
    spare = [device.cores for device in rack.devices]
    known: dict[object, tuple[int, ...] | None] = {}
    found: list[Layout] = []
    for chain in chains:
        layout = _first_layout(chain, rack, choose, spare, known)
        if layout is None:
            return None
        for group in layout.subgroups:
            spare[group.device] -= 1
        found.append(layout)
    return found


def _first_layout(
    chain: Chain, rack: Rack, choose: Choose, spare: Sequence[int], known: dict[object, tuple[int, ...] | None]
) -> Layout | None:
    if not rack.servers:
        sites = _sites_on(chain, rack, choose)
        return Layout(chain, rack, sites) if sites is not None else None
    first = {server: number for number, server in reversed([*enumerate(one.server for one in rack.devices)])}
    for server in sorted(range(len(rack.servers)), key=lambda one: (-spare[first[one]], one)):
        features = _without_names(rack.servers[server])
        same = (chain.packet_size, tuple(nf.nf for nf in chain.nfs), chain.edges, features)
        if same not in known:
            known[same] = _sites_on(chain, replace(rack, servers=(rack.servers[server],)), choose)
        sites = known[same]
        if sites is not None:
            return Layout(chain, rack, tuple(site if site == SWITCH else first[server] + site for site in sites))
    return None


def _without_names(server: Server) -> Server:
    return replace(server, name="", smartnic=server.smartnic and replace(server.smartnic, name=""))


def _sites_on(chain: Chain, rack: Rack, choose: Choose) -> tuple[int, ...] | None:
    layouts = all_layouts(replace(chain, slo=replace(chain.slo, d_max_us=None)), rack)
    return tuple(int(site) for site in layouts.sites[choose(layouts, rack)]) if len(layouts) else None


def plan_of(allocation: CoreAllocation) -> RackPlan:
    """The plan with the best rates for these layouts and cores; `unknown` where an SLO or a limit is violated."""
    rack, layouts = allocation.rack, allocation.layouts
    least = [layout.chain.slo.t_min_mbps for layout in layouts]
    caps = [allocation.largest_rate(chain) for chain in range(len(layouts))]
    if not allocation.fits:
        return nothing(rack, "more subgroups than cores")
    for layout, cap, rate in zip(layouts, caps, least, strict=True):
        if cap < rate * (1 - Fraction(TOLERANCE)):
            return nothing(rack, f"{layout.chain.name} reaches {_mbps(cap)} of its t_min, {_mbps(rate)}")
        limit = layout.chain.slo.d_max_us
        if limit is not None and layout.latency_us > limit * (1 + Fraction(TOLERANCE)):
            return nothing(rack, f"{layout.chain.name} has a latency of {float(layout.latency_us):.4g} us")
    tables = frozenset((chain, nf) for chain, layout in enumerate(layouts) for nf in layout.on_switch)
    if not BlockStages(rack, [layout.chain for layout in layouts]).fits(tables):
        return nothing(rack, "the NFs on the switch exceed its stages")
    rates = _best_rates(rack, layouts, caps)
    if rates is None:
        return nothing(rack, "the NICs do not carry the least rates")
    placed = (
        ChainPlan(layout, rate, tuple(cores))
        for layout, rate, cores in zip(layouts, rates, allocation.cores, strict=True)
    )
    return RackPlan(rack, Status.FEASIBLE, tuple(placed))


def nothing(rack: Rack, why: str) -> RackPlan:
    """The answer of a strategy that found no plan, which proves nothing."""
    return RackPlan(rack, Status.UNKNOWN, notes=(why,))


def _best_rates(rack: Rack, layouts: Sequence[Layout], caps: Sequence[Fraction]) -> list[float] | None:
    """The rates with the largest sum that the NICs carry, Mbps; None where they do not carry the least ones."""
    names = sorted({name for layout in layouts for name in layout.nic_shares})
    shares = np.array([[float(layout.nic_shares.get(name, 0)) for layout in layouts] for name in names])
    limits = np.array([float(rack.servers[server].nic_mbps) for server, _ in names])
    least = np.array([float(layout.chain.slo.t_min_mbps) for layout in layouts])
    largest = np.maximum([float(cap) for cap in caps], least)  # a cap may be below by the tolerance
    if not names:
        return [float(one) for one in largest]
    found = linprog(
        -np.ones(len(layouts)),
        A_ub=shares,
        b_ub=limits * (1 + TOLERANCE),
        bounds=list(zip(least.tolist(), largest.tolist(), strict=True)),
        method="highs",
    )
    return refined_rates(layouts, caps, found.x) if found.status == 0 and found.x is not None else None


def _mbps(rate: Fraction) -> str:
    return f"{float(rate):,.1f} Mbps"
