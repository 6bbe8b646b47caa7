"""The dispersion of packets' distances, found from the p99 of their wait for a batch.

The time of n gaps is taken as gamma distributed with mean n and variance J n, in mean gaps; the wait of a packet is a
mixture over its positions in the batch.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.interpolate import RectBivariateSpline

Array = NDArray[np.float64]

QUANTILE = 0.99
DISPERSIONS = (1e-3, 1e3)
GRID = 31
"""Dispersions of the table of quantiles."""
BATCHES = (2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 16384, 65536)
"""Batches of the table of quantiles."""
POSITIONS = 64
"""Positions of packets in a batch that stand for all of a larger one."""
STEPS = 32


def p99_gaps(batch: Array, dispersion: Array) -> Array:
    """The p99 of the wait for batches of these sizes, in mean gaps, interpolated; 0 for a batch of one packet."""
    bounded = np.clip(np.log(dispersion), *np.log(DISPERSIONS))
    smooth = np.exp(_table()(np.log(np.clip(batch, BATCHES[0], BATCHES[-1])), bounded, grid=False))
    found: Array = np.where(batch < 2, 0.0, smooth * (batch - 1))
    return found


def dispersion_of(batch: int, gaps: float) -> float:
    """The dispersion at which the p99 of the wait, in mean gaps, is as measured; the nearest where there is none."""
    grid = np.geomspace(*DISPERSIONS, 4 * GRID)
    p99s = p99_gaps(np.full(len(grid), float(batch)), grid)
    highest = int(np.argmax(p99s))
    rising = np.maximum.accumulate(p99s[: highest + 1])
    return float(np.exp(np.interp(gaps, rising, np.log(grid[: highest + 1]))))


def exact_p99_gaps(batch: int, dispersion: float) -> float:
    """As `p99_gaps` for one batch, without the table: the quantile of a mixture of gamma distributions."""
    from scipy.special import gammainc

    gaps = np.arange(batch, dtype=np.float64)
    if batch > POSITIONS:
        gaps = (np.arange(POSITIONS) + 0.5) / POSITIONS * (batch - 1)
    shapes = gaps[gaps > 0] / dispersion
    at_once = int((gaps == 0).sum())
    low, high = 0.0, (batch - 1) * (1.0 + 20.0 * np.sqrt(dispersion / (batch - 1))) + 40.0 * dispersion
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        below = (gammainc(shapes, middle / dispersion).sum() + at_once) / len(gaps)
        low, high = (middle, high) if below < QUANTILE else (low, middle)
    return float(0.5 * (low + high))


@cache
def _table() -> RectBivariateSpline:
    """Logarithm of the p99 over the gaps of a whole batch, over the logarithms of batch and dispersion."""
    from scipy.interpolate import RectBivariateSpline

    dispersions = np.geomspace(*DISPERSIONS, GRID)
    values = [[exact_p99_gaps(batch, one) / (batch - 1) for one in dispersions.tolist()] for batch in BATCHES]
    return RectBivariateSpline(np.log(BATCHES), np.log(dispersions), np.log(np.maximum(values, 1e-6)), kx=3, ky=3)
