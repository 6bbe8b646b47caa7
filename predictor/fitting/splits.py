"""Number and places of segments: an exact dynamic program over all ways to split the points."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.family import FAMILIES
from predictor.fitting.points import ENOUGH_FREEDOM, FitPoints
from profiles.arrays import Floats

SEGMENTS_AHEAD = 4  # numbers of segments that are tried beyond the best
NOISE_ROUNDS = 6  # of splitting and estimating the noise again
SETTLED_NOISE = 1e-3
QUIET_SHARE = 0.3  # share of the neighbours that agree, where others differ by steps
STEPS_COST_PER_POINT, MOST_STEPS_COST = 0.5, 15.0
"""Of a variance that most neighbours do not show, by its logarithm: by the number of points, and the most."""
UNEXPLAINED_COST = 5.0  # of a variance that repeats do not show, by its logarithm
SURELY_MORE_NOISE = 4.0  # ratio of variances


@dataclass(frozen=True)
class CurveSplit:
    """Runs of neighbouring points, each with its family."""

    starts: tuple[int, ...]  # numbers of the first points of the segments; the first is 0
    families: tuple[str, ...]  # of each segment
    cost: float  # minus twice the logarithm of the evidence, breakpoints included

    def ends(self, count: int) -> tuple[int, ...]:
        """Numbers behind the last points of the segments, of `count` points."""
        return (*self.starts[1:], count)


@dataclass(frozen=True)
class CurveSplits:
    """The best split for each number of segments, and what they rest on."""

    by_count: tuple[CurveSplit, ...]
    evidence: SegmentEvidence
    prior: NoisePrior

    @property
    def best(self) -> CurveSplit:
        """The split of least cost."""
        return min(self.by_count, key=lambda split: split.cost)


def best_splits(points: FitPoints, tables: Mapping[str, Floats], *, quiet: bool = False) -> CurveSplits:
    """The best splits, with the typical noise estimated from the best of them. `quiet`: whether the search begins only
    with the noise that repeats or most neighbours show."""
    repeats, known = points.noise_of_repeats()
    floor = max(repeats if known >= ENOUGH_FREEDOM else 0.0, points.noise_of_rounding(), points.resolved_noise())
    begin, agreed = (max(points.noise_of_neighbours(share), floor) for share in (0.5, QUIET_SHARE))
    least = floor if points.noise_known else agreed
    if quiet:
        return _splits_from(points, tables, least, floor)
    found = _splits_from(points, tables, begin, floor)
    if max(found.prior.variance, begin) > SURELY_MORE_NOISE * least:  # neighbours may differ by steps
        per_point = min(len(points) * STEPS_COST_PER_POINT, MOST_STEPS_COST)

        def cost(splits: CurveSplits) -> float:
            beyond = per_point * max(float(np.log(splits.prior.variance / agreed)), 0.0)
            return splits.best.cost + beyond + UNEXPLAINED_COST * float(np.log(splits.prior.variance / least))

        found = min(_splits_from(points, tables, least, floor), found, key=cost)
    return found


def _splits_from(points: FitPoints, tables: Mapping[str, Floats], begin: float, floor: float) -> CurveSplits:
    """The best splits; `begin`: the variance of the noise with which the search begins; `floor`: the least."""
    prior = NoisePrior(begin)
    shortest = points.shortest_segment
    for _ in range(NOISE_ROUNDS):
        # the evidence of every run of neighbouring points, from tables of residual sums of squares
        count = len(next(iter(tables.values())))
        first, last = np.triu_indices(count)
        lengths = last - first + 1
        least = np.full(len(first), np.inf)
        number_of_best = np.zeros(len(first), dtype=np.intp)
        for number, (name, table) in enumerate(tables.items()):
            size = FAMILIES[name].size
            long_enough = lengths >= max(shortest, size + 1)
            if points.noise_known and size == 1:  # a first or last point may be all that was measured of a level
                long_enough |= (lengths == 1) & ((first == 0) | (last == count - 1))
            of_family = prior.cost(table[first, last], lengths, size) + parameter_cost(name, count)
            better = long_enough & (of_family < least)
            least[better], number_of_best[better] = of_family[better], number
        cost, best = np.full((count, count), np.inf), np.zeros((count, count), dtype=np.intp)
        cost[first, last], best[first, last] = least, number_of_best
        evidence = SegmentEvidence(cost, tuple(tables), best)
        splits = CurveSplits(_by_count(evidence), evidence, prior)
        variance = max(_typical_variance(splits.best, tables, len(points), prior), floor)
        if abs(variance / prior.variance - 1) < SETTLED_NOISE:
            break
        prior = NoisePrior(variance)
    return splits


def _typical_variance(split: CurveSplit, tables: Mapping[str, Floats], count: int, prior: NoisePrior) -> float:
    """The typical variance under which the split's segments are most likely."""
    ends = split.ends(count)
    squares = np.array([tables[name][a, b - 1] for a, b, name in zip(split.starts, ends, split.families, strict=True)])
    sizes = [FAMILIES[name].size for name in split.families]
    left = np.maximum(np.subtract(ends, split.starts) - np.array(sizes), 0)
    variance = prior.variance
    for _ in range(50 if left.any() else 0):
        last, shares = variance, (prior.freedom + left) / (prior.freedom + squares / variance)
        variance = max(float((shares * squares).sum() / left.sum()), 1e-24)
        if abs(variance / last - 1) < SETTLED_NOISE:
            break
    return variance


def _by_count(evidence: SegmentEvidence) -> tuple[CurveSplit, ...]:
    """For 1, 2, ... segments, the split of least cost."""
    count = len(evidence.cost)
    least, choices = evidence.cost[0], []
    splits = [CurveSplit((0,), (evidence.family(0, count - 1),), float(least[-1]))]
    best = 0
    for number in range(1, count):
        through = np.full((count, count), np.inf)
        through[1:] = least[:-1, None] + evidence.cost[1:]
        choices.append(through.argmin(axis=0))
        least = through.min(axis=0)
        if not np.isfinite(least[-1]):
            break
        starts = _trace_choices(choices, count)
        families = tuple(evidence.family(a, b - 1) for a, b in zip(starts, (*starts[1:], count), strict=True))
        splits.append(CurveSplit(starts, families, float(least[-1] + number * BREAK_COST * np.log(count))))
        best = number if splits[number].cost < splits[best].cost else best
        if number - best >= SEGMENTS_AHEAD:
            break
    return tuple(splits)


def _trace_choices(choices: list[NDArray[np.intp]], count: int) -> tuple[int, ...]:
    starts, last = [], count - 1
    for choice in reversed(choices):
        starts.append(int(choice[last]))
        last = starts[-1] - 1
    return (0, *reversed(starts))


# How well a segment is explained: minus twice the logarithm of its evidence, less is better.
#
# The noise of a segment is unknown, and near what is typical of the curve: its variance has an inverse gamma prior, so
# that the points of a segment have Student's distribution. Unequal noise then hides no breakpoint, and a few points
# that happen to fit well make none. Parameters cost as in BIC (Schwarz 1978); a breakpoint costs more than the
# parameters beside it, because its place is chosen among many (Zhang & Siegmund 2007).


BREAK_COST = 3.0  # of a breakpoint, in logarithms of the number of points
PRIOR_FREEDOM = 6.0
"""Degrees of freedom of the prior of a segment's noise: it is within a factor of two of what is typical, or nearly."""
RARE_COST = 4.0  # of families that are one over another, or of degree three and more: they are needed rarely


@dataclass(frozen=True)
class NoisePrior:
    """What is known of the noise of a segment: its typical variance, in units of the scale squared, and how sure."""

    variance: float
    freedom: float = PRIOR_FREEDOM

    def cost(self, squares: Floats, points: NDArray[np.intp], size: int) -> Floats:
        """Minus twice the logarithm of the evidence of segments of so many points, without the cost of parameters."""
        left = np.maximum(np.arange(int(points.max(initial=0)) + 1.0) - size, 0.0)
        half = (self.freedom + left) / 2
        gamma = np.array([math.lgamma(place) for place in half.tolist()]) - math.lgamma(self.freedom / 2)
        constant = left * np.log(self.variance * self.freedom / 2) - 2 * gamma
        fit = 2 * half[points] * np.log1p(squares / (self.freedom * self.variance))
        return np.asarray(fit + constant[points])

    def variance_of(self, squares: float, points: int, size: int) -> float:
        """The variance to expect of a segment, given its sum of squares."""
        return (self.freedom * self.variance + squares) / (self.freedom + max(points - size, 0))


@dataclass(frozen=True)
class SegmentEvidence:
    """The best family of every run of neighbouring points."""

    cost: Floats  # minus twice the logarithm of the evidence, parameters included, shape (first point, last point)
    names: tuple[str, ...]  # the families
    best: NDArray[np.intp]  # number of the best family, shape (first point, last point)

    def family(self, first: int, last: int) -> str:
        """The best family from the first point to the last."""
        return self.names[int(self.best[first, last])]


def parameter_cost(family: str, points: int) -> float:
    """What the parameters of a family cost."""
    one = FAMILIES[family]
    return one.size * float(np.log(points)) + RARE_COST * (one.reciprocal + max(0, one.terms - 3))
