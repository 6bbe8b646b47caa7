"""What a chain may get: a layout, whole cores for its subgroups, and the largest rate that these allow, as arrays.

A chain has many layouts, and each has many allocations of cores. Few of them matter: an option that needs no less of
anything than another one and gives no higher rate is dominated. Rates below that of an option need fewer cores at most,
so each layout has an option where one subgroup's rate is just reached by whole cores, and one at the largest rate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from placer.rack.chain import Chain
from placer.rack.layout_arrays import CAP_TOLERANCE, MOST_LAYOUTS, PART_LAYOUTS, Layouts, all_layouts
from placer.rack.rack import MOST_TURNS, Rack
from profiles import InputError
from profiles.arrays import Bools, Floats, Ints

AT_ONCE = 2048  # options that are compared with all others in one step
NO_CORES = -1


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


def options_at(
    layouts: Layouts, rack: Rack, tables: Collection[int] | None = None, until: float = float("inf")
) -> Options:
    """The undominated options among some layouts.

    `tables`: NFs that count as a need where they are on the switch; None: all, unless stages are without a bound.
    `until`: of the monotonic clock; raises TimeoutError after it.
    """
    if rack.core_parts > 1:
        layouts = layouts.at(_undominated_layouts(layouts, rack, until))
    options = _allocations(layouts, rack)
    return options.at(find_undominated_rows(options, rack, tables, until))


def _undominated_layouts(layouts: Layouts, rack: Rack, until: float) -> Ints:
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
    return find_undominated(np.zeros(len(layouts)), np.hstack(needs), until)


def drop_dominated_options(layouts: Layouts, rack: Rack, costs: Ints) -> Options:
    """As `options_at`, where a larger cost of a layout is a need, too; shape (layouts,)."""
    options = _allocations(layouts, rack)
    needs = np.hstack([_needs(options, rack), costs[options.layout, None]])
    return options.at(find_undominated(options.rate, needs))


def find_undominated_rows(
    options: Options, rack: Rack, tables: Collection[int] | None = None, until: float = float("inf")
) -> Ints:
    """The rows of options that no other one dominates; `tables` and `until` as in `options_at`."""
    return find_undominated(options.rate, _needs(options, rack, tables), until)


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
    order = np.lexsort((*needed.T, needed.sum(axis=1), -gain))
    columns = np.column_stack([gain, needed])[order]
    order = order[np.append(True, (columns[1:] != columns[:-1]).any(axis=1))[: len(order)]]  # equal ones are neighbours
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
    columns = zip(*((part.layout, part.group_cores, part.cores, part.rate) for part in parts), strict=True)
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
