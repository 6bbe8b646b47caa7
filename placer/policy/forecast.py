"""The forecast: which arrivals to expect, and what placing each of them is worth.

First fit leaves tight SLAs wherever they happened to land. Prices show which arrivals are hard to place: future
arrivals are assumed to be like the recent ones, and the integer program over patterns of such arrivals, relaxed to
fractions of NICs, has a dual price per arrival, high for tight SLAs and heavy NFs. The free capacity of a NIC is worth
what its future arrivals are expected to save at these prices; an arrival goes where it reduces that value least.

The prices of a single sample of arrivals are too extreme where patterns tie, so they are averaged over many samples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from placer.policy.kernels import Floats, Forecast
from placer.policy.pattern_table import PatternTable

Columns = NDArray[np.intp]

SAMPLES = 48
ARRIVALS_AHEAD = 30
THRESHOLDS = 16


def uniform_forecast(table: PatternTable, recent: Sequence[tuple[int, float]]) -> Forecast:
    """All workloads are equally likely and every SLA is met; each is worth the share of a NIC's cores that it takes."""
    width = len(table.workloads)
    return Forecast(np.full(width, 1 / max(width, 1)), (table.counts > 0).astype(np.float64), _core_shares(table))


def recent_arrivals_forecast(table: PatternTable, recent: Sequence[tuple[int, float]]) -> Forecast | None:
    """Future arrivals are like the recent ones; None where none of those could run even alone.

    Parameters
    ----------
    table
        All patterns of one kind of NIC.
    recent
        Recent arrivals: the column of the workload, and the throughput (kpps) that it requires on this kind.
    """
    columns = np.array([column for column, _ in recent], dtype=np.intp)
    required = np.array([kpps for _, kpps in recent])
    alone = required <= table.solo[columns] if len(columns) else np.zeros(0, dtype=bool)
    columns, required = columns[alone], required[alone]
    if not len(columns):
        return None
    prices = arrival_prices(table, columns, required)
    arrival_share = np.bincount(columns, minlength=len(table.workloads)) / len(columns)
    sla_share, value = np.zeros(table.kpps.shape), _core_shares(table)
    for column in np.unique(columns):
        mine = np.flatnonzero(columns == column)
        mine = mine[np.argsort(required[mine], kind="stable")]
        met = np.searchsorted(required[mine], table.kpps[:, column], side="right")
        sla_share[:, column] = met / len(mine)
        if prices is not None:
            saved = np.concatenate([[0.0], np.cumsum(prices[mine])])
            value[:, column] = saved[met] / np.maximum(met, 1)
    return Forecast(arrival_share, np.where(table.counts > 0, sla_share, 0.0), value)


def arrival_prices(table: PatternTable, columns: Columns, required: Floats) -> Floats | None:
    """The share of a NIC that each arrival takes in an optimal placement, averaged over samples of the arrivals."""
    present = np.zeros(len(table.workloads), dtype=bool)
    present[columns] = True
    useful = (table.counts > 0).any(axis=1) & ~((table.counts > 0) & ~present).any(axis=1)
    counts, kpps = table.counts[useful].astype(np.float64), table.kpps[useful]
    random = np.random.default_rng(len(columns))
    total, found = np.zeros(len(columns)), 0
    for _ in range(SAMPLES):
        sampled = random.integers(len(columns), size=ARRIVALS_AHEAD)
        duals = _duals(counts, kpps, columns[sampled], required[sampled])
        if duals is not None:
            found += 1
            for column, threshold, dual in duals:
                total[(columns == column) & (required >= threshold)] += dual
    return total / found if found else None


def _core_shares(table: PatternTable) -> Floats:
    cores = [table.kind.cores_of[workload.nf] / table.kind.cores for workload in table.workloads]
    return np.tile(np.array(cores), (len(table.counts), 1))


def _duals(counts: Floats, kpps: Floats, columns: Columns, required: Floats) -> list[tuple[int, float, float]] | None:
    """Dual prices by column and threshold of the relaxed program: min sum x, with enough slots above each threshold."""
    rows, needed, thresholds = [], [], []
    for column in np.unique(columns).tolist():
        mine = np.sort(required[columns == column])
        for threshold in np.unique(np.quantile(mine, np.linspace(0, 1, THRESHOLDS), method="lower")).tolist():
            rows.append(np.where(kpps[:, column] >= threshold, counts[:, column], 0.0))
            needed.append(len(mine) - float(np.searchsorted(mine, threshold, side="left")))
            thresholds.append((column, threshold))
    # for so small a program presolving takes longer than the simplex method itself
    solved = linprog(
        np.ones(len(counts)), A_ub=-np.array(rows), b_ub=-np.array(needed), method="highs", options={"presolve": False}
    )
    if solved.x is None:
        return None
    duals = (-solved.ineqlin.marginals).tolist()
    return [(column, threshold, dual) for (column, threshold), dual in zip(thresholds, duals, strict=True)]
