"""The dual simplex method for the pattern program, in steps of a few pivots, so that no decision waits for prices.

The program is that of Gilmore and Gomory ("A linear programming approach to the cutting-stock problem", Operations
Research 9, 1961): use as few NICs as possible, each with one pattern, such that for every workload and SLA level there
are enough slots that meet this level or a stricter one. A row is a workload and a level. Slots that meet a level meet
the looser ones too, so a pattern's column is described by its counts and its strictest levels.

Any basis keeps prices with which no pattern is worth more than a NIC. Hence another demand starts from the last basis,
and prices are usable wherever the method stops (Lemke, "The dual method of solving the linear programming problem",
Naval Research Logistics 1, 1954). The leaving row is the one of steepest ascent (Forrest and Goldfarb, "Steepest-edge
simplex algorithms for linear programming", Mathematical Programming 57, 1992).

NICs that are open may become further patterns at no cost, each of them one: a column per class of NICs and pattern
that it can become, with the slots that this adds, and a row per class.

Rows of the basis inverse are kept as sums over the levels up to each. Then a pattern's column has one entry per
workload, at its strictest level, and prices come out by the level that a slot meets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placer.policy.kernels import Ints, compile_kernel
from profiles.arrays import Floats

COST_PERTURBATION = 1e-4
"""Costs of patterns differ by at most this share of a NIC, so that ties do not make the method go in circles."""

ZERO_TOLERANCE = 1e-7  # what is below it is taken for 0 in pivots and in numbers of NICs


class OpenClass(NamedTuple):
    """NICs that hold one pattern and can become the same patterns.

    `reachable`: numbers of the patterns that they can become, itself left out. `nics`: how many there are.
    """

    pattern: int
    reachable: NDArray[np.intp]
    nics: int


class SimplexState(NamedTuple):
    """A basis of the program; its rows are workloads and levels, then classes of open NICs.

    `basic`: the column in each row of the basis: patterns, moves of open NICs, then the surplus of each row. `sums`:
    the inverse of the basis, summed over the levels of each workload up to each level, shape (rows, rows). `used`: the
    value of each basic column: NICs, or surplus slots. `price`: the price of a slot by the level that it meets, in
    NICs. `norm`: squared lengths of the rows of `sums`.
    """

    basic: NDArray[np.int64]
    sums: Floats
    used: Floats
    price: Floats
    reduced: Floats
    norm: Floats


class PatternProgram:
    """The program over all patterns of a table.

    `counts`, `members`: as in `PatternTable`. `levels`: number of SLA levels per workload.
    """

    def __init__(self, counts: Ints, members: Ints, levels: int) -> None:
        self._counts = counts
        members = members[:, : int((members >= 0).sum(axis=1).max(initial=0))]  # the rest are -1
        self._members = np.maximum(members, 0)
        self._amount = np.where(members >= 0, np.take_along_axis(counts, self._members, axis=1), 0).astype(np.float64)
        self._workloads = counts.shape[1]
        self._levels = levels
        random = np.random.default_rng(len(counts))
        self._surplus = np.kron(-np.eye(self._workloads), np.triu(np.ones((levels, levels))))
        self._cost = 1.0 + COST_PERTURBATION * random.random(len(counts))

    def restart(self, level: Ints, classes: Sequence[OpenClass] = ()) -> None:
        """Take the basis of surplus alone, whose prices are 0.

        `level` is the strictest level that each workload meets in each pattern, -1 where none; the shape of `counts`.
        `classes` are the open NICs that count, each with a row of its own.
        """
        rows, patterns = self._workloads * self._levels, np.arange(len(self._cost))
        became = np.concatenate([patterns, *(nic_class.reachable for nic_class in classes)])
        columns = np.array([len(patterns), *(len(nic_class.reachable) for nic_class in classes)], dtype=np.intp)
        before = np.repeat(np.array([0, *(nic_class.pattern for nic_class in classes)], dtype=np.intp), columns)
        of_class = np.repeat(np.arange(-1, len(classes)), columns)
        # without classes, there is no row that a further entry could stand for
        entries = self._members.shape[1] + (1 if len(classes) else 0)
        # an index without sign is not checked for counting from the end
        self._slot, self._offered = np.empty((entries, len(became)), np.uint32), np.empty((entries, len(became)))
        program = (self._members, self._amount, self._counts, level, self._levels, rows)
        write_columns(program, became, before, of_class, self._slot, self._offered)
        self._nics = np.array([nic_class.nics for nic_class in classes], dtype=np.float64)
        sums = np.zeros((rows + len(classes), rows + len(classes)))
        sums[:rows, :rows] = self._surplus
        sums[rows:, rows:] = -np.eye(len(classes))
        cost = np.concatenate([self._cost, self._free_moves(len(became) - len(patterns)), np.zeros(len(sums))])
        self._state = SimplexState(
            np.arange(len(sums)) + len(became), sums, np.zeros(len(sums)), np.zeros(len(sums)), cost,
            (sums**2).sum(axis=1),
        )  # fmt: skip

    def demand(self, arrivals: Floats) -> None:
        """Ask for slots for so many arrivals of each workload and level, shape (workloads, levels)."""
        multiply(self._state.sums, np.concatenate([arrivals.ravel(), -self._nics]), self._state.used)

    def pivot(self, steps: int) -> int:
        """Make at most so many pivots; returns the number of those left when an optimal basis is found, else -1."""
        return int(
            make_pivots(self._slot, self._offered, self._levels, self._workloads * self._levels, self._state, steps)
        )

    def prices(self) -> Floats:
        """The price of a slot by the level that it meets, in NICs, shape (workloads, levels)."""
        rows = self._workloads * self._levels
        price: Floats = np.maximum(self._state.price[:rows], 0.0).reshape(-1, self._levels)
        return price

    @staticmethod
    def _free_moves(count: int) -> Floats:
        """The costs of as many moves of open NICs: none, but for the perturbation."""
        cost: Floats = COST_PERTURBATION * np.random.default_rng(count).random(count)
        return cost


@compile_kernel
def multiply(matrix, vector, product):  # type: ignore[no-untyped-def]
    """Write `matrix @ vector` into `product`, added up in the same order on every processor.

    Libraries add in the order that suits a processor's instructions; the last digit decides between equal pivots.
    """
    for row in range(len(product)):
        total = 0.0
        for at in range(len(vector)):
            total += matrix[row, at] * vector[at]
        product[row] = total


@compile_kernel
def make_pivots(slot, offered, levels, summed, state, steps):  # type: ignore[no-untyped-def]
    """Make up to `steps` pivots; returns how many were left at an optimal basis, -1 where there is none yet.

    A column offers `offered` instances at the places `slot` of a row of sums, shape (most entries, columns). The first
    `summed` elements of a row are sums over levels.
    """
    basic, sums, used, price, reduced, norm = state
    rows, columns = len(basic), slot.shape[1]
    entry, column = np.empty(len(reduced)), np.empty(rows)
    for step in range(steps):
        leaving, steepest = -1, 0.0
        for row in range(rows):
            if used[row] < -ZERO_TOLERANCE and used[row] * used[row] > steepest * norm[row]:
                leaving, steepest = row, used[row] * used[row] / norm[row]
        if leaving < 0:
            return steps - step
        pivot_row = sums[leaving].copy()
        write_entries(slot, offered, pivot_row, levels, summed, entry)
        entering, least = -1, np.inf
        for number in range(len(reduced)):
            if entry[number] < -ZERO_TOLERANCE and max(reduced[number], 0.0) < least * -entry[number]:
                entering, least = number, max(reduced[number], 0.0) / -entry[number]
        if entering < 0:
            return steps - step
        for number in range(len(reduced)):
            reduced[number] += least * entry[number]
        for row in range(rows):
            price[row] -= least * pivot_row[row]
            column[row] = 0.0
            if entering >= columns:
                column[row] = -difference(sums[row], entering - columns, levels, summed)
                continue
            for at in range(len(slot)):
                column[row] += offered[at, entering] * sums[row, slot[at, entering]]
        change_basis(leaving, column, sums, used, norm)
        basic[leaving] = entering
    return -1


@compile_kernel
def write_columns(program, became, before, of_class, slot, offered):  # type: ignore[no-untyped-def]
    """Write which slots each column offers, and how many: a pattern, or what it adds to another that a class has."""
    members, amount, counts, level, levels, rows = program
    for number in range(len(became)):
        pattern, moved = became[number], max(of_class[number], 0)
        for at in range(members.shape[1]):
            member, added = members[pattern, at], amount[pattern, at]
            met = level[pattern, member]
            if added > 0.0:
                added -= counts[before[number], member]
            slot[at, number] = member * levels + max(met, 0)
            offered[at, number] = added if met >= 0 else 0.0
        for at in range(members.shape[1], len(slot)):
            slot[at, number] = rows + moved
            offered[at, number] = -1.0 if of_class[number] >= 0 else 0.0


@compile_kernel
def write_entries(slot, offered, row, levels, summed, entry):  # type: ignore[no-untyped-def]
    """Write the element of a row of the program in each column: of the slots that it offers, then of each surplus."""
    # one entry of all columns after another: the sum of a column waits for every addition
    of_patterns, surplus = entry[: slot.shape[1]], entry[slot.shape[1] :]
    for number in range(len(of_patterns)):
        of_patterns[number] = 0.0
    for at in range(len(slot)):
        place, instances = slot[at], offered[at]
        for number in range(len(place)):
            of_patterns[number] += instances[number] * row[place[number]]
    for at in range(len(row)):
        surplus[at] = -row[at]
    for loosest in range(0, summed, levels):
        for at in range(loosest + 1, loosest + levels):
            surplus[at] = -(row[at] - row[at - 1])


@compile_kernel
def difference(row, at, levels, summed):  # type: ignore[no-untyped-def]
    """The element of a row of which the first `summed` ones were summed over the levels of each workload."""
    return row[at] - row[at - 1] if at < summed and at % levels else row[at]


@compile_kernel
def change_basis(leaving, column, sums, used, norm):  # type: ignore[no-untyped-def]
    """Let a column enter the basis in row `leaving`; `column` is the inverse of the basis times that column."""
    pivot = column[leaving]
    used[leaving] /= pivot
    norm[leaving] /= pivot * pivot
    pivot_row = np.empty(len(used))
    for at in range(len(used)):
        # on an array, the division would be compiled for seconds
        sums[leaving, at] /= pivot
        pivot_row[at] = sums[leaving, at]
    for row in range(len(used)):
        share = column[row]
        if row == leaving or share == 0.0:
            continue
        used[row] -= share * used[leaving]
        changed = sums[row]
        for at in range(len(used)):
            changed[at] -= share * pivot_row[at]
        # four sums side by side, because one alone waits for every addition
        first = second = third = fourth = 0.0
        for at in range(0, len(used) - 3, 4):
            first += changed[at] * changed[at]
            second += changed[at + 1] * changed[at + 1]
            third += changed[at + 2] * changed[at + 2]
            fourth += changed[at + 3] * changed[at + 3]
        for at in range(len(used) - len(used) % 4, len(used)):
            first += changed[at] * changed[at]
        norm[row] = max(first + second + third + fourth, ZERO_TOLERANCE)
