"""The noise of a run, by repeats."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

NOISE = 0.01
"""Relative standard deviation of a run that is assumed before anything was repeated."""
ASSUMED = 4
"""The weight of that assumption, in repeats: few repeats that happen to agree do not make noise vanish."""


def noise_of_a_run(logarithms: Iterable[NDArray[np.float64]]) -> float:
    """Relative standard deviation of a run, of all co-locations together.

    Parameters
    ----------
    logarithms
        Per co-location the logarithms of its throughputs, shape (runs, members).
    """
    squares, repeats = [ASSUMED * NOISE**2], ASSUMED
    for runs in logarithms:
        if len(runs) > 1:
            squares.append(float(((runs - runs.mean(axis=0)) ** 2).mean(axis=1).sum()))
            repeats += len(runs) - 1
    return math.sqrt(math.fsum(squares) / repeats)
