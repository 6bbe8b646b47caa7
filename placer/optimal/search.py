"""The search for a proven solution of the pattern program."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placer.optimal.demand import Floats, Ints
from placer.optimal.program import Program
from placer.optimal.solvers import integers, relaxation

NEARLY = 1e-6
"""A variable of the relaxation this close to a whole number is one."""

NARROW = (0, 2)
"""How far from the relaxation's whole part each variable may move in the first searches; the last one is unlimited."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A feasible solution of a program and a proven bound on its cost."""

    values: Ints
    cost: int
    bound: int

    @property
    def proven(self) -> bool:
        """Whether nothing can cost less."""
        return self.cost <= self.bound


def solve(program: Program, start: Ints, *, solver: str, deadline: float) -> Solution:
    """The best solution found until `deadline` (of `time.monotonic`), no worse than the feasible `start`.

    The relaxation gives the bound. It also says roughly how often each pattern is used, so most of its whole part is
    kept at first and the integer solver distributes the rest: with a million tenants as with a few hundred. Only the
    last search, which keeps nothing, may raise the bound.
    """
    relaxed = relaxation(program, deadline - time.monotonic())
    best = Solution(start, int(start @ program.cost), relaxed.bound)
    if relaxed.values is not None:
        best = _better(program, best, np.ceil(relaxed.values - NEARLY).astype(np.int64))
    for lower in _kept(program, relaxed.values):
        remaining = deadline - time.monotonic()
        if best.proven or remaining <= 0:
            break
        whole = not lower.any()
        found = integers(
            program,
            lower,
            program.upper,
            bound=best.bound,
            start=best.values if program.is_feasible(best.values) and np.all(best.values >= lower) else None,
            solver=solver,
            seconds=remaining if whole else remaining / 4,
        )
        if found.values is not None:
            best = _better(program, best, found.values)
        if whole:
            best = Solution(best.values, best.cost, min(best.cost, max(best.bound, found.bound)))
    return best


def _better(program: Program, best: Solution, values: Ints) -> Solution:
    cost = int(values @ program.cost)
    return Solution(values, cost, best.bound) if cost < best.cost and program.is_feasible(values) else best


def _kept(program: Program, relaxed: Floats | None) -> Iterator[Ints]:
    """Lower limits of the variables for one search after the other, the last of them zero."""
    previous = np.zeros_like(program.upper)
    if relaxed is not None:
        for distance in NARROW:
            lower = np.maximum(np.floor(relaxed + NEARLY).astype(np.int64) - distance, 0)
            if lower.sum() > len(program.least) and not np.array_equal(lower, previous):
                yield lower
                previous = lower
    yield np.zeros_like(program.upper)
