"""The class index: the NICs of one kind by class, where the co-locations of all workloads are predicted in advance.

Two NICs of a kind are in one class when they hold the same co-location and can become the same co-locations without
violating an SLA of their tenants. Throughput and score of every possible arrival are computed once per class; a
decision compares the classes, however many NICs there are. Classes are numbered by slots of the score arrays.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Iterator

import numpy as np

from placer.model.fleet import Nic, Tenant
from placer.policy.forecast import uniform_forecast
from placer.policy.kernels import (
    INFEASIBLE,
    NO_NIC,
    Forecast,
    JoinScores,
    Scoring,
    Scratch,
    best_class,
    expected_value,
    mark_reachable,
    score_joins,
)
from placer.policy.pattern_table import LEVELS, NONE, PatternTable
from placer.policy.rejection import Cause, Reason, Tally
from placer.policy.rules import Rule

NO_CLASS = -1
"""The slot of NICs that no arrival can join."""

UNOPENED = 0
"""The slot of a NIC that is not open yet."""

CONTINUATION = 0.98
"""Probability that another arrival comes to a NIC. Decisions hardly depend on it."""

KEPT = 1_024
"""Number of classes without NICs whose scores are kept."""

ClassKey = tuple[int, bytes]
"""A class: its pattern, and the flags of the patterns above that are reachable."""


class ClassMember:
    """A NIC in the index: its pattern, the column and required throughput (kpps) of each tenant, and its slot."""

    __slots__ = ("counted", "needs", "nic", "pattern", "slot")

    def __init__(self, nic: Nic) -> None:
        self.nic = nic
        self.pattern = 0
        self.needs: dict[str, tuple[int, float]] = {}
        self.slot = NO_CLASS
        self.counted = 0


class ClassIndex:
    """The classes of all NICs of one kind.

    Parameters
    ----------
    table
        All co-locations of the kind.
    rule
        How classes are compared.
    """

    def __init__(self, table: PatternTable, rule: Rule) -> None:
        self.table = table
        self.rule = rule
        self._members: dict[int, ClassMember] = {}
        self._joined = table.joined.tolist()
        self._bounds = table.levels.tolist()
        self._solo = table.solo.tolist()
        self._full = (table.joined == NONE).all(axis=1).tolist()
        self._without = {(number, column): before for before, row in enumerate(self._joined)
                         for column, number in enumerate(row) if number != NONE}  # fmt: skip
        patterns, width = len(table.counts), len(table.workloads)
        self._population = np.zeros(patterns, dtype=np.int64)
        self._required = np.zeros(width)
        self._reachable = np.zeros(patterns, dtype=np.bool_)
        self._scratch = Scratch(np.zeros(patterns, dtype=np.int32), np.zeros(patterns))
        self._scores = np.full((width * LEVELS, KEPT), INFEASIBLE, dtype=np.float32)
        self._kpps = np.full((width, KEPT), -1.0)
        self._lowest = np.full(KEPT, NO_NIC, dtype=np.int64)
        self._sizes = np.zeros(KEPT, dtype=np.int64)
        self._heaps: list[list[int]] = []
        self._keys: list[ClassKey] = []
        self._slots: dict[ClassKey, int] = {}
        self._empty: dict[int, None] = {}
        self._vacant: list[int] = []
        self._rescore(None)
        if width:
            self._slot_of((0, np.ones(patterns, dtype=np.bool_).tobytes()))

    def expect(self, recent: Iterable[Tenant]) -> None:
        """Score all classes for arrivals like the recent ones."""
        columns, solo = self.table.columns, self._solo
        hosted = [(columns[t.workload], t.sla) for t in recent if t.workload in columns]
        forecast = self.rule.forecast(self.table, [(column, sla.required_kpps(solo[column])) for column, sla in hosted])
        if forecast is not None:
            self._rescore(forecast)

    def enter(self, nic: Nic) -> None:
        """Add the NIC with all its tenants."""
        member = ClassMember(nic)
        for tenant in nic.tenants_by_id.values():
            self._add(member, tenant)
        self._classify(member)

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        """Follow a tenant that was placed on the NIC."""
        member = self._members.get(nic.number)
        if member is None:
            self.enter(nic)
            return
        self._add(member, tenant)
        self._classify(member)

    def left(self, nic: Nic, tenant: Tenant) -> None:
        """Follow a tenant that left the NIC."""
        member = self._members[nic.number]
        column, _ = member.needs.pop(tenant.id)
        member.pattern = self._without[member.pattern, column]
        self._classify(member)

    def close(self, nic: Nic) -> None:
        """Remove the NIC: it takes no more arrivals."""
        member = self._members.get(nic.number)
        if member is not None:
            self._remove(member)

    def best(self, tenant: Tenant) -> tuple[float, Nic] | None:
        """The NIC that the rule prefers, with its score; None when none keeps every SLA."""
        column = self.table.columns.get(tenant.workload)
        if column is None:
            return None
        required = tenant.sla.required_kpps(self._solo[column])
        row = self._row(column, required)
        slot = best_class(self._scores, row, self._kpps, column, self._lowest, len(self._keys), required)
        return None if slot < 0 else (float(self._scores[row, slot]), self._members[int(self._lowest[slot])].nic)

    def last_resort(self, tenant: Tenant) -> Nic | None:
        """None: `best` has compared all NICs."""
        return None

    def opening_score(self, tenant: Tenant) -> float | None:
        """The score of a new NIC; None when the SLA of the tenant would not be met there."""
        column = self.table.columns.get(tenant.workload)
        if column is None:
            return None
        required = tenant.sla.required_kpps(self._solo[column])
        if required > self._solo[column]:
            return None
        return float(self._scores[self._row(column, required), UNOPENED])

    def tally(self, tenant: Tenant) -> Tally:
        """How many NICs would take the tenant, and how many have too few cores."""
        total, column = int(self._population[1:].sum()), self.table.columns.get(tenant.workload)
        if column is None:
            return Tally(total, 0, 0)
        required = tenant.sla.required_kpps(self._solo[column])
        too_full = self.table.joined[1:, column] == NONE
        fitting = self._kpps[column, : len(self._keys)] >= required
        return Tally(
            total, int(self._population[1:][too_full].sum()), int(self._sizes[: len(self._keys)][fitting].sum())
        )

    def reasons(self, tenant: Tenant) -> Iterator[Reason]:
        """Why no NIC takes the tenant, by co-location."""
        table, column = self.table, self.table.columns.get(tenant.workload)
        for pattern, nics in enumerate(self._population.tolist()):
            if pattern and nics:
                co_location = tuple(
                    workload for workload, count in zip(table.workloads, table.counts[pattern], strict=True)
                    for _ in range(count)
                )  # fmt: skip
                with_it = NONE if column is None else self._joined[pattern][column]
                cause = Cause.NOT_HOSTED if column is None else Cause.CORES
                if with_it != NONE and column is not None:
                    own = table.kpps[with_it, column] < tenant.sla.required_kpps(self._solo[column])
                    cause = Cause.ARRIVAL_SLA if own else Cause.TENANT_SLA
                yield Reason(table.kind.model, co_location, nics, cause)

    def _row(self, column: int, required: float) -> int:
        return column * LEVELS + min(bisect_left(self._bounds[column], required), LEVELS - 1)

    def _add(self, member: ClassMember, tenant: Tenant) -> None:
        column = self.table.columns[tenant.workload]
        member.needs[tenant.id] = column, tenant.sla.required_kpps(self._solo[column])
        member.pattern = self._joined[member.pattern][column]

    def _classify(self, member: ClassMember) -> None:
        """Find the class of the NIC as it is now, and move it there."""
        pattern = member.pattern
        if not pattern:
            self._remove(member)
            return
        slot = NO_CLASS
        if not self._full[pattern]:
            strictest: dict[int, float] = {}
            for column, kpps in member.needs.values():
                if kpps > strictest.get(column, 0.0):
                    strictest[column] = kpps
            for column, kpps in strictest.items():
                self._required[column] = kpps
            table = self.table
            above = table.above(pattern)
            found = mark_reachable(pattern, above, table.members, table.kpps, self._required, self._reachable)
            if found - bool(self._reachable[0]):
                slot = self._slot_of((pattern, self._reachable[: len(above)].tobytes()))
        self._members[member.nic.number] = member
        self._count(member, pattern)
        self._move(member, slot)

    def _remove(self, member: ClassMember) -> None:
        self._move(member, NO_CLASS)
        self._count(member, 0)
        self._members.pop(member.nic.number, None)

    def _count(self, member: ClassMember, pattern: int) -> None:
        self._population[member.counted] -= 1
        self._population[pattern] += 1
        member.counted = pattern

    def _move(self, member: ClassMember, slot: int) -> None:
        before, number = member.slot, member.nic.number
        if before == slot:
            return
        member.slot = slot
        if before != NO_CLASS:
            self._sizes[before] -= 1
            if self._lowest[before] == number:
                self._lowest[before] = self._lowest_in(before)
            if not self._sizes[before]:
                self._empty[before] = None
        if slot != NO_CLASS:
            heap = self._heaps[slot]
            heapq.heappush(heap, number)
            if len(heap) > 2 * self._sizes[slot] + KEPT:
                self._heaps[slot] = sorted({n for n in heap if n in self._members and self._members[n].slot == slot})
            self._lowest[slot] = min(self._lowest[slot], number)
            self._sizes[slot] += 1
            self._empty.pop(slot, None)

    def _lowest_in(self, slot: int) -> int:
        """The lowest NIC number in the class, after NICs that left it were taken off its heap."""
        heap, members = self._heaps[slot], self._members
        while heap:
            member = members.get(heap[0])
            if member is not None and member.slot == slot:
                return heap[0]
            heapq.heappop(heap)
        return NO_NIC

    def _slot_of(self, key: ClassKey) -> int:
        """The slot of a class, which is scored when it is new."""
        slot = self._slots.get(key)
        if slot is None:
            slot = self._free_slot()
            self._slots[key] = slot
            self._keys[slot] = key
            self._score(key, slot)
        return slot

    def _rescore(self, forecast: Forecast | None) -> None:
        """Score all classes by the forecast, in units of the value of an empty NIC; drop classes without NICs."""
        self._forecast = uniform_forecast(self.table, ()) if forecast is None else forecast
        value = 0.0 if forecast is None else self._value_of_an_empty_nic()
        unit = self.table.kind.cost / value if value > 0 else 0.0
        self._scoring = Scoring(self.rule.before * unit, self.rule.after * unit, CONTINUATION)
        for slot in self._empty:
            del self._slots[self._keys[slot]]
            self._heaps[slot].clear()
        self._vacant += self._empty
        self._empty.clear()
        for key, slot in self._slots.items():
            self._score(key, slot)

    def _score(self, key: ClassKey, slot: int) -> None:
        pattern, reachable = key[0], np.frombuffer(key[1], dtype=np.bool_)
        score_joins(pattern, self.table.above(pattern), reachable, self.table.arrays, self._forecast, self._scoring,
                    self._scratch, JoinScores(self._scores, self._kpps), slot)  # fmt: skip

    def _value_of_an_empty_nic(self) -> float:
        everything = np.ones(len(self.table.counts), dtype=np.bool_)
        return float(
            expected_value(0, self.table.above(0), everything, self.table.arrays, self._forecast, CONTINUATION,
                           self._scratch)
        )  # fmt: skip

    def _free_slot(self) -> int:
        """A slot for a new class: one that was given up, the one without NICs for longest, or a new one."""
        if self._vacant:
            return self._vacant.pop()
        if len(self._empty) > KEPT:
            slot = next(iter(self._empty))
            del self._empty[slot], self._slots[self._keys[slot]]
            self._heaps[slot].clear()
            return slot
        slot = len(self._keys)
        if slot == len(self._lowest):
            self._scores = np.concatenate([self._scores, np.full_like(self._scores, INFEASIBLE)], axis=1)
            self._kpps = np.concatenate([self._kpps, np.full_like(self._kpps, -1.0)], axis=1)
            self._lowest = np.concatenate([self._lowest, np.full_like(self._lowest, NO_NIC)])
            self._sizes = np.concatenate([self._sizes, np.zeros_like(self._sizes)])
        self._keys.append((0, b""))
        self._heaps.append([])
        return slot
