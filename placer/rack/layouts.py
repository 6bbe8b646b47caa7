"""All layouts of a chain at once, as arrays; those that break its latency are left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import prod

import numpy as np

from placer.rack.chain import Chain
from placer.rack.layout import SWITCH_SITE
from placer.rack.rack import Rack, SwitchKind
from profiles import InputError
from profiles.arrays import Bools, Floats, Ints

MOST_LAYOUTS = 4_000_000
PART_LAYOUTS = 1 << 14
"""Layouts of one part, some tenths of a second."""
CAP_TOLERANCE = 1e-9
"""Relative, of every comparison with a limit (CONTRACTS 9)."""


@dataclass(frozen=True)
class Layouts:
    """Layouts of one chain; rows are layouts.

    Parameters
    ----------
    sites
        Per NF the index of a device, or SWITCH; shape (layouts, NFs).
    group_of
        Per NF the first NF of its subgroup, for NFs on the switch, too; shape (layouts, NFs).
    cycles, replica_cycles
        Of the subgroup whose first NF it is, per packet that enters the chain; NaN elsewhere, and for replicas where
        there may be none; shape (layouts, NFs).
    nic_shares
        Shares of the chain's packets that a server's NIC carries, in and out; shape (layouts, servers, 2).
    latency_us
        Shape (layouts,).
    """

    chain: Chain
    sites: Ints
    group_of: Ints
    cycles: Floats
    replica_cycles: Floats
    nic_shares: Floats
    latency_us: Floats

    def __len__(self) -> int:
        return len(self.sites)

    def on_switch(self) -> Bools:
        """Per NF whether it is on the switch; shape (layouts, NFs)."""
        on_switch: Bools = self.sites == SWITCH_SITE
        return on_switch


def all_layouts(chain: Chain, rack: Rack) -> Layouts:
    """Every layout of a chain that keeps its latency.

    Raises
    ------
    InputError
        When there are more than MOST_LAYOUTS.
    """
    sites = possible_sites(chain, rack)
    return layouts_at(chain, rack, _assignments(sites, 0, _number(chain, sites)))


def layouts_in_parts(chain: Chain, rack: Rack) -> Iterator[Layouts]:
    """As all_layouts, a part at a time: for who may have to stop early."""
    sites = possible_sites(chain, rack)
    number = _number(chain, sites)
    for begin in range(0, number, PART_LAYOUTS):
        yield layouts_at(chain, rack, _assignments(sites, begin, min(begin + PART_LAYOUTS, number)))


def layouts_at(chain: Chain, rack: Rack, sites: Ints) -> Layouts:
    """Those of some layouts that keep the latency, and the order of an OpenFlow switch's tables.

    Parameters
    ----------
    sites
        Per layout and NF a device that can run the NF, or SWITCH; shape (layouts, NFs).
    """
    side_of = np.array([*(device.server for device in rack.devices), SWITCH_SITE])
    sides = side_of[sites]
    latency = _latencies(chain, rack, sites, sides)
    limit = chain.slo.d_max_us
    if limit is not None:
        kept = latency <= float(limit) * (1 + CAP_TOLERANCE)
        sites, sides, latency = sites[kept], sides[kept], latency[kept]
    if rack.switch.kind is SwitchKind.OPENFLOW:
        kept = _in_table_order(chain, rack, sites)
        sites, sides, latency = sites[kept], sides[kept], latency[kept]
    return _compute(chain, rack, sites, sides, latency)


def lay_out_sites(chain: Chain, rack: Rack, sites: Ints) -> Layouts:
    """Some layouts of a chain, whether or not they keep its latency."""
    side_of = np.array([*(device.server for device in rack.devices), SWITCH_SITE])
    sides = side_of[sites]
    return _compute(chain, rack, sites, sides, _latencies(chain, rack, sites, sides))


def _compute(chain: Chain, rack: Rack, sites: Ints, sides: Ints, latency: Floats) -> Layouts:
    groups = _components(chain, sites)
    cycles, replicas = _cycles(chain, rack, sites, groups)
    return Layouts(chain, sites, groups, cycles, replicas, _nic_shares(chain, rack, sides), latency)


def possible_sites(chain: Chain, rack: Rack) -> list[list[int]]:
    """Per NF the devices that can run it, and SWITCH if the switch can."""
    return [
        [number for number, device in enumerate(rack.devices) if device.cores and rack.cost_on(nf.nf, device)]
        + [SWITCH_SITE] * (rack.costs[nf.nf].switch_blocks is not None)
        for nf in chain.nfs
    ]


def _number(chain: Chain, sites: Sequence[Sequence[int]]) -> int:
    number = prod(len(site) for site in sites)
    if number > MOST_LAYOUTS:
        raise InputError.of(chain.name, f"has {number:,} layouts on this rack, more than {MOST_LAYOUTS:,}")
    return number


def _assignments(sites: Sequence[Sequence[int]], begin: int, end: int) -> Ints:
    """Some of the combinations of sites, the last NF's changing fastest; shape (end - begin, NFs)."""
    if begin == end:
        return np.empty((0, len(sites)), np.int64)
    left, columns = np.arange(begin, end), []
    for site in reversed(sites):  # not np.unravel_index, for which 64 NFs are most
        left, rows = np.divmod(left, len(site))
        columns.append(np.array(site, np.int64)[rows])
    return np.stack(columns[::-1], axis=1)


def _changes(one: Ints | int, other: Ints | int) -> Ints:
    """Side changes between two sides."""
    through_switch = (np.asarray(one) != SWITCH_SITE) & (np.asarray(other) != SWITCH_SITE)
    return np.where(np.asarray(one) == other, 0, np.where(through_switch, 2, 1))


def _latencies(chain: Chain, rack: Rack, sites: Ints, sides: Ints) -> Floats:
    crossing = float(rack.crossing_us)
    at_end = np.zeros(sites.shape)
    for at in chain.order:
        times = [_time(chain, rack, at, site) for site in range(len(rack.devices))]
        arrived = crossing * _changes(SWITCH_SITE, sides[:, at]) if at == chain.entry else np.zeros(len(sites))
        for edge in chain.edges_into(at):
            arrived = np.maximum(arrived, at_end[:, edge.tail] + crossing * _changes(sides[:, edge.tail], sides[:, at]))
        at_end[:, at] = arrived + np.array([*times, 0.0])[sites[:, at]]
    ends = [at_end[:, at] + crossing * _changes(sides[:, at], SWITCH_SITE) for at in chain.exits]
    return np.asarray(np.max(ends, axis=0))


def _time(chain: Chain, rack: Rack, at: int, site: int) -> float:
    cost = rack.cost_on(chain.nfs[at].nf, rack.devices[site])
    return float(cost.cycles / rack.devices[site].clock_mhz) if cost else 0.0


def _in_table_order(chain: Chain, rack: Rack, sites: Ints) -> Bools:
    """Whether packets pass the NFs of an OpenFlow switch in the order of its tables, on each of their visits."""
    place = {nf: number for number, nf in enumerate(rack.switch.table_order)}
    kept = np.ones(len(sites), dtype=bool)
    for at, nf in enumerate(chain.nfs):
        if nf.nf not in place:
            kept &= sites[:, at] != SWITCH_SITE
    for edge in chain.edges:
        tail, head = (place.get(chain.nfs[at].nf, -1) for at in (edge.tail, edge.head))
        if tail >= head:
            kept &= (sites[:, edge.tail] != SWITCH_SITE) | (sites[:, edge.head] != SWITCH_SITE)
    return kept


def _components(chain: Chain, sites: Ints) -> Ints:
    """Per NF the first NF of its component."""
    labels = np.tile(np.arange(sites.shape[1]), (len(sites), 1))
    joined = [(edge.tail, edge.head, sites[:, edge.tail] == sites[:, edge.head]) for edge in chain.edges]
    while True:
        before = labels.copy()
        for tail, head, same in joined:
            least = np.where(same, np.minimum(labels[:, tail], labels[:, head]), 0)
            labels[same, tail] = least[same]
            labels[same, head] = least[same]
        if np.array_equal(before, labels):
            return labels


def _cycles(chain: Chain, rack: Rack, sites: Ints, groups: Ints) -> tuple[Floats, Floats]:
    layouts, nfs = sites.shape
    rows = np.arange(layouts)
    cycles, entered = np.zeros((layouts, nfs)), np.zeros((layouts, nfs))
    replicable = np.ones((layouts, nfs), dtype=bool)
    entered[rows, groups[:, chain.entry]] += 1.0
    for edge in chain.edges:
        inside = groups[:, edge.tail] == groups[:, edge.head]
        entered[rows, groups[:, edge.head]] += np.where(inside, 0.0, float(chain.reach[edge.tail] * edge.share))
    for at, nf in enumerate(chain.nfs):
        costs = [rack.cost_on(nf.nf, device) for device in rack.devices]
        own = np.array([*(float(cost.cycles) if cost else 0.0 for cost in costs), 0.0])
        may = np.array([*(bool(cost and cost.replicable) for cost in costs), True]) & (not chain.forks[at])
        cycles[rows, groups[:, at]] += float(chain.reach[at]) * own[sites[:, at]]
        replicable[rows, groups[:, at]] &= may[sites[:, at]]
    cycles += float(rack.overheads.subgroup_cycles) * entered
    replicas = np.where(replicable, cycles + float(rack.overheads.replica_cycles) * entered, np.nan)
    first = (groups == np.arange(nfs)) & (sites != SWITCH_SITE)
    return np.where(first, cycles, np.nan), np.where(first, replicas, np.nan)


def _nic_shares(chain: Chain, rack: Rack, sides: Ints) -> Floats:
    shares = np.zeros((len(sides), len(rack.servers) + 1, 2))  # the last server stands for the switch
    rows, switch = np.arange(len(sides)), np.full(len(sides), SWITCH_SITE)
    moves = [(switch, sides[:, chain.entry], 1.0)]
    moves += [
        (sides[:, edge.tail], sides[:, edge.head], float(chain.reach[edge.tail] * edge.share)) for edge in chain.edges
    ]
    moves += [(sides[:, at], switch, float(chain.reach[at])) for at in chain.exits]
    for source, target, share in moves:
        crossing = np.where(source == target, 0.0, share)
        shares[rows, target, 0] += crossing
        shares[rows, source, 1] += crossing
    return shares[:, :-1]


def merge_servers(rack: Rack) -> tuple[Rack, Ints]:
    """The rack with one server of each group of equal ones, and how many each stands for; shape (groups,)."""
    groups = equal_servers(rack)
    one_each = replace(rack, servers=tuple(rack.servers[numbers[0]] for numbers in groups))
    return one_each, np.array([len(numbers) for numbers in groups], dtype=np.int64)


def equal_servers(rack: Rack) -> Sequence[Sequence[int]]:
    """Servers that differ in nothing but their names, by index."""

    def features(number: int) -> tuple[object, ...]:
        server, nic = rack.servers[number], rack.servers[number].smartnic
        own = (server.usable_cores, server.clock_mhz, server.nic_mbps)
        return *own, nic and (nic.cores, nic.clock_mhz)

    ordered = sorted(range(len(rack.servers)), key=lambda number: (repr(features(number)), number))
    return [list(equal) for _, equal in groupby(ordered, key=features)]
