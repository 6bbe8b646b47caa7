"""The search for a proven solution of the pattern program."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from placer.optimal.arrays import Ints
from placer.optimal.program import IntegerProgram, WeakDuality
from placer.optimal.solvers import Relaxation, relaxation, solve_integers

NEARLY = 1e-6
"""A variable of the relaxation this close to a whole number is one."""

SLACKS = (0, 1)
"""How far below the relaxation's whole part each variable may go in brief searches."""

FEW = (2_000, 20_000)
"""Where there are more variables, as many as these of lowest reduced cost are tried first."""

SHARE = 0.5
"""Share of the remaining time for the search at the bound; the rest is for a search above it."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A feasible solution of a program, a proven bound on its cost, and the prices of the relaxation's bound."""

    values: Ints
    cost: int
    bound: int
    proof: WeakDuality

    @property
    def proven(self) -> bool:
        """Whether no solution costs less."""
        return self.cost <= self.bound


def solve(program: IntegerProgram, start: Ints, *, solver: str, deadline: float) -> Solution:
    """The best solution found until `deadline` (of `time.monotonic`), no worse than the feasible `start`.

    The bound from the relaxation is mostly the optimum itself, so the search looks for a solution of just that cost.
    First briefly, with most of the relaxation's whole part fixed: the rest is small even with a million tenants. Then
    in full; if there is no such solution, the bound rises, and the next search allows one NIC more, then two, then
    four. A NIC may cost many units, and a search for each unit would take long.
    """
    relaxed = relaxation(program, deadline - time.monotonic(), start)
    best = Solution(start, int(start @ program.cost), relaxed.proof.bound, relaxed.proof)
    if relaxed.values is None:
        return best
    best = _better(program, best, np.ceil(relaxed.values - NEARLY).astype(np.int64))
    whole = np.floor(relaxed.values + NEARLY).astype(np.int64)
    none_fixed = np.zeros_like(whole)
    target, above = best.bound - 1, 0
    while not best.proven and best.bound > target:
        target, above = best.bound + above, 2 * above or _least_cost(program) - 1
        for few in FEW:
            if few < len(whole):
                best = _attempt(program, relaxed, best, target, none_fixed, solver, deadline, few=few)
        for slack in SLACKS:
            best = _attempt(program, relaxed, best, target, np.maximum(whole - slack, 0), solver, deadline)
        best = _attempt(program, relaxed, best, target, none_fixed, solver, deadline)
    return _attempt(program, relaxed, best, best.cost - 1, none_fixed, solver, deadline)


def _attempt(
    program: IntegerProgram,
    relaxed: Relaxation,
    best: Solution,
    target: int,
    lower: Ints,
    solver: str,
    deadline: float,
    few: int | None = None,
) -> Solution:
    """Search for the best solution that costs at most `target`, with all variables that it could use or with a few.

    If no variable is fixed or left out and there is no such solution, the bound rises.
    """
    last = target >= best.cost - 1
    target = min(target, best.cost - 1)
    remaining = deadline - time.monotonic()
    if best.proven or remaining <= 0:
        return best
    upper = relaxed.proof.limits(program, target)
    if few is not None:
        upper[_most_promising_first(program, relaxed)[few:]] = 0
    if np.any(lower > upper):
        return best
    whole = few is None and not lower.any()
    found = solve_integers(
        program.costing_at_most(target),
        lower,
        upper,
        start=best.values,
        solver=solver,
        seconds=remaining if last and whole else SHARE * remaining,
        briefly=not whole,
    )
    if found.values is not None:
        best = _better(program, best, found.values)
    if found.complete and whole:
        best = replace(best, bound=max(best.bound, best.cost if best.cost <= target else target + 1))
    return best


def _least_cost(program: IntegerProgram) -> int:
    """The lowest cost of a variable, above 0."""
    return int(np.min(program.cost[program.cost > 0], initial=program.cost.max(initial=1)))


def _most_promising_first(program: IntegerProgram, relaxed: Relaxation) -> Ints:
    """The variables by reduced cost; of those nearly equal, by how much they add to the rows."""
    adds = program.matrix.sum(axis=0)
    order = np.lexsort((-adds, np.round(relaxed.proof.reduced, 2)))
    return np.concatenate([np.arange(program.patterns, len(order)), order[order < program.patterns]])


def _better(program: IntegerProgram, best: Solution, values: Ints) -> Solution:
    cost = int(values @ program.cost)
    return replace(best, values=values, cost=cost) if cost < best.cost and program.is_feasible(values) else best
