"""The noise of a curve: the error of its points against the true curve."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.curve import MeasuredCurve
from predictor.fitting.family import FAMILIES
from predictor.fitting.fitted_model import CurveSegment

Array = NDArray[np.float64]

ENOUGH = 10
"""Repeats, beyond the first of each x, from which noise is estimated from them alone."""


def noise_pct(curve: MeasuredCurve, predicted: Array, segments: tuple[CurveSegment, ...]) -> float:
    """The estimated sMAPE between the measured rows and the true curve.

    From repeats where there are enough. Else from what the fit leaves over, which is less than the noise, as the
    parameters follow it: by the root of the share of points that parameters do not take.
    """
    x, place = np.unique(curve.x, return_inverse=True)
    rows = np.bincount(place)
    if len(curve.x) - len(x) >= ENOUGH:
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


def _relative(one: Array, other: Array) -> Array:
    scale = np.abs(one) + np.abs(other)
    return np.asarray(np.divide(np.abs(one - other), scale, out=np.zeros_like(scale), where=scale > 0))


def _mean_pct(errors: Array) -> float:
    return min(float(100.0 * errors.mean()), 100.0)
