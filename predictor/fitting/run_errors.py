"""The sMAPE of every family over every run of neighbouring points, in batches: all runs of one first point at once.

Each is that of the member of least squares, its small parameters made larger. A family with a rate has two columns;
of its rates, the best by squares counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.family import FAMILIES, Family
from predictor.fitting.points import FitPoints
from predictor.fitting.residuals import as_fitted, shortest_segment

Array = NDArray[np.float64]

ZERO = 1e-12
"""A smaller share of a term is rounding."""
RIDGE = 1e-13


def run_errors(points: FitPoints, families: Iterable[str], gamma: float) -> dict[str, Array]:
    """By family, the sMAPE in % of its fits, shape (first point, last point).

    Infinite where it is not defined, and for runs that have no more points than parameters, or too few for a segment.
    """
    count, shortest = len(points), shortest_segment(len(points))
    nested: dict[str, list[str]] = defaultdict(list)
    for name in families:
        nested[FAMILIES[name].nested_in or name].append(name)
    errors = {name: np.full((count, count), np.inf) for names in nested.values() for name in names}
    longest = float(points.x[-1] - points.x[0])
    lengths = points.x[shortest - 1 :] - points.x[: count - shortest + 1]
    span = float(lengths.min()), longest
    for first in range(count - shortest + 1):
        rest = points.part(np.arange(count) >= first)
        for names in nested.values():
            for name, of_runs in zip(
                names, _from_first(rest, [FAMILIES[one] for one in names], span, gamma), strict=True
            ):
                least = max(shortest, FAMILIES[name].size + 1)
                errors[name][first, first + least - 1 :] = of_runs[least - 1 :]
    return errors


def at_least(numbers: Array, ranges: Array, size: Array | float, gamma: float) -> Array:
    """Parameters whose terms have at least a share gamma of the size, with their sign; zero remains.

    Parameters
    ----------
    numbers
        Factors of columns, shape (..., columns).
    ranges
        Of the columns, the same shape.
    size
        Of what is fitted, shape (...).
    gamma
        The share.
    """
    with np.errstate(all="ignore"):
        unit = np.asarray(size)[..., None] / ranges
        small = (np.abs(numbers) < gamma * unit) & (np.abs(numbers) > ZERO * unit) & np.isfinite(unit)
        return np.asarray(np.where(small, np.sign(numbers) * gamma * unit, numbers))


def column_ranges(columns: Array) -> Array:
    """Largest less smallest value of each column over the points so far, shape of columns; 1 for a column of ones."""
    ranges = np.maximum.accumulate(columns, axis=-1) - np.minimum.accumulate(columns, axis=-1)
    ranges[..., 0, :] = 1.0
    return np.asarray(ranges)


def _from_first(
    points: FitPoints, families: Sequence[Family], span: tuple[float, float], gamma: float
) -> Iterator[Array]:
    """sMAPE of nested families, of the runs from the first of these points to each, shape (runs,)."""
    largest = max(families, key=lambda family: family.terms)
    target, weights = as_fitted(largest, points)
    size = np.maximum.accumulate(np.abs(target))
    if largest.has_rate:
        numbers, ranges, columns = _of_best_rates(points.x, target, weights, largest, span)
        numbers = at_least(numbers, ranges, size, gamma)
        yield _smape(points, numbers[:, :1] + numbers[:, 1:] * columns, largest.reciprocal)
        return
    columns = _columns(largest, points.x, span[1])
    ranges = column_ranges(columns).T
    factors = _least_squares(columns, target, weights, [family.terms for family in families])
    for numbers in at_least(factors, ranges, size, gamma):
        yield _smape(points, numbers @ columns, largest.reciprocal)


def _columns(family: Family, x: Array, span: float) -> Array:
    """Shape (columns, points)."""
    columns = np.empty((family.terms, len(x)))
    for place, column in enumerate(family.local_columns(x, x[0], span)):
        columns[place] = column
    return columns


def _least_squares(columns: Array, target: Array, weights: Array, terms: Sequence[int]) -> Array:
    """Factors for the first columns, as many as each number of terms says, shape (numbers, runs, columns)."""
    products = np.cumsum(weights * columns[:, None] * columns, axis=-1)
    right = np.cumsum(weights * columns * target, axis=-1)
    unit = np.sqrt(np.einsum("iin->in", products))
    unit = np.where(unit > 0, unit, 1.0)
    products = np.moveaxis(products / unit / unit[:, None], -1, 0)
    right, unit = (right / unit).T, unit.T
    factors = np.zeros((len(terms), *right.shape))
    for numbers, k in zip(factors, terms, strict=True):
        system = products[:, :k, :k] + RIDGE * np.eye(k)
        numbers[:, :k] = np.linalg.solve(system, right[:, :k, None])[..., 0] / unit[:, :k]
    return factors


def _of_best_rates(
    x: Array, target: Array, weights: Array, family: Family, span: tuple[float, float]
) -> tuple[Array, Array, Array]:
    """Factors and ranges, shape (runs, 2) each, and the second column, shape (runs, points), at the best rates."""
    rates = family.rates(*span)[:, None]
    tried = np.asarray(family.local_columns(x, x[0], span[1], rates)[1])
    with np.errstate(all="ignore"):
        moved = tried - tried[:, :1]
        total, of_target = np.cumsum(weights), np.cumsum(weights * target)
        sums = np.cumsum(weights * moved, axis=1)
        spread = np.cumsum(weights * moved**2, axis=1) - sums**2 / total
        product = np.cumsum(weights * moved * target, axis=1) - sums * of_target / total
        saved = np.where((spread > 0) & family.is_sound(x[0], x, rates), product**2 / spread, -np.inf)
        saved[np.isnan(saved)] = -np.inf
        best, runs = saved.argmax(axis=0), np.arange(len(x))
        slope = product[best, runs] / spread[best, runs]
        start = (of_target - slope * sums[best, runs]) / total - slope * tried[best, 0]
    ranges = np.fmax.accumulate(tried, axis=1) - np.fmin.accumulate(tried, axis=1)
    return np.stack([start, slope], axis=1), np.stack([np.ones(len(x)), ranges[best, runs]], axis=1), tried[best]


def _smape(points: FitPoints, sums: Array, reciprocal: bool) -> Array:
    """Of the values of each run, shape (runs, points), up to its last point; shape (runs,)."""
    with np.errstate(all="ignore"):
        values = np.where(sums > 0, 1.0 / sums, np.inf) if reciprocal else sums
        error = np.abs(values - points.y)
        scale = np.abs(values)
        scale += np.abs(points.y)
        error /= scale
    if not points.y.all():
        error[scale == 0] = 0.0
    np.copyto(error, 0.0, where=~np.tri(len(points), dtype=bool))
    mean = 100.0 * (error @ points.rows) / np.cumsum(points.rows)
    return np.asarray(np.where(np.isnan(mean), np.inf, mean))
