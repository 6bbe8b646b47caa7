"""Number and places of segments: an exact dynamic program over all ways to split the points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.evidence import BREAK_COST, NoisePrior, SegmentEvidence, segment_evidence
from predictor.fitting.family import FAMILIES
from predictor.fitting.points import FitPoints
from predictor.fitting.residuals import shortest_segment

Array = NDArray[np.float64]

AHEAD = 4
"""Numbers of segments that are tried beyond the best."""
ROUNDS = 6
"""Of splitting and estimating the noise again."""
SETTLED = 1e-3
ENOUGH = 5
"""Degrees of freedom from which the noise of repeats counts."""


@dataclass(frozen=True)
class CurveSplit:
    """Runs of neighbouring points, each with its family.

    Parameters
    ----------
    starts
        Numbers of the first points of the segments; the first is 0.
    families
        Of each segment.
    cost
        Minus twice the logarithm of the evidence, breakpoints included.
    """

    starts: tuple[int, ...]
    families: tuple[str, ...]
    cost: float

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


def best_splits(points: FitPoints, tables: Mapping[str, Array]) -> CurveSplits:
    """The best splits, with the typical noise estimated from the best of them."""
    repeats, known = points.noise_of_repeats()
    floor = max(repeats if known >= ENOUGH else 0.0, points.noise_of_rounding(), points.resolved_noise())
    prior = NoisePrior(max(points.noise_of_neighbours(), floor))
    shortest = shortest_segment(len(points))
    for _ in range(ROUNDS):
        evidence = segment_evidence(tables, prior, shortest)
        splits = CurveSplits(_by_count(evidence), evidence, prior)
        variance = max(_typical_variance(splits.best, tables, len(points), prior), floor)
        if abs(variance / prior.variance - 1) < SETTLED:
            break
        prior = NoisePrior(variance)
    return splits


def _typical_variance(split: CurveSplit, tables: Mapping[str, Array], count: int, prior: NoisePrior) -> float:
    """The typical variance under which the split's segments are most likely."""
    ends = split.ends(count)
    squares = np.array([tables[name][a, b - 1] for a, b, name in zip(split.starts, ends, split.families, strict=True)])
    sizes = [FAMILIES[name].size for name in split.families]
    left = np.maximum(np.subtract(ends, split.starts) - np.array(sizes), 0)
    variance = prior.variance
    for _ in range(50 if left.any() else 0):
        last, shares = variance, (prior.freedom + left) / (prior.freedom + squares / variance)
        variance = max(float((shares * squares).sum() / left.sum()), 1e-24)
        if abs(variance / last - 1) < SETTLED:
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
        starts = _traced(choices, count)
        families = tuple(evidence.family(a, b - 1) for a, b in zip(starts, (*starts[1:], count), strict=True))
        splits.append(CurveSplit(starts, families, float(least[-1] + number * BREAK_COST * np.log(count))))
        best = number if splits[number].cost < splits[best].cost else best
        if number - best >= AHEAD:
            break
    return tuple(splits)


def _traced(choices: list[NDArray[np.intp]], count: int) -> tuple[int, ...]:
    starts, last = [], count - 1
    for choice in reversed(choices):
        starts.append(int(choice[last]))
        last = starts[-1] - 1
    return (0, *reversed(starts))
