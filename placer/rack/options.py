"""What a chain may get: a layout, whole cores for its subgroups, and the largest rate that these allow, as arrays.

Layouts that break the latency are left out. A chain has many layouts, and each has many allocations of cores. Few of
them matter: an option that needs no less of anything than another one and gives no higher rate is dominated. Rates
below that of an option need fewer cores at most, so each layout has an option where one subgroup's rate is just reached
by whole cores, and one at the largest rate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from placer.rack.chain import Chain
from placer.rack.plan import SWITCH_SITE
from placer.rack.rack import Rack, SwitchKind
from placer.rack.sharing import MOST_TURNS
from profiles import InputError
from profiles.arrays import Bools, Floats, Ints

MOST_LAYOUTS = 4_000_000
PART_LAYOUTS = 1 << 14  # layouts of one part, some tenths of a second
AT_ONCE = 2048  # options that are compared with all others in one step
NO_CORES = -1
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
    sites = sites[_at_one_socket(chain, rack, sites)]
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
    servers = np.array([*(-2 - at if each.is_smartnic else each.server for at, each in enumerate(rack.devices)), -1])
    parted: Bools = (servers[:, None] == servers) & ~np.eye(len(servers), dtype=bool)
    return parted


def _at_one_socket(chain: Chain, rack: Rack, sites: Ints) -> Bools:
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


# Options: layouts with allocations of cores.


@dataclass(frozen=True)
class Options:
    """Undominated options of one chain; rows are options."""

    layouts: Layouts
    layout: Ints  # per option the row in `layouts`; shape (options,)
    group_cores: Ints  # per NF the cores of the subgroup whose first NF it is, 0 elsewhere; shape (options, NFs).
    # -n is one of n turns on a core
    cores: Ints  # of each pool, in the parts of `Rack.core_parts`; shape (options, pools)
    rate: Floats  # the largest one that the cores allow, at most t_max, Mbps; shape (options,)

    def __len__(self) -> int:
        return len(self.layout)

    @property
    def chain(self) -> Chain:
        return self.layouts.chain

    @property
    def nic_shares(self) -> Floats:
        """As in Layouts, with NICs and directions in one axis; shape (options, 2 * NICs)."""
        shares = self.layouts.nic_shares[self.layout]
        return shares.reshape(len(self), shares.shape[1] * shares.shape[2])

    @property
    def on_switch(self) -> Bools:
        """Per NF whether it is on the switch; shape (options, NFs)."""
        return self.layouts.on_switch()[self.layout]

    def at(self, rows: Ints) -> Options:
        return Options(self.layouts, self.layout[rows], self.group_cores[rows], self.cores[rows], self.rate[rows])


def options_at(layouts: Layouts, rack: Rack, tables: Collection[int] | None = None) -> Options:
    """The undominated options among some layouts.

    `tables`: NFs that count as a need where they are on the switch; None: all, unless stages are without a bound.
    """
    if rack.core_parts > 1:
        layouts = layouts.at(_undominated_layouts(layouts, rack))
    options = _allocations(layouts, rack)
    return options.at(find_undominated_rows(options, rack, tables))


def _undominated_layouts(layouts: Layouts, rack: Rack) -> Ints:
    """The layouts of which no other one has cheaper subgroups in each pool: they alone have undominated options."""
    pools, order = _pools_at(layouts.sites, rack), np.argsort(-np.nan_to_num(layouts.cycles), axis=1, kind="stable")
    replicas = np.where(np.isnan(layouts.replica_cycles), np.inf, layouts.replica_cycles)
    needs = [
        layouts.nic_shares.reshape(len(layouts), 2 * len(rack.nics)),
        layouts.on_switch() & (rack.switch.usable_stages is not None),
    ]
    for pool in range(len(rack.pools)):
        here = np.take_along_axis((pools == pool) & ~np.isnan(layouts.cycles), order, axis=1)
        first = np.argsort(~here, axis=1, kind="stable")
        for cycles in (layouts.cycles, replicas):
            sorted_cycles = np.where(
                here, np.take_along_axis(cycles, order, axis=1), -1.0
            )  # subgroups without cycles count
            needs.append(np.take_along_axis(sorted_cycles, first, axis=1)[:, : here.sum(axis=1).max(initial=0)])
    return find_undominated(np.zeros(len(layouts)), np.hstack(needs))


def drop_dominated_options(layouts: Layouts, rack: Rack, costs: Ints) -> Options:
    """As `options_at`, where a larger cost of a layout is a need, too; shape (layouts,)."""
    options = _allocations(layouts, rack)
    needs = np.hstack([_needs(options, rack), costs[options.layout, None]])
    return options.at(find_undominated(options.rate, needs))


def find_undominated_rows(options: Options, rack: Rack, tables: Collection[int] | None = None) -> Ints:
    """The rows of options that no other one dominates; `tables` as in `options_at`."""
    return find_undominated(options.rate, _needs(options, rack, tables))


def _needs(options: Options, rack: Rack, counted: Collection[int] | None = None) -> Floats:
    """Cores, shares of NICs, and tables where stages are bounded; shape (options, needs)."""
    tables = options.on_switch & (rack.switch.usable_stages is not None)
    if counted is not None:
        tables &= np.isin(np.arange(tables.shape[1]), sorted(counted))
    return np.hstack([_core_needs(options, rack), options.nic_shares, tables])


def _core_needs(options: Options, rack: Rack) -> NDArray[np.generic]:
    """Cores per pool; of shared ones, how many cores have so few turns at most.

    Where one option has no more than another one for each number of turns, it fits wherever the other one does.
    """
    if rack.core_parts == 1:
        return options.cores
    counts = turn_counts(options, rack)
    return np.hstack([counts.get(pool, options.cores[:, [pool]]) for pool in range(len(rack.pools))])


def turn_counts(options: Options, rack: Rack) -> dict[int, Ints]:
    """By shared pool, how many cores of an option have at most 1, 2, ... turns; shape (options, MOST_TURNS)."""
    turns = np.arange(1, MOST_TURNS + 1)
    pools, given = _pools_at(options.layouts.sites[options.layout], rack), options.group_cores
    found: dict[int, Ints] = {}
    for number, pool in enumerate(rack.pools):
        if pool.is_shared:
            here = np.where(pools == number, given, 0)[:, :, None]
            found[number] = np.where(here > 0, here, (here < 0) & (-here <= turns)).sum(axis=1)
    return found


def _pools_at(sites: Ints, rack: Rack) -> Ints:
    """The pool of each site; that of the switch is beyond the last one."""
    return np.array([*(device.pool for device in rack.devices), len(rack.pools)])[sites]


def find_undominated(gain: Floats, needs: NDArray[np.generic], until: float = float("inf")) -> Ints:
    """The rows to which no other row has at least the gain and at most all needs; of equal rows the first.

    `gain`: shape (rows,). `needs`: shape (rows, needs). `until`: of the monotonic clock; raises TimeoutError after it.
    """
    needed: Floats = needs.astype(np.float64)
    order = np.lexsort((needed.sum(axis=1), -gain))
    kept_gain, kept_needs = np.empty(0), np.empty((0, needed.shape[1]))
    kept: list[Ints] = []
    for begin in range(0, len(order), AT_ONCE):
        if time.monotonic() > until:
            raise TimeoutError
        rows = order[begin : begin + AT_ONCE]
        rows = rows[~_find_dominated(gain[rows], needed[rows], kept_gain, kept_needs)]
        rows = rows[~_find_dominated_inside(gain[rows], needed[rows])]
        kept.append(rows)
        kept_gain, kept_needs = np.append(kept_gain, gain[rows]), np.vstack([kept_needs, needed[rows]])
    return np.sort(np.concatenate(kept)) if kept else np.empty(0, np.int64)


def _find_dominated(gain: Floats, needs: Floats, by_gain: Floats, by_needs: Floats) -> Bools:
    dominated = np.zeros(len(gain), dtype=bool)
    for one_gain, one_needs in zip(by_gain, by_needs, strict=True):
        dominated |= (gain <= one_gain) & (needs >= one_needs).all(axis=1)
    return dominated


def _find_dominated_inside(gain: Floats, needs: Floats) -> Bools:
    """The rows are sorted, so only an earlier one dominates a later one, or is its equal."""
    dominated = np.zeros(len(gain), dtype=bool)
    for at in range(len(gain)):
        if not dominated[at]:
            later = slice(at + 1, None)
            dominated[later] |= (gain[later] <= gain[at]) & (needs[later] >= needs[at]).all(axis=1)
    return dominated


def all_options(chain: Chain, rack: Rack, until: float) -> Options:
    """All layouts of a chain, with all allocations in which no core could be taken away without lowering the rate.

    `until`: of the monotonic clock. With turns on cores, there are many: raises TimeoutError after it, and InputError
    when they are more than MOST_LAYOUTS.
    """
    layouts = all_layouts(chain, rack)
    if rack.core_parts == 1:
        return _allocations(layouts, rack)
    parts: list[Options] = []
    for begin in range(0, max(len(layouts), 1), PART_LAYOUTS):
        if time.monotonic() > until:
            raise TimeoutError
        part = _allocations(layouts.at(np.arange(begin, min(begin + PART_LAYOUTS, len(layouts)))), rack)
        parts.append(Options(layouts, part.layout + begin, part.group_cores, part.cores, part.rate))
        if sum(map(len, parts)) > MOST_LAYOUTS:
            raise InputError.of(chain.name, f"has more than {MOST_LAYOUTS:,} layouts with cores on this rack")
    columns = zip(*((one.layout, one.group_cores, one.cores, one.rate) for one in parts), strict=True)
    return Options(layouts, *map(np.concatenate, columns))


def _allocations(layouts: Layouts, rack: Rack) -> Options:
    once, each = core_rates(layouts, rack)
    most = np.array([pool.cores * rack.core_parts for pool in rack.pools], dtype=np.int64)
    return allocations(layouts, rack, once, each, lambda _, cores: np.all(cores <= most, axis=1))


def core_rates(layouts: Layouts, rack: Rack) -> tuple[Floats, Floats]:
    """Mbps of a subgroup on one core, and per core on several, where its first NF is; infinite and 0 elsewhere."""
    bits = layouts.chain.packet_bits
    clocks = np.array([float(device.clock_mhz) for device in rack.devices] + [1.0])[layouts.sites]
    with np.errstate(divide="ignore", invalid="ignore"):
        once = np.where(np.isnan(layouts.cycles), np.inf, clocks * bits / layouts.cycles)
        each = np.where(np.isnan(layouts.replica_cycles), 0.0, clocks * bits / layouts.replica_cycles)
    return once, each


def allocations(
    layouts: Layouts, rack: Rack, once: Floats, each: Floats, fit: Callable[[Ints, Ints], Bools]
) -> Options:
    """Per layout the fewest cores for t_min, and for each larger rate that whole cores just reach, up to t_max.

    `once`, `each`: as `core_rates` returns them. `fit`: whether cores per subgroup, shape (rows, NFs), and per pool,
    shape (rows, pools), are within the limits.
    """
    slo = layouts.chain.slo
    largest = float(slo.t_max_mbps)
    nfs = layouts.sites.shape[1]
    shared = np.array([*(rack.pools[device.pool].is_shared for device in rack.devices), False])[layouts.sites]
    rows, rate = np.arange(len(layouts)), np.full(len(layouts), float(slo.t_min_mbps))
    none = np.empty(0, np.int64)
    found = [(none, np.empty((0, nfs), np.int64), np.empty((0, len(rack.pools)), np.int64), np.empty(0))]
    while len(rows):
        group_cores = _cores_for(rate, once[rows], each[rows], layouts.cycles[rows], shared[rows])
        cores = _by_pool(group_cores, layouts.sites[rows], rack)
        fits = (group_cores != NO_CORES).all(axis=1) & fit(group_cores, cores)
        rows, group_cores, cores = rows[fits], group_cores[fits], cores[fits]
        rate = np.minimum(_rate_of(group_cores, once[rows], each[rows]), largest)
        found.append((rows, group_cores, cores, rate))
        more = rate < largest
        rows, rate = rows[more], rate[more] * (1 + 4 * CAP_TOLERANCE)  # beyond what is equal within the tolerance
    layout, group_cores, cores, rate = (np.concatenate(part) for part in zip(*found, strict=True))
    return Options(layouts, layout, group_cores, cores, rate)


def _cores_for(rate: Floats, once: Floats, each: Floats, cycles: Floats, shared: Bools) -> Ints:
    """The fewest cores per subgroup for a rate; 0 where there is no subgroup, NO_CORES where no number is enough.

    Where cores are shared and one of n turns is enough, -n.
    """
    wanted = rate[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        several = np.maximum(np.ceil(wanted / each * (1 - CAP_TOLERANCE)), 2)
        turns = np.where(shared, np.minimum(np.floor(once * (1 + CAP_TOLERANCE) / wanted), MOST_TURNS), 1)
    several = np.where(np.isfinite(several), several, NO_CORES)
    single = np.where(turns > 1, -turns, 1)
    needed = np.where(wanted <= once * (1 + CAP_TOLERANCE), single, np.where(each > 0, several, NO_CORES))
    cores: Ints = np.where(np.isnan(cycles), 0, needed).astype(np.int64)
    return cores


def _rate_of(group_cores: Ints, once: Floats, each: Floats) -> Floats:
    """The rate that the slowest subgroup allows; infinite without subgroups."""
    with np.errstate(invalid="ignore"):
        single = once / np.maximum(-group_cores, 1)
        rates = np.where(group_cores > 1, group_cores * each, np.where(group_cores == 0, np.inf, single))
    return np.asarray(rates.min(axis=1, initial=np.inf))


def _by_pool(group_cores: Ints, sites: Ints, rack: Rack) -> Ints:
    parts = np.where(group_cores < 0, rack.core_parts // np.maximum(-group_cores, 1), rack.core_parts * group_cores)
    cores = np.zeros((len(sites), len(rack.pools) + 1), dtype=np.int64)
    np.add.at(cores, (np.arange(len(sites))[:, None], _pools_at(sites, rack)), parts)
    return cores[:, :-1]
