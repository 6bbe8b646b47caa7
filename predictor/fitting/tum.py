"""Number, places and families of segments as Scholz et al. choose them (ANCS 2021, "Modeling Approach").

Least squares per segment, of every family; the quality of a fit is its sMAPE. Small parameters are made larger, and
of what is within a margin kappa of the best, the simplest is chosen. Splits are tried exhaustively up to three
segments, more of them only where the data look like a split. The slides leave much open; what we decided:

- gamma, the least size of a parameter, is without unit. It limits the share of a term in a segment:
  `|p| * range(column) / max|y| >= gamma`, with the columns of `Family.local_columns`, those of a polynomial counted
  from the segment's start; the range of the column of ones is 1. So it holds for x and y of any unit. For families
  that are one over a sum, one over y takes the place of y. What is zero up to rounding remains zero, the other
  parameters are not fitted again, and rates are not touched: the grid that they are tried on has no small ones.
- kappa is in points of sMAPE, %, by default a share of the noise's own: a fixed margin would choose a constant for
  everything in precise data, and noise in other data.
- "Within kappa" is not transitive, so that comparing in pairs would depend on their order. Everything is compared with
  the best: of what is within kappa of it, the fewest parameters; of equally many, the smallest error.
- The simplest of several numbers of segments has the fewest parameters in all, a breakpoint counted as one.
- Points weigh by one over the square of their noise in least squares, and by their repeats in sMAPE.
- Local derivatives are those of parabolas through `DERIVATIVE_WINDOW` points, along the axis, of y in units of its
  noise; a segment may start near what they mark, within half a window.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.family import FAMILIES, Family
from predictor.fitting.joint import Joint, JointFit
from predictor.fitting.points import FitPoints
from predictor.fitting.residuals import LocalCurve, as_fitted, fit_alone
from predictor.fitting.splits import CurveSplit, CurveSplits, NoisePrior, best_splits
from predictor.fitting.structure import Structured
from profiles.arrays import Floats

Numbers = NDArray[np.intp]

LEAST_TERM_SHARE = 1e-3  # least share of a term in a segment
MARGIN_KAPPA = 0.8  # the margin, as a share of the noise's sMAPE
LEAST_KAPPA = 1e-3  # the margin of data without noise, %
EXHAUSTIVE_SEGMENTS = 3  # most segments whose splits are all tried
MOST_EXTREMA = 16  # how many extrema of the second derivative may begin a segment (the paper's l)
MOST_SEGMENTS = 9
DERIVATIVE_WINDOW = 5  # points of a local derivative
LOOKED_AT = 50  # places of a segment where its curve must be defined
MEAN_OF_NORMAL = float(np.sqrt(2 / np.pi))  # mean absolute value, in standard deviations


def find_tum_structure(points: FitPoints, tables: Mapping[str, Floats]) -> tuple[CurveSplits, Structured]:
    """The segments with the default margin; the splits by evidence give the noise that it is a share of."""
    splits = best_splits(points, tables)
    return splits, tum_structure(points, tables, splits.prior)


def tum_structure(
    points: FitPoints,
    tables: Mapping[str, Floats],
    prior: NoisePrior,
    *,
    kappa: float | None = None,
    gamma: float = LEAST_TERM_SHARE,
) -> Structured:
    """The segments; all breakpoints are jumps, halfway between two points. `points`: at least three. `tables`: by
    family that is defined for the points, as of `residual_tables`. `prior`: of the noise. `kappa`: the margin, %; by
    default a share of the sMAPE of the noise. `gamma`: least share of a term in a segment."""
    margin = noise_margin(points, prior) if kappa is None else kappa
    errors = run_errors(points, tables, gamma)
    for name, squares in tables.items():
        errors[name][~np.isfinite(squares)] = np.inf
    while True:
        # The split whose cost is the sum of the errors of its segments, weighted by their points.
        names = tuple(errors)
        sizes = np.array([FAMILIES[name].size for name in names])
        of_runs, best = choose_families(np.stack(list(errors.values())), sizes, margin)
        total = np.cumsum(points.rows)
        cost = of_runs * np.maximum(total - (total - points.rows)[:, None], 1.0) / total[-1]
        few = _splits(cost, range(len(points)), EXHAUSTIVE_SEGMENTS)
        splits = [*few, *_splits(cost, split_candidates(points), MOST_SEGMENTS)[EXHAUSTIVE_SEGMENTS:]]
        starts = _simplest(splits, cost, sizes[best], margin)
        ends = (*starts[1:], len(points))
        families = tuple(names[best[first, end - 1]] for first, end in zip(starts, ends, strict=True))
        chosen = _place_breaks(points, CurveSplit(starts, families, _total(cost, starts)), prior, gamma)
        unsound = _unsound(points, chosen)
        if not unsound:
            return chosen
        for name, first, end in unsound:
            errors[name][first, end - 1] = np.inf


def noise_margin(points: FitPoints, prior: NoisePrior) -> float:
    """kappa in %: a share of the sMAPE of the points against the true curve."""
    with np.errstate(divide="ignore"):
        deviation = np.sqrt(prior.variance / points.rows) * points.scale / np.abs(points.y)
    noise = 50.0 * MEAN_OF_NORMAL * float(np.average(np.minimum(deviation, 1.0), weights=points.rows))
    return max(MARGIN_KAPPA * noise, LEAST_KAPPA)


def choose_families(errors: Floats, sizes: Numbers, kappa: float) -> tuple[Floats, Numbers]:
    """Of errors within kappa of the least that of fewest parameters, and its number; along the first axis. `errors`: in
    %, shape (families, ...). `sizes`: numbers of parameters, shape (families,). `kappa`: in %."""
    shaped = sizes.reshape(-1, *[1] * (errors.ndim - 1))
    near = errors <= errors.min(axis=0) + kappa
    fewest = near & (shaped == np.where(near, shaped, sizes.max()).min(axis=0))
    best = np.where(fewest, errors, np.inf).argmin(axis=0)
    return np.take_along_axis(errors, best[None], axis=0)[0], best


def split_candidates(points: FitPoints) -> list[int]:
    """Numbers of points at which a segment may start, where there are more than three segments; 0 is the first."""
    count = len(points)
    if count < DERIVATIVE_WINDOW + 2:
        return list(range(count))
    # First and second, in the middle of each window; shape (points - WINDOW + 1,).
    windows = np.lib.stride_tricks.sliding_window_view
    axis = windows(points.on_axis(points.x), DERIVATIVE_WINDOW)
    y = windows(points.y, DERIVATIVE_WINDOW) / points.scale[DERIVATIVE_WINDOW // 2 : -(DERIVATIVE_WINDOW // 2), None]
    length = (axis[:, -1:] - axis[:, :1]) / 2
    share = (axis - axis[:, DERIVATIVE_WINDOW // 2, None]) / length
    table = np.stack([np.ones_like(share), share, share**2], axis=2)
    numbers = np.linalg.solve(np.swapaxes(table, 1, 2) @ table, np.swapaxes(table, 1, 2) @ y[..., None])[..., 0]
    slope, second = numbers[:, 1] / length[:, 0], 2 * numbers[:, 2] / length[:, 0] ** 2
    size = np.abs(second)
    peaks = 1 + np.flatnonzero((size[1:-1] >= size[:-2]) & (size[1:-1] >= size[2:]))
    largest = peaks[np.argsort(-size[peaks], kind="stable")[:MOST_EXTREMA]]
    turns = np.flatnonzero(slope[:-1] * slope[1:] < 0)
    near = {0}
    for place in (*largest, *turns):
        near |= set(range(int(place), int(place) + DERIVATIVE_WINDOW))
    return sorted(near)


def _splits(cost: Floats, allowed: Sequence[int], most: int) -> list[tuple[int, ...]]:
    """For 1, 2, ... segments, the starts of least cost among those that are allowed; all are tried. The least cost up
    to each last point of a segment serves all segments after it, so that trying all takes no longer than a pass over
    the runs per number of segments."""
    count = len(cost)
    forbidden = np.setdiff1d(np.arange(count), allowed)
    least = cost[0]
    splits: list[tuple[int, ...]] = [(0,)]
    traces: list[list[tuple[int, ...]]] = [[(0,)] * count]
    for _ in range(1, most):
        through = np.full((count, count), np.inf)
        through[1:] = least[:-1, None] + cost[1:]
        through[forbidden] = np.inf
        choice, last = through.argmin(axis=0), traces[-1]
        least = through.min(axis=0)
        if not np.isfinite(least[-1]):
            break
        traces.append([(*last[start - 1], int(start)) for start in choice])
        splits.append(traces[-1][-1])
    return splits


def _simplest(splits: Sequence[tuple[int, ...]], cost: Floats, sizes: Numbers, kappa: float) -> tuple[int, ...]:
    """The split of fewest parameters within kappa of the best."""
    total = np.array([_total(cost, starts) for starts in splits])
    parameters = np.array([int(_total(sizes, starts)) + len(starts) - 1 for starts in splits])
    return splits[int(choose_families(total, parameters, kappa)[1])]


def _total(table: NDArray[np.generic], starts: Sequence[int]) -> float:
    """The sum over the segments, of a table by first and last point."""
    return float(sum(table[first, end - 1] for first, end in zip(starts, (*starts[1:], len(table)), strict=True)))


def _place_breaks(points: FitPoints, split: CurveSplit, prior: NoisePrior, gamma: float) -> Structured:
    runs = list(zip(split.starts, split.ends(len(points)), strict=True))
    alone = tuple(fit_alone(points, family, *run) for family, run in zip(split.families, runs, strict=True))
    curves = tuple(_enlarge_parameters(points, curve, *run, gamma) for curve, run in zip(alone, runs, strict=True))
    axis = points.on_axis(points.x)
    joints = tuple(Joint(float(axis[start - 1] + axis[start]) / 2, False) for start in split.starts[1:])
    deviation = points.scale / np.sqrt(points.rows)
    for curve, (first, end) in zip(alone, runs, strict=True):
        run = slice(first, end)
        squares = float((((points.y[run] - curve(points.x[run])) / deviation[run]) ** 2).sum())
        deviation[run] *= np.sqrt(prior.variance_of(squares, end - first, curve.family.size))
    left = JointFit(curves, joints, 0.0)
    squares = float((((points.y - left.predict(points, points.x)) / deviation) ** 2).sum())
    return Structured(split, alone, replace(left, squares=squares), deviation, split.cost)


def _enlarge_parameters(points: FitPoints, curve: LocalCurve, first: int, end: int, gamma: float) -> LocalCurve:
    """The curve with no small parameters."""
    x = points.x[first:end]
    columns = curve.family.local_columns(x, curve.start, curve.span, curve.rate)
    ranges = column_ranges(np.stack([np.broadcast_to(column, x.shape) for column in columns]))[:, -1]
    size = float(np.abs(as_fitted(curve.family, points)[0][first:end]).max())
    numbers = at_least(np.array(curve.numbers), ranges, size, gamma)
    return replace(curve, numbers=tuple(numbers.tolist()))


def _unsound(points: FitPoints, chosen: Structured) -> list[tuple[str, int, int]]:
    """Families and runs whose formula loses its digits, or is not defined everywhere in its segment."""
    axis = points.on_axis(points.x)
    places = [axis[0], *(joint.place for joint in chosen.fit.joints), axis[-1]]
    found = []
    for number, curve in enumerate(chosen.fit.curves):
        x = points.off_axis(np.linspace(places[number], places[number + 1], LOOKED_AT))
        with np.errstate(all="ignore"):
            sums = curve.sum(x)
        defined = np.isfinite(sums).all() and not (curve.family.reciprocal and sums.min() <= 0)
        if not defined or not curve.family.is_sound(x[0], x[-1], curve.rate):
            starts = (*chosen.split.starts, len(points))
            found.append((curve.name, starts[number], starts[number + 1]))
    return found


# The sMAPE of every family over every run of neighbouring points, in batches: all runs of one first point at once.
#
# Each is that of the member of least squares, its small parameters made larger. A family with a rate has two columns;
# of its rates, the best by squares counts.


ZERO_TERM_SHARE = 1e-12  # a smaller share of a term is rounding
RIDGE_SHARE = 1e-13


def run_errors(points: FitPoints, families: Iterable[str], gamma: float) -> dict[str, Floats]:
    """By family, the sMAPE in % of its fits, shape (first point, last point). Infinite where it is not defined, and for
    runs that have no more points than parameters, or too few for a segment."""
    count, shortest = len(points), points.shortest_segment
    nested: dict[str, list[str]] = defaultdict(list)
    for name in families:
        nested[FAMILIES[name].nested_in or name].append(name)
    errors = {name: np.full((count, count), np.inf) for names in nested.values() for name in names}
    longest = float(points.x[-1] - points.x[0])
    span = float((points.x[shortest - 1 :] - points.x[: count - shortest + 1]).min()), longest
    for first in range(count - shortest + 1):
        rest = points.part(np.arange(count) >= first)
        for names in nested.values():
            for name, of_runs in zip(
                names, _from_first(rest, [FAMILIES[name] for name in names], span, gamma), strict=True
            ):
                least = max(shortest, FAMILIES[name].size + 1)
                errors[name][first, first + least - 1 :] = of_runs[least - 1 :]
    return errors


def at_least(numbers: Floats, ranges: Floats, size: Floats | float, gamma: float) -> Floats:
    """Parameters whose terms have at least a share gamma of the size, with their sign; zero remains. `numbers`: factors
    of columns, shape (..., columns). `ranges`: of the columns, the same shape. `size`: of what is fitted, shape (...).
    `gamma`: the share."""
    with np.errstate(all="ignore"):
        unit = np.asarray(size)[..., None] / ranges
        small = (np.abs(numbers) < gamma * unit) & (np.abs(numbers) > ZERO_TERM_SHARE * unit) & np.isfinite(unit)
        return np.asarray(np.where(small, np.sign(numbers) * gamma * unit, numbers))


def column_ranges(columns: Floats) -> Floats:
    """Largest less smallest value of each column over the points so far, shape of columns; 1 for a column of ones."""
    ranges = np.maximum.accumulate(columns, axis=-1) - np.minimum.accumulate(columns, axis=-1)
    ranges[..., 0, :] = 1.0
    return np.asarray(ranges)


def _from_first(
    points: FitPoints, families: Sequence[Family], span: tuple[float, float], gamma: float
) -> Iterator[Floats]:
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


def _columns(family: Family, x: Floats, span: float) -> Floats:
    """Shape (columns, points)."""
    columns = np.empty((family.terms, len(x)))
    for place, column in enumerate(family.local_columns(x, x[0], span)):
        columns[place] = column
    return columns


def _least_squares(columns: Floats, target: Floats, weights: Floats, terms: Sequence[int]) -> Floats:
    """Factors for the first columns, as many as each number of terms says, shape (numbers, runs, columns)."""
    products = np.cumsum(weights * columns[:, None] * columns, axis=-1)
    right = np.cumsum(weights * columns * target, axis=-1)
    unit = np.sqrt(np.einsum("iin->in", products))
    unit = np.where(unit > 0, unit, 1.0)
    products = np.moveaxis(products / unit / unit[:, None], -1, 0)
    right, unit = (right / unit).T, unit.T
    factors = np.zeros((len(terms), *right.shape))
    for numbers, k in zip(factors, terms, strict=True):
        system = products[:, :k, :k] + RIDGE_SHARE * np.eye(k)
        numbers[:, :k] = np.linalg.solve(system, right[:, :k, None])[..., 0] / unit[:, :k]
    return factors


def _of_best_rates(
    x: Floats, target: Floats, weights: Floats, family: Family, span: tuple[float, float]
) -> tuple[Floats, Floats, Floats]:
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


def _smape(points: FitPoints, sums: Floats, reciprocal: bool) -> Floats:
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
