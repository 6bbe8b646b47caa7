"""How well a segment is explained: minus twice the logarithm of its evidence, less is better.

The noise of a segment is unknown, and near what is typical of the curve: its variance has an inverse gamma prior, so
that the points of a segment have Student's distribution. Unequal noise
then hides no breakpoint, and a few points that happen to fit well make none. Parameters cost as in BIC
(Schwarz 1978); a breakpoint costs more than the parameters beside it, because its place is chosen among many (Zhang &
Siegmund 2007).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.family import FAMILIES

Array = NDArray[np.float64]

BREAK_COST = 3.0
"""Of a breakpoint, in logarithms of the number of points."""
FREEDOM = 6.0
"""Degrees of freedom of the prior of a segment's noise: it is within a factor of two of what is typical, or nearly."""
RARE_COST = 4.0
"""Of families that are one over another, or of degree three and more: they are needed rarely."""


@dataclass(frozen=True)
class NoisePrior:
    """What is known of the noise of a segment: its typical variance, in units of the scale squared, and how sure."""

    variance: float
    freedom: float = FREEDOM

    def cost(self, squares: Array, points: NDArray[np.intp], size: int) -> Array:
        """Minus twice the logarithm of the evidence of segments of so many points, without the cost of parameters."""
        left = np.maximum(np.arange(int(points.max(initial=0)) + 1.0) - size, 0.0)
        half = (self.freedom + left) / 2
        gamma = np.array([math.lgamma(one) for one in half.tolist()]) - math.lgamma(self.freedom / 2)
        constant = left * np.log(self.variance * self.freedom / 2) - 2 * gamma
        fit = 2 * half[points] * np.log1p(squares / (self.freedom * self.variance))
        return np.asarray(fit + constant[points])

    def variance_of(self, squares: float, points: int, size: int) -> float:
        """The variance to expect of a segment, given its sum of squares."""
        return (self.freedom * self.variance + squares) / (self.freedom + max(points - size, 0))


@dataclass(frozen=True)
class SegmentEvidence:
    """The best family of every run of neighbouring points.

    Parameters
    ----------
    cost
        Minus twice the logarithm of the evidence, parameters included, shape (first point, last point).
    names
        The families.
    best
        Number of the best family, shape (first point, last point).
    """

    cost: Array
    names: tuple[str, ...]
    best: NDArray[np.intp]

    def family(self, first: int, last: int) -> str:
        """The best family from the first point to the last."""
        return self.names[int(self.best[first, last])]


def parameter_cost(family: str, points: int) -> float:
    """What the parameters of a family cost."""
    one = FAMILIES[family]
    return one.size * float(np.log(points)) + RARE_COST * (one.reciprocal + max(0, one.terms - 3))


def segment_evidence(tables: Mapping[str, Array], prior: NoisePrior, shortest: int) -> SegmentEvidence:
    """The evidence of every run of neighbouring points, from tables of residual sums of squares."""
    count = len(next(iter(tables.values())))
    first, last = np.triu_indices(count)
    lengths = last - first + 1
    least = np.full(len(first), np.inf)
    number_of_best = np.zeros(len(first), dtype=np.intp)
    for number, (name, table) in enumerate(tables.items()):
        size = FAMILIES[name].size
        long_enough = lengths >= max(shortest, size + 1)
        of_family = prior.cost(table[first, last], lengths, size) + parameter_cost(name, count)
        better = long_enough & (of_family < least)
        least[better], number_of_best[better] = of_family[better], number
    cost, best = np.full((count, count), np.inf), np.zeros((count, count), dtype=np.intp)
    cost[first, last], best[first, last] = least, number_of_best
    return SegmentEvidence(cost, tuple(tables), best)
