"""Where a breakpoint probably is: the density of its place, as a jump and as a bend."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.bends import PER_GAP, bend_places, bend_squares
from predictor.fitting.evidence import NoisePrior
from predictor.fitting.family import FAMILIES
from predictor.fitting.points import FitPoints
from predictor.fitting.structure import MARGIN, Structured, apart_squares

Array = NDArray[np.float64]

COVERAGE = 0.9


def place_interval(
    points: FitPoints, tables: Mapping[str, Array], prior: NoisePrior, structured: Structured, number: int
) -> tuple[float, float]:
    """The interval on the axis that contains the breakpoint of that number, from 0, with a probability of 90 %.

    Before it was measured, every place is equally likely. Its neighbours, and the families beside it, are taken as they
    are. Jump and bend count by how well they explain the points; a jump is anywhere between two of them.
    """
    starts = [*structured.split.starts, len(points)]
    first, end = starts[number], starts[number + 2]
    edges = points.on_axis(points.x[first:end])
    cells = np.repeat(np.diff(edges) / PER_GAP, PER_GAP)
    jump = np.repeat(_jump_costs(tables, prior, structured, number, first, end), PER_GAP)
    bend = np.full(len(cells), np.inf)
    inner = slice((MARGIN - 1) * PER_GAP, len(cells) - (MARGIN - 1) * PER_GAP)
    bend[inner] = _bend_costs(points, structured, number, first, end)
    least = min(jump.min(), bend.min())
    density = cells * (np.exp(-0.5 * (jump - least)) + np.exp(-0.5 * (bend - least)))
    low, high = _quantiles(np.r_[edges[0], edges[0] + np.cumsum(cells)], density)
    at = structured.fit.joints[number].place
    return min(low, at), max(high, at)


def _jump_costs(
    tables: Mapping[str, Array], prior: NoisePrior, structured: Structured, number: int, first: int, end: int
) -> Array:
    """Of a jump in each gap between points from `first` to before `end`, less that of the best."""
    left, right = structured.split.families[number : number + 2]
    gaps = np.arange(first + 1, end)
    costs = np.full(len(gaps), np.inf)
    sizes = FAMILIES[left].size, FAMILIES[right].size
    enough = (gaps - first > sizes[0]) & (end - gaps > sizes[1])
    of = gaps[enough]
    costs[enough] = prior.cost(tables[left][first, of - 1], of - first, sizes[0])
    costs[enough] += prior.cost(tables[right][of, end - 1], end - of, sizes[1])
    return np.asarray(costs - costs.min())


def _bend_costs(points: FitPoints, structured: Structured, number: int, first: int, end: int) -> Array:
    """Of a bend at each place that is tried, less that of the best jump."""
    left, right = structured.alone[number : number + 2]
    places = bend_places(points, first, end, MARGIN)
    squares = bend_squares(points, structured.deviation, left, right, first, end, places)
    return np.asarray(squares - apart_squares(points, structured, number) - np.log(len(points)))


def _quantiles(edges: Array, density: Array) -> tuple[float, float]:
    """The middle 90 % of what is spread evenly within each cell."""
    total = np.r_[0.0, np.cumsum(density)]
    low, high = np.interp([(1 - COVERAGE) / 2, (1 + COVERAGE) / 2], total / total[-1], edges)
    return float(low), float(high)
