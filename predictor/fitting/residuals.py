"""The residual sum of squares of every family over every run of neighbouring points. Families of two columns need five
running sums. Longer ones, the polynomials, use a QR decomposition that grows by one point after another (Givens
rotations), for all first points at once; its first columns are the decomposition of the first columns, so one table
serves all degrees. So a table for n points costs n steps on arrays, not n^2 / 2 fits."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from predictor.fitting.family import FAMILIES, Family
from predictor.fitting.points import FitPoints
from profiles.arrays import Floats

FEWEST_OF_RATE = 5  # points of the shortest segment for which rates are tried
TINY_RESIDUAL = 1e-13  # what is left of a sum of squares below this share of it is rounding


def residual_tables(points: FitPoints, families: Iterable[str]) -> Mapping[str, Floats]:
    """By family, weighted sums of squares about the best member, shape (first point, last point). Infinite where it is
    not defined; for a family with a rate, the best of the rates that are tried."""
    asked = [name for name in families if _is_defined(FAMILIES[name], points)]
    nested: dict[str, list[str]] = defaultdict(list)
    for name in asked:
        nested[FAMILIES[name].nested_in or name].append(name)
    tables: dict[str, Floats] = {}
    longer = []
    for largest, names in nested.items():
        if max(FAMILIES[name].terms for name in names) > 2:
            longer.append(largest)
            continue
        by_terms = _two_columns(points, max((FAMILIES[name] for name in names), key=lambda family: family.terms))
        tables |= {name: by_terms[FAMILIES[name].terms - 1] for name in names}
    if longer:
        terms = max(FAMILIES[name].terms for largest in longer for name in nested[largest])
        for largest, table in zip(longer, _decompose(points, longer, terms), strict=True):
            for name in nested[largest]:
                sound = FAMILIES[name].is_sound(points.x[:, None], points.x)
                tables[name] = np.where(sound, table[FAMILIES[name].terms - 1], np.inf)
    return {name: tables[name] for name in asked}


def _is_defined(family: Family, points: FitPoints) -> bool:
    return not (family.of_positive_x and points.x[0] <= 0) and not (family.reciprocal and np.any(points.y <= 0))


def as_fitted(family: Family, points: FitPoints) -> tuple[Floats, Floats]:
    """What the sum of the family's columns is fitted to, and the weights of that: y, or one over y."""
    if not family.reciprocal:
        return points.y, points.weights
    return 1.0 / points.y, points.weights * np.abs(points.y) ** 4


def _two_columns(points: FitPoints, family: Family) -> tuple[Floats, Floats]:
    """The table of the number 1 alone, and that of a family of 1 and another column."""
    count, span = len(points), float(points.x[-1] - points.x[0])
    target, weights = as_fitted(family, points)
    later = np.arange(count)[:, None] <= np.arange(count)

    def summed(values: Floats) -> Floats:
        """Sums from the first point to the last; differences of running sums would lose small ones beside large."""
        return np.asarray(np.cumsum(np.where(later, values, 0.0), axis=1))

    centred = target - np.average(target, weights=weights)
    total = np.where(later, summed(weights), 1.0)
    of_target = summed(weights * centred)
    squares = summed(weights * centred**2) - of_target**2 / total
    squares = np.where(later, np.maximum(squares, 0.0), np.inf)
    best = np.full((count, count), np.inf)
    for rate in family.rates(_shortest_length(points), span) if family.terms > 1 else ():
        begun = _first_points(points, family, rate)
        column = family.local_columns(points.x, points.x[:begun, None], span, rate)[1]
        column = np.broadcast_to(column, (begun, count))
        # The column's value at each first point, as a column of its own.
        column = np.where(later[:begun], column - np.diagonal(column)[:, None], 0.0)
        weighted = weights * column
        sums = np.cumsum(weighted, axis=1)
        spread = np.cumsum(weighted * column, axis=1) - sums**2 / total[:begun]
        product = np.cumsum(weighted * centred, axis=1) - sums * of_target[:begun] / total[:begun]
        with np.errstate(invalid="ignore", divide="ignore"):
            left = squares[:begun] - np.where(spread > 0, product**2 / spread, 0.0)
            least = TINY_RESIDUAL * squares[:begun]
        left[~family.is_sound(points.x[:begun, None], points.x, rate)] = np.inf
        best[:begun] = np.fmin(best[:begun], np.maximum(left, least))
    return squares, np.where(later, best, np.inf)


def _first_points(points: FitPoints, family: Family, rate: float) -> int:
    """How many of the first points begin a shortest segment for which the rate is defined."""
    x = points.x
    if not family.has_rate:
        return len(x)
    reach = points.shortest_segment - 1
    defined = np.isfinite(family.local_columns(x[reach:], x[:-reach], float(x[-1] - x[0]), rate)[1])
    return int(np.flatnonzero(defined).max(initial=-1)) + 1 + reach if defined.any() else 0


def _decompose(points: FitPoints, names: Sequence[str], terms: int) -> list[Floats]:
    """The tables of longer families for 1 to `terms` columns, shape (terms, first point, last point) each."""
    count, span = len(points), float(points.x[-1] - points.x[0])
    families = [FAMILIES[name] for name in names]
    fitted = [as_fitted(family, points) for family in families]
    units = [np.abs(target).max() or 1.0 for target, _ in fitted]
    targets = np.stack([target / unit for (target, _), unit in zip(fitted, units, strict=True)], axis=1)
    roots = np.stack([np.sqrt(weights) * unit for (_, weights), unit in zip(fitted, units, strict=True)], axis=1)
    tables = np.full((len(families), terms, count, count), np.inf)
    decomposition = _Growing(count, len(families), terms)
    rows = np.zeros((terms, count, len(families)))
    for last in range(count):
        begun = slice(0, last + 1)
        for number, family in enumerate(families):
            columns = family.local_columns(points.x[last], points.x[begun], span)
            for place, column in enumerate(columns[:terms]):
                rows[place, begun, number] = column
        sums = decomposition.add(rows[:, begun] * roots[last], targets[last] * roots[last])
        tables[:, :, begun, last] = np.moveaxis(sums, 2, 0)
    return list(tables)


def _shortest_length(points: FitPoints) -> float:
    reach = min(max(points.shortest_segment, FEWEST_OF_RATE), len(points)) - 1
    return float(np.min(points.x[reach:] - points.x[:-reach]))


class _Growing:
    """Decompositions of rows that begin at each first point, for each family; a row is added to all that have begun."""

    def __init__(self, count: int, families: int, terms: int) -> None:
        self._upper = np.zeros((terms, terms, count, families))
        self._right = np.zeros((terms, count, families))
        self._rest = np.zeros((count, families))

    def add(self, row: Floats, target: Floats) -> Floats:
        """Add a row, shape (terms, begun, families), for a target by family; sums of squares by number of terms."""
        terms, begun = row.shape[0], row.shape[1]
        value = np.broadcast_to(target, row.shape[1:])
        for k in range(terms):
            diagonal = self._upper[k, k, :begun]
            length = np.hypot(diagonal, row[k])
            with np.errstate(invalid="ignore", divide="ignore"):
                cosine, sine = diagonal / length, row[k] / length
            still = length == 0
            cosine[still], sine[still] = 1.0, 0.0
            self._upper[k, k, :begun] = length
            if k + 1 < terms:
                above = self._upper[k, k + 1 :, :begun]
                turned = cosine * above + sine * row[k + 1 :]
                row[k + 1 :] = cosine * row[k + 1 :] - sine * above
                self._upper[k, k + 1 :, :begun] = turned
            right = self._right[k, :begun]
            turned, value = cosine * right + sine * value, cosine * value - sine * right
            self._right[k, :begun] = turned
        self._rest[:begun] += value**2
        squares = self._right[::-1, :begun] ** 2
        sums = np.cumsum(np.concatenate([self._rest[None, :begun], squares[:-1]]), axis=0)[::-1]
        return np.asarray(np.where(np.isnan(sums), np.inf, sums))


# The curve of one segment, by parameters that are sound near it, and its fit to the segment's points alone.


RATE_ROUNDS, RATES_NEAR = 6, 9  # how often a rate is sought more finely, and how many are tried each time
DERIVATIVE_STEP = 1e-4  # of a derivative, as a share of the span


@dataclass(frozen=True)
class LocalCurve:
    """A member of a family, by parameters that are sound near its segment."""

    name: str  # of its family
    start: float
    span: float  # what `local_columns` refer to
    numbers: tuple[float, ...]  # factors of the columns
    rate: float  # where the family has one

    @property
    def family(self) -> Family:
        """Of which it is one."""
        return FAMILIES[self.name]

    def sum(self, x: Floats) -> Floats:
        """The sum of the columns."""
        columns = self.family.local_columns(x, self.start, self.span, self.rate)
        return np.asarray(sum(b * column for b, column in zip(self.numbers, columns, strict=True)) + 0.0 * x)

    def __call__(self, x: Floats) -> Floats:
        total = self.sum(x)
        return np.asarray(1.0 / total) if self.family.reciprocal else total

    def linearised(self, x: Floats) -> tuple[Floats, Floats]:
        """Values at x, and their derivatives by the numbers and by the rate times its unit, shape (x, parameters)."""
        columns = self.family.local_columns(x, self.start, self.span, self.rate)
        slopes = [np.broadcast_to(column, x.shape) for column in columns]
        if self.family.has_rate:
            step = DERIVATIVE_STEP / self.family.rate_unit(self.span)
            less, here, more = (replace(self, rate=self.rate + sign * step).sum(x) for sign in (-1, 0, 1))
            # at the steepest rate that a family has, only one side is defined
            known = [np.where(np.isnan(side), here, side) for side in (less, more)]
            slopes.append((known[1] - known[0]) / DERIVATIVE_STEP / (2 - np.isnan(less) - np.isnan(more)))
        table = np.stack(slopes, axis=1)
        values = table[:, : len(columns)] @ np.array(self.numbers)
        if not self.family.reciprocal:
            return values, table
        return 1.0 / values, -table / values[:, None] ** 2

    @property
    def plain(self) -> tuple[float, ...]:
        """Parameters in the order of the formula."""
        return self.family.plain(self.numbers, self.start, self.span, self.rate)


def fit_alone(points: FitPoints, family: str, first: int, end: int) -> LocalCurve:
    """The best member over some points, by linear least squares; at the best rate, where the family has one."""
    one, x = FAMILIES[family], points.x[first:end]
    target, weights = (values[first:end] for values in as_fitted(FAMILIES[family], points))
    start, span = float(x[0]), float(x[-1] - x[0]) or 1.0
    if one.has_rate:
        rate, numbers = _best_rate(one, x, target, weights, span)
        return LocalCurve(family, start, span, numbers, rate)
    root = np.sqrt(weights)
    columns = one.local_columns(x, start, span)
    table = np.stack([np.broadcast_to(column, x.shape) for column in columns], axis=1) * root[:, None]
    unit = np.linalg.norm(table, axis=0)
    found, *_ = np.linalg.lstsq(table / unit, target * root, rcond=None)
    return LocalCurve(family, start, span, tuple((found / unit).tolist()), 0.0)


def _best_rate(
    family: Family, x: Floats, target: Floats, weights: Floats, span: float
) -> tuple[float, tuple[float, ...]]:
    """The rate of least squares, and the factors of the two columns there: the best of a grid, then ever closer."""
    shares = weights / weights.sum()
    centre = float(shares @ target)

    def at_rates(rates: Floats) -> tuple[Floats, Floats, Floats]:
        """The sum of squares at each rate, the mean of the column, and its factor."""
        with np.errstate(all="ignore"):
            column = np.asarray(family.local_columns(x, x[0], span, rates[:, None])[1])
            mean = column @ shares
            apart = column - mean[:, None]
            slope = (apart * (target - centre)) @ shares / (apart**2 @ shares)
            squares = (target - centre - slope[:, None] * apart) ** 2 @ shares
        return np.where(np.isfinite(squares), squares, np.inf), mean, slope

    rates = _fine_rates(family, span)
    best = int(at_rates(rates)[0].argmin())
    rate, width = float(rates[best]), float(np.diff(rates)[max(best - 1, 0) : best + 1].max())
    for _ in range(RATE_ROUNDS):
        near = rate + width * np.linspace(-1, 1, RATES_NEAR)
        rate, width = float(near[at_rates(near)[0].argmin()]), 2 * width / (RATES_NEAR - 1)
    _, means, slopes = at_rates(np.array([rate]))
    return rate, (centre - float(slopes[0] * means[0]), float(slopes[0]))


def _fine_rates(family: Family, span: float) -> Floats:
    rates = family.rates(span, span)
    return rates if len(rates) == 1 else family.rates(span, 4 * span)
