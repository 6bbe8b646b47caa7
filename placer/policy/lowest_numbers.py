"""A set of NIC numbers that gives its lowest member, with a bounded effort per change."""

from __future__ import annotations

import heapq
from typing import Protocol

SLACK = 256
"""Numbers of NICs that left and are still in the heap, beyond as many as are present."""

CLEARED = 8
"""Numbers that are cleared per change while the heap is renewed."""


class SlotOfNic(Protocol):
    """The class of every NIC, by number."""

    def get(self, key: int, /) -> int | None:
        """None for a NIC that is in no class."""


class LowestNumbers:
    """The NICs of one class. Who left stays in the heap until it comes to the top, or the heap is renewed in steps.

    Parameters
    ----------
    slot
        The class.
    slot_of_nic
        The class of every NIC.
    """

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
        if not self._old and len(self._heap) > 2 * self.size + SLACK:
            self._heap, self._old = [], self._heap
        for _ in range(min(CLEARED, len(self._old))):
            last = self._old.pop()  # what remains is a heap
            if self.slot_of_nic.get(last) == self.slot:
                heapq.heappush(self._heap, last)
            else:
                self._inside.remove(last)

    def lowest(self) -> int | None:
        """The lowest number in the class; None when it is empty."""
        found = [heap[0] for heap in (self._heap, self._old) if self._clear_top(heap)]
        return min(found, default=None)

    def _clear_top(self, heap: list[int]) -> bool:
        """Take NICs that left off the top; whether any is left."""
        while heap and self.slot_of_nic.get(heap[0]) != self.slot:
            self._inside.remove(heapq.heappop(heap))
        return bool(heap)
