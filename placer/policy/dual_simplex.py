"""The dual simplex method for the pattern program, in steps of a few pivots, so that no decision waits for prices.

The program is that of Gilmore and Gomory ("A linear programming approach to the cutting-stock problem", Operations
Research 9, 1961): use as few NICs as possible, each with one pattern, such that for every workload and SLA level there
are enough slots that meet this level or a stricter one. A row is a workload and a level. Slots that meet a level meet
the looser ones too, so a pattern's column is described by its counts and its strictest levels.

Any basis keeps prices with which no pattern is worth more than a NIC. Hence another demand starts from the last basis,
and prices are usable wherever the method stops (Lemke, "The dual method of solving the linear programming problem",
Naval Research Logistics 1, 1954). The leaving row is the one of steepest ascent (Forrest and Goldfarb, "Steepest-edge
simplex algorithms for linear programming", Mathematical Programming 57, 1992).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placer.policy.kernels import Floats, Ints, compiled

PERTURBATION = 1e-4
"""Costs of patterns differ by at most this share of a NIC, so that ties do not make the method go in circles."""

TOLERANCE = 1e-7
"""What is below it is taken for 0 in pivots and in numbers of NICs."""


class SimplexState(NamedTuple):
    """A basis of the program.

    Parameters
    ----------
    basic
        The column in each row of the basis: patterns, then the surplus of each row.
    inverse
        The inverse of the basis, shape (rows, rows).
    used
        The value of each basic column: NICs, or surplus slots.
    price
        The price of a slot per row, in NICs.
    reduced
        The reduced cost of each column.
    norm
        Squared lengths of the rows of `inverse`.
    """

    basic: NDArray[np.int64]
    inverse: Floats
    used: Floats
    price: Floats
    reduced: Floats
    norm: Floats


class PatternProgram:
    """The program over all patterns of a table.

    Parameters
    ----------
    counts, members
        As in `PatternTable`.
    levels
        Number of SLA levels per workload.
    """

    def __init__(self, counts: Ints, members: Ints, levels: int) -> None:
        self._counts = counts
        self._members = members
        self._levels = levels
        random = np.random.default_rng(len(counts))
        self._cost = 1.0 + PERTURBATION * random.random(len(counts))

    def restart(self, level: Ints) -> None:
        """Take the basis of surplus alone, whose prices are 0.

        `level` is the strictest level that each workload meets in each pattern, -1 where none; the shape of `counts`.
        """
        rows, patterns = self._counts.shape[1] * self._levels, len(self._cost)
        self._level = level
        self._state = SimplexState(
            np.arange(rows) + patterns, -np.eye(rows), np.zeros(rows), np.zeros(rows),
            np.concatenate([self._cost, np.zeros(rows)]), np.ones(rows),
        )  # fmt: skip

    def demand(self, needed: Floats) -> None:
        """Ask for `needed` slots of each workload that meet a level or a stricter one; shape (workloads, levels)."""
        self._state.used[:] = self._state.inverse @ needed.ravel()

    def pivot(self, steps: int) -> int:
        """Make at most so many pivots; returns the number of those left when an optimal basis is found, else -1."""
        return int(make_pivots(self._counts, self._members, self._level, self._state, steps))

    def prices(self) -> Floats:
        """The price of a slot by the level that it meets, in NICs, shape (workloads, levels)."""
        price = np.maximum(self._state.price, 0.0).reshape(-1, self._levels)
        return np.cumsum(price, axis=1)


@compiled
def make_pivots(counts, members, level, state, steps):  # type: ignore[no-untyped-def]
    """Make up to `steps` pivots; returns how many were left at an optimal basis, -1 where there is none yet."""
    basic, inverse, used, price, reduced, norm = state
    rows, patterns, width = len(basic), len(counts), counts.shape[1]
    levels = rows // max(width, 1)
    prefix, entry, column = np.empty((width, levels)), np.empty(len(reduced)), np.empty(rows)
    for step in range(steps):
        leaving, steepest = -1, 0.0
        for row in range(rows):
            if used[row] < -TOLERANCE and used[row] * used[row] > steepest * norm[row]:
                leaving, steepest = row, used[row] * used[row] / norm[row]
        if leaving < 0:
            return steps - step
        entering, least = -1, np.inf
        sum_over_levels(inverse[leaving], prefix)
        for number in range(len(reduced)):
            if number < patterns:
                value = slots_offered(number, counts, members, level, prefix)
            else:
                value = -inverse[leaving, number - patterns]
            entry[number] = value
            if value < -TOLERANCE and max(reduced[number], 0.0) < least * -value:
                entering, least = number, max(reduced[number], 0.0) / -value
        if entering < 0:
            return steps - step
        for number in range(len(reduced)):
            reduced[number] += least * entry[number]
        for row in range(rows):
            price[row] -= least * inverse[leaving, row]
            if entering < patterns:
                sum_over_levels(inverse[row], prefix)
                column[row] = slots_offered(entering, counts, members, level, prefix)
            else:
                column[row] = -inverse[row, entering - patterns]
        change_basis(leaving, column, inverse, used, norm)
        basic[leaving] = entering
    return -1


@compiled
def sum_over_levels(row, prefix):  # type: ignore[no-untyped-def]
    """Write into `prefix` the sums of a row over the levels of each workload up to each level."""
    for workload in range(prefix.shape[0]):
        total = 0.0
        for at in range(prefix.shape[1]):
            total += row[workload * prefix.shape[1] + at]
            prefix[workload, at] = total


@compiled
def slots_offered(pattern, counts, members, level, prefix):  # type: ignore[no-untyped-def]
    """The sum of `prefix` over the slots of a pattern, each at the level that it meets."""
    total = 0.0
    for at in range(members.shape[1]):
        workload = members[pattern, at]
        if workload < 0:
            break
        if level[pattern, workload] >= 0:
            total += counts[pattern, workload] * prefix[workload, level[pattern, workload]]
    return total


@compiled
def change_basis(leaving, column, inverse, used, norm):  # type: ignore[no-untyped-def]
    """Let a column enter the basis in row `leaving`; `column` is the inverse times that column."""
    pivot = column[leaving]
    used[leaving] /= pivot
    inverse[leaving] /= pivot
    norm[leaving] /= pivot * pivot
    for row in range(len(used)):
        if row == leaving or column[row] == 0.0:
            continue
        used[row] -= column[row] * used[leaving]
        length = 0.0
        for at in range(len(used)):
            inverse[row, at] -= column[row] * inverse[leaving, at]
            length += inverse[row, at] * inverse[row, at]
        norm[row] = length
