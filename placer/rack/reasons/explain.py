"""Why each chain has the layout that it has: a verdict on every layout near it.

What forbids a layout by itself is looked at first. For others, the best plan with the layout forced is searched, on the
whole rack where it has few servers, else on the servers of the chain and of the layout, while the others stay.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from math import ceil

import numpy as np

from placer.rack.chain import Chain, same_but_for_names
from placer.rack.layout_arrays import CAP_TOLERANCE, at_one_socket, layouts_at, possible_sites
from placer.rack.options import Options, drop_dominated_options
from placer.rack.plan import SWITCH_SITE, ChainPlan, Layout, RackPlan, Status, Subgroup
from placer.rack.rack import Rack
from placer.rack.replanning.moves import NEW_SITE, sites_within
from placer.rack.replanning.regions import Region, Regions
from placer.rack.search.branch_and_bound import Search
from placer.rack.stages.stage_oracles import stage_oracle
from placer.rack.strategies.optimal import FEW_SERVERS, plan_found
from profiles.arrays import Ints

EQUAL_MARGINALS = 1e-9
"""Relative, of marginal throughputs."""
MOST_COUNTED = 2_000
"""Layouts of a chain; of more, those that are not shown are only counted."""
MOST_ELSEWHERE = 2
"""Servers of other kinds of regions on which a chain is looked at, besides its own."""


@dataclass(frozen=True)
class ChainExplanation:
    """A chain of a plan, and the layouts that it does not have.

    `verdicts`: of the layouts nearest to the plan's, by the number of NFs that differ. `others`: of layouts that are
    not among them, how many for each set of devices and cause; the cause is `possible` where only a plan would show
    what it costs.
    """

    placed: ChainPlan
    verdicts: tuple[LayoutVerdict, ...]
    others: Mapping[tuple[tuple[str, ...], LayoutCause], int]


class LayoutQuestions:
    """Answers what another layout of a chain would change.

    `plan`: with all chains placed. `time_limit`: seconds for all questions together.
    """

    def __init__(self, plan: RackPlan, time_limit: float) -> None:
        self.plan, self.rack = plan, plan.rack
        if len(self.rack.servers) > FEW_SERVERS:
            self.rack.refuse_for(f"an explanation of layouts on more than {FEW_SERVERS} servers")
        self.chains = [chain.chain for chain in plan.chains]
        self.until = time.monotonic() + time_limit
        self.regions = Regions(self.chains, self.rack, [chain.layout.sites for chain in plan.chains])
        # by server its region in the plan
        regions, _ = self.regions.every()
        self.region_of = {server: region for region in regions for server in region.servers}
        self.known: dict[object, Options] = {}

    def explanation(self, chain: int, layouts: int) -> ChainExplanation:
        """The verdicts on so many layouts of a chain."""
        chosen = self.plan.chains[chain].layout.sites
        possible = self._possible(chain)
        rows = self._nearest(chain, possible, layouts)
        verdicts = [self.verdict(chain, Layout(self.chains[chain], self.rack, row)) for row in rows]
        return ChainExplanation(
            self.plan.chains[chain], tuple(verdicts), Counter(self._others(chain, possible, {chosen, *rows}))
        )

    def verdict(self, chain: int, layout: Layout) -> LayoutVerdict:
        """What forbids a layout of a chain, or what it costs."""
        alone = verdict_alone(layout)
        if alone.cause is not LayoutCause.POSSIBLE:
            return alone
        return self.best_of(chain, [layout])

    def best_of(self, chain: int, layouts: Sequence[Layout]) -> LayoutVerdict:
        """The best plan with one of some layouts, and what it costs."""
        sites = np.array([layout.sites for layout in layouts], dtype=np.int64)
        region, whole = self._region(chain, sites)
        if time.monotonic() > self.until:
            return LayoutVerdict(layouts[0], LayoutCause.UNKNOWN, proven=False)
        found = self._force_layouts(region, chain, sites)
        if not found.chains:
            proven = whole and found.status is Status.INFEASIBLE
            return LayoutVerdict(layouts[0], LayoutCause.OTHERS if proven else LayoutCause.UNKNOWN, proven=proven)
        placed = self.regions.placed(region, found)
        lost = {number: self.plan.chains[number].rate_mbps - one.rate_mbps for number, one in placed.items()}
        cost, marginal = sum(lost.values()), self.plan.marginal_mbps
        near = EQUAL_MARGINALS * max(abs(marginal), 1.0)
        cause = LayoutCause.COSTS if cost > near else LayoutCause.BETTER if cost < -near else LayoutCause.AS_GOOD
        return LayoutVerdict(
            placed[chain].layout,
            cause,
            marginal_mbps=marginal - cost,
            cost_mbps=cost,
            proven=whole and found.status is Status.OPTIMAL,
            changes={self.chains[at].name: -mbps for at, mbps in lost.items() if abs(mbps) > near},
        )

    def _force_layouts(self, region: Region, chain: int, sites: Ints) -> RackPlan:
        """The best plan of a region where a chain has one of some layouts."""
        instance = self.regions.instance(region, self._tables_outside(region))
        rack, local = instance.rack, {device: at for at, device in enumerate(self.regions.devices(region.servers))}
        options = []
        for number, each in zip(region.chains, instance.chains, strict=True):
            if number == chain:
                rows = np.vectorize(lambda site: local.get(site, site), otypes=[np.int64])(sites)
                layouts = layouts_at(each, rack, rows)
                options.append(drop_dominated_options(layouts, rack, np.zeros(len(layouts), np.int64)))
            else:
                options.append(self._options(number, region, rack))
        if any(len(option) == 0 for option in options):
            return RackPlan(rack, Status.INFEASIBLE)
        search = Search(rack, options, instance.stages, max(self.until - time.monotonic(), 0.05))
        return plan_found(search.run(), options, instance.chains, rack, 0.0)

    def _options(self, number: int, region: Region, rack: Rack) -> Options:
        """Of a chain of a region; on a large rack, it stays on its servers and the switch."""
        chain, possible = self.chains[number], possible_sites(self.chains[number], rack)
        if len(self.rack.servers) > FEW_SERVERS:
            used = {self.rack.devices[site].server for site in self.plan.chains[number].layout.sites if site >= 0}
            own = {at for at, device in enumerate(self.regions.devices(region.servers))
                   if self.rack.devices[device].server in used}  # fmt: skip
            possible = [[site for site in sites if site == SWITCH_SITE or site in own] for sites in possible]
        key = same_but_for_names(chain), self.regions.key(replace(region, chains=())), tuple(map(tuple, possible))
        if key not in self.known:
            layouts = layouts_at(chain, rack, sites_within(chain, possible, [NEW_SITE] * len(chain.nfs), 0))
            self.known[key] = drop_dominated_options(layouts, rack, np.zeros(len(layouts), np.int64))
        return self.known[key]

    def _region(self, chain: int, sites: Ints) -> tuple[Region, bool]:
        """The servers of a chain and of some of its layouts, with all chains on them; whether that is everything."""
        if len(self.rack.servers) <= FEW_SERVERS:
            return self.regions.of(range(len(self.rack.servers)), range(len(self.chains))), True
        used = {*self.plan.chains[chain].layout.sites, *sites.ravel().tolist()}
        servers = {self.rack.devices[site].server for site in used if site >= 0}
        regions = {id(region): region for region in (self.region_of[server] for server in sorted(servers))}
        joined = self.regions.join(list(regions.values()))
        return (joined if chain in joined.chains else self.regions.of(joined.servers, [*joined.chains, chain])), False

    def _tables_outside(self, region: Region) -> frozenset[tuple[int, int]]:
        if self.rack.switch.usable_stages is None:
            return frozenset()
        outside = set(range(len(self.chains))) - set(region.chains)
        return frozenset((number, nf) for number in outside for nf in self.plan.chains[number].layout.on_switch)

    def _possible(self, chain: int) -> list[list[int]]:
        """The sites of each NF that are looked at: of many equal servers, the chain's own and one of each kind."""
        possible = possible_sites(self.chains[chain], self.rack)
        if len(self.rack.servers) <= FEW_SERVERS:
            return possible
        own = {self.rack.devices[site].server for site in self.plan.chains[chain].layout.sites if site >= 0}
        kinds: dict[object, Region] = {}
        for server, region in self.region_of.items():
            if server not in own:
                kinds.setdefault(self.regions.key(region), region)
        own |= {server for region in list(kinds.values())[:MOST_ELSEWHERE] for server in region.servers}
        return [[site for site in sites if site < 0 or self.rack.devices[site].server in own] for sites in possible]

    def _nearest(self, chain: int, possible: Sequence[Sequence[int]], number: int) -> list[tuple[int, ...]]:
        """Other layouts than the plan's, those with the fewest NFs elsewhere first."""
        one, chosen = self.chains[chain], self.plan.chains[chain].layout.sites
        rows: Ints = np.empty((0, len(chosen)), dtype=np.int64)
        for most in range(1, len(chosen) + 1):
            rows = _sites_near(one, self.rack, possible, chosen, most)
            if len(rows) > number:
                break
        differing = (rows != np.array(chosen)).sum(axis=1)
        order = np.argsort(differing, kind="stable")
        return [tuple(int(site) for site in rows[at]) for at in order if differing[at]][:number]

    def _others(
        self, chain: int, possible: Sequence[Sequence[int]], shown: set[tuple[int, ...]]
    ) -> Iterator[tuple[tuple[str, ...], LayoutCause]]:
        one = self.chains[chain]
        number = float(np.prod([float(len(sites)) for sites in possible]))
        if number > MOST_COUNTED:
            return
        chosen = self.plan.chains[chain].layout.sites
        for row in _sites_near(one, self.rack, possible, chosen, len(one.nfs)):
            sites = tuple(int(site) for site in row)
            if sites not in shown:
                layout = Layout(one, self.rack, sites)
                yield device_names(layout), verdict_alone(layout).cause


def _sites_near(chain: Chain, rack: Rack, possible: Sequence[Sequence[int]], kept: Sequence[int], most: int) -> Ints:
    """As `sites_within`, without layouts whose connected NFs are at several sockets or NICs of a server."""
    rows = sites_within(chain, possible, kept, most)
    return rows[at_one_socket(chain, rack, rows)]


def device_names(layout: Layout) -> tuple[str, ...]:
    """The devices of a layout, the switch last."""
    devices = layout.rack.devices
    names = tuple(devices[site].label for site in sorted({site for site in layout.sites if site >= 0}))
    return (*names, "switch") if layout.on_switch else names


def with_places(chain: Chain, rack: Rack, places: Mapping[str, Sequence[int]]) -> list[Layout]:
    """All layouts of a chain that have some NFs on one of given sites, as far as they keep latency and table order."""
    possible = [
        [site for site in sites if site in places.get(nf.id, sites)]
        for nf, sites in zip(chain.nfs, possible_sites(chain, rack), strict=True)
    ]
    free = [NEW_SITE] * len(chain.nfs)
    rows = layouts_at(chain, rack, sites_within(chain, possible, free, 0)).sites
    return [Layout(chain, rack, tuple(int(site) for site in row)) for row in rows]


ABOVE_CAP = 1 + Fraction(CAP_TOLERANCE)


class LayoutCause(StrEnum):
    """Why a layout was not chosen."""

    LATENCY = "latency"
    TABLE_ORDER = "table_order"
    ONE_CORE = "one_core"
    CORES = "cores"
    NIC = "nic_mbps"
    STAGES = "stages"
    OTHERS = "others"
    COSTS = "costs"
    AS_GOOD = "as_good"
    BETTER = "better"
    POSSIBLE = "possible"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class LayoutVerdict:
    """Why a layout was not chosen.

    `of`: the device, server or subgroup that is the reason, where there is one. `needs`, `has`: of what is the reason:
    us of latency; Mbps that a subgroup or NIC would have to carry; cores. `marginal_mbps`: of the best plan with this
    layout; None where there is none. `cost_mbps`: by how much that is less than the plan's. `proven`: whether no plan
    with this layout costs less. `changes`: by chain the rate in that plan less the one in the plan, Mbps, where they
    differ.
    """

    layout: Layout
    cause: LayoutCause
    of: str = ""
    needs: float | None = None
    has: float | None = None
    marginal_mbps: float | None = None
    cost_mbps: float | None = None
    proven: bool = True
    changes: Mapping[str, float] = field(default_factory=dict)


def verdict_alone(layout: Layout) -> LayoutVerdict:
    """What forbids a layout on a rack that is otherwise empty; `possible` if nothing does."""
    slo, d_max = layout.chain.slo, layout.chain.slo.d_max_us
    if d_max is not None and layout.latency_us > d_max * ABOVE_CAP:
        return LayoutVerdict(layout, LayoutCause.LATENCY, "", float(layout.latency_us), float(d_max))
    unbounded = Layout(layout.chain, layout.rack, layout.sites)
    if not len(layouts_at(layout.chain, layout.rack, np.array([unbounded.sites], dtype=np.int64))):
        return LayoutVerdict(layout, LayoutCause.TABLE_ORDER)
    needed: dict[int, int] = {}
    pools, nics = layout.rack.pools, layout.rack.nics
    for group in layout.subgroups:
        cores = _cores_for(group, slo.t_min_mbps, layout)
        if cores is None:
            rate = group.rate(1, layout.rack.devices[group.device], layout.chain.packet_bits)
            of = f"{_names(group, layout)} on {layout.rack.devices[group.device].label}"
            return LayoutVerdict(layout, LayoutCause.ONE_CORE, of, float(slo.t_min_mbps), float(rate or 0))
        pool = layout.rack.devices[group.device].pool
        needed[pool] = needed.get(pool, 0) + (cores if cores > 1 or not pools[pool].is_shared else 0)  # else turns
    for pool, cores in needed.items():
        if cores > pools[pool].cores:
            return LayoutVerdict(layout, LayoutCause.CORES, pools[pool].name, cores, pools[pool].cores)
    for (nic, direction), share in layout.nic_shares.items():
        mbps, limit = share * slo.t_min_mbps, nics[nic].mbps
        if mbps > limit * ABOVE_CAP:
            of = f"{nics[nic].name}, {direction}"
            return LayoutVerdict(layout, LayoutCause.NIC, of, float(mbps), float(limit))
    if not stage_oracle(layout.rack, [layout.chain]).fits(frozenset((0, nf) for nf in layout.on_switch)):
        return LayoutVerdict(layout, LayoutCause.STAGES, "switch")
    return LayoutVerdict(layout, LayoutCause.POSSIBLE)


def _cores_for(group: Subgroup, mbps: Fraction, layout: Layout) -> int | None:
    """The fewest cores that carry a rate; None if only one may and it does not."""
    device, bits = layout.rack.devices[group.device], layout.chain.packet_bits
    alone = group.rate(1, device, bits)
    if alone is None or mbps <= alone * ABOVE_CAP:
        return 1
    if group.cycles_of_replicas is None:
        return None
    each = device.clock_mhz * bits / group.cycles_of_replicas
    return max(ceil(mbps / (each * ABOVE_CAP)), 2)


def _names(group: Subgroup, layout: Layout) -> str:
    return " ".join(layout.chain.nfs[at].id for at in group.nfs)


# What a plan uses of the rack, and what limits the rate of each chain.
