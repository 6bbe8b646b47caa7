"""The structure of a curve: how many segments, of which families, and which breakpoints are jumps and which bends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from predictor.fitting.family import FAMILIES, Family
from predictor.fitting.joint import Joint, JointFit, fit_together
from predictor.fitting.points import FitPoints
from predictor.fitting.residuals import LocalCurve, fit_alone
from predictor.fitting.splits import CurveSplit, CurveSplits, NoisePrior, best_splits, parameter_cost
from profiles.arrays import Floats

EXACT_ROUNDS = 4  # of fitting the best rates of segments, and splitting again
SPLITS_TRIED = 4  # splits, the best of each number of segments, that are fitted with bends
LAST_RESORT = ("constant", "linear")  # families that never leave their points far
LOOKED_AT, RANGE_BEYOND = 50, 3.0
"""Places of a segment where its curve must be defined, and how far, in ranges of its points, it may be beyond them."""
NARROWING_ROUNDS, TRIED_NEAR = 7, 9
"""How often the place of a bend is searched more finely, and places that are tried each time."""
UNLIKE_NOISE_RATIO = 2.0  # ratio of the noise of two segments from which the split is looked at again with equal noise


@dataclass(frozen=True)
class Structured:
    """A split, fitted with bends and jumps."""

    split: CurveSplit  # runs of points, and their families
    alone: tuple[LocalCurve, ...]  # the curve of each segment, fitted to its points alone
    fit: JointFit  # the curves fitted together, and where they meet
    deviation: Floats  # standard deviation of each point, shape (points,)
    cost: float  # as of a split; each bend saves a parameter


def find_structure(
    points: FitPoints, tables: Mapping[str, Floats], *, continuous: bool = False
) -> tuple[CurveSplits, Structured]:
    """The structure that explains the points best, among the families of the tables of residual sums of squares. Where
    every structure has a pole or a spike between points, which is rare, only polynomials and the like are tried.
    `continuous`: whether there are no jumps."""
    exact = _with_exact_rates(points, tables)
    for simpler in (exact, {name: tables[name] for name in tables if _is_plain(FAMILIES[name])}):
        splits = best_splits(points, simpler)
        best = _best_structure(points, splits, continuous)
        if np.isfinite(best.cost):
            return splits, best
    splits = best_splits(points, {name: tables[name] for name in LAST_RESORT})
    return splits, _best_structure(points, splits, continuous)


def _with_exact_rates(points: FitPoints, tables: Mapping[str, Floats]) -> Mapping[str, Floats]:
    """The tables, with the best rates, not only the best of those that are tried, wherever a segment may be chosen."""
    rated = {name: table.copy() for name, table in tables.items() if FAMILIES[name].has_rate}
    exact, known = {**tables, **rated}, set[tuple[int, int]]()
    runs = {(0, len(points))}
    for _ in range(EXACT_ROUNDS if rated else 0):
        for first, end in sorted(runs - known):
            for name, table in rated.items():
                if np.isfinite(table[first, end - 1]):
                    curve = fit_alone(points, name, first, end)
                    table[first, end - 1] = min(
                        table[first, end - 1], _squares(points, points.scale / np.sqrt(points.rows), curve, first, end)
                    )
        known |= runs
        splits = sorted(best_splits(points, exact).by_count, key=lambda split: split.cost)[:SPLITS_TRIED]
        runs = {run for split in splits for run in zip(split.starts, split.ends(len(points)), strict=True)}
        if runs <= known:
            break
    return exact


def _is_plain(family: Family) -> bool:
    return not family.reciprocal and not family.has_rate


def find_steps(points: FitPoints, tables: Mapping[str, Floats]) -> tuple[CurveSplits, Structured]:
    """The levels that explain the points best."""
    splits = best_splits(points, {"constant": tables["constant"]}, quiet=True)
    return splits, fit_split(points, splits.best, splits.prior)


def structure_at(
    points: FitPoints, tables: Mapping[str, Floats], *, places: Sequence[float], steps: bool
) -> tuple[CurveSplits, Structured]:
    """The families that explain the points best between given places on the axis; levels only with `steps`."""
    splits = best_splits(points, tables)
    axis = points.on_axis(points.x)
    starts = [0, *np.searchsorted(axis, places).tolist()]
    kept = [number for number, start in enumerate(starts) if start < [*starts, len(axis)][number + 1]]
    starts = [starts[number] for number in kept]
    families = []
    for first, end in zip(starts, [*starts[1:], len(axis)], strict=True):
        allowed = [name for name in tables if end - first > FAMILIES[name].size and not steps]
        costs = {
            name: float(
                splits.prior.cost(tables[name][first, [end - 1]], np.array([end - first]), FAMILIES[name].size)[0]
            )
            + parameter_cost(name, len(points))
            for name in allowed
        }
        families.append(min(costs, key=lambda name: costs[name]) if costs else "constant")
    split = CurveSplit((0, *starts[1:]), tuple(families), 0.0)
    joints = [Joint(places[number - 1], False) for number in kept[1:]]
    return splits, fit_split(points, split, splits.prior, joints)


def _best_structure(points: FitPoints, splits: CurveSplits, continuous: bool) -> Structured:
    """Of the best splits; one is not looked at where bends cannot make it the best."""
    first, *others = sorted(splits.by_count, key=lambda one: one.cost)[: None if continuous else SPLITS_TRIED]
    best = bend_split(points, first, splits.prior, continuous)
    for split in others:
        saved = (len(split.starts) - 1) * float(np.log(len(points)))
        if split.cost - saved < best.cost:
            best = min(best, bend_split(points, split, splits.prior, continuous), key=lambda one: one.cost)
    return best


def fit_split(
    points: FitPoints, split: CurveSplit, prior: NoisePrior, joints: Sequence[Joint] | None = None
) -> Structured:
    """One split without bends; jumps halfway between two points, or at the given places."""
    runs = list(zip(split.starts, split.ends(len(points)), strict=True))
    curves = [fit_alone(points, family, *run) for family, run in zip(split.families, runs, strict=True)]
    deviation = _deviation(points, curves, runs, prior)
    jumps = _jumps(points, split) if joints is None else joints
    fit = fit_together(points, curves, jumps, deviation)
    return Structured(split, tuple(curves), fit, deviation, split.cost)


def _jumps(points: FitPoints, split: CurveSplit) -> list[Joint]:
    axis = points.on_axis(points.x)
    return [Joint(float(axis[first - 1] + axis[first]) / 2, False) for first in split.starts[1:]]


def bend_split(points: FitPoints, split: CurveSplit, prior: NoisePrior, continuous: bool) -> Structured:
    """One split, with a bend wherever a jump does not explain the points better by more than its parameter costs. Where
    it must be continuous, one with a jump has an infinite cost."""
    runs = list(zip(split.starts, split.ends(len(points)), strict=True))
    curves = [fit_alone(points, family, *run) for family, run in zip(split.families, runs, strict=True)]
    deviation = _deviation(points, curves, runs, prior)
    jumps = _jumps(points, split)
    joints = [_joint(points, deviation, curves, runs, number, jump, continuous) for number, jump in enumerate(jumps)]
    fit = sound_fit(points, curves, joints, jumps, deviation)
    alone = sum(_squares(points, deviation, curve, *run) for curve, run in zip(curves, runs, strict=True))
    bends = sum(joint.is_bend for joint in fit.joints)
    if not _is_defined(points, fit, deviation) or (continuous and bends < len(jumps)):
        return Structured(split, tuple(curves), fit, deviation, np.inf)
    cost = split.cost + fit.squares - alone - bends * float(np.log(len(points)))
    return Structured(split, tuple(curves), fit, deviation, cost)


def _is_defined(points: FitPoints, fit: JointFit, deviation: Floats) -> bool:
    """Whether no curve has a pole or a spike between its points."""
    axis = points.on_axis(points.x)
    edges = [axis[0], *(joint.place for joint in fit.joints), axis[-1]]
    for curve, low, high in zip(fit.curves, edges[:-1], edges[1:], strict=True):
        ends = points.off_axis(np.array([low, high]))
        x = np.r_[points.off_axis(np.linspace(low, high, LOOKED_AT)), np.linspace(ends[0], ends[1], LOOKED_AT)]
        inside = (axis >= low) & (axis <= high)
        y = points.y[inside]
        with np.errstate(all="ignore"):
            sums = curve.sum(x)
            values = curve(x)
        if not np.isfinite(values).all() or (curve.family.reciprocal and sums.min() <= 0 <= sums.max()):
            return False
        noise = float(deviation[inside].max()) + np.finfo(float).eps * float(np.abs(y).max())
        beyond = RANGE_BEYOND * (float(np.ptp(y)) + noise)
        if values.min() < y.min() - beyond or values.max() > y.max() + beyond:
            return False
    return bool(np.isfinite(fit.squares))


def noise_differs(points: FitPoints, structured: Structured) -> bool:
    """Whether neighbouring segments have noise so unlike that they may differ in nothing else."""
    noise = structured.deviation * np.sqrt(points.rows) / points.scale
    by_segment = noise[list(structured.split.starts)]
    return bool(np.any(np.abs(np.diff(np.log(by_segment))) > np.log(UNLIKE_NOISE_RATIO)))


def apart_squares(points: FitPoints, structured: Structured, number: int) -> float:
    """The sum of squares of the two segments beside the breakpoint of that number, each fitted alone."""
    edges = [*structured.split.starts, len(points)][number : number + 3]
    runs = zip(structured.alone[number : number + 2], edges[:-1], edges[1:], strict=True)
    return sum(_squares(points, structured.deviation, curve, first, end) for curve, first, end in runs)


def _deviation(points: FitPoints, curves: list[LocalCurve], runs: list[tuple[int, int]], prior: NoisePrior) -> Floats:
    """Standard deviation of each point, by what is left over in its segment."""
    deviation = points.scale / np.sqrt(points.rows)
    for curve, (first, end) in zip(curves, runs, strict=True):
        squares = _squares(points, deviation, curve, first, end)
        deviation[first:end] *= np.sqrt(prior.variance_of(squares, end - first, curve.family.size))
    return deviation


def _squares(points: FitPoints, deviation: Floats, curve: LocalCurve, first: int, end: int) -> float:
    run = slice(first, end)
    return float((((points.y[run] - curve(points.x[run])) / deviation[run]) ** 2).sum())


def _joint(
    points: FitPoints,
    deviation: Floats,
    curves: list[LocalCurve],
    runs: list[tuple[int, int]],
    number: int,
    jump: Joint,
    continuous: bool,
) -> Joint:
    """The jump, or a bend at its best place; that if the curve must be continuous."""
    (first, middle), (_, end) = runs[number : number + 2]
    left, right = curves[number : number + 2]
    places = bend_places(points, first, end)
    squares = bend_squares(points, deviation, left, right, first, end, places)
    if not len(squares) or not np.isfinite(squares).any():
        return jump
    best = int(squares.argmin())
    place, least = float(places[best]), float(squares[best])
    apart = _squares(points, deviation, left, first, middle) + _squares(points, deviation, right, middle, end)
    width = float(np.diff(places).max(initial=0.0))
    margin = np.inf if continuous else np.log(len(points))
    for _ in range(NARROWING_ROUNDS):  # where noise is small, a bend a little aside looks like a jump
        if least - apart < np.log(len(points)):
            return Joint(place, True)
        near = np.linspace(place - width, place + width, TRIED_NEAR)
        squares = bend_squares(points, deviation, left, right, first, end, near)
        best, width = int(squares.argmin()), 2 * width / (TRIED_NEAR - 1)
        place, least = (float(near[best]), float(squares[best])) if squares[best] < least else (place, least)
    return Joint(place, True) if least - apart < margin else jump


def sound_fit(
    points: FitPoints, curves: Sequence[LocalCurve], joints: Sequence[Joint], jumps: Sequence[Joint], deviation: Floats
) -> JointFit:
    """The joint fit; where a bend runs away, or leaves a segment without points, it is fitted as the jump."""
    axis = points.on_axis(points.x)
    beyond = 0 if points.noise_known else 1
    least = np.array([max(points.bend_margin, curve.family.size) + beyond for curve in curves])
    while True:
        fit = fit_together(points, curves, joints, deviation)
        places = [axis[0], *(joint.place for joint in fit.joints), axis[-1]]
        points_of = np.bincount(np.searchsorted(np.sort(places[1:-1]), axis, side="right"), minlength=len(curves))
        away = [
            number
            for number, joint in enumerate(fit.joints)
            if joint.is_bend
            and not (
                places[number] < joint.place < places[number + 2]
                and np.all(points_of[number : number + 2] >= least[number : number + 2])
            )
        ]
        if not away:
            return fit
        joints = [jumps[number] if number in away else joint for number, joint in enumerate(joints)]


# Where two neighbouring curves meet: how well every place of a bend, and of a jump, explains their points.


PER_GAP = 3  # places of a bend that are tried between two points
RIDGE_SHARE = 1e-11


def bend_places(points: FitPoints, first: int, end: int) -> Floats:
    """Places on the axis that are tried for a bend, some points from either end."""
    axis, margin = points.on_axis(points.x[first:end]), points.bend_margin
    inner = axis[margin - 1 : len(axis) - margin + 1]
    if len(inner) < 2:
        return np.empty(0)
    shares = (np.arange(PER_GAP) + 0.5) / PER_GAP
    return np.asarray((inner[:-1, None] + np.diff(inner)[:, None] * shares).ravel())


def bend_squares(
    points: FitPoints, deviation: Floats, left: LocalCurve, right: LocalCurve, first: int, end: int, places: Floats
) -> Floats:
    """The sum of squares of the points from `first` to before `end`, for a bend at each place; shape (places,). Both
    curves are fitted again at each place, linearised about what they are; infinite where they are not defined."""
    x, y = points.x[first:end], points.y[first:end]
    at = points.off_axis(places)
    with np.errstate(all="ignore"):
        of_left, slopes_left = left.linearised(x)
        of_right, slopes_right = right.linearised(x)
        end_left, end_slopes_left = left.linearised(at)
        end_right, end_slopes_right = right.linearised(at)
        ratio = slopes_right[:, 0] / end_slopes_right[:, :1]  # (places, points)
        before = (points.on_axis(x) < places[:, None])[..., None]
        of_step = ratio * (end_left - end_right)[:, None]
        rest = np.where(before[..., 0], y - of_left, y - of_right - of_step) / deviation[first:end]
        through = ratio[..., None] * end_slopes_left[:, None, :]
        own = slopes_right[:, 1:] - ratio[..., None] * end_slopes_right[:, None, 1:]
        table = np.concatenate([np.where(before, slopes_left, through), np.where(before, 0.0, own)], axis=2)
        table = table / deviation[first:end, None]
    sound = np.isfinite(table).all(axis=(1, 2)) & np.isfinite(rest).all(axis=1)
    squares = np.full(len(places), np.inf)
    squares[sound] = _least_squares(table[sound], rest[sound])
    return squares


def _least_squares(tables: Floats, rests: Floats) -> Floats:
    """Sums of squares of many small problems, shape (problems,)."""
    if not len(tables):
        return np.empty(0)
    unit = np.sqrt((tables**2).sum(axis=1, keepdims=True))
    scaled = tables / np.where(unit > 0, unit, 1.0)
    normal = np.swapaxes(scaled, 1, 2) @ scaled + RIDGE_SHARE * np.eye(scaled.shape[2])
    numbers = np.linalg.solve(normal, np.swapaxes(scaled, 1, 2) @ rests[..., None])
    return np.asarray(((rests - (scaled @ numbers)[..., 0]) ** 2).sum(axis=1))
