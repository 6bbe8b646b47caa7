"""All segments fitted together: where a curve only bends, neighbours share their value at the breakpoint."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from predictor.fitting.points import FitPoints
from predictor.fitting.residuals import DERIVATIVE_STEP, LocalCurve
from profiles.arrays import Floats

VALUE_ROUNDING = 1e-12  # of a value, as a share of the largest
FAR_COST = 1e6  # a residual, in standard deviations, of what is not defined


@dataclass(frozen=True)
class Joint:
    """Where two segments meet."""

    place: float  # on the axis
    is_bend: bool  # whether the value is the same on both sides; its place is then fitted, too


@dataclass(frozen=True)
class JointFit:
    """Curves of all segments, and where they meet."""

    curves: tuple[LocalCurve, ...]  # of the segments
    joints: tuple[Joint, ...]  # between them
    squares: float  # sum of squared residuals, in standard deviations

    @property
    def size(self) -> int:
        """Number of parameters, without the places."""
        return sum(curve.family.size for curve in self.curves) - sum(joint.is_bend for joint in self.joints)

    def predict(self, points: FitPoints, x: Floats) -> Floats:
        """Values at x."""
        return _predict(points, self.curves, [joint.place for joint in self.joints], x)


def with_exact_zeros(fit: JointFit, largest: float) -> JointFit:
    """The fit, in which a constant that is zero but for rounding is zero; `largest` is the largest |y|."""
    near = VALUE_ROUNDING * largest
    curves = [
        replace(curve, numbers=(0.0,)) if curve.name == "constant" and abs(curve.numbers[0]) < near else curve
        for curve in fit.curves
    ]
    return replace(fit, curves=tuple(curves))


def _predict(points: FitPoints, curves: Sequence[LocalCurve], places: Sequence[float], x: Floats) -> Floats:
    which = np.searchsorted(places, points.on_axis(x), side="right")
    with np.errstate(all="ignore"):
        return np.asarray(np.select([which == k for k in range(len(curves))], [curve(x) for curve in curves]))


def fit_together(
    points: FitPoints, curves: Sequence[LocalCurve], joints: Sequence[Joint], deviation: Floats
) -> JointFit:
    """Least squares of all curves at once. `points`: to fit. `curves` and `joints`: where to begin; places of jumps
    stay. `deviation`: standard deviation of each point, shape (points,)."""
    problem = _Problem(points, tuple(curves), tuple(joints), deviation)
    begin = problem.packed()
    if not np.isfinite(begin).all():
        return JointFit(tuple(curves), tuple(joints), np.inf)
    best = least_squares(problem.residuals, problem.slopes, begin)
    unpacked, places = problem.unpacked(best)
    joined = tuple(Joint(place, one.is_bend) for place, one in zip(places, joints, strict=True))
    return JointFit(unpacked, joined, float((problem.residuals(best) ** 2).sum()))


@dataclass(frozen=True)
class _Problem:
    """Parameters as one vector: factors of the columns in their own units, rates times spans, places of bends."""

    points: FitPoints
    curves: tuple[LocalCurve, ...]
    joints: tuple[Joint, ...]
    deviation: Floats

    @cached_property
    def _units(self) -> list[Floats]:
        """The size of each factor: that of the target over that of the column."""
        units = []
        places = [-np.inf, *(joint.place for joint in self.joints), np.inf]
        axis = self.points.on_axis(self.points.x)
        for curve, low, high in zip(self.curves, places[:-1], places[1:], strict=True):
            x = self.points.x[(axis >= low) & (axis < high)]
            x = x if len(x) else self.points.x
            columns = curve.family.local_columns(x, curve.start, curve.span, curve.rate)
            size = float(np.abs(curve.sum(x)).max()) or 1.0
            units.append(np.array([size / (float(np.nanmax(np.abs(column))) or 1.0) for column in columns]))
        return units

    def packed(self) -> Floats:
        numbers: list[float] = []
        for k, (curve, unit) in enumerate(zip(self.curves, self._units, strict=True)):
            free = 1 if k and self.joints[k - 1].is_bend else 0
            numbers += (np.array(curve.numbers) / unit)[free:].tolist()
            if curve.family.has_rate:
                numbers.append(curve.rate * curve.family.rate_unit(curve.span))
        moved = [(joint.place - self._low) / self._length for joint in self.joints if joint.is_bend]
        return np.array([*numbers, *moved])

    @cached_property
    def _low(self) -> float:
        return float(self.points.on_axis(self.points.x[0]))

    @cached_property
    def _length(self) -> float:
        return float(self.points.on_axis(self.points.x[-1])) - self._low

    def unpacked(self, vector: Floats) -> tuple[tuple[LocalCurve, ...], list[float]]:
        """Curves and places."""
        bends = sum(joint.is_bend for joint in self.joints)
        moved = iter((vector[len(vector) - bends :] * self._length + self._low).tolist())
        places = [next(moved) if joint.is_bend else joint.place for joint in self.joints]
        curves: list[LocalCurve] = []
        at = 0
        for k, (curve, unit) in enumerate(zip(self.curves, self._units, strict=True)):
            bend = bool(k) and self.joints[k - 1].is_bend
            terms = curve.family.terms - bend
            numbers = vector[at : at + terms] * unit[bend:]
            rate = vector[at + terms] / curve.family.rate_unit(curve.span) if curve.family.has_rate else 0.0
            at += terms + curve.family.has_rate
            if bend:
                numbers = np.r_[0.0, numbers]
            one = LocalCurve(curve.name, curve.start, curve.span, tuple(numbers.tolist()), float(rate))
            curves.append(self._continued(curves[-1], one, places[k - 1]) if bend else one)
        return tuple(curves), places

    def _continued(self, last: LocalCurve, curve: LocalCurve, place: float) -> LocalCurve:
        """The curve with the first factor that makes it begin where the last one ends."""
        x = self.points.off_axis(np.array([place]))
        with np.errstate(all="ignore"):
            value = last(x)
            first = float(((1.0 / value if curve.family.reciprocal else value) - curve.sum(x))[0])
        return LocalCurve(curve.name, curve.start, curve.span, (first, *curve.numbers[1:]), curve.rate)

    def residuals(self, vector: Floats) -> Floats:
        """In standard deviations."""
        curves, places = self.unpacked(vector)
        predicted = _predict(self.points, curves, places, self.points.x)
        with np.errstate(all="ignore"):
            scaled = (self.points.y - predicted) / self.deviation
        return np.asarray(
            np.clip(np.nan_to_num(scaled, nan=FAR_COST, posinf=FAR_COST, neginf=-FAR_COST), -FAR_COST, FAR_COST)
        )

    def slopes(self, vector: Floats) -> Floats:
        """Derivatives of the residuals, shape (points, parameters)."""
        curves, places = self.unpacked(vector)
        axis = self.points.on_axis(self.points.x)
        which = np.searchsorted(places, axis, side="right")
        table = np.zeros((len(axis), len(vector)))
        with np.errstate(all="ignore"):
            last: _Slopes | None = None
            for k, curve in enumerate(curves):
                # How the curve of segment k depends on the vector.
                parameters = len(vector)
                bend = bool(k) and self.joints[k - 1].is_bend
                units = np.r_[self._units[k], 1.0][: curve.family.size]
                own = np.zeros((curve.family.size, parameters))
                at = sum(earlier.family.size for earlier in self.curves[:k]) - sum(
                    joint.is_bend for joint in self.joints[: max(k - 1, 0)]
                )
                numbers = np.arange(int(bend), curve.family.size)
                own[numbers, at + numbers - bend] = units[bend:]
                if bend:
                    assert last is not None
                    end = self.points.off_axis(np.array([places[k - 1]]))
                    by_own = curve.linearised(end)[1][0]
                    first = last(end)[0] - by_own @ own
                    place = parameters - sum(joint.is_bend for joint in self.joints[k - 1 :])
                    first[place] += _turn(self.points, last.curve, curve, places[k - 1]) * self._length
                    own[0] = first / by_own[0]
                last = _Slopes(curve, own)
                table[which == k] = last(self.points.x[which == k])
            table /= -self.deviation[:, None]
        return np.nan_to_num(table, nan=0.0, posinf=0.0, neginf=0.0)


@dataclass(frozen=True)
class _Slopes:
    """A curve, and the derivatives of its parameters by the vector, shape (parameters, length of the vector)."""

    curve: LocalCurve
    by_vector: Floats

    def __call__(self, x: Floats) -> Floats:
        """Derivatives of the values at x by the vector."""
        return np.asarray(self.curve.linearised(x)[1] @ self.by_vector)


def _turn(points: FitPoints, left: LocalCurve, right: LocalCurve, place: float) -> float:
    """By how much the left curve is steeper than the right one, along the axis."""
    step = DERIVATIVE_STEP * float(points.on_axis(points.x[-1]) - points.on_axis(points.x[0]))
    x = points.off_axis(np.array([place - step, place + step]))
    return float(np.diff(left(x))[0] - np.diff(right(x))[0]) / (2 * step)


# Non-linear least squares by Levenberg and Marquardt's method (More 1978), for a few dozen parameters.
#
# SciPy has it, too, but takes longer to import than a curve takes to fit.


SOLVER_ROUNDS = 40  # most steps that are tried
CLOSE_STEP = 1e-7  # relative change of the sum of squares at which it has settled
FIRST_DAMPING, DAMPING_DECREASE, DAMPING_INCREASE, MOST_DAMPING = 1e-3, 0.2, 5.0, 1e10
"""Of the first step, factors after a step that helps and one that does not, and where to give up."""


def least_squares(residuals: Callable[[Floats], Floats], slopes: Callable[[Floats], Floats], begin: Floats) -> Floats:
    """The parameters of the least sum of squared residuals near `begin`, shape of `begin`. `residuals`: at parameters,
    shape (points,); finite. `slopes`: their derivatives, shape (points, parameters). `begin`: where to begin."""
    at, rest = begin, residuals(begin)
    squares, table, damping = float(rest @ rest), slopes(begin), FIRST_DAMPING
    unit = np.zeros(len(begin))
    for _ in range(SOLVER_ROUNDS):
        unit = np.maximum(unit, np.linalg.norm(table, axis=0))
        trial = at - _step(table, rest, np.where(unit > 0, unit, 1.0), damping)
        rest_there = residuals(trial)
        squares_there = float(rest_there @ rest_there)
        if not squares_there < squares:
            damping *= DAMPING_INCREASE
            if damping > MOST_DAMPING:
                break
            continue
        settled = squares - squares_there <= CLOSE_STEP * squares
        at, rest, squares = trial, rest_there, squares_there
        if settled:
            break
        table, damping = slopes(at), damping * DAMPING_DECREASE
    return at


def _step(table: Floats, rest: Floats, unit: Floats, damping: float) -> Floats:
    """The step that lessens the linearised sum of squares, damped in proportion to each parameter's unit."""
    damped = np.concatenate([table / unit, np.sqrt(damping) * np.eye(len(unit))])
    target = np.concatenate([rest, np.zeros(len(unit))])
    step: Floats = np.linalg.lstsq(damped, target, rcond=None)[0] / unit
    return step
