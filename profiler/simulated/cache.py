"""Caches with random replacement, shared by access pressure.

A line that is touched at rate q stays for a mean time T after it was brought in, so it is found with probability
qT / (1 + qT). T is the same for all lines and such that the lines present fill the cache (the characteristic time
approximation of Che, Tung and Wang, here for random replacement). A structure that is touched more often therefore
holds more lines.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NEWTON_STEPS_ALONE = 30
LEAST = 1e-300


def private_hits(lines: Sequence[float], accesses: Sequence[float], capacity: float) -> list[float]:
    """Share of the accesses to each structure that hit a cache of `capacity` lines; only ratios of accesses count."""
    if sum(lines) <= capacity:
        return [1.0] * len(lines)
    pressure = 0.0
    for _ in range(NEWTON_STEPS_ALONE):
        held = slope = 0.0
        for n, a in zip(lines, accesses, strict=True):
            if n > 0 and a > 0:
                share = a / (n * pressure + a)
                held += n * share
                slope += n * n * share * share / a
        if held <= capacity:
            break
        pressure += (held / capacity - 1) * held / slope
    return [a / (n * pressure + a) if a > 0 else 0.0 for n, a in zip(lines, accesses, strict=True)]


def pressure_step(pressure: Array, lines: Array, rates: Array, capacity: float) -> Array:
    """One Newton step towards the replacement pressure 1/T (1/us) at which the lines held fill the cache.

    The reciprocal of the number of lines held is concave in the pressure, and a straight line for one structure, so the
    step never passes the solution from below, and from above it ends below.

    Parameters
    ----------
    pressure
        Shape (batch,).
    lines, rates
        Size in lines and accesses/us of each structure, shape (structures, batch).
    """
    share = hits(pressure, lines, rates)
    present = lines * share
    held = functools.reduce(np.add, present)
    slope = functools.reduce(np.add, present**2 / rates)
    step: Array = np.maximum(pressure + (held / capacity - 1) * held / np.maximum(slope, LEAST), 0.0)
    return step


def hits(pressure: Array, lines: Array, rates: Array) -> Array:
    """Share of the accesses that hit the cache; shapes as in `pressure_step`."""
    share: Array = rates / (lines * pressure + rates)
    return share
