"""The error at points that were left out of the fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.curve import MeasuredCurve
from predictor.fitting.fitted_model import smape_pct
from predictor.fitting.joint import with_exact_zeros
from predictor.fitting.points import FitPoints
from predictor.fitting.residuals import residual_tables
from predictor.fitting.splits import CurveSplits
from predictor.fitting.structure import Structured

Array = NDArray[np.float64]
Selection = Callable[[FitPoints, Mapping[str, Array]], tuple[CurveSplits, Structured]]
"""Chooses splits and a structure for points, from tables of residual sums of squares by family."""

FOLDS = 5
FEWEST = 8
"""Distinct x from which points are left out."""
ALWAYS = ("constant", "linear")
"""Families that are tried beside those of the model."""


def left_out_smape_pct(
    curve: MeasuredCurve, points: FitPoints, families: Iterable[str], selection: Selection
) -> float | None:
    """The sMAPE at every fifth x, predicted by a fit to the others, five times; None for few points.

    Number and places of the segments are found again each time, among the families of the model. The ends are never
    left out, since nothing is extrapolated.
    """
    if len(points) < FEWEST:
        return None
    known = tuple(dict.fromkeys((*families, *ALWAYS)))
    place = np.arange(len(points))
    axis = points.on_axis(points.x)
    nearest = np.searchsorted((axis[:-1] + axis[1:]) / 2, points.on_axis(curve.x))
    predicted = np.full(len(curve.x), np.nan)
    for fold in range(FOLDS):
        left_out = (place % FOLDS == fold) & (place > 0) & (place < len(points) - 1)
        rest, rows = points.part(~left_out), left_out[nearest]
        structured = selection(rest, residual_tables(rest, known))[1]
        exact = with_exact_zeros(structured.fit, float(np.abs(curve.y).max()))
        predicted[rows] = exact.predict(rest, curve.x[rows])
    judged = np.isfinite(predicted)
    return smape_pct(predicted[judged], curve.y[judged])
