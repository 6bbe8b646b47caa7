"""The structure of a curve: how many segments, of which families, and which breakpoints are jumps and which bends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.bends import bend_places, bend_squares
from predictor.fitting.evidence import NoisePrior
from predictor.fitting.joint import Joint, JointFit, LocalCurve, fit_together, fitted_alone
from predictor.fitting.points import FitPoints
from predictor.fitting.splits import CurveSplit, CurveSplits

Array = NDArray[np.float64]

LOOKED_AT = 50
"""Places of a segment where its curve must be defined."""
MARGIN = 2
"""Fewest points between a bend and the next breakpoint."""


@dataclass(frozen=True)
class Structured:
    """A split, fitted with bends and jumps.

    Parameters
    ----------
    split
        Runs of points, and their families.
    alone
        The curve of each segment, fitted to its points alone.
    fit
        The curves fitted together, and where they meet.
    deviation
        Standard deviation of each point, shape (points,).
    cost
        As of a split; each bend saves a parameter.
    """

    split: CurveSplit
    alone: tuple[LocalCurve, ...]
    fit: JointFit
    deviation: Array
    cost: float


def best_structure(points: FitPoints, splits: CurveSplits) -> Structured:
    """The structure that explains the points best; a split is not looked at where bends cannot make it the best."""
    best = structured(points, splits.best, splits.prior)
    for split in sorted(splits.by_count, key=lambda one: one.cost):
        saved = (len(split.starts) - 1) * float(np.log(len(points)))
        if split is not splits.best and split.cost - saved < best.cost:
            best = min(best, structured(points, split, splits.prior), key=lambda one: one.cost)
    return best


def structured(points: FitPoints, split: CurveSplit, prior: NoisePrior) -> Structured:
    """One split, with a bend wherever a jump does not explain the points better by more than its parameter costs."""
    runs = list(zip(split.starts, split.ends(len(points)), strict=True))
    curves = [fitted_alone(points, family, *run) for family, run in zip(split.families, runs, strict=True)]
    deviation = _deviation(points, curves, runs, prior)
    joints = [_joint(points, deviation, curves, runs, number) for number in range(1, len(runs))]
    fit = sound_fit(points, curves, joints, deviation)
    alone = sum(_squares(points, deviation, curve, *run) for curve, run in zip(curves, runs, strict=True))
    bends = sum(joint.is_bend for joint in fit.joints)
    if not _is_defined(points, fit):
        return Structured(split, tuple(curves), fit, deviation, np.inf)
    cost = split.cost + fit.squares - alone - bends * float(np.log(len(points)))
    return Structured(split, tuple(curves), fit, deviation, cost)


def _is_defined(points: FitPoints, fit: JointFit) -> bool:
    """Whether no curve has a pole within its segment, where one over a sum changes its sign."""
    axis = points.on_axis(points.x[[0, -1]])
    edges = [axis[0], *(joint.place for joint in fit.joints), axis[1]]
    for curve, low, high in zip(fit.curves, edges[:-1], edges[1:], strict=True):
        with np.errstate(all="ignore"):
            sums = curve.sum(points.off_axis(np.linspace(low, high, LOOKED_AT)))
        if not np.isfinite(sums).all() or (curve.family.reciprocal and sums.min() <= 0 <= sums.max()):
            return False
    return bool(np.isfinite(fit.squares))


def apart_squares(points: FitPoints, structured: Structured, number: int) -> float:
    """The sum of squares of the two segments beside the breakpoint of that number, each fitted alone."""
    edges = [*structured.split.starts, len(points)][number : number + 3]
    runs = zip(structured.alone[number : number + 2], edges[:-1], edges[1:], strict=True)
    return sum(_squares(points, structured.deviation, curve, first, end) for curve, first, end in runs)


def _deviation(points: FitPoints, curves: list[LocalCurve], runs: list[tuple[int, int]], prior: NoisePrior) -> Array:
    """Standard deviation of each point, by what is left over in its segment."""
    deviation = points.scale / np.sqrt(points.rows)
    for curve, (first, end) in zip(curves, runs, strict=True):
        squares = _squares(points, deviation, curve, first, end)
        deviation[first:end] *= np.sqrt(prior.variance_of(squares, end - first, curve.family.size))
    return deviation


def _squares(points: FitPoints, deviation: Array, curve: LocalCurve, first: int, end: int) -> float:
    run = slice(first, end)
    return float((((points.y[run] - curve(points.x[run])) / deviation[run]) ** 2).sum())


def _joint(
    points: FitPoints, deviation: Array, curves: list[LocalCurve], runs: list[tuple[int, int]], number: int
) -> Joint:
    """A bend, at its best place, or a jump halfway between two points."""
    (first, middle), (_, end) = runs[number - 1], runs[number]
    axis = points.on_axis(points.x)
    jump = Joint(float(axis[middle - 1] + axis[middle]) / 2, False)
    left, right = curves[number - 1], curves[number]
    places = bend_places(points, first, end, MARGIN)
    squares = bend_squares(points, deviation, left, right, first, end, places)
    if not len(squares) or not np.isfinite(squares).any():
        return jump
    best = int(squares.argmin())
    apart = _squares(points, deviation, left, first, middle) + _squares(points, deviation, right, middle, end)
    return Joint(float(places[best]), True) if squares[best] - apart < np.log(len(points)) else jump


def sound_fit(points: FitPoints, curves: Sequence[LocalCurve], joints: Sequence[Joint], deviation: Array) -> JointFit:
    """The joint fit; where a bend ran away, it is fitted as a jump."""
    axis = points.on_axis(points.x)
    while True:
        fit = fit_together(points, curves, joints, deviation)
        places = [axis[0], *(joint.place for joint in fit.joints), axis[-1]]
        points_of = np.bincount(np.searchsorted(places[1:-1], axis, side="right"), minlength=len(curves))
        away = [
            number
            for number, joint in enumerate(fit.joints)
            if joint.is_bend
            and not (
                places[number] < joint.place < places[number + 2] and points_of[number : number + 2].min() > MARGIN
            )
        ]
        if not away:
            return fit
        joints = [replace(joint, is_bend=False) if number in away else joint for number, joint in enumerate(joints)]
