"""Co-location patterns: every company that a NIC can host, and which tenants each of its slots is good enough for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placer.model.fleet import NicKind
from placer.model.oracle import CoLocation, Oracle
from placer.optimal.demand import Demand, Ints

Members = tuple[int, ...]
"""A company as demand numbers, ascending."""

UNTOUCHED = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Patterns:
    """Columns of the pattern program, one a row of every array.

    A *loose* pattern may be run with any of its slots empty: its levels hold for whoever stays. A *strict* one holds
    only when every slot is taken. Oracles need not be monotone, so the second kind is needed: leaving may hurt.

    Parameters
    ----------
    kind
        Number of the NIC kind, shape (patterns,).
    slots
        Slots offered to each demand, shape (patterns, demands).
    levels
        Level of those slots (`Demand.levels`), shape (patterns, demands); 0 where there are none.
    strict
        Whether all slots must be taken, shape (patterns,).
    """

    kind: Ints
    slots: Ints
    levels: Ints
    strict: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.kind)

    def take(self, which: npt.NDArray[np.bool_] | Ints) -> Patterns:
        """Some of the patterns."""
        return Patterns(self.kind[which], self.slots[which], self.levels[which], self.strict[which])


def joined(parts: Sequence[Patterns]) -> Patterns:
    """Patterns of several NIC kinds as one."""
    return Patterns(
        np.concatenate([part.kind for part in parts]),
        np.concatenate([part.slots for part in parts]),
        np.concatenate([part.levels for part in parts]),
        np.concatenate([part.strict for part in parts]),
    )


def co_locations_within(kind: NicKind, demands: Sequence[Demand]) -> Iterator[Members]:
    """Every non-empty company of the demands' tenants that has the cores it needs, each once."""
    hosted = [i for i, demand in enumerate(demands) if kind.hosts(demand.workload)]
    cores = {i: kind.cores_of[demands[i].workload.nf] for i in hosted}

    def grow(members: Members, position: int, free: int) -> Iterator[Members]:
        for place in range(position, len(hosted)):
            i = hosted[place]
            left = len(demands[i].tenants) - (members.count(i) if place == position else 0)
            if cores[i] <= free and left > 0:
                larger = (*members, i)
                yield larger
                yield from grow(larger, place, free - cores[i])

    return grow((), 0, kind.cores)


def workloads_of(members: Members, demands: Sequence[Demand]) -> CoLocation:
    """The company that an oracle is asked about: demands are sorted by workload, so it is sorted too."""
    return tuple(demands[i].workload for i in members)


def rated(kind: int, co_locations: Sequence[Members], demands: Sequence[Demand], oracle: Oracle) -> tuple[Ints, Ints]:
    """Slots and levels, each of shape (companies, demands), of companies on NIC kind number `kind`.

    Where an oracle tells equal workloads of one company different throughputs, the lowest counts for all of them.
    """
    answers = oracle.throughput([workloads_of(members, demands) for members in co_locations])
    sizes = np.array([len(members) for members in co_locations], dtype=np.int64)
    row = np.repeat(np.arange(len(co_locations)), sizes)
    member = np.array([i for members in co_locations for i in members], dtype=np.int64)
    throughput = np.array([value for answer in answers for value in answer], dtype=np.float64)
    first = {demand.workload: i for i, demand in reversed(list(enumerate(demands)))}
    twin = np.array([first[demand.workload] for demand in demands], dtype=np.int64)
    lowest = np.full((len(co_locations), len(demands)), np.inf)
    np.minimum.at(lowest, (row, twin[member]), throughput)
    slots = np.zeros((len(co_locations), len(demands)), dtype=np.int64)
    np.add.at(slots, (row, member), 1)
    levels = np.zeros_like(slots)
    for i, demand in enumerate(demands):
        rows = np.flatnonzero(slots[:, i])
        levels[rows, i] = demand.levels(kind, lowest[rows, twin[i]])
    return slots, levels


def patterns_of(kind: int, co_locations: Sequence[Members], slots: Ints, levels: Ints) -> Patterns:
    """The undominated patterns among companies that are closed under leaving.

    A company gives a loose pattern with the lowest levels that its slots keep whoever leaves, and a strict pattern
    when its own levels are higher than that. With a monotone oracle there is no strict one. A loose pattern never
    enters when a company with one more member offers the same levels to the others: an empty slot costs nothing. One
    step up is enough to look, because loose levels never rise from a company to a larger one.
    """
    leave = _one_left(co_locations)
    loose = np.where(slots > 0, levels, UNTOUCHED)
    order = np.argsort(slots.sum(axis=1), kind="stable")
    sizes = slots.sum(axis=1)[order]
    for size in range(2, int(sizes.max(initial=0)) + 1):
        rows = order[sizes == size]
        for smaller in leave[rows].T:
            known = smaller >= 0
            loose[rows[known]] = np.minimum(loose[rows[known]], loose[smaller[known]])
    loose[slots == 0] = 0
    useful = np.all((loose > 0) | (slots == 0), axis=1)
    dominated = np.zeros(len(co_locations), dtype=bool)
    for smaller in leave.T:
        larger = np.flatnonzero((smaller >= 0) & useful)
        rows = smaller[larger]
        same = np.all((loose[larger] >= loose[rows]) | (slots[rows] == 0), axis=1)
        dominated[rows[same]] = True
    keep = useful & ~dominated
    strict = np.all((levels > 0) | (slots == 0), axis=1) & np.any(levels > loose, axis=1)
    chosen = np.concatenate([np.flatnonzero(keep), np.flatnonzero(strict)])
    is_strict = np.arange(len(chosen)) >= np.count_nonzero(keep)
    return Patterns(
        kind=np.full(len(chosen), kind, dtype=np.int64),
        slots=slots[chosen],
        levels=np.where(is_strict[:, None], levels[chosen], loose[chosen]),
        strict=is_strict,
    )


def _one_left(co_locations: Sequence[Members]) -> Ints:
    """For every company the numbers of those in which one member less remains, padded with -1."""
    number = {members: i for i, members in enumerate(co_locations)}
    width = max((len(members) for members in co_locations), default=0)
    leave = np.full((len(co_locations), width), -1, dtype=np.int64)
    for i, members in enumerate(co_locations):
        if len(members) > 1:
            for j in range(len(members)):
                if j == 0 or members[j] != members[j - 1]:
                    leave[i, j] = number[members[:j] + members[j + 1 :]]
    return leave
