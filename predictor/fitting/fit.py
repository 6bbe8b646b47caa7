"""From measurements to a formula: the main flow."""

from __future__ import annotations

import time

import numpy as np

from predictor.fitting.curve import MeasuredCurve
from predictor.fitting.fitted_model import CurveSegment, FittedModel, smape_pct


def fit(curve: MeasuredCurve, *, select: str = "bic") -> FittedModel:
    """The simplest model that explains the curve.

    Parameters
    ----------
    curve
        At least as many distinct x as a line has parameters.
    select
        How number, places and families of the segments are chosen: `bic`, or `tum` as the paper does it.
    """
    began = time.perf_counter()
    slope, start = np.polyfit(curve.x, curve.y, 1)
    error = smape_pct(start + slope * curve.x, curve.y)
    segment = CurveSegment(
        float(curve.x.min()), float(curve.x.max()), "linear", (float(start), float(slope)), len(set(curve.x)), error
    )
    seconds = time.perf_counter() - began
    return FittedModel(
        curve.x_name, curve.y_name, len(curve.x), (segment,), (), error, None, error, seconds, curve.setting
    )
