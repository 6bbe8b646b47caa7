"""The curve of one segment, by parameters that are sound near it, and its fit to the segment's points alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.family import FAMILIES, Family
from predictor.fitting.points import FitPoints
from predictor.fitting.residuals import as_fitted

Array = NDArray[np.float64]

STEP = 1e-4
"""Of a derivative, as a share of the span."""


@dataclass(frozen=True)
class LocalCurve:
    """A member of a family, by parameters that are sound near its segment.

    Parameters
    ----------
    name
        Of its family.
    start, span
        What `local_columns` refer to.
    numbers
        Factors of the columns.
    rate
        Where the family has one.
    """

    name: str
    start: float
    span: float
    numbers: tuple[float, ...]
    rate: float

    @property
    def family(self) -> Family:
        """Of which it is one."""
        return FAMILIES[self.name]

    def sum(self, x: Array) -> Array:
        """The sum of the columns."""
        columns = self.family.local_columns(x, self.start, self.span, self.rate)
        return np.asarray(sum(b * column for b, column in zip(self.numbers, columns, strict=True)) + 0.0 * x)

    def __call__(self, x: Array) -> Array:
        total = self.sum(x)
        return np.asarray(1.0 / total) if self.family.reciprocal else total

    def linearised(self, x: Array) -> tuple[Array, Array]:
        """Values at x, and their derivatives by the numbers and by the rate times the span, shape (x, parameters)."""
        columns = self.family.local_columns(x, self.start, self.span, self.rate)
        slopes = [np.broadcast_to(column, x.shape) for column in columns]
        if self.family.has_rate:
            step = STEP / self.span
            moved = [replace(self, rate=self.rate + sign * step).sum(x) for sign in (1, -1)]
            slopes.append((moved[0] - moved[1]) / (2 * STEP))
        table = np.stack(slopes, axis=1)
        values = table[:, : len(columns)] @ np.array(self.numbers)
        if not self.family.reciprocal:
            return values, table
        return 1.0 / values, -table / values[:, None] ** 2

    @property
    def plain(self) -> tuple[float, ...]:
        """Parameters in the order of the formula."""
        return self.family.plain(self.numbers, self.start, self.span, self.rate)


def fitted_alone(points: FitPoints, family: str, first: int, end: int) -> LocalCurve:
    """The best member over some points, by linear least squares at the best rate of a fine grid."""
    one, x = FAMILIES[family], points.x[first:end]
    target, weights = (values[first:end] for values in as_fitted(FAMILIES[family], points))
    start, span = float(x[0]), float(x[-1] - x[0]) or 1.0
    root, best, least = np.sqrt(weights), None, np.inf
    for rate in _fine_rates(one, span):
        columns = one.local_columns(x, start, span, rate)
        table = np.stack([np.broadcast_to(column, x.shape) for column in columns], axis=1) * root[:, None]
        if not np.isfinite(table).all():
            continue
        unit = np.linalg.norm(table, axis=0)
        numbers, *_ = np.linalg.lstsq(table / unit, target * root, rcond=None)
        squares = float(((table / unit @ numbers - target * root) ** 2).sum())
        if squares < least:
            best, least = LocalCurve(family, start, span, tuple((numbers / unit).tolist()), float(rate)), squares
    assert best is not None
    return best


def _fine_rates(family: Family, span: float) -> Array:
    rates = family.rates(span, span)
    return rates if len(rates) == 1 else family.rates(span, 4 * span)
