"""The equilibrium of a co-location by the resource models, without any correction (Tomur, appendix F).

A co-location is predicted in the paper's steps: what memory contention leaves of each NF's cores (section 4.1.2), what
each shared accelerator allows (4.1.1), and both composed (4.2).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from predictor.contention.accelerators import write_limits
from predictor.contention.calibration import Conditions
from predictor.contention.conditions_of_members import write_all_pressures
from predictor.contention.execution import ADDED_WAITS, SLOWEST_STAGE, Composition, compose, drop_on_accelerator
from predictor.contention.memory import WORKING_SET, MemoryModels, memory_models, write_logarithms
from predictor.contention.neighbours import NeighbourInputs
from predictor.contention.workload_table import CoLocationBatch, WorkloadTable
from predictor.regression.compiled import compile_kernel, copy_into, fill, scale
from profiles import Workload
from profiles.arrays import Floats

Positions = tuple[NDArray[np.intp], ...]  # positions of members in a batch: co-location, member


@dataclass(frozen=True)
class Equilibrium:
    """Per co-location and member, in kpps."""

    batch: CoLocationBatch
    throughput: Floats
    solo: Floats
    """What it carries beside the others, and alone, if more is offered to it than it can carry; the others have what is
    offered to them. Shape (co-locations, members)."""
    drops: Floats
    """On memory, then on each accelerator, each as if it alone were contended. Shape (co-locations, members,
    resources)."""
    bound: Floats
    """What the cores reach, then what each accelerator allows; inf where it is not used. Shape as `drops`."""


class EquilibriumModel:
    """Finds the equilibrium of co-locations. `table`: the workloads' solo behaviour. `composition`: for all NFs; each
    NF's own pattern when None.
    """

    def __init__(self, table: WorkloadTable, composition: Composition | None = None) -> None:
        self._table = table
        self._composition = composition

    def solve(self, co_locations: Sequence[Sequence[Workload]]) -> Equilibrium:
        """Throughput of every workload of every co-location, with its parts."""
        table, batch = self._table, self._table.batch(co_locations)
        table.refuse_unknown_contention(batch.member[batch.contended])
        throughput, solo = np.ones(batch.member.shape), np.ones(batch.member.shape)
        drops = np.zeros((*batch.member.shape, 1 + len(table.accelerators)))
        bound = np.full(drops.shape, np.inf)
        number = self._composition.number if self._composition else BY_PATTERN
        settle(table.columns, self.memory, number, batch.member, batch.sizes, throughput, solo, drops, bound)
        return Equilibrium(batch, throughput, solo, drops, bound)

    def conditions(self, equilibrium: Equilibrium) -> Iterator[tuple[str, Positions, Conditions]]:
        """Per NF, its positions among members that have competitors, and their conditions."""
        table, batch = self._table, equilibrium.batch
        neighbours = NeighbourInputs(table.nf, table.presence, table.deviation, len(table.names))
        positions = np.nonzero(batch.contended)
        for name, rows in table.by_nf(batch.member[positions]):
            model, where = table.models[name], tuple(axis[rows] for axis in positions)
            columns = np.array([table.accelerators.index(engine) for engine in model.accelerators], dtype=np.int64)
            pressure = np.empty((len(where[0]), len(columns)))
            write_all_pressures(table.columns, batch.member, np.column_stack(where), columns, pressure)
            kept = equilibrium.throughput[where] / equilibrium.solo[where]
            traffic = table.traffic[batch.member[where]]
            yield name, where, Conditions(traffic, kept, pressure, neighbours.of(batch.member, where))

    @cached_property
    def memory(self) -> MemoryModels:
        """The memory models of all NFs."""
        return memory_models([model.memory for model in self._table.models.values()])


# The equilibrium of co-locations in compiled code, one co-location after the other.


SETTLED_CHANGE = 1e-6
MOST_ROUNDS = 20
BY_PATTERN = -1  # the number of no composition: each NF's own


@compile_kernel
def settle(table, models, composition, member, sizes, throughput, solo, drops, bound):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write what `Equilibrium` describes into arrays of its shapes, which hold what it describes of absent members.

    `table` holds the columns of a `WorkloadTable`, `member` and `sizes` are those of a `CoLocationBatch`, and
    `composition` is the number of one for all NFs, or `BY_PATTERN`.
    """
    shares = np.empty(member.shape[1])
    for at in range(len(sizes)):
        size = sizes[at]
        settle_one(
            table, models, composition, member[at, :size], shares[:size], throughput[at, :size],
            solo[at, :size], drops[at, :size], bound[at, :size],
        )  # fmt: skip


@compile_kernel
def settle_one(table, models, composition, rows, shares, rates, solo, lost, limits):  # type: ignore[no-untyped-def]  # pragma: no cover
    """As `settle` for one co-location; `shares` is overwritten."""
    size = len(rows)
    write_lowest_shares(table, models, rows, shares)
    for place in range(size):
        row = rows[place]
        # what the cores reach under the others' memory contention, before any queueing
        cores = 1.0 / (1.0 / (table.base[row] * shares[place]) + table.match_ms[row])
        limits[place, 0] = cores
        alone = solo[place] = rates[place] = table.modelled_solo[row]
        if size > 1:
            lost[place, 0] = max(alone - cores, 0.0)
            rates[place] = compose(composition_of(table, composition, row), alone, lost[place])
    if size > 1:
        scratch, order = np.empty((scratch_rows(table), size)), np.empty(size, dtype=np.int64)
        share_accelerators(table, composition, MOST_ROUNDS, rows, solo, rates, lost, limits, scratch, order)
    for place in range(size):
        if place > 0 and rows[place - 1] == rows[place]:
            # to the last bit: sums round by position
            rates[place] = rates[place - 1]
            copy_into(lost[place], lost[place - 1])
            copy_into(limits[place], limits[place - 1])
    for place in range(size):
        factor = table.factor[rows[place]]
        rates[place] = min(rates[place], solo[place]) * factor
        solo[place] *= factor
        scale(lost[place], factor)
        scale(limits[place], factor)


@compile_kernel
def scratch_rows(table):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """How many rows of numbers `share_accelerators` overwrites."""
    return 3 * table.queues.shape[1] + 4


@compile_kernel
def share_accelerators(table, composition, rounds, rows, solo, rates, lost, limits, scratch, order):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Settle the throughput of every member, its drop on each accelerator, and what each allows.

    An NF's demand for an accelerator depends on what its other resources leave it; a few of at most that many rounds
    settle that. `scratch`, shape (`scratch_rows`, at least members), and `order` are overwritten.
    """
    size, accelerators, users = len(rows), table.queues.shape[1], 0
    queues, service, allowed = scratch[:accelerators], scratch[accelerators:], scratch[2 * accelerators :]
    demand, of_limits = scratch[3 * accelerators, :size], scratch[3 * accelerators + 1 :]
    for at in range(accelerators):
        fill(allowed[at], np.inf)
        for place in range(size):
            queues[at, place] = table.queues[rows[place], at]
            service[at, place] = table.service[rows[place], at] if queues[at, place] > 0 else 0.0
            users |= (queues[at, place] > 0) << at
    if not users:
        return
    for turn in range(rounds):
        for at in range(accelerators):
            if users >> at & 1:
                _write_demand(table, rows, limits, rates, at, demand)
                write_limits(service[at, :size], queues[at, :size], demand, allowed[at, :size], of_limits, order)
        changed, fastest = 0.0, 0.0
        for place in range(size):
            staged = table.pipeline[rows[place]]
            for at in range(accelerators):
                limits[place, 1 + at] = allowed[at, place]
                lost[place, 1 + at] = drop_on_accelerator(staged, solo[place], service[at, place], allowed[at, place])
            before = rates[place]
            after = compose(composition_of(table, composition, rows[place]), solo[place], lost[place])
            changed, fastest = max(changed, abs(after - before)), max(fastest, after)
            # half steps: of two NFs that wait for each other, neither jumps ahead
            rates[place] = after if turn == 0 else (after + before) / 2.0
        if changed <= SETTLED_CHANGE * fastest:
            return


@compile_kernel
def _write_demand(table, rows, limits, rates, at, demand):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write the demand of each member for accelerator `at` (kpps).

    A pipeline sends what its other stages carry; run to completion sends a packet when the last has come back. Neither
    sends more than it is offered.
    """
    for place in range(len(rows)):
        demand[place] = min(rates[place], table.rate[rows[place]])
        if table.pipeline[rows[place]]:
            demand[place] = table.rate[rows[place]]
            for stage in range(limits.shape[1]):
                if stage != 1 + at:
                    demand[place] = min(demand[place], limits[place, stage])


@compile_kernel
def composition_of(table, composition, row):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    if composition != BY_PATTERN:
        return composition
    return SLOWEST_STAGE if table.pipeline[row] else ADDED_WAITS


# Memory contention never falls when a competitor is added: predictions are bounded by those of fewer competitors.
#
# A model that is fitted to noisy runs may predict slightly less contention for a larger sum of counters, where runs are
# few or noise exceeds the effect. All NFs together contend for the memory at least as much as some of them do, so the
# prediction is the lowest over all subsets of an NF's competitors.
#
# This holds for memory alone. On an accelerator, a competitor may slow another competitor, which leaves more of the
# accelerator to the NF; the equilibrium is not bounded.


MOST_COMPETITORS = 7  # with more competitors only all of them together are looked at: subsets are too many
MANY_LOADS = 4
"""With more competitors, of which some carry little, all of them are looked at and all but one: a NIC may have many
light NFs, and light ones hardly differ from none."""


@compile_kernel
def write_lowest_shares(table, models, member, shares):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write the lowest share of each of the members of one co-location."""
    if len(member) < 2:
        fill(shares, 1.0)
        return
    others = len(member) - 1
    subsets = (1 << others) - 1 if others <= MOST_COMPETITORS else 1
    without_one = MANY_LOADS < others <= MOST_COMPETITORS and _are_loads(table, member)
    if without_one:
        subsets = 1 + others
    counters = np.empty((subsets, table.counters.shape[1]))
    traffic, own_wss = np.empty((subsets, table.traffic.shape[1])), np.empty(subsets)
    logarithm = np.empty(subsets)
    for place in range(len(member)):
        row = member[place]
        if place > 0 and member[place - 1] == row:
            shares[place] = shares[place - 1]
            continue
        if without_one:
            _write_without_one(table.counters, member, place, counters)
        else:
            _write_sums(table.counters, member, place, counters)
        for subset in range(subsets):
            for counter in range(WORKING_SET):
                counters[subset, counter] *= table.pressure[row]
        for subset in range(subsets):
            copy_into(traffic[subset], table.traffic[row])
        fill(own_wss, table.counters[row, WORKING_SET] if table.relative[row] else 0.0)
        write_logarithms(models, table.nf[row], counters, traffic, own_wss, logarithm)
        lowest = np.inf
        for subset in range(subsets):
            lowest = min(lowest, logarithm[subset])
        if not table.relative[row]:
            lowest -= math.log(table.base[row])
        shares[place] = math.exp(min(lowest, 0.0) * table.exposure[row])


@compile_kernel
def _are_loads(table, member):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Whether a member has an offered rate or another number of cores than its default."""
    loads = 0
    for row in member:
        loads += table.presence[row] != 1.0
    return loads > 0


@compile_kernel
def _write_without_one(own, member, place, sums):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write the summed counters of all competitors of one member, then of all but each of them."""
    fill(sums[0], 0.0)
    for other in range(len(member)):
        if other != place:
            for counter in range(sums.shape[1]):
                sums[0, counter] += own[member[other], counter]
    at = 0
    for other in range(len(member)):
        if other != place:
            at += 1
            for counter in range(sums.shape[1]):
                sums[at, counter] = max(sums[0, counter] - own[member[other], counter], 0.0)


@compile_kernel
def _write_sums(own, member, place, sums):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write the summed counters of every subset of the competitors of one member, or of all where subsets are many.

    Subset k holds those competitors whose bit in k + 1 is set: one of them, and a subset that was summed before.
    """
    others = len(member) - 1
    for other in range(others):
        competitor = own[member[other if other < place else other + 1]]
        if others > MOST_COMPETITORS:
            if other == 0:
                fill(sums[0], 0.0)
            for counter in range(len(competitor)):
                sums[0, counter] += competitor[counter]
            continue
        first = 1 << other
        copy_into(sums[first - 1], competitor)
        for without in range(first - 1):
            for counter in range(len(competitor)):
                sums[first + without, counter] = sums[without, counter] + competitor[counter]
