"""From measurements to a formula: the main flow."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.curve import MeasuredCurve
from predictor.fitting.family import FAMILIES
from predictor.fitting.fitted_model import CurveBreak, CurveSegment, FittedModel, smape_pct
from predictor.fitting.intervals import place_interval
from predictor.fitting.points import CurvePoints
from predictor.fitting.residuals import residual_tables
from predictor.fitting.splits import best_splits
from predictor.fitting.structure import Structured, best_structure

Array = NDArray[np.float64]


def fit(curve: MeasuredCurve, *, select: str = "bic") -> FittedModel:
    """The simplest model that explains the curve.

    Parameters
    ----------
    curve
        At least three distinct x.
    select
        How number, places and families of the segments are chosen: `bic`, or `tum` as the paper does it.
    """
    began = time.perf_counter()
    points = CurvePoints.of(curve)
    tables = residual_tables(points, FAMILIES)
    splits = best_splits(points, tables)
    structured = best_structure(points, splits)
    intervals = [
        place_interval(points, tables, splits.prior, structured, number) for number in range(len(structured.fit.joints))
    ]
    seconds = time.perf_counter() - began
    return _model(curve, points, structured, intervals, seconds)


def _model(
    curve: MeasuredCurve,
    points: CurvePoints,
    structured: Structured,
    intervals: list[tuple[float, float]],
    seconds: float,
) -> FittedModel:
    places = [float(points.off_axis(joint.place)) for joint in structured.fit.joints]
    edges = [float(points.x[0]), *places, float(points.x[-1])]
    segments = []
    names = structured.split.families
    for number, (name, of_segment) in enumerate(zip(names, structured.fit.curves, strict=True)):
        start, end = edges[number], edges[number + 1]
        last = number == len(names) - 1
        inside = (curve.x >= start) & ((curve.x <= end) if last else (curve.x < end))
        error = smape_pct(of_segment(curve.x[inside]), curve.y[inside])
        count = len(np.unique(curve.x[inside]))
        segments.append(CurveSegment(start, end, name, of_segment.plain, count, error))
    breaks = [
        _break(points, structured, number, place, interval)
        for number, (place, interval) in enumerate(zip(places, intervals, strict=True))
    ]
    error = smape_pct(structured.fit.predict(points, curve.x), curve.y)
    return FittedModel(
        curve.x_name, curve.y_name, len(curve.x), tuple(segments), tuple(breaks), error, None, error, seconds,
        curve.setting,
    )  # fmt: skip


def _break(
    points: CurvePoints, structured: Structured, number: int, place: float, interval: tuple[float, float]
) -> CurveBreak:
    before, after = structured.fit.curves[number : number + 2]
    at = np.array([place])
    jump = 0.0 if structured.fit.joints[number].is_bend else float((after(at) - before(at))[0])
    low, high = (float(points.off_axis(end)) for end in interval)
    return CurveBreak(place, low, high, jump)
