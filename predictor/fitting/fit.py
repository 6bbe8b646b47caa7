"""From measurements to a formula: the main flow."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from predictor.fitting import structure
from predictor.fitting.family import FAMILIES
from predictor.fitting.fitted_model import CurveBreak, CurveSegment, FittedModel, smape_pct
from predictor.fitting.joint import Joint, JointFit, with_exact_zeros
from predictor.fitting.points import FitPoints, MeasuredCurve
from predictor.fitting.reach import reach_of, unexplained
from predictor.fitting.residuals import residual_tables
from predictor.fitting.splits import CurveSplits, NoisePrior
from predictor.fitting.tum import find_tum_structure
from profiles.arrays import Floats

SELECTIONS: "dict[str, Selection]" = {"bic": structure.find_structure, "tum": find_tum_structure}
SHAPES: "dict[str, Selection]" = {
    "free": structure.find_structure,
    "continuous": partial(structure.find_structure, continuous=True),
    "steps": structure.find_steps,
}
PLACE_ROUNDING = 1e-12  # of a place on an axis, as a share
MOST_STEPS = 0.5  # levels of a staircase, as a share of the points
LARGE_X, FAR_SPANS = 1e8, 2.0
"""From here on, and so many times its range from 0, x is counted from its first value: Unix times, for example."""


def fit(curve: MeasuredCurve, *, select: str = "bic", shape: str = "free", breaks: Sequence[float] = ()) -> FittedModel:
    """The simplest model that explains the curve. `curve`: at least three distinct x. `select`: how number, places and
    families of the segments are chosen: `bic`, or `tum` as the paper does it. `shape`: `free`, `continuous` (without
    jumps), or `steps` (levels only). `breaks`: where the segments end; found where none are given. Raises `ValueError`
    when there is no such choice, or choices exclude each other."""
    for word, chosen, known in (("selection", select, SELECTIONS), ("shape", shape, SHAPES)):
        if chosen not in known:
            raise ValueError(f"no such {word}: {chosen!r}, one of {', '.join(known)}")
    if (select != "bic") + (shape == "continuous") + bool(len(breaks)) > 1 or (select != "bic" and shape != "free"):
        raise ValueError("of select=tum, shape=continuous and breaks, only one is possible; steps not with tum")
    began = time.perf_counter()
    order = np.lexsort((curve.y, curve.x))  # so that the order of rows changes no digit
    first = float(curve.x[order[0]])
    is_far = first >= max(LARGE_X, FAR_SPANS * float(np.ptp(curve.x)))
    origin = first if is_far else 0.0
    errors = curve.errors[order] if curve.errors is not None else None
    curve = replace(curve, x=curve.x[order] - origin, y=curve.y[order], errors=errors)
    points = FitPoints.of(curve)
    medians = coarse(points)
    selection = SELECTIONS[select] if select != "bic" else SHAPES[shape]
    if len(breaks):
        places = tuple(sorted(float(points.on_axis(place - origin)) for place in breaks))
        selection = partial(structure.structure_at, places=places, steps=shape == "steps")
    found = _find_structure(medians, selection)
    if structure.noise_differs(medians, found.structured) and not len(
        breaks
    ):  # a change of noise alone is no breakpoint
        equal = replace(medians, scale=found.structured.deviation * np.sqrt(medians.rows))
        again = _find_structure(equal, selection)
        if len(again.structured.split.starts) < len(found.structured.split.starts):
            found, medians = again, equal
    if selection is structure.find_structure and _leaves_unexplained(curve, medians, found):
        steps = _find_structure(medians, structure.find_steps)
        few = len(steps.structured.split.starts) <= MOST_STEPS * len(medians)
        found = steps if few and not _leaves_unexplained(curve, medians, steps) else found
    structured = found.structured
    intervals = [
        (joint.place, joint.place)
        if len(breaks)
        else place_interval(medians, found.tables, found.splits.prior, structured, number)
        for number, joint in enumerate(structured.fit.joints)
    ]
    whole = structured.fit if len(breaks) else refit_to_all(points, medians, structured.fit)
    fitted = with_exact_zeros(whole, float(np.abs(curve.y).max()))
    segments = _segments(curve, points, fitted)
    predicted = fitted.predict(points, curve.x)
    left_out = left_out_smape_pct(curve, medians, structured.split.families, selection)
    error, noise = smape_pct(predicted, curve.y), noise_pct(curve, predicted, segments)
    notes = unexplained(medians, fitted.predict(medians, medians.x), error, noise, curve.x_name, origin)
    reach: tuple[float | None, float | None] = (float(curve.x[0]), float(curve.x[-1]))
    if not notes:  # what does not explain the points is not continued beyond them
        reach = reach_of(medians, found.tables, found.splits.prior, structured, fitted)
    return FittedModel(
        x=curve.x_name,
        y=curve.y_name,
        points=len(curve.x),
        segments=tuple(_moved(segment, origin, breaks) for segment in segments),
        breakpoints=tuple(_moved_break(bend, origin, breaks) for bend in _breakpoints(points, fitted, intervals)),
        smape_pct=error,
        left_out_smape_pct=left_out,
        noise_pct=noise,
        seconds=time.perf_counter() - began,
        setting=curve.setting,
        reach=(None if reach[0] is None else reach[0] + origin, None if reach[1] is None else reach[1] + origin),
        notes=tuple(notes),
    )


def _moved(segment: CurveSegment, origin: float, breaks: Sequence[float]) -> CurveSegment:
    start, end = (_as_given(edge + origin, breaks) for edge in (segment.start, segment.end))
    return replace(segment, start=start, end=end, origin=origin)


def _moved_break(bend: CurveBreak, origin: float, breaks: Sequence[float]) -> CurveBreak:
    at, low, high = (_as_given(place + origin, breaks) for place in (bend.at, bend.low, bend.high))
    return replace(bend, at=at, low=low, high=high)


def _as_given(place: float, breaks: Sequence[float]) -> float:
    """The place without the rounding of a logarithmic axis, where it was given."""
    nearest = min(breaks, key=lambda given: abs(given - place), default=place)
    return nearest if abs(nearest - place) <= PLACE_ROUNDING * abs(place) else place


@dataclass(frozen=True)
class _Found:
    """A structure, and what it was found from."""

    tables: Mapping[str, NDArray[np.float64]]
    splits: CurveSplits
    structured: structure.Structured


def _find_structure(points: FitPoints, selection: "Selection") -> _Found:
    tables = residual_tables(points, FAMILIES)
    return _Found(tables, *selection(points, tables))


def _leaves_unexplained(curve: MeasuredCurve, points: FitPoints, found: _Found) -> bool:
    """Whether the error is far above the noise that repeats or neighbours show."""
    predicted = found.structured.fit.predict(points, curve.x)
    error, noise = smape_pct(predicted, curve.y), noise_pct(curve, predicted, ())
    return bool(unexplained(points, found.structured.fit.predict(points, points.x), error, noise, "", 0.0))


def _segments(curve: MeasuredCurve, points: FitPoints, fitted: JointFit) -> tuple[CurveSegment, ...]:
    places = [float(points.off_axis(joint.place)) for joint in fitted.joints]
    edges = [float(points.x[0]), *places, float(points.x[-1])]
    which_row = np.searchsorted(places, curve.x, side="right")
    segments = []
    for number, of_segment in enumerate(fitted.curves):
        rows = which_row == number
        error = smape_pct(of_segment(curve.x[rows]), curve.y[rows]) if rows.any() else 0.0
        count = int(rows.sum())
        name = of_segment.name
        segments.append(CurveSegment(edges[number], edges[number + 1], name, of_segment.plain, count, error))
    return tuple(segments)


def _breakpoints(points: FitPoints, fitted: JointFit, intervals: Sequence[tuple[float, float]]) -> Iterator[CurveBreak]:
    for number, (joint, interval) in enumerate(zip(fitted.joints, intervals, strict=True)):
        place = float(points.off_axis(joint.place))
        before, after = (float(curve(np.array([place]))[0]) for curve in fitted.curves[number : number + 2])
        low, high = (float(points.off_axis(end)) for end in interval)
        jump = 0.0 if joint.is_bend else after - before
        yield CurveBreak(place, min(low, place), max(high, place), jump)


# Curves of many points: medians of neighbours show the structure, then all points are fitted.


MOST_POINTS, PARALLEL_FITS = 300, 3
"""Points among which all splits are tried, and fewest neighbours of which there is one median."""


def coarse(points: FitPoints) -> FitPoints:
    """At most `MOST_POINTS` points: medians of about equally many neighbours. Fewer points stay as they are. A median,
    unlike a mean, is nearly never between the two levels of a jump."""
    if len(points) <= MOST_POINTS:
        return points
    groups = np.array_split(np.arange(len(points)), min(MOST_POINTS, len(points) // PARALLEL_FITS))
    axis = points.on_axis(points.x)
    places = np.array([np.median(axis[group]) for group in groups])
    y = np.array([np.median(points.y[group]) for group in groups])
    scale = np.array([1 / np.sqrt(points.weights[group].sum()) for group in groups])
    even = np.ones(len(groups))
    within = np.zeros(len(groups))
    return FitPoints(points.off_axis(places), y, even, within, scale, points.logarithmic, points.rounded_to)


def refit_to_all(points: FitPoints, medians: FitPoints, fit: JointFit) -> JointFit:
    """The fit of medians, fitted to all points: jumps are placed between two of them."""
    if len(medians) == len(points):
        return fit
    deviation = points.scale / np.sqrt(points.rows)
    jumps = [_jump(points, medians, fit, number) for number in range(len(fit.joints))]
    joints = [one if one.is_bend else jump for one, jump in zip(fit.joints, jumps, strict=True)]
    return structure.sound_fit(points, fit.curves, joints, jumps, deviation * _spread(points, fit, deviation))


def _spread(points: FitPoints, fit: JointFit, deviation: Floats) -> Floats:
    """The root mean square deviation in the segment of each point, in units of `deviation`."""
    which = np.searchsorted([joint.place for joint in fit.joints], points.on_axis(points.x), side="right")
    squares = ((points.y - fit.predict(points, points.x)) / deviation) ** 2
    means = np.bincount(which, squares) / np.bincount(which).clip(1)
    return np.asarray(np.sqrt(np.maximum(means, 1e-24))[which])


def _jump(points: FitPoints, medians: FitPoints, fit: JointFit, number: int) -> Joint:
    """A jump between the two points where the curves on both sides explain those near it best."""
    coarse_axis, axis = medians.on_axis(medians.x), points.on_axis(points.x)
    after = int(np.searchsorted(coarse_axis, fit.joints[number].place))
    low, high = coarse_axis[max(after - 2, 0)], coarse_axis[min(after + 1, len(coarse_axis) - 1)]
    near = np.flatnonzero((axis >= low) & (axis <= high))
    weights = points.weights[near]
    left, right = (curve(points.x[near]) for curve in fit.curves[number : number + 2])
    gain = weights * ((points.y[near] - right) ** 2 - (points.y[near] - left) ** 2)
    best = int(np.argmax(np.cumsum(gain)[:-1]))
    return Joint(float(axis[near[best]] + axis[near[best] + 1]) / 2, False)


# The error at points that were left out of the fit.


Selection = Callable[[FitPoints, Mapping[str, Floats]], tuple[CurveSplits, structure.Structured]]
"""Chooses splits and a structure for points, from tables of residual sums of squares by family."""

CROSS_VALIDATION_FOLDS = 5
FEWEST_POINTS = 8
"""Distinct x from which points are left out."""
FAMILIES_ALWAYS_TRIED = ("constant", "linear")
"""Families that are tried beside those of the model."""


def left_out_smape_pct(
    curve: MeasuredCurve, points: FitPoints, families: Iterable[str], selection: Selection
) -> float | None:
    """The sMAPE at every fifth x, predicted by a fit to the others, five times; None for few points. Number and places
    of the segments are found again each time, among the families of the model. The ends are never left out, since
    nothing is extrapolated."""
    if len(points) < FEWEST_POINTS:
        return None
    known = tuple(dict.fromkeys((*families, *FAMILIES_ALWAYS_TRIED)))
    place = np.arange(len(points))
    axis = points.on_axis(points.x)
    nearest = np.searchsorted((axis[:-1] + axis[1:]) / 2, points.on_axis(curve.x))
    predicted = np.full(len(curve.x), np.nan)
    for fold in range(CROSS_VALIDATION_FOLDS):
        left_out = (place % CROSS_VALIDATION_FOLDS == fold) & (place > 0) & (place < len(points) - 1)
        rest, rows = points.part(~left_out), left_out[nearest]
        structured = selection(rest, residual_tables(rest, known))[1]
        exact = with_exact_zeros(structured.fit, float(np.abs(curve.y).max()))
        predicted[rows] = exact.predict(rest, curve.x[rows])
    judged = np.isfinite(predicted)
    return smape_pct(predicted[judged], curve.y[judged])


# The noise of a curve: the error of its points against the true curve.


ENOUGH_POINTS = 10
"""Repeats, beyond the first of each x, from which noise is estimated from them alone."""


def noise_pct(curve: MeasuredCurve, predicted: Floats, segments: tuple[CurveSegment, ...]) -> float:
    """The estimated sMAPE between the measured rows and the true curve. From repeats where there are enough. Else from
    what the fit leaves over, which is less than the noise, as the parameters follow it: by the root of the share of
    points that parameters do not take."""
    x, place = np.unique(curve.x, return_inverse=True)
    rows = np.bincount(place)
    if len(curve.x) - len(x) >= ENOUGH_POINTS:
        mean = np.bincount(place, curve.y) / rows
        repeated = rows[place] > 1
        inflated = np.sqrt(rows / np.maximum(rows - 1, 1))[place]
        return _mean_pct((inflated * _relative(curve.y, mean[place]))[repeated])
    errors = _relative(curve.y, predicted)
    for segment in segments:
        inside = (curve.x >= segment.start) & ((curve.x < segment.end) | (segment is segments[-1]))
        left = segment.points - FAMILIES[segment.family].size
        errors[inside] *= np.sqrt(segment.points / left) if left > 0 else 1.0
    return _mean_pct(errors)


def _relative(one: Floats, other: Floats) -> Floats:
    scale = np.abs(one) + np.abs(other)
    return np.asarray(np.divide(np.abs(one - other), scale, out=np.zeros_like(scale), where=scale > 0))


def _mean_pct(errors: Floats) -> float:
    return min(float(100.0 * errors.mean()), 100.0)


# Where a breakpoint probably is: the density of its place, as a jump and as a bend.


INTERVAL_COVERAGE = 0.9


def place_interval(
    points: FitPoints, tables: Mapping[str, Floats], prior: NoisePrior, structured: structure.Structured, number: int
) -> tuple[float, float]:
    """The interval on the axis that contains the breakpoint of that number, from 0, with a probability of 90 %. Before
    it was measured, every place is equally likely. Its neighbours, and the families beside it, are taken as they are.
    Jump and bend count by how well they explain the points; a jump is anywhere between two of them."""
    starts = [*structured.split.starts, len(points)]
    first, end = starts[number], starts[number + 2]
    edges = points.on_axis(points.x[first:end])
    cells = np.repeat(np.diff(edges) / structure.PER_GAP, structure.PER_GAP)
    # Of a jump in each gap between points from `first` to before `end`, less that of the best.
    left, right = structured.split.families[number : number + 2]
    gaps = np.arange(first + 1, end)
    costs = np.full(len(gaps), np.inf)
    sizes = FAMILIES[left].size, FAMILIES[right].size
    beyond = 0 if points.noise_known else 1
    enough = (gaps - first >= sizes[0] + beyond) & (end - gaps >= sizes[1] + beyond)
    of = gaps[enough]
    costs[enough] = prior.cost(tables[left][first, of - 1], of - first, sizes[0])
    costs[enough] += prior.cost(tables[right][of, end - 1], end - of, sizes[1])
    jump = np.repeat(np.asarray(costs - costs.min()), structure.PER_GAP)
    bend = np.full(len(cells), np.inf)
    margin = (points.bend_margin - 1) * structure.PER_GAP
    inner = slice(margin, len(cells) - margin)
    bend[inner] = _bend_costs(points, structured, number, first, end)
    least = min(jump.min(), bend.min())
    density = cells * (np.exp(-0.5 * (jump - least)) + np.exp(-0.5 * (bend - least)))
    low, high = _quantiles(np.r_[edges[0], edges[0] + np.cumsum(cells)], density)
    at = structured.fit.joints[number].place
    return min(low, at), max(high, at)


def _bend_costs(points: FitPoints, structured: structure.Structured, number: int, first: int, end: int) -> Floats:
    """Of a bend at each place that is tried, less that of the best jump."""
    left, right = structured.alone[number : number + 2]
    places = structure.bend_places(points, first, end)
    squares = structure.bend_squares(points, structured.deviation, left, right, first, end, places)
    return np.asarray(squares - structure.apart_squares(points, structured, number) - np.log(len(points)))


def _quantiles(edges: Floats, density: Floats) -> tuple[float, float]:
    """The middle 90 % of what is spread evenly within each cell."""
    total = np.r_[0.0, np.cumsum(density)]
    low, high = np.interp([(1 - INTERVAL_COVERAGE) / 2, (1 + INTERVAL_COVERAGE) / 2], total / total[-1], edges)
    return float(low), float(high)
