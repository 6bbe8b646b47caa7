"""First fit decreasing for items with sizes in several dimensions.

Bins are looked at in blocks, of which only the largest free size in each dimension is known at first: most blocks of
full bins are passed over at once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from operator import lt, sub

import numpy as np

from placer.optimal.arrays import Ints

BLOCK = 128
"""Bins of one block."""


def first_fit_decreasing(capacities: Ints, sizes: Ints, deadline: float) -> list[list[int]]:
    """Items, largest share of the total first, each in the first bin that has room for it.

    Parameters
    ----------
    capacities
        Of every bin, shape (dimensions,).
    sizes
        Of every item, none above the capacities, shape (items, dimensions).
    deadline
        Of `time.monotonic`; after it, an item goes into the last bin or into a new one.
    """
    share = sizes / np.maximum(sizes.sum(axis=0), 1)
    largest_first = np.argsort(-share.sum(axis=1), kind="stable").tolist()
    bins: list[list[int]] = []
    rooms = _Rooms(capacities, len(sizes))
    for position, item in enumerate(largest_first):
        if time.monotonic() >= deadline:
            return bins + _next_fit(capacities, sizes, largest_first[position:])
        number = rooms.first_with(sizes[item])
        if number == len(bins):
            bins.append([])
        bins[number].append(item)
        rooms.take(number, sizes[item])
    return bins


def _next_fit(capacities: Ints, sizes: Ints, items: Sequence[int]) -> list[list[int]]:
    """The items in this order, each in the last bin or in a new one."""
    bins: list[list[int]] = []
    room: list[int] = []
    for item, size in zip(items, sizes[items].tolist(), strict=True):
        if not bins or any(map(lt, room, size)):
            bins.append([])
            room = capacities.tolist()
        bins[-1].append(item)
        room = list(map(sub, room, size))
    return bins


class _Rooms:
    """The room left in every bin, and the largest room in every block of bins; bins not yet in use are empty."""

    def __init__(self, capacities: Ints, bins: int) -> None:
        blocks = -(-bins // BLOCK)
        self.room = np.tile(capacities, (blocks * BLOCK, 1))
        self.largest = np.tile(capacities, (blocks, 1))

    def first_with(self, size: Ints) -> int:
        """The first bin that has room for the size."""
        for block in np.flatnonzero(np.all(self.largest >= size, axis=1)).tolist():
            fitting = np.flatnonzero(np.all(self.room[block * BLOCK : (block + 1) * BLOCK] >= size, axis=1))
            if len(fitting):
                return block * BLOCK + int(fitting[0])
        raise AssertionError("An item is larger than a bin.")

    def take(self, number: int, size: Ints) -> None:
        """Put an item of the size into the bin."""
        self.room[number] -= size
        block = number // BLOCK
        self.largest[block] = self.room[block * BLOCK : (block + 1) * BLOCK].max(axis=0)
