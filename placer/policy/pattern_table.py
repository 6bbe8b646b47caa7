"""The pattern table: the co-locations that a few workloads can form on one kind of NIC without violating every SLA.

A co-location in which a workload keeps less than the loosest SLA accepts is of no use, and neither is one that contains
it, because throughput does not rise with a further competitor. So co-locations are enumerated by size, each from
smaller ones that are useful themselves (the a-priori principle of Agrawal and Srikant, "Fast algorithms for mining
association rules", VLDB 1994), and throughputs are asked for one size at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np

from placer.model.fleet import NicKind, Tenant
from placer.model.offered import OfferedWorkload
from placer.model.oracle import CoLocation, Oracle, co_location_of, lowest_by_workload
from placer.model.sla import LEAST_KPPS, TOLERANCE
from placer.policy.kernels import Floats, Ints
from profiles import Workload

MOST_PATTERNS = 4_000
"""The largest number of co-locations that a table holds."""

QUERIED_PER_PATTERN = 3
"""Co-locations that are asked for, at most, in multiples of those that a table may hold."""

NONE = -1

Pattern = tuple[int, ...]
"""The columns of a co-location, ascending."""


class TooManyPatterns(Exception):
    """The workloads form more useful co-locations than a table may hold."""


class PatternTable:
    """The useful co-locations of `workloads` on NICs of `kind`; pattern 0 is the empty NIC.

    Parameters
    ----------
    kind
        The kind of NIC.
    workloads
        All workloads; those that the kind does not host are left out.
    oracle
        Predicts the throughputs.
    accepted_drop
        Largest throughput drop, as a fraction, that an instance of a workload accepts; it runs alone at the given kpps.
    most
        Largest number of patterns.
    before
        A table of the same kind and oracle, whose answers are used again where it has no other workloads.

    Attributes
    ----------
    revision
        That of the oracle when its answers were taken.
    columns
        Column of each workload.
    number_of
        Number of each pattern.
    part_of
        The pattern without one instance, by the pattern and the column of the instance.
    counts
        Instances of each workload, shape (patterns, workloads).
    members
        Columns of the distinct workloads, then -1, shape (patterns, most members).
    kpps
        Throughput of each workload, 0 where the pattern does not contain it; shape of `counts`.
    solo, floor
        Throughput of each workload alone, and the least that an instance accepts (kpps).
    free
        Cores that are left, shape (patterns,).
    joined
        The pattern with one more instance of a workload, -1 where there is none; shape of `counts`.

    Raises
    ------
    TooManyPatterns
        When there are more than `most`, or too many would have to be asked for.
    """

    def __init__(
        self,
        kind: NicKind,
        workloads: Iterable[Workload],
        oracle: Oracle,
        accepted_drop: Callable[[Workload, float], float] = lambda workload, solo: 1.0,
        most: int = MOST_PATTERNS,
        before: PatternTable | None = None,
    ) -> None:
        self.kind = kind
        self.oracle = oracle
        self.revision = oracle.revision
        self._known: dict[Pattern, tuple[float, ...]] = {}
        hosted = {workload for workload in workloads if kind.hosts(workload)}
        known: tuple[Workload, ...] = ()
        if before is not None and before.revision == self.revision and hosted.issuperset(before.workloads):
            self._known, known = before._known, before.workloads
        self.workloads: tuple[Workload, ...] = (*known, *sorted(hosted.difference(known)))
        self.columns = {workload: column for column, workload in enumerate(self.workloads)}
        alone = oracle.throughput([(workload,) for workload in self.workloads])
        self.solo: Floats = np.array([kpps for (kpps,) in alone])
        drops = map(accepted_drop, self.workloads, self.solo.tolist())
        self.floor: Floats = self.solo * np.array([1.0 - drop for drop in drops]) * (1.0 - 2 * TOLERANCE)
        paced = [isinstance(workload, OfferedWorkload) for workload in self.workloads]
        self.floor[paced] = np.maximum(self.floor[paced], LEAST_KPPS)  # at 0, a promised latency is missed
        self._cores = [kind.cores_of[workload.nf] for workload in self.workloads]
        self.number_of: dict[Pattern, int] = {(): 0}
        self._free = [kind.cores]
        self.part_of: dict[tuple[int, int], int] = {}
        lowest = self._enumerate(most)
        self.counts = _counts(list(self.number_of), len(self.workloads))
        self.joined: Ints = np.full(self.counts.shape, NONE, dtype=np.int32)
        if self.part_of:
            larger, column = np.array(list(self.part_of)).T
            self.joined[list(self.part_of.values()), column] = larger
        self.kpps: Floats = np.array(lowest).reshape(self.counts.shape)
        self.free: Ints = np.array(self._free, dtype=np.int32)
        self.members = _members(self.counts)
        self._above: dict[int, Ints] = {}
        self._beyond: dict[tuple[Pattern, int], float] = {}

    def above(self, pattern: int) -> Ints:
        """The patterns that contain this one, itself included, ascending."""
        if pattern not in self._above:
            contains = (self.counts >= self.counts[pattern]).all(axis=1)
            self._above[pattern] = np.flatnonzero(contains).astype(np.int32)
        return self._above[pattern]

    def covers(self, tenant: Tenant) -> bool:
        """Whether the table holds all co-locations that are useful to the tenant, or its kind does not host it."""
        column = self.columns.get(tenant.workload)
        if column is None:
            return not self.kind.hosts(tenant.workload)
        return bool(tenant.sla.required_kpps(self.solo[column]) >= self.floor[column])

    def co_location(self, pattern: Pattern) -> CoLocation:
        """The workloads of a pattern."""
        return co_location_of(self.workloads[column] for column in pattern)

    def cores_taken(self, pattern: Pattern) -> int:
        """Cores that the workloads of a pattern take, in the table or not."""
        return sum(self._cores[column] for column in pattern)

    def kpps_with(self, pattern: Pattern, column: int) -> float:
        """Throughput of one more instance of a workload next to a pattern, in the table or not."""
        joined = tuple(sorted((*pattern, column)))
        if joined in self.number_of:
            return float(self.kpps[self.number_of[joined], column])
        key = joined, column
        if key not in self._beyond:
            self._beyond[key] = self.oracle.by_workload(self.co_location(joined))[self.workloads[column]]
        return self._beyond[key]

    def _enumerate(self, most: int) -> list[list[float]]:
        """Number all useful patterns, smallest first; returns the throughput of each workload in each of them."""
        width, queried = len(self.workloads), 0
        lowest = [[0.0] * width]
        level: list[Pattern] = [()]
        floor = self.floor.tolist()
        while level:
            candidates = self._one_more(level)
            queried += len(candidates)
            if queried > QUERIED_PER_PATTERN * most:
                raise TooManyPatterns
            self._ask([pattern for pattern in candidates if pattern not in self._known])
            level = []
            for pattern, smaller in candidates.items():
                row = [0.0] * width
                for column, kpps in zip(pattern, self._known[pattern], strict=True):
                    if kpps < floor[column]:
                        break
                    row[column] = kpps
                else:
                    level.append(pattern)
                    number = self.number_of[pattern] = len(lowest)
                    lowest.append(row)
                    self._free.append(self._free[smaller[0][0]] - self._cores[smaller[0][1]])
                    self.part_of.update(((number, column), part) for part, column in smaller)
            if len(lowest) > most:
                raise TooManyPatterns
        return lowest

    def _ask(self, patterns: Sequence[Pattern]) -> None:
        """Learn the throughput of every member of the patterns; of equal ones, the slowest counts."""
        co_locations = [self.co_location(pattern) for pattern in patterns]
        answers = self.oracle.throughput(co_locations)
        for pattern, co_location, answer in zip(patterns, co_locations, answers, strict=True):
            lowest = lowest_by_workload(co_location, answer)
            self._known[pattern] = tuple(lowest[self.workloads[column]] for column in pattern)

    def _one_more(self, level: Sequence[Pattern]) -> dict[Pattern, list[tuple[int, int]]]:
        """Patterns with one more member, all of whose parts are useful: numbers of these parts and missing columns."""
        found = {}
        for pattern in level:
            free = self._free[self.number_of[pattern]]
            for column in range(pattern[-1] if pattern else 0, len(self.workloads)):
                if 0 < self._cores[column] <= free:
                    candidate = (*pattern, column)
                    smaller = [(self.number_of[pattern], column)]
                    for at in range(len(pattern)):
                        if pattern[at] != candidate[at + 1]:
                            part = self.number_of.get(candidate[:at] + candidate[at + 1 :])
                            if part is None:
                                break
                            smaller.append((part, pattern[at]))
                    else:
                        found[candidate] = smaller
        return found


def _counts(patterns: Sequence[Pattern], width: int) -> Ints:
    """How often each of `width` columns is in each pattern."""
    number = np.repeat(np.arange(len(patterns)), [len(pattern) for pattern in patterns])
    column = np.fromiter(chain.from_iterable(patterns), dtype=np.intp)
    flat = np.bincount(number * width + column, minlength=len(patterns) * width)
    return flat.reshape(len(patterns), width).astype(np.int32)


def _members(counts: Ints) -> Ints:
    """The columns that each pattern has, ascending, then -1."""
    has = (counts > 0).sum(axis=1)
    members = np.full((len(counts), int(has.max(initial=0)) + 1), NONE, dtype=np.int32)
    number, column = np.nonzero(counts)
    members[number, np.arange(len(number)) - np.repeat(np.cumsum(has) - has, has)] = column
    return members
