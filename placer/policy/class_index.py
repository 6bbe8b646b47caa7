"""Rooms: the classes of NICs that decisions look at, while the companies of all workloads can be asked beforehand.

Two NICs of a kind are alike exactly when they hold the same company and may become the same companies without breaking
the SLA of anybody there. Such a class is a room. What each newcomer would get in it, and what the rule makes of that,
is computed once per room; a decision is one look along all rooms, whatever the number of NICs.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Iterator

import numpy as np

from placer.model.fleet import Nic, Tenant
from placer.policy.forecast import Forecast, uniform_forecast
from placer.policy.kernels import EMPTY, REFUSED, becomes, expects, pick, score_joins
from placer.policy.patterns import LEVELS, NONE, Patterns
from placer.policy.rejection import CORES, NOT_HOSTED, OTHERS_SLA, OWN_SLA, Reason, Tally
from placer.policy.rules import Rule

CLOSED = -1
"""The room of NICs that nobody can join."""

BLANK = 0
"""The room of a NIC that was not opened yet."""

CONTINUATION = 0.98
"""Probability that a NIC waits for yet another newcomer; how much company it will find hardly depends on it."""

KEPT = 1_024
"""Rooms without NICs that are remembered."""


class Berth:
    """What the rooms keep of a NIC: its pattern, its tenants' columns and what each requires (kpps), and its room."""

    __slots__ = ("counted", "needs", "pattern", "slot")

    def __init__(self) -> None:
        self.pattern = 0
        self.needs: dict[str, tuple[int, float]] = {}
        self.slot = CLOSED
        self.counted = 0


class ClassIndex:
    """The rooms of all NICs of one kind.

    Parameters
    ----------
    patterns
        All companies of the kind.
    rule
        How rooms are compared.
    """

    def __init__(self, patterns: Patterns, rule: Rule) -> None:
        self.patterns = patterns
        self.rule = rule
        self.nics: dict[int, Nic] = {}
        self._joined = patterns.joined.tolist()
        self._divides = patterns.levels.tolist()
        self._solo = patterns.solo.tolist()
        self._full = (patterns.joined == NONE).all(axis=1).tolist()
        self._apart = {(number, column): before for before, row in enumerate(self._joined)
                       for column, number in enumerate(row) if number != NONE}  # fmt: skip
        self._population = np.zeros(len(patterns.counts), dtype=np.int64)
        self._required = np.zeros(len(patterns.workloads))
        self._able = np.zeros(len(patterns.counts), dtype=np.bool_)
        self._place_of = np.zeros(len(patterns.counts), dtype=np.int32)
        self._worth = np.zeros(len(patterns.counts))
        width = len(patterns.workloads)
        self._scores = np.full((width * LEVELS, KEPT), REFUSED, dtype=np.float32)
        self._gets = np.full((width, KEPT), -1.0)
        self._first = np.full(KEPT, EMPTY, dtype=np.int64)
        self._alive = np.zeros(KEPT, dtype=np.int64)
        self._heaps: list[list[int]] = []
        self._keys: list[tuple[int, bytes]] = []
        self._slots: dict[tuple[int, bytes], int] = {}
        self._dead: dict[int, None] = {}
        self._vacated: list[int] = []
        self.score_joins(None)
        if width:
            self._slot_of((0, np.ones(len(patterns.counts), dtype=np.bool_).tobytes()))

    def score_joins(self, forecast: Forecast | None) -> None:
        """Appraise all rooms by that outlook, in units of an empty NIC; rooms without NICs are forgotten."""
        blind = forecast is None
        self._forecast = forecast or uniform_forecast(self.patterns, ())
        worth = 0.0 if blind else self._expected_of_an_empty_nic()
        cost = self.patterns.kind.cost / worth if worth > 0 else 0.0
        self._weights = self.rule.before * cost, self.rule.after * cost
        for slot in self._dead:
            del self._slots[self._keys[slot]]
            self._heaps[slot].clear()
        self._vacated += self._dead
        self._dead.clear()
        for key, slot in self._slots.items():
            self._score(key, slot)

    def foresee(self, recent: Iterable[Tenant]) -> None:
        """Appraise all rooms anew for arrivals like the recent ones."""
        columns, solo = self.patterns.columns, self._solo
        hosted = [(columns[t.workload], t.sla) for t in recent if t.workload in columns]
        forecast = self.rule.forecast(
            self.patterns, [(column, sla.required_kpps(solo[column])) for column, sla in hosted]
        )
        if forecast is not None:
            self.score_joins(forecast)

    def enter(self, nic: Nic) -> None:
        """Take the NIC in, with all its tenants."""
        nic.note = Berth()
        for tenant in nic.housed.values():
            self._seat(nic.note, tenant)
        self._settle(nic)

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        """The tenant moved in."""
        self._seat(nic.note, tenant)
        self._settle(nic)

    def left(self, nic: Nic, tenant: Tenant) -> None:
        """The tenant moved out."""
        berth: Berth = nic.note
        column, _ = berth.needs.pop(tenant.id)
        berth.pattern = self._apart[berth.pattern, column]
        self._settle(nic)

    def close(self, nic: Nic) -> None:
        """The NIC takes no more newcomers."""
        self._move(nic, CLOSED)
        self._count(nic.note, 0)
        self.nics.pop(nic.number, None)

    def best(self, tenant: Tenant) -> tuple[float, Nic] | None:
        """The NIC that the rule prefers, with its score; None when none keeps every SLA."""
        column = self.patterns.columns.get(tenant.workload)
        if column is None:
            return None
        required = tenant.sla.required_kpps(self._solo[column])
        row = self._row(column, required)
        slot = pick(self._scores, row, self._gets, column, self._first, len(self._keys), required)
        return None if slot < 0 else (float(self._scores[row, slot]), self.nics[int(self._first[slot])])

    def opening(self, tenant: Tenant) -> float | None:
        """The score of a new NIC; None when the tenant would not keep its SLA there."""
        column = self.patterns.columns.get(tenant.workload)
        if column is None:
            return None
        required = tenant.sla.required_kpps(self._solo[column])
        if required > self._solo[column]:
            return None
        return float(self._scores[self._row(column, required), BLANK])

    def tally(self, tenant: Tenant) -> Tally:
        """How many NICs would take the tenant, and what keeps it out of the others."""
        total, column = int(self._population[1:].sum()), self.patterns.columns.get(tenant.workload)
        if column is None:
            return Tally(total, 0, 0)
        required = tenant.sla.required_kpps(self._solo[column])
        roomless = self.patterns.joined[1:, column] == NONE
        fitting = self._gets[column, : len(self._keys)] >= required
        return Tally(
            total, int(self._population[1:][roomless].sum()), int(self._alive[: len(self._keys)][fitting].sum())
        )

    def reasons(self, tenant: Tenant) -> Iterator[Reason]:
        """Why nobody can take the tenant, by company."""
        p, column = self.patterns, self.patterns.columns.get(tenant.workload)
        for pattern, nics in enumerate(self._population.tolist()):
            if pattern and nics:
                co_location = tuple(
                    workload for workload, count in zip(p.workloads, p.counts[pattern], strict=True)
                    for _ in range(count)
                )  # fmt: skip
                with_it = NONE if column is None else self._joined[pattern][column]
                cause = NOT_HOSTED if column is None else CORES
                if with_it != NONE and column is not None:
                    own = p.kpps[with_it, column] < tenant.sla.required_kpps(self._solo[column])
                    cause = OWN_SLA if own else OTHERS_SLA
                yield Reason(p.kind.model, co_location, nics, cause)

    def _row(self, column: int, required: float) -> int:
        return column * LEVELS + min(bisect_left(self._divides[column], required), LEVELS - 1)

    def _seat(self, berth: Berth, tenant: Tenant) -> None:
        column = self.patterns.columns[tenant.workload]
        berth.needs[tenant.id] = column, tenant.sla.required_kpps(self._solo[column])
        berth.pattern = self._joined[berth.pattern][column]

    def _settle(self, nic: Nic) -> None:
        """Find the room that the NIC is now, and put it there."""
        berth: Berth = nic.note
        pattern = berth.pattern
        if not pattern:
            self.close(nic)
            return
        slot = CLOSED
        if not self._full[pattern]:
            required: dict[int, float] = {}
            for column, kpps in berth.needs.values():
                if kpps > required.get(column, 0.0):
                    required[column] = kpps
            for column, kpps in required.items():
                self._required[column] = kpps
            over = self.patterns.over(pattern)
            p = self.patterns
            able = becomes(pattern, over, p.members, p.kpps, self._required, self._able)
            if able - bool(self._able[0]):
                slot = self._slot_of((pattern, self._able[: len(over)].tobytes()))
        self.nics[nic.number] = nic
        self._count(berth, pattern)
        self._move(nic, slot)

    def _count(self, berth: Berth, pattern: int) -> None:
        self._population[berth.counted] -= 1
        self._population[pattern] += 1
        berth.counted = pattern

    def _move(self, nic: Nic, slot: int) -> None:
        berth: Berth = nic.note
        before = berth.slot
        if before == slot:
            return
        berth.slot = slot
        if before != CLOSED:
            self._alive[before] -= 1
            if self._first[before] == nic.number:
                self._first[before] = self._head(before)
            if not self._alive[before]:
                self._dead[before] = None
        if slot != CLOSED:
            heap = self._heaps[slot]
            heapq.heappush(heap, nic.number)
            if len(heap) > 2 * self._alive[slot] + KEPT:
                self._heaps[slot] = sorted({n for n in heap if n in self.nics and self.nics[n].note.slot == slot})
            self._first[slot] = min(self._first[slot], nic.number)
            self._alive[slot] += 1
            self._dead.pop(slot, None)

    def _head(self, slot: int) -> int:
        """The lowest NIC in the room, after those that left were taken off the heap."""
        heap, nics = self._heaps[slot], self.nics
        while heap:
            nic = nics.get(heap[0])
            if nic is not None and nic.note.slot == slot:
                return heap[0]
            heapq.heappop(heap)
        return EMPTY

    def _slot_of(self, key: tuple[int, bytes]) -> int:
        """The room of that pattern and those companies, appraised when it is new."""
        slot = self._slots.get(key)
        if slot is None:
            slot = self._vacant()
            self._slots[key] = slot
            self._keys[slot] = key
            self._score(key, slot)
        return slot

    def _score(self, key: tuple[int, bytes], slot: int) -> None:
        """Write what each newcomer would get in the room, and what the rule makes of that."""
        pattern, able = key[0], np.frombuffer(key[1], dtype=np.bool_)
        p, o = self.patterns, self._forecast
        score_joins(pattern, p.over(pattern), able, p.counts, p.kpps, p.level, p.joined, o.likely, o.bears, o.rewards,
                 CONTINUATION, *self._weights, self._scores, self._gets, slot, self._place_of, self._worth)  # fmt: skip

    def _expected_of_an_empty_nic(self) -> float:
        p, o, everything = self.patterns, self._forecast, np.ones(len(self.patterns.counts), dtype=np.bool_)
        return float(
            expects(0, p.over(0), everything, p.counts, p.joined, o.likely, o.bears, o.rewards, CONTINUATION,
                    self._place_of, self._worth)
        )  # fmt: skip

    def _vacant(self) -> int:
        """A slot for one more room: the one that is without NICs for longest, or a new one."""
        if self._vacated:
            return self._vacated.pop()
        if len(self._dead) > KEPT:
            slot = next(iter(self._dead))
            del self._dead[slot], self._slots[self._keys[slot]]
            self._heaps[slot].clear()
            return slot
        slot = len(self._keys)
        if slot == len(self._first):
            self._scores = np.concatenate([self._scores, np.full_like(self._scores, REFUSED)], axis=1)
            self._gets = np.concatenate([self._gets, np.full_like(self._gets, -1.0)], axis=1)
            self._first = np.concatenate([self._first, np.full_like(self._first, EMPTY)])
            self._alive = np.concatenate([self._alive, np.zeros_like(self._alive)])
        self._keys.append((0, b""))
        self._heaps.append([])
        return slot
