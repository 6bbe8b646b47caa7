"""Which co-locations of a table have lower throughputs by now than the table says.

What is learnt of a workload in a co-location changes predictions there and near there. Only these are asked for anew,
so that decisions on all others take no longer than without learning.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set

import numpy as np

from placer.model.oracle import Oracle
from placer.policy.kernels import mark_reachable
from placer.policy.pattern_table import NO_PATTERN, Pattern, PatternTable
from profiles import CoLocation, Workload

SAME_THROUGHPUT = 1e-9
NO_PATTERNS: Set[int] = frozenset()


class LoweredPatterns:
    """The patterns of a table whose throughputs fell.

    `all`: whether any pattern may have fallen, because the oracle is another one or all its answers changed. `doubted`:
    the patterns of which a throughput fell, or one alone rose, to which SLAs may be relative. `solo`: per column,
    throughput (kpps) alone now. `most`: per column, how many times what the table says an SLA requires now, at most: a
    relative SLA follows the throughput alone.
    """

    def __init__(self, table: PatternTable) -> None:
        self.table = table
        self.all = False
        self.solo = table.solo.tolist()
        self.most = [1.0] * len(table.workloads)
        self._now: dict[int, dict[int, float]] = {}
        self.doubted: set[int] = set()
        self._fell: set[int] = set()
        self._rose: set[int] = set()
        self._asked: dict[tuple[int, int], Callable[[], float]] = {}
        self._patterns = list(table.number_of)
        self._oracle = table.oracle
        self._known = table.revision
        for number, now in table.now.items():
            self._note(number, now)
        self._doubt()

    def follow(self, oracle: Oracle) -> None:
        """From now on, the answers of this oracle count."""
        if oracle is not self._oracle:
            self._oracle, self.all = oracle, True

    def renew(self) -> Set[int]:
        """Ask anew for what changed since the last time; returns the patterns in which more SLAs may be met now."""
        if self.all or self._oracle.revision == self._known:
            return NO_PATTERNS
        eased: set[int] = set()
        changed = self._oracle.changed_since(self._known)
        self._known = self._oracle.revision
        if changed is None:
            self.all = True
            return eased
        columns: dict[int, set[int]] = defaultdict(set)
        for number, column in self._near(changed):
            columns[number].add(column)
        self._ask(columns)
        for number in sorted(columns):
            if self._check(number, columns[number]):
                eased.add(number)
        self._doubt()
        return eased

    def pattern(self, number: int) -> Pattern:
        return self._patterns[number]

    @property
    def some(self) -> bool:
        """Whether SLAs may be violated now in some pattern that the table says keeps them."""
        return self.all or bool(self.doubted)

    def kpps(self, number: int) -> dict[int, float]:
        """The throughput (kpps) of each column of a pattern now."""
        known = self._now.get(number)
        if known is None:
            row = self.table.kpps[number]
            known = self._now[number] = {column: float(row[column]) for column in set(self._patterns[number])}
        return known

    def _ask(self, columns: Mapping[int, Set[int]]) -> None:
        """Get what answers for columns of patterns, where that was not asked for before."""
        new = [(number, column) for number in sorted(columns) for column in sorted(columns[number])]
        new = [pair for pair in new if pair not in self._asked]
        if new:
            workloads, co_location = self.table.workloads, self.table.co_location
            asked = [(workloads[column], co_location(self._patterns[number])) for number, column in new]
            self._asked.update(zip(new, self._oracle.following(asked), strict=True))

    def _check(self, number: int, columns: Iterable[int]) -> bool:
        """Compare some columns of a pattern with what the oracle answers now; returns whether it eases SLAs."""
        now = {column: self._asked[number, column]() for column in columns}
        known = self.kpps(number)
        rose = any(value > known[column] for column, value in now.items())
        eased = rose if len(self._patterns[number]) > 1 else any(value < known[column] for column, value in now.items())
        self._note(number, now)
        return eased

    def _doubt(self) -> None:
        """Note which patterns are doubted now."""
        has_one = self.table.counts[:, sorted(self._rose)].any(axis=1)
        self.doubted = self._fell.union(np.flatnonzero(has_one).tolist())

    def _note(self, number: int, now: Mapping[int, float]) -> None:
        """Note throughputs (kpps) of columns of a pattern."""
        known, before, pattern = self.kpps(number), self.table.kpps[number], self._patterns[number]
        known.update(now)
        if len(pattern) == 1:
            (column,) = pattern
            self.solo[column] = known[column]
            self.most[column] = max(known[column] / float(before[column]), 1.0) if before[column] > 0 else 1.0
            _keep(self._rose, column, self.most[column] > 1.0)
        _keep(
            self._fell, number, any(value < before[column] * (1.0 - SAME_THROUGHPUT) for column, value in known.items())
        )

    def _near(self, changed: Iterable[tuple[Workload, CoLocation]]) -> Iterator[tuple[int, int]]:
        """Patterns with a workload beside these competitors, one more, one fewer, or another one, and its column."""
        for workload, competitors in dict.fromkeys(changed):
            own = self.table.columns.get(workload)
            columns = [self.table.columns.get(competitor) for competitor in competitors]
            known = [column for column in columns if column is not None]
            if own is None or len(columns) - len(known) > 1:
                continue
            bases = [known]
            if len(known) == len(columns):
                bases += [known[:at] + known[at + 1 :] for at in range(len(known))]
            for base in bases:
                number = self.table.number_of.get(tuple(sorted((*base, own))))
                if number is not None:
                    yield number, own
                    row = self.table.joined[number]
                    yield from ((joined, own) for joined in row[row != NO_PATTERN].tolist())


def _keep(numbers: set[int], number: int, present: bool) -> None:
    """Let a number be in a set, or not."""
    if present:
        numbers.add(number)
    else:
        numbers.discard(number)


# Co-locations that NICs cannot become by what is predicted now, although they could when the table was made.


class BlockedJoins:
    """Which patterns each NIC must not become, because one of its tenants would violate its SLA there by now.

    Only NICs that a decision came upon are here. What is blocked in a trial is forgotten at its end.
    """

    def __init__(self) -> None:
        self._of_nic: dict[int, dict[int, None]] = {}
        self._by_pattern: dict[int, dict[int, None]] = {}
        self._in_trial: list[tuple[int, int]] | None = None

    def add(self, nic: int, pattern: int) -> None:
        """The NIC of this number must not become this pattern."""
        self._of_nic.setdefault(nic, {})[pattern] = None
        self._by_pattern.setdefault(pattern, {})[nic] = None
        if self._in_trial is not None:
            self._in_trial.append((nic, pattern))

    def of(self, nic: int) -> Iterable[int]:
        """The patterns that a NIC must not become."""
        return self._of_nic.get(nic, ())

    def nics(self, patterns: Iterable[int] | None) -> Iterator[tuple[int, int]]:
        """Number and pattern of NICs that must not become one of these patterns, or any; no more once they may."""
        for pattern in tuple(self._by_pattern) if patterns is None else patterns:
            yield from ((nic, pattern) for nic in tuple(self._by_pattern.get(pattern, ())))

    def remove(self, nic: int, pattern: int) -> None:
        """The NIC may become this pattern."""
        for numbers, key, one in ((self._of_nic, nic, pattern), (self._by_pattern, pattern, nic)):
            del numbers[key][one]
            if not numbers[key]:
                del numbers[key]

    def mark_changed(self, nic: int) -> None:
        """The NIC has other tenants now, for which nothing is known; in a trial, it will have the former ones again."""
        if self._in_trial is None:
            for pattern in tuple(self.of(nic)):
                self.remove(nic, pattern)

    def begin_trial(self) -> None:
        """NICs have other tenants for a while."""
        self._in_trial = []

    def end_trial(self) -> list[int]:
        """All is as it was; returns the NICs that must not become something only since then."""
        made, self._in_trial = self._in_trial or [], None
        for nic, pattern in made:
            self.remove(nic, pattern)
        return list(dict.fromkeys(nic for nic, _ in made))


# What NICs can become: the patterns above theirs in which every tenant still gets what it requires.


REACHABLE_FLAG = b"\x01"
REMEMBERED_BYTES = 8_000_000
"""Memory for flags that are remembered: most NICs have tenants and requirements that another had before."""

KEY_BYTES, NUMBER_BYTES = 300, 32  # of a pattern with requirements, and of a throughput in a list, about


class ReachablePatterns:
    """Flags of the patterns above a pattern, itself first.

    Only how many of the throughputs above are below what each column requires matters: by these numbers flags are
    remembered.
    """

    def __init__(self, table: PatternTable) -> None:
        self._table = table
        self._required = np.zeros(len(table.workloads))
        self._flags = np.zeros(len(table.counts), dtype=np.bool_)
        self._throughputs: dict[int, list[tuple[int, list[float]]]] = {}
        self._known: dict[tuple[int, ...], bytes] = {}
        self._bytes = 0

    def flags(self, pattern: int, required: dict[int, float]) -> bytes:
        """The flags where each column of the pattern requires so much throughput (kpps)."""
        throughputs = self._throughputs.get(pattern) or self._throughputs_above(pattern)
        key = (pattern, *[bisect_left(kpps, required[column]) for column, kpps in throughputs])
        known = self._known.get(key)
        return self._remember(key, self._mark(pattern, required)) if known is None else known

    def without(self, flags: bytes, pattern: int, blocked: Iterable[int]) -> bytes:
        """The same flags, where some patterns must not be reached."""
        above, left = self._table.above(pattern), bytearray(flags)
        for number in blocked:
            place = int(np.searchsorted(above, number))
            if place < len(above) and above[place] == number:
                left[place] = 0
        return bytes(left)

    def _throughputs_above(self, pattern: int) -> list[tuple[int, list[float]]]:
        """By column of the pattern, its distinct throughputs (kpps) in the patterns above, ascending."""
        table, above = self._table, self._table.above(pattern)
        columns = [column for column in table.members[pattern].tolist() if column >= 0]
        found = [(column, np.unique(table.kpps[above, column]).tolist()) for column in columns]
        self._throughputs[pattern] = found
        self._bytes += sum(len(kpps) for _, kpps in found) * NUMBER_BYTES
        return found

    def _mark(self, pattern: int, required: dict[int, float]) -> bytes:
        for column, kpps in required.items():
            self._required[column] = kpps
        table, above = self._table, self._table.above(pattern)
        mark_reachable(pattern, above, table.members, table.kpps, self._required, self._flags)
        return self._flags[: len(above)].tobytes()

    def _remember(self, key: tuple[int, ...], flags: bytes) -> bytes:
        self._bytes += len(flags) + KEY_BYTES
        if self._bytes > REMEMBERED_BYTES:
            self._known.clear()
            self._throughputs.clear()
            self._bytes = 0
        self._known[key] = flags
        return flags


def goes_on(flags: bytes) -> bool:
    """Whether a NIC can become anything else than it is."""
    return flags.find(REACHABLE_FLAG, 1) > 0
