"""Where two neighbouring curves meet: how well every place of a bend, and of a jump, explains their points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.local_curve import LocalCurve
from predictor.fitting.points import FitPoints

Array = NDArray[np.float64]

PER_GAP = 3
"""Places of a bend that are tried between two points."""
RIDGE = 1e-11


def bend_places(points: FitPoints, first: int, end: int, margin: int) -> Array:
    """Places on the axis that are tried for a bend, at least `margin` points from either end."""
    axis = points.on_axis(points.x[first:end])
    inner = axis[margin - 1 : len(axis) - margin + 1]
    if len(inner) < 2:
        return np.empty(0)
    shares = (np.arange(PER_GAP) + 0.5) / PER_GAP
    return np.asarray((inner[:-1, None] + np.diff(inner)[:, None] * shares).ravel())


def bend_squares(
    points: FitPoints, deviation: Array, left: LocalCurve, right: LocalCurve, first: int, end: int, places: Array
) -> Array:
    """The sum of squares of the points from `first` to before `end`, for a bend at each place; shape (places,).

    Both curves are fitted again at each place, linearised about what they are; infinite where they are not defined.
    """
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


def _least_squares(tables: Array, rests: Array) -> Array:
    """Sums of squares of many small problems, shape (problems,)."""
    if not len(tables):
        return np.empty(0)
    unit = np.sqrt((tables**2).sum(axis=1, keepdims=True))
    scaled = tables / np.where(unit > 0, unit, 1.0)
    normal = np.swapaxes(scaled, 1, 2) @ scaled + RIDGE * np.eye(scaled.shape[2])
    numbers = np.linalg.solve(normal, np.swapaxes(scaled, 1, 2) @ rests[..., None])
    return np.asarray(((rests - (scaled @ numbers)[..., 0]) ** 2).sum(axis=1))
