"""Where further points of a curve are worth most: where it bends or jumps by more than its noise. Without a model: at
each point, how far the curve is from the straight line through two others at both sides, on the scale of the axis. A
bend shows at the points beside it, a jump at both of its ends; on a straight curve, only noise does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median
from typing import Literal

import numpy as np

from profiles.arrays import Floats

SIGNIFICANT_SIGMAS = 3.0
"""A deviation counts from so many of its standard deviations on."""
LEAST_NOISE = 1e-4
"""Relative; a smaller one is not distinguished from none."""
TO_SIGMA = 1.4826
"""Standard deviation of a normal variable over the median of its absolute values."""
NARROWEST_INTERVAL = 1 / 8
"""The narrowest interval that is halved because the curve bends there, in even shares of the axis."""

NEIGHBOUR_DISTANCES = (1, 2, 4)
"""Through which neighbours lines are drawn: the next ones, and those that many places away."""

Runs = Mapping[float, Sequence[float]]
"""What was measured at each value of the varied key, one number a run."""


def further_points(axis: Axis, runs: Runs, count: int, planned: int) -> list[float]:
    """At most that many further values to measure, the most useful ones first. `axis`: the range. `runs`: what is
    measured so far. `count`: how many. `planned`: how many points the curve will have in all."""
    x = sorted(runs)
    left = [_Interval(axis, low, high) for low, high in pairwise(x)]
    scores = _scores(axis, runs) if len(x) > 2 else [0.0] * len(left)
    narrowest = NARROWEST_INTERVAL / planned
    bending = [
        (score * one.width, one)
        for score, one in zip(scores, left, strict=True)
        if score > 0 and one.width > narrowest and one.middle is not None
    ]
    bending.sort(key=lambda pair: -pair[0])
    chosen = [one for _, one in bending[:count]]
    wide = sorted((gap for gap in left if gap not in chosen and gap.middle is not None), key=lambda one: -one.width)
    chosen += wide[: count - len(chosen)]
    return [interval.middle for interval in chosen if interval.middle is not None]


class _Interval:
    """Two neighbouring values, and what lies between them."""

    def __init__(self, axis: Axis, low: float, high: float) -> None:
        self.width = axis.position(high) - axis.position(low)
        self.middle = axis.between(low, high)


def relative_noise(runs: Runs) -> float:
    """The relative standard deviation of one run: from repeats, else from how far points are from their neighbours."""
    apart = [
        abs(value - fmean(these)) / abs(fmean(these)) * math.sqrt(len(these) / (len(these) - 1))
        for these in runs.values()
        if len(these) > 1 and fmean(these)
        for value in these
    ]
    if not apart and len(runs) > 4:
        x = sorted(runs)
        y = np.array([fmean(runs[value]) for value in x])
        second = np.abs(y[:-2] - 2 * y[1:-1] + y[2:]) / np.maximum(np.abs(y[1:-1]), 1e-300)
        apart = (second / math.sqrt(6)).tolist()
    return max(TO_SIGMA * median(apart), LEAST_NOISE) if apart else LEAST_NOISE


def _scores(axis: Axis, runs: Runs) -> list[float]:
    """How much the curve bends or jumps in each interval, in standard deviations beyond what counts; 0 if not."""
    x = sorted(runs)
    at = np.array([axis.position(value) for value in x])
    y = np.array([median(runs[value]) for value in x])
    sigma = relative_noise(runs) * np.maximum(np.abs(y), 1e-300) / np.sqrt([len(runs[value]) for value in x])
    beyond = np.zeros(len(x))
    for apart in NEIGHBOUR_DISTANCES:
        if len(x) > 2 * apart:
            beyond[apart:-apart] += np.maximum(_deviations(at, y, sigma, apart) - SIGNIFICANT_SIGMAS, 0.0) / apart
    together: list[float] = (beyond[:-1] + beyond[1:]).tolist()
    return together


def _deviations(at: Floats, y: Floats, sigma: Floats, apart: int) -> Floats:
    """How far points are from the line through those `apart` places away, in standard deviations; shape (N - 2 apart,).
    Lines between distant points show a small bend, those between neighbours where it is."""
    left, middle, right = slice(None, -2 * apart), slice(apart, -apart), slice(2 * apart, None)
    share = (at[middle] - at[left]) / (at[right] - at[left])
    line = (1 - share) * y[left] + share * y[right]
    spread = np.sqrt(sigma[middle] ** 2 + ((1 - share) * sigma[left]) ** 2 + (share * sigma[right]) ** 2)
    deviations: Floats = np.abs(y[middle] - line) / spread
    return deviations


# The range of a varied key, even on a linear or logarithmic scale.


VALUE_DIGITS = 6
"""Significant digits of a value, more where the range is short beside its ends."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of one varied key."""

    start: float
    end: float
    """The ends, which are measured."""
    scale: Literal["linear", "log"] = "linear"
    """On which points are even."""
    whole: bool = False
    """Whether it holds whole numbers only."""

    def position(self, value: float) -> float:
        """Where a value is on the scale, 0 at the start and 1 at the end."""
        if self.scale == "log":
            return math.log(value / self.start) / math.log(self.end / self.start)
        return (value - self.start) / (self.end - self.start)

    def at(self, position: float) -> float:
        """The value at a position in [0, 1]."""
        if position in (0, 1):
            return self.end if position else self.start
        if self.scale == "log":
            value = self.start * (self.end / self.start) ** position
        else:
            value = self.start + (self.end - self.start) * position
        value = float(round(value)) if self.whole else float(f"{value:.{self._digits}g}")
        return min(max(value, self.start), self.end)

    def even(self, count: int) -> list[float]:
        """So many values or, of whole numbers, as many as there are; rising, with both ends, as even as they can be."""
        if self.whole and count > self.end - self.start:
            return [self.start + step for step in range(int(self.end - self.start) + 1)]
        found = {self.at(number / (count - 1)) for number in range(count)}
        while len(found) < count:  # several positions were rounded to one whole number
            ordered = sorted(found)
            pairs = [(self.position(b) - self.position(a), a, b) for a, b in pairwise(ordered)]
            halves = ((self.between(a, b), width) for width, a, b in sorted(pairs, reverse=True))
            found.add(next(half for half, _ in halves if half is not None))
        return sorted(found)

    def between(self, low: float, high: float) -> float | None:
        """The middle of two values on the scale; None where no value lies between them."""
        middle = self.at((self.position(low) + self.position(high)) / 2)
        if self.whole and middle in (low, high):
            middle = low + 1
        return middle if low < middle < high else None

    @property
    def _digits(self) -> int:
        largest = max(abs(self.start), abs(self.end))
        return VALUE_DIGITS + math.floor(math.log10(largest / (self.end - self.start)) + 1)
