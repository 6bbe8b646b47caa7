"""The classes of NICs of one kind, with the score and the throughput of every possible arrival in each.

A class is a pattern and the patterns above that its NICs can become. Classes are numbered by slots of the score arrays.
When prices are renewed, classes are scored anew a few at a time, so that no decision waits for all of them.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from placer.model.sharded import ShardedDict
from placer.policy.dual_simplex import OpenClass
from placer.policy.forecast import SLA_LEVELS, Prices
from placer.policy.kernels import INFEASIBLE_SCORE, NO_NIC, JoinScores, best_class, score_joins
from placer.policy.pattern_table import PatternTable
from placer.policy.rules import Rule

NO_CLASS = -1  # the slot of NICs that no arrival can join

MAX_KEPT_CLASSES = 1_024
ClassKey = tuple[int, bytes]  # a class: its pattern, and the flags of the patterns above that are reachable


class ClassSlots:
    """Scores by class, and the NICs of each class, by zone: NICs of a zone are those of one pool and domain.

    `zones`: how many there are.
    """

    def __init__(self, table: PatternTable, rule: Rule, prices: Prices, zones: int = 1) -> None:
        self.table = table
        self._everywhere = np.arange(zones)
        self._allowed, self._barred = self._everywhere, frozenset[int]()
        self._among: Sequence[int] | None = None
        self._prices = prices
        self._bounds = prices.levels.tolist()
        self._before, self._after = rule.before * table.kind.cost, rule.after * table.kind.cost
        width = len(table.workloads)
        self._scores = np.full((width * SLA_LEVELS, MAX_KEPT_CLASSES), INFEASIBLE_SCORE, dtype=np.float32)
        self._kpps = np.full((width, MAX_KEPT_CLASSES), -1.0)
        self._zones = zones
        self._lowest = np.full(MAX_KEPT_CLASSES * zones, NO_NIC, dtype=np.int64)  # of each zone of each class
        self._sizes = np.zeros(MAX_KEPT_CLASSES, dtype=np.int64)
        self._numbers: list[dict[int, LowestNumbers]] = []
        self._keys: list[ClassKey] = []
        self._slots: dict[ClassKey, int] = {}
        self._slot_of_nic: ShardedDict[int, int] = ShardedDict()
        self._empty: dict[int, None] = {}
        self._vacant: list[int] = []
        self._stale: dict[int, None] = {}
        self._trial: tuple[dict[int, None], list[int]] | None = None

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def scoring(self) -> bool:
        """Whether classes are being scored anew."""
        return bool(self._stale)

    def slot_of(self, key: ClassKey) -> int:
        """The slot of a class, which is scored when it is new."""
        slot = self._slots.get(key)
        if slot is None:
            slot = self._free_slot()
            self._slots[key] = slot
            self._keys[slot] = key
            self._score(slot)
            if self._trial is not None:
                self._trial[1].append(slot)
        return slot

    def begin_trial(self) -> None:
        """Remember which classes there are, until `end_trial`."""
        self._trial = dict(self._empty), []

    def end_trial(self) -> None:
        """Forget classes that came since `begin_trial`; all NICs are in their former classes again."""
        if self._trial is not None:
            self._empty, made = self._trial
            for slot in made:
                self._give_up(slot)
            self._vacant += made
            self._trial = None

    def restrict(
        self,
        allowed: NDArray[np.int64] | None = None,
        barred: frozenset[int] = frozenset(),
        among: Sequence[int] | None = None,
    ) -> None:
        """Find NICs of these zones only, and none of the `barred` numbers, until called anew; without arguments all.

        `among`: if not None, the only numbers that are found; they are of these zones, and not barred.
        """
        self._allowed, self._barred = self._everywhere if allowed is None else allowed, barred
        self._among = among

    def add_zone(self) -> None:
        """Make place for NICs of one more zone."""
        by_class = self._lowest.reshape(-1, self._zones)
        self._lowest = np.concatenate([by_class, np.full((len(by_class), 1), NO_NIC)], axis=1).ravel()
        self._zones += 1
        self._allowed = self._everywhere = np.arange(self._zones)

    def move(self, number: int, slot: int, zone: int = 0) -> int:
        """Move the NIC of this number and zone into another class; returns the slot of the former one."""
        slot_of_nic = self._slot_of_nic.part_with(number)
        before = slot_of_nic.get(number, NO_CLASS)
        if before == slot:
            return before
        if slot == NO_CLASS:
            del slot_of_nic[number]
        else:
            slot_of_nic[number] = slot
        if before != NO_CLASS:
            self._sizes[before] -= 1
            numbers = self._numbers[before][zone]
            numbers.size -= 1
            at = before * self._zones + zone
            if self._lowest[at] == number:
                lowest = numbers.lowest()
                self._lowest[at] = NO_NIC if lowest is None else lowest
            if not self._sizes[before]:
                self._empty[before] = None
        if slot != NO_CLASS:
            of_zone = self._numbers[slot].get(zone)
            if of_zone is None:
                of_zone = self._numbers[slot][zone] = LowestNumbers(slot, self._slot_of_nic)
            of_zone.add(number)
            at = slot * self._zones + zone
            self._lowest[at] = min(self._lowest[at], number)
            self._sizes[slot] += 1
            self._empty.pop(slot, None)
        return before

    def best(self, column: int, required: float) -> tuple[float, int] | None:
        """Lowest score and NIC number among classes in which an arrival gets what it requires (kpps)."""
        row = self._row(column, required)
        if self._among is not None:
            slots = ((self._slot_of_nic.get(number), number) for number in self._among)
            return min(
                (
                    (float(self._scores[row, slot]), number)
                    for slot, number in slots
                    if slot is not None and self._kpps[column, slot] >= required
                ),
                default=None,
            )
        at = self._best(row, column, required)
        if at < 0:
            return None
        number = int(self._lowest[at])
        if number not in self._barred:
            return float(self._scores[row, at // self._zones]), number
        found, passed = None, list[tuple[int, int]]()
        while at >= 0:
            slot, number = at // self._zones, int(self._lowest[at])
            if number not in self._barred:
                found = float(self._scores[row, slot]), number
                break
            passed.append((at, number))
            other = self._numbers[slot][at % self._zones].lowest_but(self._barred)
            self._lowest[at] = NO_NIC if other is None else other
            at = self._best(row, column, required)
        for at, number in passed:
            self._lowest[at] = number
        return found

    def _best(self, row: int, column: int, required: float) -> int:
        at: int = best_class(
            self._scores, row, self._kpps, column, self._lowest, self._sizes, self._zones, self._allowed,
            len(self._keys), required,
        )  # fmt: skip
        return at

    def pass_over(self, number: int, column: int) -> tuple[int, float]:
        """Let the class of this NIC take no arrival of a workload; returns what `offer_again` needs."""
        slot = self._slot_of_nic[number]
        kpps = float(self._kpps[column, slot])
        self._kpps[column, slot] = -1.0
        return slot, kpps

    def offer_again(self, slot: int, column: int, kpps: float) -> None:
        """Take back `pass_over`."""
        self._kpps[column, slot] = kpps

    def score(self, column: int, required: float, slot: int) -> float:
        """The score of an arrival in one class."""
        return float(self._scores[self._row(column, required), slot])

    def scores_of(self, numbers: Iterable[int], column: int, required: float) -> list[float]:
        """The scores of an arrival on the NICs of these numbers; infinite where no arrival can join one."""
        slots = [self._slot_of_nic.get(number) for number in numbers]
        scores = self._scores[self._row(column, required)]
        return [float(INFEASIBLE_SCORE if slot is None else scores[slot]) for slot in slots]

    def nics_that_fit(self, column: int, required: float) -> int:
        """How many NICs give an arrival what it requires (kpps)."""
        used = len(self._keys)
        return int(self._sizes[:used][self._kpps[column, :used] >= required].sum())

    def open_classes(self) -> list[OpenClass]:
        """The classes that have NICs."""
        found = []
        for (pattern, flags), slot in self._slots.items():
            if self._sizes[slot]:
                above = self.table.above(pattern)
                reachable = above[np.frombuffer(flags, dtype=np.bool_)]
                reachable = reachable[reachable != pattern]
                if len(reachable):
                    found.append(OpenClass(pattern, reachable, int(self._sizes[slot])))
        return found

    def reprice(self, prices: Prices) -> None:
        """Take new prices; classes without NICs are dropped, the others are scored anew by `advance`."""
        self._prices = prices
        self._bounds = prices.levels.tolist()
        for slot in self._empty:
            self._give_up(slot)
        self._vacant += self._empty
        self._empty.clear()
        self._stale = dict.fromkeys(self._slots.values())

    def advance(self, patterns: int) -> None:
        """Score classes anew until this many patterns were compared, or all are done."""
        while self._stale and patterns > 0:
            slot = next(iter(self._stale))
            patterns -= len(self._keys[slot][1]) + SLA_LEVELS
            self._score(slot)

    def _row(self, column: int, required: float) -> int:
        return column * SLA_LEVELS + max(bisect_right(self._bounds[column], required) - 1, 0)

    def _score(self, slot: int) -> None:
        self._stale.pop(slot, None)
        table, (pattern, flags) = self.table, self._keys[slot]
        score_joins(pattern, table.above(pattern), np.frombuffer(flags, dtype=np.bool_), table.counts, table.members,
                    self._prices.level, table.joined, table.kpps, self._prices.worth, self._before, self._after,
                    JoinScores(self._scores, self._kpps), slot)  # fmt: skip

    def _give_up(self, slot: int) -> None:
        del self._slots[self._keys[slot]]
        self._numbers[slot] = {}
        self._stale.pop(slot, None)

    def _free_slot(self) -> int:
        """A slot for a new class: one that was given up, the one without NICs for longest, or a new one."""
        if self._vacant:
            return self._vacant.pop()
        if len(self._empty) > MAX_KEPT_CLASSES and self._trial is None:
            slot = next(iter(self._empty))
            del self._empty[slot]
            self._give_up(slot)
            return slot
        slot = len(self._keys)
        if slot == len(self._sizes):
            self._scores = np.concatenate([self._scores, np.full_like(self._scores, INFEASIBLE_SCORE)], axis=1)
            self._kpps = np.concatenate([self._kpps, np.full_like(self._kpps, -1.0)], axis=1)
            self._lowest = np.concatenate([self._lowest, np.full_like(self._lowest, NO_NIC)])
            self._sizes = np.concatenate([self._sizes, np.zeros_like(self._sizes)])
        self._keys.append((0, b""))
        self._numbers.append({})
        return slot


# A set of NIC numbers that gives its lowest member, with a bounded effort per change.


HEAP_SLACK = 256  # numbers of NICs that left and are still in the heap, beyond as many as are present

CLEARED_PER_CHANGE = 8


class SlotOfNic(Protocol):
    """The class of every NIC, by number."""

    def get(self, key: int, /) -> int | None:
        """None for a NIC that is in no class."""


class LowestNumbers:
    """The NICs of one class. Who left stays in the heap until it comes to the top, or the heap is renewed in steps."""

    __slots__ = ("_heap", "_inside", "_old", "size", "slot", "slot_of_nic")

    def __init__(self, slot: int, slot_of_nic: SlotOfNic) -> None:
        self.slot = slot
        self.slot_of_nic = slot_of_nic
        self.size = 0
        self._heap: list[int] = []
        self._old: list[int] = []
        self._inside: set[int] = set()

    def __len__(self) -> int:
        """How many numbers are kept, of NICs in the class and of those that left."""
        return len(self._heap) + len(self._old)

    def add(self, number: int) -> None:
        """Follow a NIC that entered the class."""
        self.size += 1
        if number not in self._inside:
            self._inside.add(number)
            heapq.heappush(self._heap, number)
        if not self._old and len(self._heap) > 2 * self.size + HEAP_SLACK:
            self._heap, self._old = [], self._heap
        for _ in range(min(CLEARED_PER_CHANGE, len(self._old)) if self._old else 0):
            last = self._old.pop()  # what remains is a heap
            if self.slot_of_nic.get(last) == self.slot:
                heapq.heappush(self._heap, last)
            else:
                self._inside.remove(last)

    def lowest(self) -> int | None:
        """The lowest number in the class; None when it is empty."""
        if not self._old:
            return self._heap[0] if self._clear_top(self._heap) else None
        found = [heap[0] for heap in (self._heap, self._old) if self._clear_top(heap)]
        return min(found, default=None)

    def lowest_but(self, barred: frozenset[int]) -> int | None:
        """The lowest number in the class that is not barred; None when there is none."""
        found: int | None = None
        for heap in (self._heap, self._old):
            tops = [(heap[0], 0)] if heap else []
            while tops and (found is None or tops[0][0] < found):
                number, at = heapq.heappop(tops)
                if number not in barred and self.slot_of_nic.get(number) == self.slot:
                    found = number
                    break
                for child in range(2 * at + 1, min(2 * at + 3, len(heap))):
                    heapq.heappush(tops, (heap[child], child))
        return found

    def _clear_top(self, heap: list[int]) -> bool:
        """Take NICs that left off the top; whether any is left."""
        while heap and self.slot_of_nic.get(heap[0]) != self.slot:
            self._inside.remove(heapq.heappop(heap))
        return bool(heap)
