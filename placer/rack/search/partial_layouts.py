"""Layouts of a chain without listing all of them: NF by NF, parts that another part dominates are dropped.

A part has sites for the first NFs of an order. What follows depends on little of it: the sites of NFs that still have
an edge to a later one, and which of these are in the same subgroup. Of parts that agree in this, one is dominated if
another needs no more of anything: cycles of open subgroups, cores for each rate of closed ones, shares of NICs, time
to each open NF, and tables where stages are bounded. Whatever completes the one completes the other, at least as well.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby, pairwise, permutations
from math import prod

import numpy as np

from placer.rack.chain import Chain
from placer.rack.layout_arrays import (
    CAP_TOLERANCE,
    all_layouts,
    changes_between,
    layouts_at,
    layouts_in_parts,
    parted_at,
    possible_sites,
    side_of,
    time_on,
)
from placer.rack.options import Options, find_undominated, options_at
from placer.rack.plan import SWITCH_SITE
from placer.rack.rack import Device, Rack, SwitchKind
from placer.rack.search.fleet_bound import equal_servers
from profiles.arrays import Bools, Floats, Ints

COMPARED_DIGITS = 12  # significant digits of what is compared: sums in another order count as equal
FEW_PARTS = 512  # parts that go on at first, to know some whole layouts
MOST_NUMBERS = 50_000_000  # that are compared in a step; with more, as when the time is over
NO_RATE = -1.0  # Mbps, of too few cores: less than a t_min of 0


LISTED_LAYOUTS = 1 << 14  # so many are listed and compared as a whole
FOR_PARTS = 0.5  # the share of the time in which parts are compared; then what is left of them is


@dataclass(frozen=True)
class FoundOptions:
    """Options of a chain: all that are undominated, or some of them where not `complete`.

    `tables`: NFs that count as a need where they are on the switch; of others, options that have them may dominate
    options that do not.
    """

    options: Options
    tables: frozenset[int]
    complete: bool = True


def options_of(chain: Chain, rack: Rack) -> Options:
    """The undominated options of a chain on a rack that is otherwise empty.

    Tables on the switch count as a resource unless its stages are without a bound.
    """
    return find_options(chain, rack, range(len(chain.nfs)), float("inf")).options


def find_options(chain: Chain, rack: Rack, tables: Iterable[int], until: float) -> FoundOptions:
    """The options of a chain that are undominated by cores, NICs and these tables, or by all where layouts are few.

    `until`: of the monotonic clock; after it the options are some of these.
    """
    everything = frozenset(range(len(chain.nfs)))
    is_listed = prod(len(sites) for sites in possible_sites(chain, rack)) <= LISTED_LAYOUTS
    if rack.core_parts > 1:
        found_sites = (
            FoundSites(all_layouts(chain, rack).sites, True) if is_listed else _sites_in_parts(chain, rack, until)
        )
        try:
            options = options_at(layouts_at(chain, rack, found_sites.sites), rack, None, until)
        except TimeoutError:
            return FoundOptions(options_at(layouts_at(chain, rack, found_sites.sites[:0]), rack), everything, False)
        return FoundOptions(options, everything, found_sites.complete)
    if is_listed:
        with suppress(TimeoutError):
            until_listed = float("inf") if rack.is_simple else until
            return FoundOptions(options_at(all_layouts(chain, rack), rack, None, until_listed), everything)
    counted = everything if rack.switch.usable_stages is None else frozenset(tables)
    found = undominated_sites(chain, rack, sorted(counted), until)
    return FoundOptions(options_at(layouts_at(chain, rack, found.sites), rack, counted), counted, found.complete)


def _sites_in_parts(chain: Chain, rack: Rack, until: float) -> FoundSites:
    """Layouts that are undominated in their part of all, as parts with turns on cores are not compared."""
    begin = time.monotonic()
    kept = [np.empty((0, len(chain.nfs)), np.int64)]
    complete = True
    for layouts in layouts_in_parts(chain, rack):
        try:
            options = options_at(layouts, rack, None, begin + FOR_PARTS * (until - begin))
        except TimeoutError:
            complete = False
            break
        kept.append(layouts.sites[np.unique(options.layout)])
    return FoundSites(np.vstack(kept), complete)


@dataclass(frozen=True)
class FoundSites:
    """Sites of layouts, shape (layouts, NFs), and whether every undominated option is one of them."""

    sites: Ints
    complete: bool


def undominated_sites(chain: Chain, rack: Rack, tables: Sequence[int], until: float = float("inf")) -> FoundSites:
    """Layouts among which are those of all undominated options, in the order of `all_layouts`.

    `tables`: NFs that count as a need where they are on the switch. `until`: of the monotonic clock; after it the
    result has the layouts that were found by then, and is incomplete.
    """
    return _PartSearch(chain, rack, tables).run(until)


@dataclass(frozen=True)
class _Parts:
    """Parts; rows are parts."""

    sites: Ints  # shape (parts, NFs)
    is_put: Bools  # per NF whether it has a site; shape (parts, NFs)
    group_of: Ints  # per NF a number of its subgroup, equal for NFs of the same one; shape (parts, NFs)
    cycles: Floats  # per number of a subgroup, per packet that enters the chain; shape (parts, NFs)
    replica_cycles: Floats  # infinite where there may be no replicas
    closed_rates: Floats  # per pool and number of cores, what closed subgroups carry, Mbps; shape (parts, cores)
    nic_shares: Floats  # shape (parts, NICs + 1, 2); the last NIC stands for the switch
    at_end: Floats  # per NF the latency of the longest path up to it, us; shape (parts, NFs)
    latency: Floats  # of the longest finished path, us; shape (parts,)

    def __len__(self) -> int:
        return len(self.sites)

    def at(self, rows: Ints | Bools) -> _Parts:
        return _Parts(*(part[rows] for part in vars(self).values()))


class _PartSearch:
    def __init__(self, chain: Chain, rack: Rack, tables: Sequence[int]) -> None:
        self.chain, self.rack, self.tables = chain, rack, list(tables)
        self.least = float(chain.slo.t_min_mbps) * (1 - CAP_TOLERANCE)
        self.largest = float(chain.slo.t_max_mbps)
        self.possible = possible_sites(chain, rack)
        self.order = _narrow_order(chain)
        self.side_of, self.parted = side_of(rack), parted_at(rack)
        self.pool_of = np.array([*(device.pool for device in rack.devices), SWITCH_SITE])
        useful = [max(map(self._useful_cores, pool_devices)) for _, pool_devices in groupby(rack.devices, _pool)]
        self.ends = np.cumsum([0, *(min(pool.cores, most) + 1 for pool, most in zip(rack.pools, useful, strict=True))])
        self.clocks = [float(next(pool_devices).clock_mhz) for _, pool_devices in groupby(rack.devices, _pool)]
        self.nic_mbps = np.array([float(nic.mbps) for nic in rack.nics])
        self.equal = [group for group in equal_servers(rack) if rack.is_simple and self._are_equal(group)]
        self.table_order = {nf: number for number, nf in enumerate(rack.switch.table_order)}

    def _are_equal(self, group: Sequence[int]) -> bool:
        """Whether each NF runs on all these servers, or on none of them."""
        names = [
            {device.name for device in self.rack.devices if device.server == server and device.is_smartnic}
            for server in group
        ]
        hosts = [{self.rack.servers[server].name} for server in group]
        return all(
            len({bool(nf.not_on & one) for one in kind}) == 1 for nf in self.chain.nfs for kind in (names, hosts)
        )

    def _useful_cores(self, device: Device) -> int:
        """So many that more of them give no higher rate, of any layout."""
        overheads, chain = self.rack.overheads, self.chain
        costs = [self.rack.cost_on(chain, at, device) for at in range(len(chain.nfs))]
        each = [cost.cycles + overheads.subgroup_cycles + overheads.replica_cycles if cost else 0 for cost in costs]
        each = [cycles + device.cross_cycles for cycles in each]
        cycles = sum(float(share) * float(cycles) for share, cycles in zip(chain.reach, each, strict=True))
        return len(chain.nfs) + int(cycles * self.largest / (float(device.clock_mhz) * chain.packet_bits)) + 1

    def run(self, until: float) -> FoundSites:
        """First few parts go on, to know layouts that dominate others before these are complete."""
        self.known = self._laid_out(self._exchanged(self._grow(FEW_PARTS, float("inf")).sites))
        found, complete = [self.known.sites], True
        try:
            found.append(self._exchanged(self._grow(None, until).sites))
        except TimeoutError:
            complete = False
        sites = np.unique(np.vstack(found), axis=0)
        return FoundSites(sites[np.lexsort(self._places(sites).T[::-1])], complete)

    def _grow(self, most: int | None, until: float) -> _Parts:
        """Layouts, of at most so many parts at a time. Raises TimeoutError before parts are too many, too."""
        parts = self._empty()
        for step, at in enumerate(self.order):
            is_open = self._open_after(step)
            parts = self._extend(parts, at, is_open)
            parts = parts.at(self._keeps_limits(parts, is_open))
            if most is None:
                parts = parts.at(~self._dominated(parts, is_open, until))
            parts = parts.at(self._undominated(parts, is_open, most, until))
        return parts

    def _open_after(self, step: int) -> list[int]:
        """NFs with edges to NFs that come later in the order."""
        left = set(self.order[step + 1 :])
        return [nf for nf in self.order[: step + 1] if any(edge.head in left for edge in self.chain.edges_from(nf))]

    def _laid_out(self, sites: Ints) -> _Parts:
        """Whole layouts as parts, without those that need as much as another one."""
        parts = self._empty().at(np.zeros(len(sites), np.int64))
        for step, at in enumerate(self.order):
            self._put(parts, at, sites[:, at])
            parts = self._close(parts, at, self._open_after(step))
        return parts.at(find_undominated(np.zeros(len(parts)), self._least_needs(parts, [])))

    def _dominated(self, parts: _Parts, is_open: Sequence[int], until: float) -> Bools:
        """Parts that need as much as a known layout before they are complete."""
        found = np.zeros(len(parts), dtype=bool)
        needs, left = self._least_needs(parts, is_open), np.arange(len(parts))
        nics = len(self.nic_mbps)
        for layout in self._least_needs(self.known, []):
            if time.monotonic() > until:
                raise TimeoutError
            near = left[(needs[left, :nics] >= layout[:nics]).all(axis=1)]  # few are
            worse = near[(needs[near, nics:] >= layout[nics:]).all(axis=1)]
            if len(worse):
                found[worse] = True
                left = np.flatnonzero(~found)
        return found

    def _least_needs(self, parts: _Parts, is_open: Sequence[int]) -> Floats:
        """What layouts that hold a part need at least: what enters a server leaves it, and subgroups only grow."""
        rates = parts.closed_rates.copy()
        for pool, (begin, end) in enumerate(pairwise(self.ends)):
            most = np.full((len(parts), end - begin), self.largest)
            for nf in is_open:  # those that are open may become one
                here = np.flatnonzero(self.pool_of[parts.sites[:, nf]] == pool)
                most[here] = np.minimum(most[here], self._group_rates(parts, here, parts.group_of[here, nf], pool))
            rates[:, begin:end] = self._rates_of_both(rates[:, begin:end], most)
        loads = parts.nic_shares[:, :-1].max(axis=2, initial=0.0)
        on_switch = parts.is_put[:, self.tables] & (parts.sites[:, self.tables] == SWITCH_SITE)
        return _round(np.hstack([loads, -rates, on_switch]))

    def _empty(self) -> _Parts:
        nfs, nics = len(self.chain.nfs), len(self.nic_mbps)
        zeros = np.zeros((1, nfs))
        closed = np.full((1, self.ends[-1]), self.largest)
        return _Parts(
            np.full((1, nfs), SWITCH_SITE),
            np.zeros((1, nfs), dtype=bool),
            np.tile(np.arange(nfs), (1, 1)),
            zeros,
            zeros,
            closed,
            np.zeros((1, nics + 1, 2)),
            zeros,
            np.zeros(1),
        )

    def _places(self, sites: Ints) -> Ints:
        """Where the site of each NF is among those that are possible, as `all_layouts` counts them."""
        columns = [
            np.argsort(np.array(possible))[np.searchsorted(np.sort(possible), sites[:, at])]
            for at, possible in enumerate(self.possible)
        ]
        return np.stack(columns, axis=1)

    def _extend(self, parts: _Parts, at: int, is_open: Sequence[int]) -> _Parts:
        """Each part with each site of the next NF."""
        sites = np.array(self.possible[at], dtype=np.int64)
        site = np.tile(sites, len(parts))
        parts = parts.at(np.repeat(np.arange(len(parts)), len(sites)))
        kept = self._in_server_order(parts, site)
        for edge in self.chain.edges_into(at):
            kept &= ~self.parted[parts.sites[:, edge.tail], site]
        parts, site = parts.at(kept), site[kept]
        self._put(parts, at, site)
        parts = parts.at(self._in_table_order(parts.sites, at))
        return self._close(parts, at, is_open)

    def _put(self, parts: _Parts, at: int, site: Ints) -> None:
        """Put an NF at a site of each part; shape (parts,)."""
        chain, rack = self.chain, self.rack
        rows, side = np.arange(len(site)), self.side_of[site]
        costs = [rack.cost_on(chain, at, device) for device in rack.devices]
        own = np.array([*(float(cost.cycles) if cost else 0.0 for cost in costs), 0.0])[site] * float(chain.reach[at])
        may = (np.array([*(bool(cost and cost.replicable) for cost in costs), True]) & (not chain.forks[at]))[site]
        entered = np.full(len(site), float(at == chain.entry))
        switch = np.full(len(site), SWITCH_SITE)
        moves = [(switch, side, 1.0)] if at == chain.entry else []
        arrived = float(rack.crossing_us) * changes_between(switch, side) if at == chain.entry else np.zeros(len(site))
        for edge in chain.edges_into(at):
            share, tails = float(chain.reach[edge.tail] * edge.share), self.side_of[parts.sites[:, edge.tail]]
            entered += np.where(parts.sites[:, edge.tail] == site, 0.0, share)
            moves.append((tails, side, share))
            arrived = np.maximum(
                arrived, parts.at_end[:, edge.tail] + float(rack.crossing_us) * changes_between(tails, side)
            )
        parts.sites[:, at], parts.is_put[:, at] = site, True
        parts.at_end[:, at] = (
            arrived + np.array([*(time_on(chain, rack, at, device) for device in range(len(costs))), 0.0])[site]
        )
        if at in chain.exits:
            moves.append((side, switch, float(chain.reach[at])))
            ends = parts.at_end[:, at] + float(rack.crossing_us) * changes_between(side, switch)
            parts.latency[:] = np.maximum(parts.latency, ends)
        for source, target, share in moves:
            crossing = np.where(source == target, 0.0, share)
            parts.nic_shares[rows, target, 0] += crossing
            parts.nic_shares[rows, source, 1] += crossing
        crossing = np.array([*(float(device.cross_cycles) for device in rack.devices), 0.0])[site]
        once = own + (float(rack.overheads.subgroup_cycles) + crossing) * entered
        parts.cycles[:, at] = np.where(site == SWITCH_SITE, 0.0, once)
        replicas = np.where(may, once + float(rack.overheads.replica_cycles) * entered, np.inf)
        parts.replica_cycles[:, at] = np.where(site == SWITCH_SITE, 0.0, replicas)
        for edge in chain.edges_into(at):
            self._join(parts, edge.tail, at)

    def _join(self, parts: _Parts, tail: int, head: int) -> None:
        """Make one subgroup of those of two NFs, where these are at the same site."""
        one, other = parts.group_of[:, tail], parts.group_of[:, head]
        rows = np.flatnonzero((parts.sites[:, tail] == parts.sites[:, head]) & (one != other))
        one, other = one[rows], other[rows]
        for cycles in (parts.cycles, parts.replica_cycles):
            cycles[rows, one] += cycles[rows, other]
            cycles[rows, other] = 0.0
        parts.group_of[rows] = np.where(parts.group_of[rows] == other[:, None], one[:, None], parts.group_of[rows])

    def _in_table_order(self, sites: Ints, at: int) -> Bools:
        kept = np.ones(len(sites), dtype=bool)
        if self.rack.switch.kind is SwitchKind.OPENFLOW:
            place = self.table_order.get(self.chain.nfs[at].nf, -1)
            here = sites[:, at] == SWITCH_SITE
            kept &= ~here | (place >= 0)
            for edge in self.chain.edges_into(at):
                if self.table_order.get(self.chain.nfs[edge.tail].nf, -1) >= place:
                    kept &= ~here | (sites[:, edge.tail] != SWITCH_SITE)
        return kept

    def _close(self, parts: _Parts, at: int, is_open: Sequence[int]) -> _Parts:
        """Add subgroups that no later NF can join to those that are closed: the last NF's, and those before it."""
        closed, done = parts.closed_rates.copy(), np.zeros((len(parts), len(self.chain.nfs)), dtype=bool)
        numbers, rows = parts.group_of[:, list(is_open)], np.arange(len(parts))
        for nf in {at, *(edge.tail for edge in self.chain.edges_into(at))}:
            group, site = parts.group_of[:, nf], parts.sites[:, nf]
            ends = (numbers != group[:, None]).all(axis=1) & (site != SWITCH_SITE) & ~done[rows, group]
            done[rows, group] |= ends
            for pool, (begin, end) in enumerate(pairwise(self.ends)):
                here = np.flatnonzero(ends & (self.pool_of[site] == pool))
                rates = self._group_rates(parts, here, group[here], pool)
                closed[here, begin:end] = self._rates_of_both(closed[here, begin:end], rates)
        return replace(parts, closed_rates=closed)

    def _group_rates(self, parts: _Parts, rows: Ints, groups: Ints, pool: int) -> Floats:
        """What a subgroup of each row carries on 0, 1, ... cores, at most t_max; shape (rows, numbers of cores)."""
        cores, bits = np.arange(self.ends[pool + 1] - self.ends[pool]), self.clocks[pool] * self.chain.packet_bits
        with np.errstate(divide="ignore", invalid="ignore"):
            once, each = bits / parts.cycles[rows, groups, None], bits / parts.replica_cycles[rows, groups, None]
            rates = np.maximum(once, np.where(cores > 1, cores * each, 0.0))
        return np.where(cores == 0, NO_RATE, np.minimum(rates, self.largest))

    def _rates_of_both(self, one: Floats, other: Floats) -> Floats:
        """What two sets of subgroups carry on 0, 1, ... cores together; shape (rows, numbers of cores).

        The cores for a rate are as many as there are smaller rates, of either.
        """
        rates = np.sort(np.hstack([one, other]), axis=1)[:, : one.shape[1]]
        return np.where(rates < self.least, NO_RATE, rates)

    def _keeps_limits(self, parts: _Parts, is_open: Sequence[int]) -> Bools:
        """Whether a part may be one of a layout that carries t_min within d_max, on a rack that is otherwise empty."""
        kept = np.ones(len(parts), dtype=bool)
        limit = self.chain.slo.d_max_us
        if limit is not None:
            latest = np.max([parts.latency, *(parts.at_end[:, nf] for nf in is_open)], axis=0)
            kept &= latest <= float(limit) * (1 + CAP_TOLERANCE)
        loads = parts.nic_shares[:, :-1] * float(self.chain.slo.t_min_mbps)
        kept &= (loads <= self.nic_mbps[:, None] * (1 + 2 * CAP_TOLERANCE)).all(axis=(1, 2))
        holds_open = np.zeros(parts.sites.shape, dtype=bool)
        for nf in is_open:
            holds_open[np.arange(len(parts)), parts.group_of[:, nf]] = True
        cycles = parts.cycles * holds_open  # a subgroup has the number of one of its NFs
        for pool, rates in enumerate(np.split(parts.closed_rates, self.ends[1:-1], axis=1)):
            kept &= rates[:, -1] >= self.least
            # open subgroups share what is left of the cores at best
            taken = np.argmax(rates >= self.least, axis=1)
            open_cycles = (cycles * (self.pool_of[parts.sites] == pool)).sum(axis=1)
            needed = taken + self.least * open_cycles / (self.clocks[pool] * self.chain.packet_bits)
            kept &= needed <= (self.ends[pool + 1] - self.ends[pool] - 1) * (1 + CAP_TOLERANCE)
        return kept

    def _in_server_order(self, parts: _Parts, site: Ints) -> Bools:
        """Whether of equal servers the first ones are used first: others are such layouts with servers exchanged."""
        side = self.side_of[site]
        used = np.where(parts.is_put, self.side_of[parts.sites], SWITCH_SITE)
        kept = np.ones(len(site), dtype=bool)
        for group in self.equal:
            for earlier, later in pairwise(group):
                kept &= (side != later) | ((used == earlier) | (used == later)).any(axis=1)
        return kept

    def _exchanged(self, sites: Ints) -> Ints:
        """The layouts with equal servers exchanged in every way; shape (layouts, NFs)."""
        device_at = {(device.server, device.is_smartnic): at for at, device in enumerate(self.rack.devices)}
        for group in self.equal:
            found = [sites]
            most = min(len(group), sites.shape[1])
            for chosen in permutations(group, most):
                site_of = np.arange(len(self.rack.devices) + 1)
                for server, other in zip(group[:most], chosen, strict=True):
                    for is_smartnic in (False, True):
                        if (server, is_smartnic) in device_at:
                            site_of[device_at[server, is_smartnic]] = device_at[other, is_smartnic]
                site_of[SWITCH_SITE] = SWITCH_SITE
                found.append(site_of[sites])
            sites = np.unique(np.concatenate(found), axis=0)
        return sites

    def _undominated(self, parts: _Parts, is_open: Sequence[int], most: int | None, until: float) -> Ints:
        """The rows of parts that no other one dominates, or of the cheapest ones."""
        columns = self._ordered(parts, is_open)
        rows = np.arange(len(parts))[:, None]
        sites, groups = parts.sites[rows, columns], parts.group_of[rows, columns]
        same = [np.argmax(groups == groups[:, [number]], axis=1) for number in range(len(is_open))]
        keys = np.column_stack([np.zeros(len(parts), np.int64), sites, *same])
        open_cycles = [cycles[rows, groups] for cycles in (parts.cycles, parts.replica_cycles)]
        needs = [
            *open_cycles,
            parts.nic_shares[:, :-1].reshape(len(parts), 2 * len(self.nic_mbps)),
            -parts.closed_rates,
        ]
        if self.chain.slo.d_max_us is not None:
            needs += [parts.at_end[rows, columns], parts.latency[:, None]]
        if self.rack.switch.usable_stages is not None:
            needs.append(parts.sites[:, self.tables] == SWITCH_SITE)
        compared = _round(np.hstack(needs))
        if not len(parts):
            return np.empty(0, np.int64)
        order = np.lexsort(keys.T[::-1])
        new = np.flatnonzero((np.diff(keys[order], axis=0) != 0).any(axis=1)) + 1
        kept: list[Ints] = []
        for rows in np.split(order, new):
            if time.monotonic() > until or compared.size > MOST_NUMBERS:
                raise TimeoutError
            needed = compared[rows]
            needed = needed[:, (needed != needed[0]).any(axis=0)]
            kept.append(rows[find_undominated(np.zeros(len(rows)), needed, until)])
        rows = np.sort(np.concatenate(kept))
        return rows if most is None else rows[_cheapest(compared[rows], most)]

    def _ordered(self, parts: _Parts, is_open: Sequence[int]) -> Ints:
        """Per part its open NFs, in an order in which NFs with the same edges to later ones count as one another."""
        columns = np.tile(np.array(is_open, dtype=np.int64), (len(parts), 1))
        alike: dict[object, list[int]] = {}
        for number, nf in enumerate(is_open):
            later = {edge.head: self.chain.reach[nf] * edge.share for edge in self.chain.edges_from(nf)}
            alike.setdefault(frozenset(later.items()), []).append(number)
        rows = np.arange(len(parts))[:, None]
        for numbers in (numbers for numbers in alike.values() if len(numbers) > 1):
            of = columns[:, numbers]
            cycles = parts.cycles[rows, parts.group_of[rows, of]]
            order = np.lexsort((cycles, parts.sites[rows, of]), axis=1)
            columns[:, numbers] = np.take_along_axis(of, order, axis=1)
        return columns


def _pool(device: Device) -> int:
    return device.pool


def _narrow_order(chain: Chain) -> list[int]:
    """The NFs such that every edge leads forward, and few of them have edges to later ones at any time."""
    order: list[int] = []
    while len(order) < len(chain.nfs):
        done = set(order)
        ready = [
            at
            for at in range(len(chain.nfs))
            if at not in done and all(edge.tail in done for edge in chain.edges_into(at))
        ]

        def width(at: int, done: set[int] = done) -> int:
            now = done | {at}
            return sum(any(edge.head not in now for edge in chain.edges_from(nf)) for nf in now)

        # of equal ones that after the latest NF: a branch is followed to its end
        order.append(
            min(
                ready,
                key=lambda at: (width(at), -max((order.index(e.tail) for e in chain.edges_into(at)), default=-1), at),
            )
        )
    return order


def _round(values: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        power = 10.0 ** (COMPARED_DIGITS - 1 - np.floor(np.log10(np.abs(values))))
        rounded = np.round(values * power) / power
    return np.where(np.isfinite(rounded), rounded, values)


def _cheapest(needs: Floats, number: int) -> Ints:
    """The rows with the least needs, each relative to the largest one."""
    largest = np.max(np.where(np.isfinite(needs), np.abs(needs), 0.0), axis=0, initial=1e-9)
    return np.sort(np.argsort((needs / np.maximum(largest, 1e-9)).sum(axis=1), kind="stable")[:number])
