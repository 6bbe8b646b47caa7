"""The outlook: who is likely to come, and what room for each is worth.

First fit fills a NIC with whom it happens to meet, and tight SLAs end up where only they were in the way. Which of the
arrivals are hard to place is told by prices: those to come are taken to be like those of late, and the pattern program
of such arrivals, relaxed to fractions of NICs, has a dual price for every arrival; who is tight or heavy has a high
one. A room is worth what it can expect to earn at these prices from those who come by, one after another, if it takes
only whom it gains by. The arrival goes where it takes least of that away.

The prices of one forecast are too sharp where patterns tie, so they are averaged over resampled forecasts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from placer.policy.patterns import Floats, Patterns

Ints = NDArray[np.intp]

FORECASTS = 48
ARRIVALS_AHEAD = 30
THRESHOLDS = 16


@dataclass(frozen=True)
class Forecast:
    """Who will come.

    Parameters
    ----------
    likely
        Share of each workload among newcomers, shape (workloads,).
    bears
        Share of a workload's instances that keep their SLA in a pattern, shape (patterns, workloads).
    rewards
        What one of those is worth there on average, in NICs; shape of `bears`.
    """

    likely: Floats
    bears: Floats
    rewards: Floats


def uniform_forecast(patterns: Patterns, seen: Sequence[tuple[int, float]]) -> Forecast:
    """All workloads alike, with any SLA; each is worth the share of a NIC's cores that it puts to use."""
    width = len(patterns.workloads)
    return Forecast(np.full(width, 1 / max(width, 1)), (patterns.counts > 0).astype(np.float64), _shares(patterns))


def recent_arrivals_forecast(patterns: Patterns, seen: Sequence[tuple[int, float]]) -> Forecast | None:
    """Arrivals like those of late; None where nothing can be foreseen.

    Parameters
    ----------
    patterns
        All companies of one kind of NIC.
    seen
        Arrivals of late: the column of the workload, and the throughput (kpps) that it requires there.
    """
    columns = np.array([column for column, _ in seen], dtype=np.intp)
    required = np.array([kpps for _, kpps in seen])
    alone = required <= patterns.solo[columns] if len(columns) else np.zeros(0, dtype=bool)
    columns, required = columns[alone], required[alone]
    if not len(columns):
        return None
    prices = arrival_prices(patterns, columns, required)
    likely = np.bincount(columns, minlength=len(patterns.workloads)) / len(columns)
    bears, rewards = np.zeros(patterns.kpps.shape), _shares(patterns)
    for column in np.unique(columns):
        mine = np.flatnonzero(columns == column)
        mine = mine[np.argsort(required[mine], kind="stable")]
        able = np.searchsorted(required[mine], patterns.kpps[:, column], side="right")
        bears[:, column] = able / len(mine)
        if prices is not None:
            earned = np.concatenate([[0.0], np.cumsum(prices[mine])])
            rewards[:, column] = earned[able] / np.maximum(able, 1)
    return Forecast(likely, np.where(patterns.counts > 0, bears, 0.0), rewards)


def arrival_prices(patterns: Patterns, columns: Ints, required: Floats) -> Floats | None:
    """What each arrival takes of a NIC where all are placed at their best, averaged over forecasts."""
    likely = np.zeros(len(patterns.workloads), dtype=bool)
    likely[columns] = True
    useful = (patterns.counts > 0).any(axis=1) & ~((patterns.counts > 0) & ~likely).any(axis=1)
    counts, kpps = patterns.counts[useful].astype(np.float64), patterns.kpps[useful]
    draw = np.random.default_rng(len(columns))
    total, found = np.zeros(len(columns)), 0
    for _ in range(FORECASTS):
        drawn = draw.integers(len(columns), size=ARRIVALS_AHEAD)
        duals = _duals(counts, kpps, columns[drawn], required[drawn])
        if duals is not None:
            found += 1
            for column, threshold, dual in duals:
                total[(columns == column) & (required >= threshold)] += dual
    return total / found if found else None


def _shares(patterns: Patterns) -> Floats:
    cores = [patterns.kind.cores_of[workload.nf] / patterns.kind.cores for workload in patterns.workloads]
    return np.tile(np.array(cores), (len(patterns.counts), 1))


def _duals(counts: Floats, kpps: Floats, columns: Ints, required: Floats) -> list[tuple[int, float, float]] | None:
    """Dual prices of the relaxed program: min sum x, slots of d kpps or more for all who require them."""
    rows, needed, places = [], [], []
    for column in np.unique(columns).tolist():
        mine = np.sort(required[columns == column])
        for threshold in np.unique(np.quantile(mine, np.linspace(0, 1, THRESHOLDS), method="lower")).tolist():
            rows.append(np.where(kpps[:, column] >= threshold, counts[:, column], 0.0))
            needed.append(len(mine) - float(np.searchsorted(mine, threshold, side="left")))
            places.append((column, threshold))
    # for so small a program presolving takes longer than the simplex method itself
    solved = linprog(
        np.ones(len(counts)), A_ub=-np.array(rows), b_ub=-np.array(needed), method="highs", options={"presolve": False}
    )
    if solved.x is None:
        return None
    duals = (-solved.ineqlin.marginals).tolist()
    return [(column, threshold, dual) for (column, threshold), dual in zip(places, duals, strict=True)]
