"""The pattern table: every co-location that a few workloads can form on one kind of NIC, with all throughputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placer.model.fleet import NicKind
from placer.model.oracle import Oracle
from placer.policy.kernels import Floats, Ints, PatternArrays
from profiles import Workload

MOST_PATTERNS = 4_000
"""The largest number of co-locations that are predicted in advance."""

LEVELS = 8
"""Number of levels into which SLAs of arrivals are sorted when classes are scored. Feasibility is always exact."""

NONE = -1


class PatternTable:
    """All co-locations of `workloads` on NICs of `kind`; pattern 0 is the empty NIC.

    Attributes
    ----------
    columns
        Column of each workload.
    counts
        Instances of each workload, shape (patterns, workloads).
    members
        Columns of the distinct workloads, then -1, shape (patterns, most members).
    kpps
        Throughput of each workload, 0 where the pattern does not contain it; shape of `counts`.
    solo
        Throughput of each workload alone (kpps).
    joined
        The pattern with one more instance of a workload, -1 where cores do not suffice; shape of `counts`.
    levels
        Per workload the throughputs (kpps) that divide SLAs into levels, loosest first, shape (workloads, LEVELS).
    level
        The strictest level that a workload's throughput meets, -1 where none; shape of `counts`.
    arrays
        The arrays that kernels read.
    """

    def __init__(self, kind: NicKind, workloads: Sequence[Workload], oracle: Oracle) -> None:
        self.kind = kind
        self.workloads = tuple(sorted(workload for workload in workloads if kind.hosts(workload)))
        self.columns = {workload: column for column, workload in enumerate(self.workloads)}
        cores = [kind.cores_of[workload.nf] for workload in self.workloads]
        patterns = _patterns(cores, kind.cores)
        number_of = {pattern: number for number, pattern in enumerate(patterns)}
        width = len(self.workloads)
        self.counts = np.zeros((len(patterns), width), dtype=np.int32)
        self.joined = np.full(self.counts.shape, NONE, dtype=np.int32)
        for number, pattern in enumerate(patterns):
            for column in pattern:
                self.counts[number, column] += 1
            for column in range(width):
                self.joined[number, column] = number_of.get(tuple(sorted((*pattern, column))), NONE)
        self.members = _members(self.counts)
        self.kpps = self._predicted(patterns, oracle)
        alone = self.joined[0] if width else np.zeros(0, dtype=np.int32)
        self.solo = self.kpps[alone, np.arange(width)]
        self.levels = np.array([_levels(self.kpps[self.counts[:, w] > 0, w]) for w in range(width)]).reshape(-1, LEVELS)
        self.level = self._level()
        self.arrays = PatternArrays(self.counts, self.kpps, self.level, self.joined)
        self._above: dict[int, Ints] = {}

    def above(self, pattern: int) -> Ints:
        """The patterns that contain this one, itself included, ascending."""
        if pattern not in self._above:
            contains = (self.counts >= self.counts[pattern]).all(axis=1)
            self._above[pattern] = np.flatnonzero(contains).astype(np.int32)
        return self._above[pattern]

    def _predicted(self, patterns: Sequence[tuple[int, ...]], oracle: Oracle) -> Floats:
        kpps = np.zeros(self.counts.shape)
        answers = oracle.throughput([tuple(self.workloads[column] for column in pattern) for pattern in patterns[1:]])
        for number, (pattern, answer) in enumerate(zip(patterns[1:], answers, strict=True), start=1):
            for column, got in zip(pattern, answer, strict=True):
                before = kpps[number, column]
                kpps[number, column] = min(got, before) if before else got
        return kpps

    def _level(self) -> Ints:
        level = np.full(self.counts.shape, NONE, dtype=np.int32)
        for column, bounds in enumerate(self.levels):
            level[:, column] = np.searchsorted(bounds, self.kpps[:, column], side="right") - 1
        return level


def too_many(kind: NicKind, workloads: Sequence[Workload], most: int = MOST_PATTERNS) -> bool:
    """Whether these workloads form more than `most` co-locations on a NIC of the kind."""
    ways = np.zeros(kind.cores + 1)
    ways[0] = 1
    for workload in workloads:
        if kind.hosts(workload):
            cores = max(kind.cores_of[workload.nf], 1)
            for taken in range(cores, kind.cores + 1):
                ways[taken] += ways[taken - cores]
    return bool(ways.sum() > most)


def _patterns(cores: Sequence[int], free: int) -> list[tuple[int, ...]]:
    """Sorted tuples of columns that together take at most `free` cores; a pattern comes after all that it contains."""
    found: list[tuple[int, ...]] = []
    stack: list[tuple[tuple[int, ...], int]] = [((), free)]
    while stack:
        pattern, left = stack.pop()
        found.append(pattern)
        first = pattern[-1] if pattern else 0
        stack += [
            ((*pattern, column), left - cores[column])
            for column in range(len(cores) - 1, first - 1, -1)
            if 0 < cores[column] <= left
        ]
    return sorted(found, key=len)


def _members(counts: Ints) -> Ints:
    widest = int((counts > 0).sum(axis=1).max(initial=0))
    members = np.full((len(counts), widest + 1), NONE, dtype=np.int32)
    for number, row in enumerate(counts):
        columns = np.flatnonzero(row)
        members[number, : len(columns)] = columns
    return members


def _levels(kpps: Floats) -> Floats:
    """Throughputs, ascending, that divide those of a workload into levels; the last is the highest of all."""
    distinct = np.unique(kpps)
    at = np.linspace(0, len(distinct) - 1, LEVELS).round().astype(int)
    levels: Floats = distinct[at]
    return levels
