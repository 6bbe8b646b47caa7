"""Curves of many points: neighbours are averaged to find the structure, and all points fitted in the end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.joint import Joint, JointFit, fit_together
from predictor.fitting.points import CurvePoints

Array = NDArray[np.float64]

MOST = 300
"""Points among which all splits are tried."""


def coarse(points: CurvePoints) -> CurvePoints:
    """At most `MOST` points: averages of equally many neighbours each. Fewer points stay as they are."""
    if len(points) <= MOST:
        return points
    weights = points.weights
    begins = np.linspace(0, len(points), MOST + 1).astype(int)[:-1]
    total = np.add.reduceat(weights, begins)

    def mean(values: Array) -> Array:
        return np.asarray(np.add.reduceat(weights * values, begins) / total)

    axis = mean(points.on_axis(points.x))
    axis[0], axis[-1] = points.on_axis(points.x[0]), points.on_axis(points.x[-1])
    return CurvePoints(
        points.off_axis(axis), mean(points.y), np.ones(MOST), np.zeros(MOST), 1 / np.sqrt(total), points.logarithmic
    )


def fitted_to_all(points: CurvePoints, averaged: CurvePoints, fit: JointFit) -> JointFit:
    """The fit of averages, fitted to all points: jumps are placed between two of them."""
    if averaged is points:
        return fit
    deviation = points.scale / np.sqrt(points.rows)
    joints = [_placed(points, averaged, fit, number) for number in range(len(fit.joints))]
    return fit_together(points, fit.curves, joints, deviation * _spread(points, fit, deviation))


def _spread(points: CurvePoints, fit: JointFit, deviation: Array) -> Array:
    """The root mean square deviation in the segment of each point, in units of `deviation`."""
    which = np.searchsorted([joint.place for joint in fit.joints], points.on_axis(points.x), side="right")
    squares = ((points.y - fit.predict(points, points.x)) / deviation) ** 2
    means = np.bincount(which, squares) / np.bincount(which).clip(1)
    return np.asarray(np.sqrt(np.maximum(means, 1e-24))[which])


def _placed(points: CurvePoints, averaged: CurvePoints, fit: JointFit, number: int) -> Joint:
    """A jump between the two points where the curves on both sides explain those near it best."""
    joint = fit.joints[number]
    if joint.is_bend:
        return joint
    coarse_axis, axis = averaged.on_axis(averaged.x), points.on_axis(points.x)
    after = int(np.searchsorted(coarse_axis, joint.place))
    low, high = coarse_axis[max(after - 2, 0)], coarse_axis[min(after + 1, len(coarse_axis) - 1)]
    near = np.flatnonzero((axis >= low) & (axis <= high))
    weights = points.weights[near]
    left, right = (curve(points.x[near]) for curve in fit.curves[number : number + 2])
    gain = weights * ((points.y[near] - right) ** 2 - (points.y[near] - left) ** 2)
    best = int(np.argmax(np.cumsum(gain)[:-1]))
    return Joint(float(axis[near[best]] + axis[near[best] + 1]) / 2, False)
