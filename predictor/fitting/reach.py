"""What a fit does not know: how far it may be continued beyond what was measured, and what it leaves unexplained."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.family import FAMILIES
from predictor.fitting.joint import JointFit
from predictor.fitting.points import FitPoints
from predictor.fitting.residuals import LocalCurve, fit_alone
from predictor.fitting.splits import NoisePrior, parameter_cost
from predictor.fitting.structure import Structured
from profiles.arrays import Floats

AGREEMENT = 0.1  # a formula is continued as far as it is known to this share
PLAUSIBLE_COST = 6.0  # families this much worse than the best, or less, may be the true ones
SURE_DEVIATIONS = 1.645  # standard deviations of an interval of 90 %
SPANS_BEYOND, PLACES_BEYOND = 3.0, 60  # how far beyond the range that is looked at, in its spans
MOST_TERMS = 3  # columns of a family that is continued: polynomials of more describe the points, and say nothing beyond
LENGTHS_BEYOND = 5.0  # how far beyond the range a segment may be continued, in its own lengths
FAR_ABOVE_NOISE = 2.0  # an error so many times the noise of repeats is not explained
FAR_ABOVE_NEIGHBOURS, ENOUGH_NEIGHBOURS = 3.0, 10
"""The same beside what neighbouring points show, and how many of them are needed for that."""


def reach_of(
    points: FitPoints, tables: Mapping[str, Floats], prior: NoisePrior, structured: Structured, fitted: JointFit
) -> tuple[float | None, float | None]:
    """The least and the largest x to which the outer formulas may be continued: the families that explain the points of
    the segment about as well agree there within 10 %, its parameters are known as well, and it is not far shorter than
    what it is continued by; None where that holds as far as three spans beyond."""
    starts = [*structured.split.starts, len(points)]
    first, last, span = points.x[0], points.x[-1], float(points.x[-1] - points.x[0])
    steps = span * SPANS_BEYOND * np.arange(1, PLACES_BEYOND + 1) / PLACES_BEYOND
    axis = points.on_axis(points.x[[0, -1]])
    below = points.off_axis(axis[0] - (axis[1] - axis[0]) * np.arange(1, PLACES_BEYOND + 1) / PLACES_BEYOND)
    ends: list[float | None] = []
    edges = points.off_axis(np.array([joint.place for joint in fitted.joints]))
    for x, curve, run, length in (
        (
            below if points.logarithmic else first - steps,
            fitted.curves[0],
            (starts[0], starts[1]),
            edges[0] - first if len(edges) else span,
        ),
        (last + steps, fitted.curves[-1], (starts[-2], starts[-1]), last - edges[-1] if len(edges) else span),
    ):
        doubtful = _is_doubtful(points, tables, prior, structured.deviation, curve, run, x)
        doubtful |= np.minimum(np.abs(x - first), np.abs(x - last)) > LENGTHS_BEYOND * length
        begun = first if x[0] < first else last
        ends.append(float(np.r_[begun, x][int(doubtful.argmax())]) if doubtful.any() else None)
    return ends[0], ends[1]


def _is_doubtful(
    points: FitPoints,
    tables: Mapping[str, Floats],
    prior: NoisePrior,
    deviation: Floats,
    curve: LocalCurve,
    run: tuple[int, int],
    x: Floats,
) -> NDArray[np.bool_]:
    """Whether the curve at x is not known within 10 %, shape of x."""
    first, end = run
    if curve.family.terms > MOST_TERMS:
        return np.ones(len(x), dtype=bool)
    with np.errstate(all="ignore"):
        values = curve(x)
        slopes = curve.linearised(points.x[first:end])[1] / deviation[first:end, None]
        unit = np.linalg.norm(slopes, axis=0)
        unit = np.where(unit > 0, unit, 1.0)
        root = np.linalg.pinv(slopes / unit)
        spread = np.linalg.norm(curve.linearised(x)[1] / unit @ root, axis=1)
        room = AGREEMENT * np.abs(values)
        doubtful = ~(SURE_DEVIATIONS * spread <= room)
        for other in _plausible(points, tables, prior, run):
            doubtful |= ~(np.abs(other(x) - values) <= room)
    return np.asarray(doubtful)


def _plausible(
    points: FitPoints, tables: Mapping[str, Floats], prior: NoisePrior, run: tuple[int, int]
) -> list[LocalCurve]:
    """Of every family that explains the points of a run about as well as the best, the best curve."""
    first, end = run
    count = end - first
    found = []
    for name, table in tables.items():
        if count > FAMILIES[name].size and np.isfinite(table[first, end - 1]):
            curve = fit_alone(points, name, first, end)
            left = (points.y[first:end] - curve(points.x[first:end])) ** 2 * points.weights[first:end]
            cost = prior.cost(np.array([left.sum()]), np.array([count]), curve.family.size)
            found.append((float(cost[0]) + parameter_cost(name, len(points)), curve))
    least = min((cost for cost, _ in found), default=0.0)
    return [curve for cost, curve in found if cost <= least + PLAUSIBLE_COST]


def unexplained(
    points: FitPoints, predicted: Floats, error_pct: float, noise_pct: float, x_name: str, shown: float
) -> Sequence[str]:
    """A sentence that says that the error is far above the noise, and what would help; none where it is not. `points`
    and `predicted`: what was fitted, and the model there. `shown`: what is added to x where it is named."""
    off = np.abs(points.y - predicted)
    in_noise = off / (points.scale / np.sqrt(points.rows))
    if points.noise_known:
        if error_pct <= FAR_ABOVE_NOISE * noise_pct:
            return ()
        times, source = error_pct / max(noise_pct, 1e-9), f"the noise that repeats show, {noise_pct:.2g} %"
    else:
        quiet = max(points.noise_of_neighbours(), points.resolved_noise(), points.noise_of_rounding())
        times = float(np.sqrt(np.median(in_noise**2) / 0.455 / quiet))
        if len(points) < ENOUGH_NEIGHBOURS or times <= FAR_ABOVE_NEIGHBOURS:
            return ()
        source = "by what neighbouring points differ"
    worst = int(np.argmax(in_noise))
    x = points.x + shown
    near = [f"{x[at]:.10g}" for at in (worst - 1, worst + 1) if 0 <= at < len(x)]
    between = f"between {near[0]} and {near[1]}" if len(near) == 2 else f"between {x[worst]:.10g} and {near[0]}"
    share = 100 * off[worst] / max(abs(points.y[worst]), 1e-300)
    return (
        f"the error, {error_pct:.2g} %, is {times:.0f} times {source}: the formula does not explain the curve; it is "
        f"farthest off at {x_name} {x[worst]:.10g}, by {share:.2g} %: measure more {x_name} {between}",
    )
