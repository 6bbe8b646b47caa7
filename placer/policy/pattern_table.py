"""The pattern table: the co-locations that a few workloads can form on one kind of NIC without violating every SLA."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np

from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import Oracle
from placer.policy.enumeration import Enumeration
from placer.policy.enumeration import Pattern as Pattern
from placer.policy.enumeration import TooManyPatterns as TooManyPatterns
from placer.policy.kernels import Ints
from profiles import CoLocation, Workload
from profiles.arrays import Floats

MOST_PATTERNS = 4_000
NO_PATTERN = -1


class PatternTable:
    """The useful co-locations of `workloads` on NICs of `kind`; pattern 0 is the empty NIC.

    `workloads`: all workloads; those that the kind does not host are left out.
    `accepted_drop`: largest throughput drop, as a fraction, that an instance of a workload accepts; it runs alone at
        the given kpps.
    `most`: largest number of patterns.
    `before`: a table of the same kind and oracle, whose answers are used again where it has no other workloads.
    `revision`: that of the oracle when its answers were taken.
    `part_of`: the pattern without one instance, by the pattern and the column of the instance.
    `counts`: instances of each workload, shape (patterns, workloads).
    `members`: columns of the distinct workloads, then -1, shape (patterns, most members).
    `kpps`: throughput of each workload in advance, 0 where the pattern does not contain it; shape of `counts`.
    `now`: of patterns in which a throughput is another one now, that of each column (kpps), by the number of the
        pattern.
    `solo`, `floor`: throughput of each workload alone in advance, and the least that an instance accepts (kpps).
    `free`: cores that are left, shape (patterns,).
    `joined`: the pattern with one more instance of a workload, -1 where there is none; shape of `counts`.

    Raises TooManyPatterns when there are more than `most`, or too many would have to be asked for.
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
        enumeration = Enumeration(kind, workloads, oracle, accepted_drop, most, before.enumeration if before else None)
        self._fill(enumeration.complete())

    @classmethod
    def of(cls, enumeration: Enumeration) -> PatternTable:
        made = cls.__new__(cls)
        made._fill(enumeration)
        return made

    def _fill(self, enumeration: Enumeration) -> None:
        self.enumeration = enumeration
        self.kind = enumeration.kind
        self.oracle = enumeration.oracle
        self.revision = enumeration.revision
        self.workloads = enumeration.workloads
        self.columns = enumeration.columns
        self.solo = enumeration.solo
        self.floor = enumeration.floor
        self.number_of = enumeration.number_of
        self.part_of = enumeration.part_of
        self.counts = _counts(list(self.number_of), len(self.workloads))
        self.joined: Ints = np.full(self.counts.shape, NO_PATTERN, dtype=np.int32)
        if self.part_of:
            larger, column = np.array(list(self.part_of)).T
            self.joined[list(self.part_of.values()), column] = larger
        self.kpps: Floats = np.array(enumeration.lowest).reshape(self.counts.shape)
        self.free: Ints = np.array(enumeration.free, dtype=np.int32)
        self.members = _members(self.counts)
        self.now = {
            number: dict(zip(pattern, now, strict=True))
            for pattern, now in enumeration.now.items()
            if (number := self.number_of.get(pattern)) is not None
        }
        self._above: dict[int, Ints] = {}
        self._beyond: dict[tuple[Pattern, int], float] = {}

    def above(self, pattern: int) -> Ints:
        """The patterns that contain this one, itself included, ascending."""
        if pattern not in self._above:
            contains = (self.counts >= self.counts[pattern]).all(axis=1)
            self._above[pattern] = np.flatnonzero(contains).astype(np.int32)
        return self._above[pattern]

    def co_location(self, pattern: Pattern) -> CoLocation:
        return self.enumeration.co_location(pattern)

    def cores_taken(self, pattern: Pattern) -> int:
        """Cores that the workloads of a pattern take, in the table or not."""
        return sum(self.enumeration.cores[column] for column in pattern)

    def kpps_with(self, pattern: Pattern, column: int) -> float:
        """Throughput of one more instance of a workload next to a pattern, in the table or not."""
        joined = tuple(sorted((*pattern, column)))
        if joined in self.number_of:
            return float(self.kpps[self.number_of[joined], column])
        key = joined, column
        if key not in self._beyond:
            self._beyond[key] = self.oracle.by_workload(self.co_location(joined))[self.workloads[column]]
        return self._beyond[key]


def _counts(patterns: Sequence[Pattern], width: int) -> Ints:
    """How often each of `width` columns is in each pattern."""
    number = np.repeat(np.arange(len(patterns)), [len(pattern) for pattern in patterns])
    column = np.fromiter(chain.from_iterable(patterns), dtype=np.intp)
    flat = np.bincount(number * width + column, minlength=len(patterns) * width)
    return flat.reshape(len(patterns), width).astype(np.int32)


def _members(counts: Ints) -> Ints:
    """The columns that each pattern has, ascending, then -1."""
    has = (counts > 0).sum(axis=1)
    members = np.full((len(counts), int(has.max(initial=0)) + 1), NO_PATTERN, dtype=np.int32)
    number, column = np.nonzero(counts)
    members[number, np.arange(len(number)) - np.repeat(np.cumsum(has) - has, has)] = column
    return members


# The loosest SLAs of all arrivals: which co-locations are useful to some of them.


DROP_STEPS = 20
"""The loosest SLA is rounded up to steps of 1 / DROP_STEPS of throughput, so that tables are seldom built anew."""


class LoosestSlas:
    """The largest accepted drop, and per workload the least accepted throughput (kpps)."""

    def __init__(self) -> None:
        self._drop = 0.0
        self._least: dict[Workload, float] = {}

    def include(self, tenant: Tenant) -> None:
        """Take the SLA of a tenant into account."""
        drop = tenant.relative_drop
        if drop is not None:
            self._drop = max(self._drop, drop)
        else:
            least = tenant.sla.min_kpps or tenant.required_kpps(math.inf)
            self._least[tenant.workload] = min(least, self._least.get(tenant.workload, math.inf))

    def accepted_drop(self, workload: Workload, solo: float) -> float:
        """The largest drop that an instance of the workload accepts, rounded up, where it runs alone at `solo` kpps."""
        drop = max(self._drop, 1.0 - self._least.get(workload, math.inf) / solo) if solo > 0 else 1.0
        return min(math.ceil(drop * DROP_STEPS - 1e-9) / DROP_STEPS, 1.0)
