"""Plans from layouts that a strategy has chosen: cores for their subgroups, then the best rates.

A strategy that does not search all layouts chooses one for each chain and gives out cores (`CoreAllocation`).
`plan_of` then finds the best rates, and refuses what violates an SLO or a limit of the rack.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from placer.rack.chain import Chain
from placer.rack.layout_arrays import CAP_TOLERANCE, Layouts, lay_out_sites, layouts_in_parts
from placer.rack.plan import SWITCH_SITE, ChainPlan, Layout, RackPlan, Status, Subgroup, refine_rates
from placer.rack.rack import Rack, Server
from placer.rack.stages.stage_oracles import stage_oracle
from profiles.arrays import Ints
from profiles.linear_programs import linprog

Choose = Callable[[Layouts, Rack], int]
"""The row of a chain's layouts that a strategy takes; the rack has one of the servers."""


class CoreAllocation:
    """Whole cores for the subgroups of chains whose layouts are fixed; at first one for each."""

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

    def give(self, chain: int, cores: Sequence[int]) -> None:
        """Set the cores of a chain's subgroups."""
        for number, group in enumerate(self.layouts[chain].subgroups):
            self.spare[group.device] += self.cores[chain][number] - cores[number]
        self.cores[chain] = list(cores)

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


@dataclass
class LayoutChoice:
    """A layout for each chain, each with one server, the one with most cores left.

    Latency is not looked at: `plan_of` refuses what is too slow.
    """

    rack: Rack
    choose: Choose  # which of the layouts of a chain with one of the servers
    time_limit: float  # seconds; after them each chain gets the best of a part of its layouts
    notify: Callable[[str], None]

    def layouts(self, chains: Sequence[Chain]) -> list[Layout] | None:
        """For each chain; None where one has none."""
        self.until = time.monotonic() + self.time_limit
        self.known: dict[object, tuple[int, ...] | None] = {}
        spare = [device.cores for device in self.rack.devices]
        found: list[Layout] = []
        for chain in chains:
            layout = self._first(chain, spare)
            if layout is None:
                return None
            for group in layout.subgroups:
                spare[group.device] -= 1
            found.append(layout)
        return found

    def _first(self, chain: Chain, spare: Sequence[int]) -> Layout | None:
        rack = self.rack
        if not rack.servers:
            sites = self._sites_on(chain, rack)
            return Layout(chain, rack, sites) if sites is not None else None
        first = {server: number for number, server in reversed([*enumerate(device.server for device in rack.devices)])}
        for server in sorted(range(len(rack.servers)), key=lambda one: (-spare[first[one]], one)):
            features = _without_names(rack.servers[server])
            same = (chain.packet_size, tuple(nf.nf for nf in chain.nfs), chain.edges, features)
            if same not in self.known:
                self.known[same] = self._sites_on(chain, replace(rack, servers=(rack.servers[server],)))
            sites = self.known[same]
            if sites is not None:
                return Layout(
                    chain, rack, tuple(site if site == SWITCH_SITE else first[server] + site for site in sites)
                )
        return None

    def _sites_on(self, chain: Chain, rack: Rack) -> tuple[int, ...] | None:
        """The best layout: that of the best ones of each part."""
        chain = replace(chain, slo=replace(chain.slo, d_max_us=None))
        best: list[Ints] = []
        for layouts in layouts_in_parts(chain, rack):
            if best and time.monotonic() > self.until:
                self.notify(f"the time is over: {chain.name} gets the best of a part of its layouts")
                break
            if len(layouts):
                best.append(layouts.sites[self.choose(layouts, rack)])
        if not best:
            return None
        chosen = self.choose(lay_out_sites(chain, rack, np.array(best)), rack)
        return tuple(int(site) for site in best[chosen])


def most_on_hardware(layouts: Layouts, rack: Rack) -> int:
    """The layout with most NFs on the switch, then most on a SmartNIC."""
    smartnics = [number for number, device in enumerate(rack.devices) if device.is_smartnic]
    on_switch = (layouts.sites == SWITCH_SITE).sum(axis=1)
    on_smartnic = np.isin(layouts.sites, smartnics).sum(axis=1)
    return int(np.lexsort((-on_smartnic, -on_switch))[0])


def _without_names(server: Server) -> Server:
    return replace(server, name="", smartnic=server.smartnic and replace(server.smartnic, name=""))


def plan_of(allocation: CoreAllocation) -> RackPlan:
    """The plan with the best rates for these layouts and cores; `unknown` where an SLO or a limit is violated."""
    rack, layouts = allocation.rack, allocation.layouts
    least = [layout.chain.slo.t_min_mbps for layout in layouts]
    caps = [allocation.largest_rate(chain) for chain in range(len(layouts))]
    if not allocation.fits:
        return nothing(rack, "more subgroups than cores")
    for layout, cap, rate in zip(layouts, caps, least, strict=True):
        if cap < rate * (1 - Fraction(CAP_TOLERANCE)):
            return nothing(rack, f"{layout.chain.name} reaches {_mbps(cap)} of its t_min, {_mbps(rate)}")
        limit = layout.chain.slo.d_max_us
        if limit is not None and layout.latency_us > limit * (1 + Fraction(CAP_TOLERANCE)):
            return nothing(rack, f"{layout.chain.name} has a latency of {float(layout.latency_us):.4g} us")
    tables = frozenset((chain, nf) for chain, layout in enumerate(layouts) for nf in layout.on_switch)
    if not stage_oracle(rack, [layout.chain for layout in layouts]).fits(tables):
        return nothing(rack, "the NFs on the switch exceed its stages")
    rates = _best_rates(rack, layouts, caps)
    if rates is None:
        return nothing(rack, "the NICs do not carry the least rates")
    placed = (
        ChainPlan(layout, rate, tuple(cores))
        for layout, rate, cores in zip(layouts, rates, allocation.cores, strict=True)
    )
    return RackPlan(rack, Status.FEASIBLE, tuple(placed))


def plan_with_even_cores(
    chains: Sequence[Chain], rack: Rack, choose: Choose, time_limit: float, notify: Callable[[str], None]
) -> RackPlan:
    """A core for each subgroup; spare cores evenly among chains with a replicable subgroup, to its slowest."""
    layouts = LayoutChoice(rack, choose, time_limit, notify).layouts(chains)
    if layouts is None:
        return nothing(rack, "an NF runs nowhere")
    allocation = CoreAllocation(rack, layouts)
    allocation.spread_evenly()
    return plan_of(allocation)


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
        return [float(size) for size in largest]
    found = linprog(
        -np.ones(len(layouts)),
        A_ub=shares,
        b_ub=limits * (1 + CAP_TOLERANCE),
        bounds=list(zip(least.tolist(), largest.tolist(), strict=True)),
        method="highs",
    )
    return refine_rates(layouts, caps, found.x) if found.status == 0 and found.x is not None else None


def _mbps(rate: Fraction) -> str:
    return f"{float(rate):,.1f} Mbps"
