"""Where further points of a curve are worth most: where it bends or jumps by more than its noise.

Without a model: at each point, how far the curve is from the straight line through two others at both sides, on the
scale of the axis. A bend shows at the points beside it, a jump at both of its ends; on a straight curve, only noise
does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from profiler.sweeps.axis import Axis

SIGMAS = 3.0
"""A deviation counts from so many of its standard deviations on."""
LEAST_NOISE = 1e-4
"""Relative; a smaller one is not distinguished from none."""
TO_SIGMA = 1.4826
"""Standard deviation of a normal variable over the median of its absolute values."""
NARROWEST = 1 / 8
"""The narrowest interval that is halved because the curve bends there, in even shares of the axis."""

APART = (1, 2, 4)
"""Through which neighbours lines are drawn: the next ones, and those that many places away."""

Array = NDArray[np.float64]
Runs = Mapping[float, Sequence[float]]
"""What was measured at each value of the varied key, one number a run."""


def further_points(axis: Axis, runs: Runs, count: int, planned: int) -> list[float]:
    """At most that many further values to measure, the most useful ones first.

    Parameters
    ----------
    axis
        The range.
    runs
        What is measured so far.
    count
        How many.
    planned
        How many points the curve will have in all.
    """
    x = sorted(runs)
    left = [_Interval(axis, low, high) for low, high in pairwise(x)]
    scores = _scores(axis, runs) if len(x) > 2 else [0.0] * len(left)
    narrowest = NARROWEST / planned
    bending = [
        (score * one.width, one)
        for score, one in zip(scores, left, strict=True)
        if score > 0 and one.width > narrowest and one.middle is not None
    ]
    bending.sort(key=lambda pair: -pair[0])
    chosen = [one for _, one in bending[:count]]
    wide = sorted((one for one in left if one not in chosen and one.middle is not None), key=lambda one: -one.width)
    chosen += wide[: count - len(chosen)]
    return [one.middle for one in chosen if one.middle is not None]


class _Interval:
    """Two neighbouring values, and what lies between them."""

    def __init__(self, axis: Axis, low: float, high: float) -> None:
        self.width = axis.position(high) - axis.position(low)
        self.middle = axis.between(low, high)


def relative_noise(runs: Runs) -> float:
    """The relative standard deviation of one run: from repeats, else from how far points are from their neighbours."""
    apart = [
        abs(one - fmean(these)) / abs(fmean(these)) * math.sqrt(len(these) / (len(these) - 1))
        for these in runs.values()
        if len(these) > 1 and fmean(these)
        for one in these
    ]
    if not apart and len(runs) > 4:
        x = sorted(runs)
        y = np.array([fmean(runs[one]) for one in x])
        second = np.abs(y[:-2] - 2 * y[1:-1] + y[2:]) / np.maximum(np.abs(y[1:-1]), 1e-300)
        apart = (second / math.sqrt(6)).tolist()
    return max(TO_SIGMA * median(apart), LEAST_NOISE) if apart else LEAST_NOISE


def _scores(axis: Axis, runs: Runs) -> list[float]:
    """How much the curve bends or jumps in each interval, in standard deviations beyond what counts; 0 if not."""
    x = sorted(runs)
    at = np.array([axis.position(one) for one in x])
    y = np.array([median(runs[one]) for one in x])
    sigma = relative_noise(runs) * np.maximum(np.abs(y), 1e-300) / np.sqrt([len(runs[one]) for one in x])
    beyond = np.zeros(len(x))
    for apart in APART:
        if len(x) > 2 * apart:
            beyond[apart:-apart] += np.maximum(_deviations(at, y, sigma, apart) - SIGMAS, 0.0) / apart
    together: list[float] = (beyond[:-1] + beyond[1:]).tolist()
    return together


def _deviations(at: Array, y: Array, sigma: Array, apart: int) -> Array:
    """How far points are from the line through those `apart` places away, in standard deviations; shape (N - 2 apart,).

    Lines between distant points show a small bend, those between neighbours where it is.
    """
    left, middle, right = slice(None, -2 * apart), slice(apart, -apart), slice(2 * apart, None)
    share = (at[middle] - at[left]) / (at[right] - at[left])
    line = (1 - share) * y[left] + share * y[right]
    spread = np.sqrt(sigma[middle] ** 2 + ((1 - share) * sigma[left]) ** 2 + (share * sigma[right]) ** 2)
    deviations: Array = np.abs(y[middle] - line) / spread
    return deviations
