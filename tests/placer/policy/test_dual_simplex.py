"""The dual simplex method, against the solver of SciPy."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from placer.policy.dual_simplex import PatternProgram
from placer.policy.pattern_table import PatternTable
from placer.testing.toy import CORES, TRAFFIC, ToyOracle, catalogue
from profiles import Workload

LEVELS = 6


def test_the_optimum_is_that_of_another_solver() -> None:
    """Prices times demand is what the slots of a relaxed placement cost, for one demand after another."""
    kind = catalogue((None, 1.0)).kinds[0]
    table = PatternTable(kind, [Workload(nf, TRAFFIC) for nf in CORES], ToyOracle())
    shares = np.linspace(0.5, 1.0, LEVELS)
    level = np.array([np.searchsorted(shares, row / table.solo + 1e-9, side="right") - 1 for row in table.kpps])
    program = PatternProgram(table.counts, table.members, LEVELS)
    program.restart(level.astype(np.int32))
    random = np.random.default_rng(0)
    for _ in range(10):
        drawn = random.integers(0, 9, size=(len(table.workloads), LEVELS)).astype(float)
        needed = np.cumsum(drawn[:, ::-1], axis=1)[:, ::-1]
        program.demand(drawn)
        assert program.pivot(1_000) > 0
        prices = program.prices()
        slots = [
            np.where(level[:, column] >= step, table.counts[:, column], 0)
            for column in range(len(table.workloads)) for step in range(LEVELS)
        ]  # fmt: skip
        other = linprog(np.ones(len(table.counts)), A_ub=-np.array(slots), b_ub=-needed.ravel(), method="highs")
        assert np.isclose((prices * drawn).sum(), other.fun, rtol=1e-3)
        worth = np.where(level >= 0, np.take_along_axis(prices.T, np.maximum(level, 0), axis=0), 0.0)
        assert (worth * table.counts).sum(axis=1).max() <= 1.001
