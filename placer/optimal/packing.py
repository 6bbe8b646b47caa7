"""Vector packing with the solver of the optimum: items with sizes in several dimensions into the fewest equal bins.

Bins are like NICs and items like tenants; instead of contention, sizes add up. A part of a set that fits a bin fits,
too, so the patterns are the sets to which no item can be added, and every item must be in a chosen set. Some published
instances have negative sizes, though: there a part of a set need not fit, so every set that fits is a pattern, and each
item is in exactly one chosen set.

Many patterns are generated as needed. Only where that proves nothing they are all listed."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import lt, sub
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import sparse

from placer.optimal.column_generation import Column, Task, dive, generate
from placer.optimal.knapsack_pricer import KnapsackPricer
from placer.optimal.program import IntegerProgram
from placer.optimal.solvers import solve
from profiles import InputError
from profiles.arrays import Ints
from profiles.text import read_text

FEW_SETS = 200_000  # with more sets of items that fit a bin than this, they are generated as needed first
MOST_SETS = 3_000_000  # more sets than this are never listed

LARGEST_FILE = 100_000_000
LARGEST_NUMBER = 2**40
MOST_ITEMS = 100_000


@dataclass(frozen=True, eq=False)
class Packing:
    """Items to pack.

    `capacities`: of every bin, shape (dimensions,). `sizes`: of every item, shape (items, dimensions).
    """

    capacities: Ints
    sizes: Ints

    @property
    def monotone(self) -> bool:
        """Whether every part of a set that fits a bin fits, too."""
        return bool(np.all(self.sizes >= 0))


@dataclass(frozen=True, eq=False)
class Packed:
    """Bins as item numbers from 0, a lower bound on their number, and the seconds of the search."""

    assignment: list[list[int]]
    lower_bound: int
    seconds: float = 0.0

    @property
    def proven(self) -> bool:
        """Whether fewer bins are not enough."""
        return len(self.assignment) <= self.lower_bound


def read_vbp(path: Path) -> Packing:
    """The instance in a `.vbp` file: dimensions, capacities, number of items, then sizes and quantity of every item.

    Raises InputError if the file is no such file, or an item fits no bin.
    """
    try:
        numbers = [int(word) for word in read_text(path, LARGEST_FILE).split()]
    except ValueError as error:
        raise _refuse(path, "is not a .vbp file: it holds whole numbers only") from error
    if max(map(abs, numbers), default=0) > LARGEST_NUMBER:
        raise _refuse(path, f"{max(numbers, key=abs)} is too large a number")
    dimensions = numbers[0] if numbers else 0
    if dimensions < 1 or len(numbers) < dimensions + 2 or min(numbers[: dimensions + 2]) < 0:
        raise _refuse(path, "expected dimensions, capacities and the number of items, none of them negative")
    capacities = np.array(numbers[1 : dimensions + 1], dtype=np.int64)
    rows = numbers[dimensions + 2 :]
    items = numbers[dimensions + 1]
    if len(rows) != items * (dimensions + 1):
        raise _refuse(path, f"expected {items} items of {dimensions} sizes and a quantity, got {len(rows)} numbers")
    table = np.array(rows, dtype=np.int64).reshape(items, dimensions + 1)
    if np.any(table[:, -1:] < 0):
        raise _refuse(path, "a quantity is negative")
    if table[:, -1].sum() > MOST_ITEMS:
        raise _refuse(path, f"{table[:, -1].sum():,} items are more than {MOST_ITEMS:,}")
    too_large = np.flatnonzero(np.any(table[:, :-1] > capacities, axis=1))
    if len(too_large):
        raise _refuse(path, f"item {too_large[0]} is larger than a bin")
    return Packing(capacities, np.repeat(table[:, :-1], table[:, -1], axis=0))


def pack(packing: Packing, *, time_limit: float = 60.0, solver: str = "cp-sat") -> Packed:
    """The fewest bins for all items, or the fewest found in `time_limit` seconds, with a lower bound."""
    began = time.monotonic()
    deadline = began + time_limit
    bins = first_fit_decreasing(packing.capacities, packing.sizes, deadline)
    packed = Packed(bins, size_bound(packing.capacities, packing.sizes))
    if not packed.proven and time.monotonic() < deadline:
        sets = _patterns(packing, FEW_SETS, deadline)
        if sets is None and packing.monotone:
            packed = _by_generation(packing, packed, deadline)
        if sets is None and not packed.proven:
            sets = _patterns(packing, MOST_SETS, deadline)
        if sets is not None:
            # the best bins from all sets, or the best found until the deadline, and the higher bound
            program, start = _program(sets, packed.assignment, packing)
            solution = solve(program, start, solver=solver, deadline=deadline)
            chosen = sets[np.repeat(np.arange(len(sets)), solution.values)]
            packed = replace(
                packed, assignment=_each_item_once(chosen.tolist()), lower_bound=max(packed.lower_bound, solution.bound)
            )
    return replace(packed, seconds=time.monotonic() - began)


def _by_generation(packing: Packing, packed: Packed, deadline: float) -> Packed:
    """These bins or better ones from column generation, and the higher bound."""
    items = len(packing.sizes)
    task = Task(np.ones(items, dtype=np.int64), np.array([1]), np.array([items]), exactly=False)
    worker = KnapsackPricer(packing.capacities, packing.sizes)
    columns = [Column(0, tuple(members)) for members in packed.assignment]
    bins, bound = len(packed.assignment), packed.lower_bound
    generated = generate(task, columns, worker, enough=bins, deadline=deadline, at_least=bound)
    packed = replace(packed, lower_bound=generated.bound)
    plan, _ = dive(task, generated.columns, worker, below=bins, deadline=deadline)
    return replace(packed, assignment=_each_item_once([column.rows for column in plan])) if plan else packed


def _patterns(packing: Packing, most: int, deadline: float) -> Ints | None:
    """Sets of items that fit a bin, a row each, padded with -1; None after the deadline or beyond `most`.

    Where no item has a negative size, only sets to which no item can be added.
    """
    kept: list[Ints] = []
    found = 0
    sets, room = np.arange(len(packing.sizes))[:, None], packing.capacities - packing.sizes
    while len(sets):
        found += len(sets)
        extensible = _extensible(packing, sets, room, deadline) if found <= most else None
        if extensible is None:
            return None
        kept.append(sets[np.all(room >= 0, axis=1) & ~extensible])
        larger = _with_one_more(packing, sets, room, most, deadline)
        if larger is None:
            return None
        sets, room = larger
    width = max((sets.shape[1] for sets in kept), default=0)
    padded = [np.pad(sets, ((0, 0), (0, width - sets.shape[1])), constant_values=-1) for sets in kept]
    return np.concatenate(padded) if padded else np.zeros((0, 0), dtype=np.int64)


def _extensible(packing: Packing, sets: Ints, room: Ints, deadline: float) -> npt.NDArray[np.bool_] | None:
    """Which sets can take one more item, none where a size is negative; None after the deadline."""
    extensible = np.zeros(len(sets), dtype=bool)
    for item, size in enumerate(packing.sizes if packing.monotone else []):
        if time.monotonic() >= deadline:
            return None
        extensible |= np.all(room >= size, axis=1) & np.all(sets != item, axis=1)
    return extensible


def _with_one_more(packing: Packing, sets: Ints, room: Ints, most: int, deadline: float) -> tuple[Ints, Ints] | None:
    """The sets with one more item of a higher number, and the room that each leaves; None as of `_patterns`.

    Sets that do not fit are among them only where items still to come, of negative size, could make room.
    """
    gain = np.maximum(-packing.sizes, 0)
    to_come = gain.sum(axis=0) - np.cumsum(gain, axis=0)
    grown: list[Ints] = []
    left: list[Ints] = []
    found = 0
    for item, size in enumerate(packing.sizes):
        rows = np.flatnonzero((sets[:, -1] < item) & np.all(room + to_come[item] >= size, axis=1))
        found += len(rows)
        if found > most or time.monotonic() >= deadline:
            return None
        grown.append(np.column_stack([sets[rows], np.full(len(rows), item)]))
        left.append(room[rows] - size)
    return np.concatenate(grown), np.concatenate(left)


def _program(sets: Ints, bins: list[list[int]], packing: Packing) -> tuple[IntegerProgram, Ints]:
    """The program that puts every item in a chosen set, in one where sizes are negative; and the bins as a solution."""
    items = len(packing.sizes)
    row, place = np.nonzero(sets >= 0)
    holds = sparse.csr_array((np.ones_like(row), (sets[row, place], row)), shape=(items, len(sets)))
    size: Ints = np.asarray(holds.sum(axis=0))
    start = np.zeros(len(sets), dtype=np.int64)
    for members in bins:
        has_all = np.asarray(holds[members].sum(axis=0)) == len(members)
        start[np.flatnonzero(has_all & (packing.monotone | (size == len(members))))[0]] += 1
    once = np.ones(items, dtype=np.int64)
    each, least = (holds, once) if packing.monotone else (sparse.vstack([holds, -holds]), np.append(once, -once))
    most = np.full(len(sets), max(1, len(bins)), dtype=np.int64)
    return IntegerProgram(sparse.csr_array(each), least, np.ones_like(start), most, len(sets)), start


def _each_item_once(chosen: Iterable[Iterable[int]]) -> list[list[int]]:
    """The chosen sets, every item in the first that has it."""
    bins: list[list[int]] = []
    packed: set[int] = set()
    for members in map(set, chosen):
        bins.append(sorted(members - packed - {-1}))
        packed |= members
    return [members for members in bins if members]


def _refuse(path: Path, message: str) -> InputError:
    return InputError.of(str(path), message)


# A lower bound on the number of bins from the sizes of items alone, dimension by dimension.
#
# References
# ----------
# S. Martello, P. Toth. Lower bounds and reduction procedures for the bin packing problem. Discrete Applied Mathematics
# 28(1), 1990 (bound L2). https://doi.org/10.1016/0166-218X(90)90094-S


def size_bound(capacities: Ints, sizes: Ints) -> int:
    """Bins of these capacities, shape (dimensions,), that items of these sizes, (items, dimensions), need at least."""
    by_dimension = (_in_one_dimension(int(capacity), sizes[:, i]) for i, capacity in enumerate(capacities))
    return max(min(len(sizes), 1), *by_dimension)


def _in_one_dimension(capacity: int, sizes: Ints) -> int:
    """Bound L2 where no size is negative, else the sum of the sizes over the capacity.

    For any threshold up to half the capacity: items above half the capacity need a bin each. Items of at least the
    threshold that are no larger than half a bin share bins only with one another and with large items that leave room
    for the threshold.
    """
    if capacity <= 0 or not len(sizes):
        return 0
    if sizes.min() < 0:
        return -(-int(sizes.sum()) // capacity)
    ascending = np.sort(sizes)
    before = np.concatenate([[0], np.cumsum(ascending)])
    half = int(np.searchsorted(ascending, capacity // 2, side="right"))
    thresholds = np.unique(np.append(ascending[:half], 0))
    first = np.searchsorted(ascending, thresholds)
    sharing = np.searchsorted(ascending, capacity - thresholds, side="right")
    free = (sharing - half) * capacity - (before[sharing] - before[half])
    more = np.maximum(-(-(before[half] - before[first] - free) // capacity), 0)
    return int(len(sizes) - half + more.max())


# First fit decreasing for items with sizes in several dimensions.
#
# Bins are looked at in blocks, of which only the largest free size in each dimension is known at first: most blocks of
# full bins are passed over at once.


BLOCK_SIZE = 128


def first_fit_decreasing(capacities: Ints, sizes: Ints, deadline: float) -> list[list[int]]:
    """Items, largest share of the total first, each in the first bin that has room for it.

    `capacities`: of every bin, shape (dimensions,). `sizes`: of every item, none above the capacities, shape (items,
    dimensions). `deadline`: of `time.monotonic`; after it, an item goes into the last bin or into a new one.
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
        blocks = -(-bins // BLOCK_SIZE)
        self.room = np.tile(capacities, (blocks * BLOCK_SIZE, 1))
        self.largest = np.tile(capacities, (blocks, 1))

    def first_with(self, size: Ints) -> int:
        for block in np.flatnonzero(np.all(self.largest >= size, axis=1)).tolist():
            fitting = np.flatnonzero(np.all(self.room[block * BLOCK_SIZE : (block + 1) * BLOCK_SIZE] >= size, axis=1))
            if len(fitting):
                return block * BLOCK_SIZE + int(fitting[0])
        raise AssertionError("An item is larger than a bin.")

    def take(self, number: int, size: Ints) -> None:
        """Put an item of the size into the bin."""
        self.room[number] -= size
        block = number // BLOCK_SIZE
        self.largest[block] = self.room[block * BLOCK_SIZE : (block + 1) * BLOCK_SIZE].max(axis=0)
