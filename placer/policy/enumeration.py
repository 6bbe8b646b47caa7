"""The enumeration of the co-locations that a few workloads can form on one kind of NIC, a few at a time.

A co-location in which a workload keeps less than the loosest SLA accepts is of no use, and neither is one that contains
it, because throughput does not rise with a further competitor. So co-locations are enumerated by size, each from
smaller ones that are useful themselves (the a-priori principle of Agrawal and Srikant, "Fast algorithms for mining
association rules", VLDB 1994), and throughputs are asked for one size at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from placer.model.fleet import NicKind
from placer.model.oracle import Oracle, co_location_of
from placer.model.sla import LEAST_KPPS, SLA_TOLERANCE
from profiles import CoLocation, Workload
from profiles.arrays import Floats

QUERIED_PER_PATTERN = 3
"""Co-locations that are asked for, at most, in multiples of those that a table may hold."""

AT_ONCE = 64
"""Co-locations that are compared in one step."""

ASKED_AT_ONCE = 16
"""Co-locations that an oracle is asked for in one step: one that has learnt much corrects each of them."""

ALL_PATTERNS = 1 << 30

Pattern = tuple[int, ...]
"""The columns of a co-location, ascending."""

Answers = dict[Pattern, tuple[float, ...]]
"""The throughput (kpps) of every member of patterns."""


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
