"""Vector packing with the solver of the optimum: items with sizes in several dimensions into the fewest equal bins.

Bins are like NICs and items like tenants; instead of contention, sizes add up. A part of a set that fits a bin fits,
too, so the patterns are the sets to which no item can be added, and every item must be in a chosen set. Some published
instances have negative sizes, though: there a part of a set need not fit, so every set that fits is a pattern, and each
item is in exactly one chosen set.

Many patterns are generated as needed. Only where that proves nothing they are all listed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import sparse

from placer.optimal.arrays import Ints
from placer.optimal.column_generation import Column, Task, dive, generate
from placer.optimal.first_fit import first_fit_decreasing
from placer.optimal.knapsack_pricer import KnapsackPricer
from placer.optimal.program import IntegerProgram
from placer.optimal.prove import solve
from placer.optimal.size_bound import size_bound
from profiles import InputError
from profiles.text import read_text

FEW_SETS = 200_000
"""With more sets of items that fit a bin than this, they are generated as needed first."""

MOST_SETS = 3_000_000
"""More sets than this are never listed."""

LARGEST_FILE = 100_000_000
LARGEST = 2**40
"""Numbers up to this add up without overflow."""

MOST_ITEMS = 100_000


@dataclass(frozen=True, eq=False)
class Packing:
    """Items to pack.

    Parameters
    ----------
    capacities
        Of every bin, shape (dimensions,).
    sizes
        Of every item, shape (items, dimensions).
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

    Raises
    ------
    InputError
        If the file is no such file, or an item fits no bin.
    """
    try:
        numbers = [int(word) for word in read_text(path, LARGEST_FILE).split()]
    except ValueError as error:
        raise _refused(path, "is not a .vbp file: it holds whole numbers only") from error
    if max(map(abs, numbers), default=0) > LARGEST:
        raise _refused(path, f"{max(numbers, key=abs)} is too large a number")
    dimensions = numbers[0] if numbers else 0
    if dimensions < 1 or len(numbers) < dimensions + 2 or min(numbers[: dimensions + 2]) < 0:
        raise _refused(path, "expected dimensions, capacities and the number of items, none of them negative")
    capacities = np.array(numbers[1 : dimensions + 1], dtype=np.int64)
    rows = numbers[dimensions + 2 :]
    items = numbers[dimensions + 1]
    if len(rows) != items * (dimensions + 1):
        raise _refused(path, f"expected {items} items of {dimensions} sizes and a quantity, got {len(rows)} numbers")
    table = np.array(rows, dtype=np.int64).reshape(items, dimensions + 1)
    if np.any(table[:, -1:] < 0):
        raise _refused(path, "a quantity is negative")
    if table[:, -1].sum() > MOST_ITEMS:
        raise _refused(path, f"{table[:, -1].sum():,} items are more than {MOST_ITEMS:,}")
    too_large = np.flatnonzero(np.any(table[:, :-1] > capacities, axis=1))
    if len(too_large):
        raise _refused(path, f"item {too_large[0]} is larger than a bin")
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
            packed = _by_listing(packing, packed, sets, solver, deadline)
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


def _by_listing(packing: Packing, packed: Packed, sets: Ints, solver: str, deadline: float) -> Packed:
    """The best bins from all sets, or the best found until the deadline, and the higher bound."""
    program, start = _program(sets, packed.assignment, packing)
    solution = solve(program, start, solver=solver, deadline=deadline)
    chosen = sets[np.repeat(np.arange(len(sets)), solution.values)]
    return replace(
        packed, assignment=_each_item_once(chosen.tolist()), lower_bound=max(packed.lower_bound, solution.bound)
    )


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


def _refused(path: Path, message: str) -> InputError:
    return InputError.of(str(path), message)
