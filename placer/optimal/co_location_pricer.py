"""The worker of column generation where an oracle tells throughputs: companies that keep every SLA.

Nothing is assumed of a company that was not asked: it may be feasible, even where a part of it is not. So companies are
asked in order of what they would be worth, the most valuable first, many at once; the first that was not asked tells
what no company is worth more than. With more companies than can be asked, the bound therefore ends near that by cores.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from placer.model.feasibility import feasible
from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import Oracle
from placer.optimal.arrays import Floats, Ints
from placer.optimal.column_generation import WORTH_MORE, Column, PricedColumns

BATCH = 64
"""Companies asked at once."""

BATCHES = 16
"""Batches after which the worker gives up for this round."""


class CoLocationPricer:
    """The worker: one row a class of tenants that run the same workload under the same SLA.

    Parameters
    ----------
    classes
        A tenant of each row.
    kinds
        The NICs that can be had.
    oracles
        By kind, the throughput in company; remembers its answers.
    costs
        By kind, the cost of a NIC in whole units.
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
        most: Floats = self.costs.astype(np.float64) + WORTH_MORE  # a company worth less than that is not told
        for number in range(len(self.kinds)):
            found, limit = self._of_kind(number, prices, needed, deadline)
            columns += found
            most[number] = max(most[number], limit)
        columns.sort(key=lambda one: -one[0])
        return PricedColumns([column for _, column in columns], most)

    def _of_kind(
        self, number: int, prices: Floats, needed: Ints, deadline: float
    ) -> tuple[list[tuple[float, Column]], float]:
        """Feasible companies of the first batch that has any, by gain; and what none is worth more than."""
        kind, oracle, cost = self.kinds[number], self.oracles[number], float(self.costs[number])
        by_worth = _co_locations_by_worth(_copies(self.classes, kind, prices, needed), kind.cores, cost + WORTH_MORE)
        limit = cost
        for asked in range(BATCHES + 1):
            batch = list(islice(by_worth, BATCH))
            if not batch:
                return [], cost
            limit = batch[0][0]
            if asked == BATCHES or time.monotonic() >= deadline:
                break
            able = feasible(kind, oracle, [[self.classes[row] for row in rows] for _, rows in batch])
            found = [
                (worth - cost, Column(number, rows)) for (worth, rows), fits in zip(batch, able, strict=True) if fits
            ]
            if found:
                return found, found[0][0] + cost
        return [], limit


@dataclass(frozen=True, slots=True)
class _Copy:
    """One instance of a row that a company may take; `after` is where the copies of the next row begin."""

    row: int
    cores: int
    price: float
    after: int


def _copies(classes: Sequence[Tenant], kind: NicKind, prices: Floats, needed: Ints) -> list[_Copy]:
    """As many copies of each row as are needed and fit a NIC, row by row."""
    copies: list[_Copy] = []
    for row, tenant in enumerate(classes):
        if kind.hosts(tenant.workload):
            cores = kind.cores_of[tenant.workload.nf]
            number = min(int(needed[row]), kind.cores // cores if cores else int(needed[row]))
            after = len(copies) + number
            copies += [_Copy(row, cores, float(prices[row]), after)] * number
    return copies


def _co_locations_by_worth(
    copies: Sequence[_Copy], cores: int, above: float
) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Companies within the cores that are worth more than `above`, the most valuable first, each once.

    A dynamic program tells the most that any choice can still become worth. The best choice is followed to its end;
    every turn not taken waits with its own promise.
    """
    best = np.zeros((len(copies) + 1, cores + 1))
    for place in range(len(copies) - 1, -1, -1):
        copy = copies[place]
        best[place] = best[copy.after]
        taken = best[place + 1, : cores + 1 - copy.cores] + copy.price
        best[place, copy.cores :] = np.maximum(best[place, copy.cores :], taken)
    promise = best.tolist()
    waiting: list[tuple[float, tuple[int, ...], int, int, float]] = [(-promise[0][cores], (), 0, cores, 0.0)]
    while waiting:
        negative, rows, place, free, worth = heapq.heappop(waiting)
        if -negative <= above:
            return
        while place < len(copies):
            copy = copies[place]
            skipped = (worth + promise[copy.after][free], rows, copy.after, free, worth)
            if copy.cores <= free:
                more = (*rows, copy.row), place + 1, free - copy.cores, worth + copy.price
                joined = (more[3] + promise[more[1]][more[2]], *more)
            else:
                joined = (-np.inf, *skipped[1:])
            (_, rows, place, free, worth), other = (joined, skipped) if joined[0] > skipped[0] else (skipped, joined)
            if other[0] > above:
                heapq.heappush(waiting, (-other[0], *other[1:]))
        if rows:
            yield worth, rows
