"""The worker of column generation where an oracle predicts throughputs: it finds co-locations that meet every SLA.

Nothing is assumed of a co-location that was not queried: it may be feasible, even where a part of it is not. So
co-locations are queried in order of their worth, highest first, in batches; no other is worth more than the first that
was not queried. With more co-locations than can be queried, the bound therefore ends near that from cores.

On a GPU, every part of an admitted co-location is admitted, too. There the search is a branch and bound, which goes no
further from a part that is rejected."""

import heapq
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import numpy as np

from placer.model.constraints import kind_allows, sharing_values
from placer.model.feasibility import feasible
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.optimal.column_generation import WORTH_MORE, Column, PricedColumns, Task, dive, generate
from placer.optimal.incumbent import Incumbent
from placer.optimal.program import costs_in_units
from profiles.arrays import Floats, Ints

QUERY_SIZE = 64
MAX_QUERIES = 16  # queries after which the worker gives up for this round


ON_GPU = 16  # Co-locations of one kind of GPU that are found in a round, at most


class CoLocationPricer:
    """The worker: one row per class of tenants with the same workload and the same SLA.

    `classes`: a tenant of each row. `oracles`: by kind, the throughputs in a co-location; repeated queries cost
    nothing. `costs`: by kind, the cost of a NIC in whole units.
    """

    def __init__(
        self, classes: Sequence[Tenant], kinds: Sequence[NicKind], oracles: Sequence[Oracle], costs: Ints
    ) -> None:
        self.classes = classes
        self.kinds = kinds
        self.oracles = oracles
        self.costs = costs

    def __call__(self, prices: Floats, needed: Ints, deadline: float) -> PricedColumns:
        columns: list[tuple[float, Column]] = []
        most: Floats = self.costs.astype(np.float64) + WORTH_MORE  # co-locations worth less are not looked for
        for number in range(len(self.kinds)):
            found, limit = self._of_kind(number, prices, needed, deadline)
            columns += found
            most[number] = max(most[number], limit)
        columns.sort(key=lambda one: -one[0])
        return PricedColumns([column for _, column in columns], most)

    def _of_kind(
        self, number: int, prices: Floats, needed: Ints, deadline: float
    ) -> tuple[list[tuple[float, Column]], float]:
        """Feasible co-locations of the first batch that has any, with their gain; and a bound on the worth of any."""
        if self.kinds[number].paced:
            return self._of_gpu(number, prices, needed, deadline)
        kind, oracle, cost = self.kinds[number], self.oracles[number], float(self.costs[number])
        by_worth = _co_locations_by_worth(_copies(self.classes, kind, prices, needed), kind.cores, cost + WORTH_MORE)
        limit = cost
        for queried in range(MAX_QUERIES + 1):
            batch = list(islice(by_worth, QUERY_SIZE))
            if not batch:
                return [], cost
            limit = batch[0][0]
            if queried == MAX_QUERIES or time.monotonic() >= deadline:
                break
            able = feasible(kind, oracle, [[self.classes[row] for row in rows] for _, rows in batch])
            found = [
                (worth - cost, Column(number, rows)) for (worth, rows), fits in zip(batch, able, strict=True) if fits
            ]
            if found:
                return found, found[0][0] + cost
        return [], limit

    def _of_gpu(
        self, number: int, prices: Floats, needed: Ints, deadline: float
    ) -> tuple[list[tuple[float, Column]], float]:
        """As `_of_kind`: the best admitted co-locations, and a bound on the worth of any."""
        kind, oracle, cost = self.kinds[number], self.oracles[number], float(self.costs[number])
        copies = _copies(self.classes, kind, prices, needed)
        best = _best_worths(copies, kind.cores)
        waiting: list[tuple[float, tuple[int, ...], int, int, float]] = [(-best[0][kind.cores], (), 0, kind.cores, 0.0)]
        asked, limit = 0, cost
        found: list[tuple[float, Column]] = []
        while waiting and -waiting[0][0] > cost + WORTH_MORE and len(found) < ON_GPU:
            limit = limit if found else -waiting[0][0]
            if asked >= QUERY_SIZE * MAX_QUERIES or time.monotonic() >= deadline:
                return found, limit
            _, rows, place, free, worth = heapq.heappop(waiting)
            if place == len(copies):
                found.append((worth - cost, Column(number, rows)))
                continue
            copy = copies[place]
            without = worth + best[copy.after][free]
            heapq.heappush(waiting, (-without, rows, copy.after, free, worth))
            if copy.cores <= free:
                more, asked = (*rows, copy.row), asked + 1
                if feasible(kind, oracle, [[self.classes[row] for row in more]])[0]:
                    worth, free = worth + copy.price, free - copy.cores
                    heapq.heappush(waiting, (-(worth + best[place + 1][free]), more, place + 1, free, worth))
        return found, limit if found else cost


@dataclass(frozen=True, slots=True)
class _Copy:
    """One instance of a row that a co-location may take; the copies of the next row begin at `after`."""

    row: int
    cores: int
    price: float
    after: int


def _copies(classes: Sequence[Tenant], kind: NicKind, prices: Floats, needed: Ints) -> list[_Copy]:
    """As many copies of each row as are needed and fit a NIC, row by row."""
    copies: list[_Copy] = []
    for row, tenant in enumerate(classes):
        if kind.hosts(tenant.workload) and kind_allows(kind, tenant):
            cores = kind.cores_for(tenant.workload)
            number = min(int(needed[row]), kind.cores // cores if cores else int(needed[row]))
            after = len(copies) + number
            copies += [_Copy(row, cores, float(prices[row]), after)] * number
    return copies


def _co_locations_by_worth(
    copies: Sequence[_Copy], cores: int, above: float
) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Co-locations within the cores that are worth more than `above`, highest worth first, each once.

    A dynamic program bounds what any partial choice can become worth. The best choice is followed to its end; every
    alternative waits with its own bound.
    """
    bound_of = _best_worths(copies, cores)
    waiting: list[tuple[float, tuple[int, ...], int, int, float]] = [(-bound_of[0][cores], (), 0, cores, 0.0)]
    while waiting:
        negative, rows, place, free, worth = heapq.heappop(waiting)
        if -negative <= above:
            return
        while place < len(copies):
            copy = copies[place]
            skipped = (worth + bound_of[copy.after][free], rows, copy.after, free, worth)
            if copy.cores <= free:
                more = (*rows, copy.row), place + 1, free - copy.cores, worth + copy.price
                joined = (more[3] + bound_of[more[1]][more[2]], *more)
            else:
                joined = (-np.inf, *skipped[1:])
            (_, rows, place, free, worth), other = (joined, skipped) if joined[0] > skipped[0] else (skipped, joined)
            if other[0] > above:
                heapq.heappush(waiting, (-other[0], *other[1:]))
        if rows:
            yield worth, rows


def _best_worths(copies: Sequence[_Copy], cores: int) -> list[list[float]]:
    """What copies from each place on can be worth at most, by free cores."""
    best = np.zeros((len(copies) + 1, cores + 1))
    for place in range(len(copies) - 1, -1, -1):
        copy = copies[place]
        best[place] = best[copy.after]
        taken = best[place + 1, : cores + 1 - copy.cores] + copy.price
        best[place, copy.cores :] = np.maximum(best[place, copy.cores :], taken)
    found: list[list[float]] = best.tolist()
    return found


# Plans and bounds by column generation, for more workloads than all co-locations can be queried for.


def generate_plan(
    incumbent: Incumbent, kinds: Sequence[NicKind], oracles: Sequence[Oracle], *, deadline: float
) -> tuple[Incumbent, Fraction]:
    """The incumbent or a better plan, and a lower bound on the cost of every plan that places all of its tenants.

    Tenants that the incumbent leaves out stay out, and the bound is then 0. The plan is found by diving, a heuristic:
    only the bound can prove it.
    """
    members: defaultdict[object, list[Tenant]] = defaultdict(list)
    for _, on_nic in incumbent.nics:
        for tenant in on_nic:
            members[_class_of(tenant, kinds)].append(tenant)
    rows = {key: row for row, key in enumerate(members)}
    costs, unit = costs_in_units(kinds)
    needed = np.array([len(group) for group in members.values()], dtype=np.int64)
    counts = [needed.sum() if kind.count is None else kind.count for kind in kinds]
    task = Task(needed, costs, np.array(counts, dtype=np.int64), exactly=True)
    worker = CoLocationPricer([group[0] for group in members.values()], kinds, oracles, costs)
    start = [
        Column(kind, tuple(sorted(rows[_class_of(tenant, kinds)] for tenant in on_nic)))
        for kind, on_nic in incumbent.nics
    ]
    cost = sum(int(costs[column.kind]) for column in start)
    generated = generate(task, start, worker, enough=cost, deadline=deadline)
    plan = None
    if generated.bound < cost:
        plan, _ = dive(task, generated.columns, worker, below=cost, deadline=deadline)
    bound = Fraction(0) if incumbent.unplaced else generated.bound * unit
    return (incumbent if plan is None else _with_tenants(plan, list(members.values()), incumbent)), bound


def _class_of(tenant: Tenant, kinds: Sequence[NicKind]) -> tuple[object, ...]:
    """Tenants that are alike in it can take each other's place on any NIC."""
    return tenant.workload, tenant.sla, sharing_values(tenant), *(kind_allows(kind, tenant) for kind in kinds)


def _with_tenants(plan: Sequence[Column], members: Sequence[Sequence[Tenant]], incumbent: Incumbent) -> Incumbent:
    """The columns as NICs, with a tenant for every row."""
    waiting = [iter(group) for group in members]
    nics = tuple((column.kind, tuple(next(waiting[row]) for row in column.rows)) for column in plan)
    return Incumbent(nics, incumbent.unplaced)
