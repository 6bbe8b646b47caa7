"""The pattern table: the co-locations that a few workloads can form on one kind of NIC without violating every SLA."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle, co_location_of
from placer.model.sla import LEAST_KPPS, SLA_TOLERANCE
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

    def __deepcopy__(self, memo: object) -> PatternTable:
        return self  # it only remembers answers

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
        self._co_locations: dict[Pattern, CoLocation] = {}
        self._beyond: dict[tuple[Pattern, int], float] = {}

    def above(self, pattern: int) -> Ints:
        """The patterns that contain this one, itself included, ascending."""
        if pattern not in self._above:
            contains = (self.counts >= self.counts[pattern]).all(axis=1)
            self._above[pattern] = np.flatnonzero(contains).astype(np.int32)
        return self._above[pattern]

    def co_location(self, pattern: Pattern) -> CoLocation:
        known = self._co_locations.get(pattern)
        if known is None:
            known = self.enumeration.co_location(pattern)
            if pattern in self.number_of:
                self._co_locations[pattern] = known
        return known

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
MOST_LEAST = 100_000
"""Workloads whose least throughput is kept; of so many, there is no table. A service would keep one per arrival."""


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
            if len(self._least) > MOST_LEAST:
                del self._least[next(iter(self._least))]

    def accepted_drop(self, workload: Workload, solo: float) -> float:
        """The largest drop that an instance of the workload accepts, rounded up, where it runs alone at `solo` kpps."""
        drop = max(self._drop, 1.0 - self._least.get(workload, math.inf) / solo) if solo > 0 else 1.0
        return min(math.ceil(drop * DROP_STEPS - 1e-9) / DROP_STEPS, 1.0)


# The enumeration of the co-locations that a few workloads can form on one kind of NIC, a few at a time.
#
# A co-location in which a workload keeps less than the loosest SLA accepts is of no use, and neither is one that
# contains it, because throughput does not rise with a further competitor. So co-locations are enumerated by size, each
# from smaller ones that are useful themselves (the a-priori principle of Agrawal and Srikant, "Fast algorithms for
# mining association rules", VLDB 1994), and throughputs are asked for one size at a time.


QUERIED_PER_PATTERN = 3  # Co-locations that are asked for, at most, in multiples of those that a table may hold
AT_ONCE = 64  # Co-locations that are compared in one step

ASKED_AT_ONCE = 16
"""Co-locations that an oracle is asked for in one step: one that has learnt much corrects each of them."""

ALL_PATTERNS = 1 << 30

Pattern = tuple[int, ...]  # the columns of a co-location, ascending
Answers = dict[Pattern, tuple[float, ...]]  # the throughput (kpps) of every member of patterns


class TooManyPatterns(Exception):
    """The workloads form more useful co-locations than a table may hold."""


class Enumeration:
    """Numbers the useful co-locations of `workloads`, smallest first.

    `kind`, `workloads`, `oracle`, `accepted_drop`, `most`: as of a `PatternTable`. `before`: a table's enumeration of
    the same kind and oracle. `known`: all answers in advance. `now`: of patterns of which the oracle answers otherwise
    now, these answers. `lowest`: throughput of each workload in each useful pattern, by its number. `free`: cores that
    are left in each. `number_of`, `part_of`, `columns`, `solo`, `floor`, `revision`: as of a `PatternTable`.
    """

    def __init__(
        self,
        kind: NicKind,
        workloads: Iterable[Workload],
        oracle: Oracle,
        accepted_drop: Callable[[Workload, float], float],
        most: int,
        before: Enumeration | None = None,
    ) -> None:
        self.kind = kind
        self.oracle = oracle
        self.revision = oracle.revision
        self.most = most
        self.known: Answers = {}
        self.now: Answers = {}
        hosted = {workload for workload in workloads if kind.hosts(workload)}
        known: tuple[Workload, ...] = ()
        if before is not None and before.answers_as(oracle) and hosted.issuperset(before.workloads):
            # copies: columns beyond those of the table are others in each enumeration that begins with it
            self.known, self.now, known = dict(before.known), dict(before.now), before.workloads
        self.workloads: tuple[Workload, ...] = (*known, *sorted(hosted.difference(known)))
        self.columns = {workload: column for column, workload in enumerate(self.workloads)}
        self._rank = {self.columns[workload]: rank for rank, workload in enumerate(sorted(self.workloads))}
        alone = oracle.in_advance([(workload,) for workload in self.workloads])
        self.solo: Floats = np.array([kpps for (kpps,) in alone])
        drops = map(accepted_drop, self.workloads, self.solo.tolist())
        self.floor: Floats = self.solo * np.array([1.0 - drop for drop in drops]) * (1.0 - 2 * SLA_TOLERANCE)
        paced = [not workload.is_saturated for workload in self.workloads]
        self._has_rates = any(paced)
        self.floor[paced] = np.maximum(self.floor[paced], LEAST_KPPS)  # at 0, a promised latency is missed
        self.cores = [kind.cores_for(workload) for workload in self.workloads]
        self.number_of: dict[Pattern, int] = {(): 0}
        self.part_of: dict[tuple[int, int], int] = {}
        self.free = [kind.cores]
        self.lowest = [[0.0] * len(self.workloads)]

    def answers_as(self, oracle: Oracle) -> bool:
        """Whether the oracle would answer now what this one did."""
        return self.oracle is oracle and self.revision == oracle.revision

    def complete(self) -> Enumeration:
        """All at once.

        Raises TooManyPatterns when there are more than `most`, or too many would have to be asked for.
        """
        for _ in self.steps(ALL_PATTERNS):
            pass
        return self

    def steps(self, at_once: int = AT_ONCE) -> Iterator[None]:
        """Go on by so many co-locations at a time."""
        queried, floor = 0, self.floor.tolist()
        level: list[Pattern] = [()]
        while level:
            candidates: dict[Pattern, list[tuple[int, int]]] = {}
            for at in range(0, len(level), at_once):
                candidates.update(self._one_more(level[at : at + at_once]))
                yield
            queried += len(candidates)
            if queried > QUERIED_PER_PATTERN * self.most:
                raise TooManyPatterns
            missing = [pattern for pattern in candidates if pattern not in self.known]
            asked = at_once if at_once == ALL_PATTERNS else ASKED_AT_ONCE
            for at in range(0, len(missing), asked):
                self._ask(missing[at : at + asked])
                yield
            level = []
            for at, (pattern, smaller) in enumerate(candidates.items()):
                if self._is_useful(pattern, smaller, floor):
                    level.append(pattern)
                if not (at + 1) % at_once:
                    yield
            if len(self.lowest) > self.most:
                raise TooManyPatterns

    def co_location(self, pattern: Pattern) -> CoLocation:
        return co_location_of(self.workloads[column] for column in pattern)

    def _is_useful(self, pattern: Pattern, smaller: Sequence[tuple[int, int]], floor: Sequence[float]) -> bool:
        """Number the pattern if the port is fast enough, and every member keeps what the loosest SLA accepts."""
        if self._has_rates and not self.kind.has_port_for(self.workloads[column] for column in pattern):
            return False
        kept = self.known[pattern]
        for column, kpps in zip(pattern, kept, strict=True):
            if kpps < floor[column]:
                return False
        row = [0.0] * len(floor)
        for column, kpps in zip(pattern, kept, strict=True):
            row[column] = kpps
        number = self.number_of[pattern] = len(self.lowest)
        self.lowest.append(row)
        self.free.append(self.free[smaller[0][0]] - self.cores[smaller[0][1]])
        for part, column in smaller:
            self.part_of[number, column] = part
        return True

    def _ask(self, patterns: Sequence[Pattern]) -> None:
        """Learn the throughput of every member of the patterns; of equal ones, the slowest counts."""
        ranked = [tuple(sorted(pattern, key=self._rank.__getitem__)) for pattern in patterns]
        co_locations = [tuple(map(self.workloads.__getitem__, columns)) for columns in ranked]
        answers = in_advance = self.oracle.throughput(co_locations)
        if type(self.oracle).in_advance is not Oracle.in_advance:
            in_advance = self.oracle.in_advance(co_locations)
        for pattern, columns, now, before in zip(patterns, ranked, answers, in_advance, strict=True):
            self.known[pattern] = _of_members(pattern, columns, before)
            if now is not before and now != before:
                self.now[pattern] = _of_members(pattern, columns, now)

    def _one_more(self, level: Sequence[Pattern]) -> dict[Pattern, list[tuple[int, int]]]:
        """Patterns with one more member, all of whose parts are useful: numbers of these parts and missing columns."""
        found = {}
        for pattern in level:
            free = self.free[self.number_of[pattern]]
            for column in range(pattern[-1] if pattern else 0, len(self.workloads)):
                if 0 < self.cores[column] <= free:
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


def _of_members(pattern: Pattern, columns: Pattern, answer: Sequence[float]) -> tuple[float, ...]:
    """The throughput of every member of a pattern by an answer in order of these columns; of equal ones, the lowest."""
    lowest: dict[int, float] = {}
    for column, kpps in zip(columns, answer, strict=True):
        lowest[column] = min(kpps, lowest.get(column, kpps))
    return tuple(map(lowest.__getitem__, pattern))
