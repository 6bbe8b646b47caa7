"""The dual simplex method, against the solver of SciPy."""

import numpy as np
from scipy.optimize import linprog

from placer.policy.dual_simplex import OpenClass, PatternProgram
from placer.policy.pattern_table import PatternTable
from placer.testing.strategies import CORES_BY_NF, TOY_TRAFFIC, ToyOracle, catalogue
from profiles import Workload

LEVELS = 6


def _table() -> PatternTable:
    return PatternTable(catalogue((None, 1.0)).kinds[0], [Workload(nf, TOY_TRAFFIC) for nf in CORES_BY_NF], ToyOracle())


def _levels(table: PatternTable) -> np.ndarray:
    shares = np.linspace(0.5, 1.0, LEVELS)
    level = [np.searchsorted(shares, row / table.solo + 1e-9, side="right") - 1 for row in table.kpps]
    return np.array(level, dtype=np.int32)


def _cheapest(table: PatternTable, level: np.ndarray, classes: list[OpenClass], drawn: np.ndarray) -> float:
    """The fewest NICs, in parts, that must be opened."""
    needed = np.cumsum(drawn[:, ::-1], axis=1)[:, ::-1].ravel()
    before = np.concatenate([[0] * len(table.counts), *([one.pattern] * len(one.reachable) for one in classes)]).astype(
        int
    )
    after = np.concatenate([np.arange(len(table.counts)), *(one.reachable for one in classes)])
    owner = np.concatenate([[-1] * len(table.counts), *([at] * len(one.reachable) for at, one in enumerate(classes))])
    slots = [
        np.where(level[after, column] >= step, table.counts[after, column] - table.counts[before, column], 0)
        for column in range(len(table.workloads)) for step in range(LEVELS)
    ]  # fmt: skip
    taken = [owner == at for at in range(len(classes))]
    limits = np.array([*(-one for one in np.array(slots)), *taken], dtype=float)
    return float(linprog(owner < 0, A_ub=limits, b_ub=[*-needed, *(one.nics for one in classes)], method="highs").fun)


def test_the_optimum_is_that_of_another_solver() -> None:
    """Prices times demand is what the slots of a relaxed placement cost, for one demand after another."""
    table = _table()
    level = _levels(table)
    program = PatternProgram(table.counts, table.members, LEVELS)
    program.restart(level)
    random = np.random.default_rng(0)
    for _ in range(10):
        drawn = random.integers(0, 9, size=(len(table.workloads), LEVELS)).astype(float)
        program.demand(drawn)
        assert program.pivot(1_000) > 0
        prices = program.prices()
        assert np.isclose((prices * drawn).sum(), _cheapest(table, level, [], drawn), rtol=1e-3)
        worth = np.where(level >= 0, np.take_along_axis(prices.T, np.maximum(level, 0), axis=0), 0.0)
        assert (worth * table.counts).sum(axis=1).max() <= 1.001


def test_open_nics_are_counted_as_by_another_solver() -> None:
    """Prices times demand, less what the free capacity of the open NICs is worth, is what new NICs cost."""
    table = _table()
    level = _levels(table)
    program = PatternProgram(table.counts, table.members, LEVELS)
    random = np.random.default_rng(1)
    for number in range(1, 8):
        classes = []
        for pattern in random.choice(len(table.counts), size=number, replace=False).tolist():
            above = table.above(pattern)
            above = above[above != pattern].astype(np.intp)
            if len(above):
                classes.append(OpenClass(pattern, above, int(random.integers(1, 6))))
        drawn = random.integers(0, 5, size=(len(table.workloads), LEVELS)).astype(float)
        program.restart(level, classes)
        program.demand(drawn)
        assert program.pivot(5_000) > 0
        prices = program.prices()
        worth = np.where(level >= 0, np.take_along_axis(prices.T, np.maximum(level, 0), axis=0), 0.0)
        free = 0.0
        for one in classes:
            added = table.counts[one.reachable] - table.counts[one.pattern]
            free += one.nics * max(0.0, float((worth[one.reachable] * added).sum(axis=1).max()))
        assert np.isclose((prices * drawn).sum() - free, _cheapest(table, level, classes, drawn), atol=0.02)
