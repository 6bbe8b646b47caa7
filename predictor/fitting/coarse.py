"""Curves of many points: medians of neighbours show the structure, then all points are fitted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.joint import Joint, JointFit
from predictor.fitting.points import FitPoints
from predictor.fitting.structure import sound_fit

Array = NDArray[np.float64]

MOST, TOGETHER = 300, 3
"""Points among which all splits are tried, and fewest neighbours of which there is one median."""


def coarse(points: FitPoints) -> FitPoints:
    """At most `MOST` points: medians of about equally many neighbours. Fewer points stay as they are.

    A median, unlike a mean, is nearly never between the two levels of a jump.
    """
    if len(points) <= MOST:
        return points
    groups = np.array_split(np.arange(len(points)), min(MOST, len(points) // TOGETHER))
    axis = points.on_axis(points.x)
    places = np.array([np.median(axis[group]) for group in groups])
    y = np.array([np.median(points.y[group]) for group in groups])
    scale = np.array([1 / np.sqrt(points.weights[group].sum()) for group in groups])
    even = np.ones(len(groups))
    within = np.zeros(len(groups))
    return FitPoints(points.off_axis(places), y, even, within, scale, points.logarithmic, points.rounded_to)


def fitted_to_all(points: FitPoints, medians: FitPoints, fit: JointFit) -> JointFit:
    """The fit of medians, fitted to all points: jumps are placed between two of them."""
    if len(medians) == len(points):
        return fit
    deviation = points.scale / np.sqrt(points.rows)
    jumps = [_jump(points, medians, fit, number) for number in range(len(fit.joints))]
    joints = [one if one.is_bend else jump for one, jump in zip(fit.joints, jumps, strict=True)]
    return sound_fit(points, fit.curves, joints, jumps, deviation * _spread(points, fit, deviation))


def _spread(points: FitPoints, fit: JointFit, deviation: Array) -> Array:
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
