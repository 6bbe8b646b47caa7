"""Column generation: an integer program over all columns, of which only those that improve it are listed.

A column is what one NIC (or bin) carries. There are too many to list, so a leader (the restricted master problem)
chooses among a few, and a worker (the pricing problem, or subproblem) finds more.

Leader variables: x[p], how many NICs carry column p; u[i], instances of row i that no NIC carries, at a high cost.

Leader formulation: minimise sum of cost[kind of p] x[p] + high u, such that every row is carried often enough:
sum of holds[i, p] x[p] + u[i] >= needed[i]; not more often either, unless smaller columns are feasible, too; and no
more columns of a kind than it has NICs.

Worker data: a price for every row, the dual price of the leader.

Worker formulation: for every kind, a feasible column whose rows are worth the most, and a bound on the worth of any.

Stopping rule: no column is worth more than it costs; or the bound, rounded up, reaches the cost of the best known plan,
or that of the leader, as further columns cannot raise it then; or the deadline.

The prices give a bound in every round. Farley (1990): lowered until no column is worth more than it costs, they are
feasible for the dual program over all columns. Lagrange: kept as they are, less what columns of negative reduced cost
could gain. Fractions are rounded by diving: the column of the largest x is fixed, and columns are generated for the
rest. That is a heuristic; only the bound proves a plan.

References
----------
A. A. Farley. A note on bounding a class of linear programming problems, including cutting stock problems. Operations
Research 38(5), 1990. https://doi.org/10.1287/opre.38.5.922
C. Joncour, S. Michel, R. Sadykov, D. Sverdlov, F. Vanderbeck. Column generation based primal heuristics. Electronic
Notes in Discrete Mathematics 36, 2010. https://doi.org/10.1016/j.endm.2010.05.088"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy import sparse

from placer.optimal.program import BOUND_ROUNDING, IntegerProgram
from placer.optimal.solvers import relaxation
from profiles.arrays import Floats, Ints

LEFT_OUT_PENALTY = 1_000  # cost of an instance that no NIC carries, as a multiple of the most expensive NIC

WORTH_MORE = 1e-6
"""Columns whose worth is above their cost by no more than this are not added, but the bound allows for them."""


class Column(NamedTuple):
    """What one NIC carries: the number of its kind, and its rows, ascending, a row once for each instance."""

    kind: int
    rows: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PricedColumns:
    """What the worker found.

    `columns`: feasible columns that are worth more than they cost, best first. `most`: by kind, a bound on the worth of
    every column, listed or not; infinite where there is none.
    """

    columns: list[Column]
    most: Floats


class Worker(Protocol):
    """Finds columns that are worth more than they cost."""

    def __call__(self, prices: Floats, needed: Ints, deadline: float) -> PricedColumns:
        """Columns, at these prices of the rows, that carry no row more often than `needed`."""


@dataclass(frozen=True, eq=False)
class Task:
    """The rows to be carried, and the NICs for them.

    `needed`: how many instances of each row are to be carried. `costs`: cost of a NIC of each kind, whole numbers.
    `counts`: NICs of each kind that there are. `exactly`: whether no row may be carried more often than needed, because
    a part of a feasible column may be infeasible.
    """

    needed: Ints
    costs: Ints
    counts: Ints
    exactly: bool

    def without(self, column: Column) -> Task:
        """The rest of the task when a NIC carries the column."""
        needed = self.needed.copy()
        for row in column.rows:
            needed[row] = max(needed[row] - 1, 0)
        counts = self.counts - (np.arange(len(self.counts)) == column.kind)
        return Task(needed, self.costs, counts, self.exactly)

    def admits(self, column: Column) -> bool:
        """Whether the column can be part of a plan for the task."""
        if self.counts[column.kind] < 1:
            return False
        useful = any(self.needed[row] > 0 for row in column.rows)
        return useful and (
            not self.exactly or all(times <= self.needed[row] for row, times in Counter(column.rows).items())
        )

    def bound(self, prices: Floats, most: Floats) -> float:
        """A lower bound on the cost of every plan, where no column is worth more than `most` by kind."""
        if not np.all(np.isfinite(most)):
            return 0.0
        worth = float(prices @ self.needed)
        lagrange = worth + float(np.minimum(self.costs - most, 0.0) @ np.minimum(self.counts, self.needed.sum()))
        too_high = most > self.costs
        farley = worth * float(np.min(self.costs[too_high] / most[too_high], initial=1.0))
        return max(lagrange, farley, 0.0)


@dataclass(frozen=True, eq=False)
class GeneratedColumns:
    """The end of column generation: columns, how often the relaxed leader takes each, and the bound, rounded up."""

    columns: list[Column]
    values: Floats
    bound: int


def generate(
    task: Task, columns: Sequence[Column], worker: Worker, *, enough: int, deadline: float, at_least: int = 0
) -> GeneratedColumns:
    """Add columns until none improves the relaxed leader, the bound is `enough`, or the deadline.

    `columns`: to begin with; those that the task admits are kept. `enough`: the cost of the best known plan: with a
    bound that high the generation ends. `deadline`: of `time.monotonic`. `at_least`: a bound that is known already.
    """
    known = dict.fromkeys(column for column in columns if task.admits(column))
    bound = at_least
    while True:
        program = leader(task, list(known))
        relaxed = relaxation(program, deadline - time.monotonic())
        values = np.zeros(len(known)) if relaxed.values is None else relaxed.values[: len(known)]
        if relaxed.values is None or time.monotonic() >= deadline:
            return GeneratedColumns(list(known), values, bound)
        if _round_up(float(program.cost @ relaxed.values)) <= bound:
            return GeneratedColumns(list(known), values, bound)
        prices = _row_prices(task, relaxed.proof.prices)
        priced = worker(prices, task.needed, deadline)
        bound = max(bound, _round_up(task.bound(prices, priced.most)))
        fresh = [column for column in priced.columns if column not in known]
        if not fresh or bound >= enough:
            return GeneratedColumns(list(known), values, bound)
        known |= dict.fromkeys(fresh)


def dive(
    task: Task, columns: Sequence[Column], worker: Worker, *, below: int, deadline: float
) -> tuple[list[Column] | None, list[Column]]:
    """A plan that costs less than `below`, or None; and all columns that came to be known.

    Each round fixes the columns that the relaxed leader takes whole, or else the one of the largest fraction, and
    generates columns for the rest.
    """
    known = dict.fromkeys(columns)
    plan: list[Column] = []
    while task.needed.any():
        spent = sum(int(task.costs[column.kind]) for column in plan)
        generated = generate(task, list(known), worker, enough=below - spent, deadline=deadline)
        known |= dict.fromkeys(generated.columns)
        if spent + generated.bound >= below or not generated.values.any():
            return None, list(known)
        taken = _take(task, generated)
        for column in taken:
            plan.append(column)
            task = task.without(column)
    cost = sum(int(task.costs[column.kind]) for column in plan)
    return (plan if cost < below else None), list(known)


def _take(task: Task, generated: GeneratedColumns) -> list[Column]:
    """Columns to fix: all whole parts of the relaxed leader, or one of the largest fraction."""
    whole = np.floor(generated.values + BOUND_ROUNDING).astype(np.int64)
    if not whole.any():
        whole[int(np.argmax(generated.values))] = 1
    taken = []
    for number in np.flatnonzero(whole).tolist():
        for _ in range(int(whole[number])):
            if task.admits(generated.columns[number]):
                taken.append(generated.columns[number])
                task = task.without(generated.columns[number])
    return taken


def leader(task: Task, columns: Sequence[Column]) -> IntegerProgram:
    """The leader over these columns; its last variables are instances that no NIC carries."""
    rows = len(task.needed)
    kind = np.array([column.kind for column in columns], dtype=np.int64)
    at = np.repeat(np.arange(len(columns)), [len(column.rows) for column in columns])
    row = np.array([row for column in columns for row in column.rows], dtype=np.int64)
    holds = sparse.csr_array((np.ones_like(row), (row, at)), shape=(rows, len(columns)))
    holds = sparse.csr_array(sparse.hstack([holds, sparse.eye_array(rows, dtype=np.int64)]))
    used = (kind == np.arange(len(task.costs))[:, None]).astype(np.int64)
    used = sparse.hstack([sparse.csr_array(-used), sparse.csr_array((len(task.costs), rows), dtype=np.int64)])
    parts = [holds, -holds, used] if task.exactly else [holds, used]
    least = [task.needed, -task.needed, -task.counts] if task.exactly else [task.needed, -task.counts]
    high = LEFT_OUT_PENALTY * max(int(task.costs.max(initial=0)), 1)
    return IntegerProgram(
        matrix=sparse.csr_array(sparse.vstack(parts)),
        least=np.concatenate(least),
        cost=np.concatenate([task.costs[kind], np.full(rows, high)]),
        upper=np.concatenate([np.minimum(task.counts[kind], task.needed.sum()), task.needed]),
        patterns=len(columns),
    )


def _row_prices(task: Task, duals: Floats) -> Floats:
    """The price of one instance of each row, from the dual prices of the leader."""
    rows = len(task.needed)
    return duals[:rows] - duals[rows : 2 * rows] if task.exactly else duals[:rows]


def _round_up(bound: float) -> int:
    return math.ceil(bound - BOUND_ROUNDING)
