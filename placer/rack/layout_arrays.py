"""Layouts of a chain, many at once as arrays: subgroups, shares of NICs, latency. `plan.py` computes the same for one.

Those that break the latency are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from placer.rack.chain import Chain
from placer.rack.plan import SWITCH_SITE
from placer.rack.rack import Rack, SwitchKind
from profiles import InputError
from profiles.arrays import Bools, Floats, Ints

MOST_LAYOUTS = 4_000_000
PART_LAYOUTS = 1 << 14  # layouts of one part, some tenths of a second
CAP_TOLERANCE = 1e-9  # relative, of every comparison with a limit (CONTRACTS 9)


@dataclass(frozen=True)
class Layouts:
    """Layouts of one chain; rows are layouts.

    `cycles`, `replica_cycles`: of the subgroup whose first NF it is, per packet that enters the chain; NaN elsewhere,
    and for replicas where there may be none; shape (layouts, NFs). `nic_shares`: shares of the chain's packets that
    each NIC carries, in and out; shape (layouts, NICs, 2).
    """

    chain: Chain
    sites: Ints  # per NF the index of a device, or SWITCH; shape (layouts, NFs)
    group_of: Ints  # per NF the first NF of its subgroup, for NFs on the switch, too; shape (layouts, NFs)
    cycles: Floats
    replica_cycles: Floats
    nic_shares: Floats
    latency_us: Floats  # shape (layouts,)

    def __len__(self) -> int:
        return len(self.sites)

    def at(self, rows: Ints) -> Layouts:
        return Layouts(self.chain, *(part[rows] for name, part in vars(self).items() if name != "chain"))

    def on_switch(self) -> Bools:
        """Per NF whether it is on the switch; shape (layouts, NFs)."""
        on_switch: Bools = self.sites == SWITCH_SITE
        return on_switch


def all_layouts(chain: Chain, rack: Rack) -> Layouts:
    """Every layout of a chain that keeps its latency. Raises InputError when there are more than MOST_LAYOUTS."""
    sites = possible_sites(chain, rack)
    if not rack.is_simple:
        return layouts_at(chain, rack, _joined_assignments(chain, rack, sites))
    return layouts_at(chain, rack, _assignments(sites, 0, _number(chain, sites)))


def layouts_in_parts(chain: Chain, rack: Rack) -> Iterator[Layouts]:
    """As all_layouts, a part at a time: for who may have to stop early."""
    sites = possible_sites(chain, rack)
    joined = None if rack.is_simple else _joined_assignments(chain, rack, sites)
    number = _number(chain, sites) if joined is None else len(joined)
    for begin in range(0, number, PART_LAYOUTS):
        end = min(begin + PART_LAYOUTS, number)
        yield layouts_at(chain, rack, _assignments(sites, begin, end) if joined is None else joined[begin:end])


def layouts_at(chain: Chain, rack: Rack, sites: Ints) -> Layouts:
    """Those of some layouts that keep the latency, and the order of an OpenFlow switch's tables.

    `sites`: per layout and NF a device that can run the NF, or SWITCH; shape (layouts, NFs).
    """
    sites = sites[at_one_socket(chain, rack, sites)]
    sides = side_of(rack)[sites]
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
    sides = side_of(rack)[sites]
    return _compute(chain, rack, sites, sides, _latencies(chain, rack, sites, sides))


def side_of(rack: Rack) -> Ints:
    """Per site the NIC behind which it is; the last one is the switch."""
    return np.array([*(device.nic for device in rack.devices), SWITCH_SITE])


def parted_at(rack: Rack) -> Bools:
    """Whether an edge cannot lead from a site to another one; shape (sites, sites), the last one is the switch.

    Connected NFs on a server are one subgroup, at one socket and one NIC.
    """
    servers = np.array(
        [*(-2 - at if device.is_smartnic else device.server for at, device in enumerate(rack.devices)), -1]
    )
    parted: Bools = (servers[:, None] == servers) & ~np.eye(len(servers), dtype=bool)
    return parted


def at_one_socket(chain: Chain, rack: Rack, sites: Ints) -> Bools:
    kept = np.ones(len(sites), dtype=bool)
    if not rack.is_simple:
        parted = parted_at(rack)
        for edge in chain.edges:
            kept &= ~parted[sites[:, edge.tail], sites[:, edge.head]]
    return kept


def _compute(chain: Chain, rack: Rack, sites: Ints, sides: Ints, latency: Floats) -> Layouts:
    groups = _components(chain, sites)
    cycles, replicas = _cycles(chain, rack, sites, groups)
    shares = np.zeros((len(sides), len(rack.nics) + 1, 2))  # the last NIC stands for the switch
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
    return Layouts(chain, sites, groups, cycles, replicas, shares[:, :-1], latency)


def possible_sites(chain: Chain, rack: Rack) -> list[list[int]]:
    """Per NF the devices that can run it, and SWITCH if the switch can."""
    return [
        [number for number, device in enumerate(rack.devices) if device.cores and rack.cost_on(chain, at, device)]
        + [SWITCH_SITE] * rack.has_table(nf)
        for at, nf in enumerate(chain.nfs)
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


def _joined_assignments(chain: Chain, rack: Rack, sites: Sequence[Sequence[int]]) -> Ints:
    """All combinations of sites in which connected NFs on a server are at one socket and one NIC, in the same order.

    Raises InputError when there are more than MOST_LAYOUTS.
    """
    found, parted = np.empty((1, 0), np.int64), parted_at(rack)
    for at, site in enumerate(sites):
        found = np.hstack([np.repeat(found, len(site), axis=0), np.tile(site, len(found))[:, None].astype(np.int64)])
        for edge in (*chain.edges_into(at), *chain.edges_from(at)):
            if max(edge.tail, edge.head) == at:
                found = found[~parted[found[:, edge.tail], found[:, edge.head]]]
        if len(found) > MOST_LAYOUTS:
            raise InputError.of(chain.name, f"has more than {MOST_LAYOUTS:,} layouts on this rack")
    return found


def changes_between(one: Ints | int, other: Ints | int) -> Ints:
    """Side changes between two sides."""
    through_switch = (np.asarray(one) != SWITCH_SITE) & (np.asarray(other) != SWITCH_SITE)
    return np.where(np.asarray(one) == other, 0, np.where(through_switch, 2, 1))


def _latencies(chain: Chain, rack: Rack, sites: Ints, sides: Ints) -> Floats:
    crossing = float(rack.crossing_us)
    at_end = np.zeros(sites.shape)
    for at in chain.order:
        times = [time_on(chain, rack, at, site) for site in range(len(rack.devices))]
        arrived = crossing * changes_between(SWITCH_SITE, sides[:, at]) if at == chain.entry else np.zeros(len(sites))
        for edge in chain.edges_into(at):
            arrived = np.maximum(
                arrived, at_end[:, edge.tail] + crossing * changes_between(sides[:, edge.tail], sides[:, at])
            )
        at_end[:, at] = arrived + np.array([*times, 0.0])[sites[:, at]]
    ends = [at_end[:, at] + crossing * changes_between(sides[:, at], SWITCH_SITE) for at in chain.exits]
    return np.asarray(np.max(ends, axis=0))


def time_on(chain: Chain, rack: Rack, at: int, site: int) -> float:
    cost = rack.cost_on(chain, at, rack.devices[site])
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
    for at in range(nfs):
        costs = [rack.cost_on(chain, at, device) for device in rack.devices]
        own = np.array([*(float(cost.cycles) if cost else 0.0 for cost in costs), 0.0])
        may = np.array([*(bool(cost and cost.replicable) for cost in costs), True]) & (not chain.forks[at])
        cycles[rows, groups[:, at]] += float(chain.reach[at]) * own[sites[:, at]]
        replicable[rows, groups[:, at]] &= may[sites[:, at]]
    crossing = np.array([*(float(device.cross_cycles) for device in rack.devices), 0.0])[sites]
    cycles += (float(rack.overheads.subgroup_cycles) + crossing) * entered
    replicas = np.where(replicable, cycles + float(rack.overheads.replica_cycles) * entered, np.nan)
    first = (groups == np.arange(nfs)) & (sites != SWITCH_SITE)
    return np.where(first, cycles, np.nan), np.where(first, replicas, np.nan)
