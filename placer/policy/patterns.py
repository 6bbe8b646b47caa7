"""Patterns: every company that a few workloads can form on one kind of NIC, with everybody's throughput, as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from placer.model.fleet import NicKind
from placer.model.oracle import Oracle
from profiles import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

MOST_PATTERNS = 4_000
"""Companies that are worth asking for beforehand."""

LEVELS = 8
"""Into how many levels the SLAs of newcomers are sorted when rooms are compared. Whether they are met is exact."""

NONE = -1


class Patterns:
    """Companies of `workloads` on NICs of `kind`; the first has nobody in it.

    Attributes
    ----------
    columns
        Column of each workload.
    counts
        Instances of each workload, shape (patterns, workloads).
    members
        Columns of the distinct workloads, then -1, shape (patterns, most members).
    kpps
        Throughput of each workload; 0 where it is not in it. Shape of `counts`.
    solo
        Throughput of each workload alone.
    joined
        The pattern with one more of a workload, -1 where cores do not suffice, shape of `counts`.
    levels
        Per workload the throughputs (kpps) that divide SLAs into levels, loosest first, shape (workloads, LEVELS).
    level
        The strictest level that a workload's throughput meets, -1 where none; shape of `counts`.
    """

    def __init__(self, kind: NicKind, workloads: Sequence[Workload], oracle: Oracle) -> None:
        self.kind = kind
        self.workloads = tuple(sorted(workload for workload in workloads if kind.hosts(workload)))
        self.columns = {workload: column for column, workload in enumerate(self.workloads)}
        cores = [kind.cores_of[workload.nf] for workload in self.workloads]
        co_locations = _co_locations(cores, kind.cores)
        place = {co_location: number for number, co_location in enumerate(co_locations)}
        width = len(self.workloads)
        self.counts = np.zeros((len(co_locations), width), dtype=np.int32)
        for number, co_location in enumerate(co_locations):
            for column in co_location:
                self.counts[number, column] += 1
        self.joined = np.full(self.counts.shape, NONE, dtype=np.int32)
        for number, co_location in enumerate(co_locations):
            for column in range(width):
                self.joined[number, column] = place.get(tuple(sorted((*co_location, column))), NONE)
        self.cores = self.counts @ np.array(cores, dtype=np.int32).reshape(width)
        self.members = _members(self.counts)
        self.kpps = self._asked(co_locations, oracle)
        alone = self.joined[0] if width else np.zeros(0, dtype=np.int32)
        self.solo = self.kpps[alone, np.arange(width)]
        self.levels = np.array([_levels(self.kpps[self.counts[:, w] > 0, w]) for w in range(width)]).reshape(-1, LEVELS)
        self.level = self._level()
        self._over: dict[int, Ints] = {}

    def over(self, pattern: int) -> Ints:
        """The patterns that contain this one, itself included, ascending."""
        if pattern not in self._over:
            contains = (self.counts >= self.counts[pattern]).all(axis=1)
            self._over[pattern] = np.flatnonzero(contains).astype(np.int32)
        return self._over[pattern]

    def _asked(self, co_locations: Sequence[tuple[int, ...]], oracle: Oracle) -> Floats:
        kpps = np.zeros(self.counts.shape)
        answers = oracle.throughput(
            [tuple(self.workloads[column] for column in co_location) for co_location in co_locations[1:]]
        )
        for number, (co_location, answer) in enumerate(zip(co_locations[1:], answers, strict=True), start=1):
            for column, got in zip(co_location, answer, strict=True):
                before = kpps[number, column]
                kpps[number, column] = min(got, before) if before else got
        return kpps

    def _level(self) -> Ints:
        level = np.full(self.counts.shape, NONE, dtype=np.int32)
        for column, divides in enumerate(self.levels):
            level[:, column] = np.searchsorted(divides, self.kpps[:, column], side="right") - 1
        return level


def too_many(kind: NicKind, workloads: Sequence[Workload], most: int = MOST_PATTERNS) -> bool:
    """Whether these workloads form more companies than are worth asking for."""
    ways = np.zeros(kind.cores + 1)
    ways[0] = 1
    for workload in workloads:
        if kind.hosts(workload):
            cores = max(kind.cores_of[workload.nf], 1)
            for free in range(cores, kind.cores + 1):
                ways[free] += ways[free - cores]
    return bool(ways.sum() > most)


def _co_locations(cores: Sequence[int], free: int) -> list[tuple[int, ...]]:
    """Sorted tuples of columns that together take no more than `free` cores; whoever contains another comes later."""
    found: list[tuple[int, ...]] = []
    stack: list[tuple[tuple[int, ...], int]] = [((), free)]
    while stack:
        co_location, left = stack.pop()
        found.append(co_location)
        first = co_location[-1] if co_location else 0
        stack += [
            ((*co_location, column), left - cores[column])
            for column in range(len(cores) - 1, first - 1, -1)
            if 0 < cores[column] <= left
        ]
    return sorted(found, key=len)


def _members(counts: Ints) -> Ints:
    widest = int((counts > 0).sum(axis=1).max(initial=0))
    members = np.full((len(counts), widest + 1), NONE, dtype=np.int32)
    for number, row in enumerate(counts):
        there = np.flatnonzero(row)
        members[number, : len(there)] = there
    return members


def _levels(kpps: Floats) -> Floats:
    """Throughputs, ascending, that divide those of a workload into levels; the last is the highest of all."""
    distinct = np.unique(kpps)
    at = np.linspace(0, len(distinct) - 1, LEVELS).round().astype(int)
    levels: Floats = distinct[at]
    return levels
