"""The outlook: what the room that is left on a NIC is worth, to those who are likely to come.

First fit fills a NIC with whom it happens to meet, and tight SLAs end up where only they were in the way. Which room is
scarce is told by prices. The arrivals to come are taken to be like those of late; the pattern program of such arrivals,
relaxed to fractions of NICs, has a dual price for every slot (workload, drop). A NIC then is worth the most that its
tenants leave to be earned: the best pattern that contains them and breaks none of their SLAs, at the prices of the
other slots. An empty NIC is worth its cost. The arrival goes where it takes least of that away.

The prices of one forecast are too sharp where patterns tie, so they are averaged over resampled forecasts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog

from placer.online.patterns import Floats, Patterns

FORECASTS = 48
ARRIVALS_AHEAD = 30
THRESHOLDS = 16


def slot_prices(patterns: Patterns, seen: Sequence[tuple[int, float]]) -> Floats | None:
    """Worth of each slot in units of a NIC, shape (patterns, workloads); None where nothing can be foreseen.

    Parameters
    ----------
    patterns
        All companies of one kind of NIC.
    seen
        Arrivals of late: the column of the workload, and the drop (fraction) that it bears there.
    """
    borne = [(column, bears) for column, bears in seen if bears >= 0]
    if not borne:
        return None
    present = patterns.counts > 0
    drops = np.where(present, 1.0 - patterns.kpps / np.maximum(patterns.solo, 1e-12), np.inf)
    loosest = max(bears for _, bears in borne)
    likely = sorted({column for column, _ in borne})
    unlikely = np.ones(drops.shape[1], dtype=bool)
    unlikely[likely] = False
    useful = ~(present & ((drops > loosest) | unlikely)).any(axis=1) & present.any(axis=1)
    if not useful.any():
        return None
    counts, drops = patterns.counts[useful].astype(np.float64), np.maximum(drops[useful], 0.0)
    draw = np.random.default_rng(len(borne))
    forecasts = [draw.integers(len(borne), size=ARRIVALS_AHEAD) for _ in range(FORECASTS)]
    solved = [_prices(counts, drops, [borne[i] for i in forecast]) for forecast in forecasts]
    found = [prices for prices in solved if prices is not None]
    if not found:
        return None
    mean: Floats = np.mean(found, axis=0)
    prices = np.zeros(patterns.kpps.shape)
    prices[useful] = mean / max(float((mean * counts).sum(axis=1).max()), 1e-9)
    return prices


def _prices(counts: Floats, drops: Floats, forecast: Sequence[tuple[int, float]]) -> Floats | None:
    """Dual prices of the relaxed program: min sum x, slots of drop <= d no fewer than arrivals that bear <= d."""
    rows, needed, places = [], [], []
    for column in range(counts.shape[1]):
        bears = np.sort([bear for at, bear in forecast if at == column])
        if not len(bears):
            continue
        for threshold in np.unique(np.quantile(bears, np.linspace(0, 1, THRESHOLDS), method="higher")):
            rows.append(np.where(drops[:, column] <= threshold, counts[:, column], 0.0))
            needed.append(float(np.searchsorted(bears, threshold, side="right")))
            places.append((column, threshold))
    # for so small a program presolving takes longer than the simplex method itself
    solved = linprog(
        np.ones(len(counts)), A_ub=-np.array(rows), b_ub=-np.array(needed), method="highs", options={"presolve": False}
    )
    if solved.x is None:
        return None
    prices = np.zeros(drops.shape)
    for (column, threshold), dual in zip(places, -solved.ineqlin.marginals, strict=True):
        prices[:, column] += np.where(drops[:, column] <= threshold, dual, 0.0)
    return prices
