"""From measurements to a formula: the main flow."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.coarse import coarse, fitted_to_all
from predictor.fitting.curve import MeasuredCurve
from predictor.fitting.family import FAMILIES
from predictor.fitting.fitted_model import CurveBreak, CurveSegment, FittedModel, smape_pct
from predictor.fitting.intervals import place_interval
from predictor.fitting.joint import JointFit, with_exact_zeros
from predictor.fitting.left_out import Selection, left_out_smape_pct
from predictor.fitting.noise import noise_pct
from predictor.fitting.points import FitPoints
from predictor.fitting.residuals import residual_tables
from predictor.fitting.splits import CurveSplits
from predictor.fitting.structure import Structured, found_structure, noise_differs
from predictor.fitting.tum import found_tum_structure

SELECTIONS: dict[str, Selection] = {"bic": found_structure, "tum": found_tum_structure}


def fit(curve: MeasuredCurve, *, select: str = "bic") -> FittedModel:
    """The simplest model that explains the curve.

    Parameters
    ----------
    curve
        At least three distinct x.
    select
        How number, places and families of the segments are chosen: `bic`, or `tum` as the paper does it.

    Raises
    ------
    ValueError
        When there is no such choice.
    """
    if select not in SELECTIONS:
        raise ValueError(f"no such selection: {select!r}, one of {', '.join(SELECTIONS)}")
    began = time.perf_counter()
    order = np.lexsort((curve.y, curve.x))  # so that the order of rows changes no digit
    curve = replace(curve, x=curve.x[order], y=curve.y[order])
    points = FitPoints.of(curve)
    medians = coarse(points)
    found = _found(medians, SELECTIONS[select])
    if noise_differs(medians, found.structured):  # a change of noise alone is no breakpoint
        equal = replace(medians, scale=found.structured.deviation * np.sqrt(medians.rows))
        again = _found(equal, SELECTIONS[select])
        if len(again.structured.split.starts) < len(found.structured.split.starts):
            found, medians = again, equal
    structured = found.structured
    intervals = [
        place_interval(medians, found.tables, found.splits.prior, structured, number)
        for number in range(len(structured.fit.joints))
    ]
    fitted = with_exact_zeros(fitted_to_all(points, medians, structured.fit), float(np.abs(curve.y).max()))
    segments = _segments(curve, points, fitted)
    predicted = fitted.predict(points, curve.x)
    left_out = left_out_smape_pct(curve, medians, structured.split.families, SELECTIONS[select])
    return FittedModel(
        x=curve.x_name,
        y=curve.y_name,
        points=len(curve.x),
        segments=segments,
        breakpoints=tuple(_breakpoints(points, fitted, intervals)),
        smape_pct=smape_pct(predicted, curve.y),
        left_out_smape_pct=left_out,
        noise_pct=noise_pct(curve, predicted, segments),
        seconds=time.perf_counter() - began,
        setting=curve.setting,
    )


@dataclass(frozen=True)
class _Found:
    """A structure, and what it was found from."""

    tables: Mapping[str, NDArray[np.float64]]
    splits: CurveSplits
    structured: Structured


def _found(points: FitPoints, selection: Selection) -> _Found:
    tables = residual_tables(points, FAMILIES)
    return _Found(tables, *selection(points, tables))


def _segments(curve: MeasuredCurve, points: FitPoints, fitted: JointFit) -> tuple[CurveSegment, ...]:
    places = [float(points.off_axis(joint.place)) for joint in fitted.joints]
    edges = [float(points.x[0]), *places, float(points.x[-1])]
    which_row = np.searchsorted(places, curve.x, side="right")
    segments = []
    for number, of_segment in enumerate(fitted.curves):
        rows = which_row == number
        error = smape_pct(of_segment(curve.x[rows]), curve.y[rows]) if rows.any() else 0.0
        count = int(rows.sum())
        name = of_segment.name
        segments.append(CurveSegment(edges[number], edges[number + 1], name, of_segment.plain, count, error))
    return tuple(segments)


def _breakpoints(points: FitPoints, fitted: JointFit, intervals: Sequence[tuple[float, float]]) -> Iterator[CurveBreak]:
    for number, (joint, interval) in enumerate(zip(fitted.joints, intervals, strict=True)):
        place = float(points.off_axis(joint.place))
        before, after = (float(curve(np.array([place]))[0]) for curve in fitted.curves[number : number + 2])
        low, high = (float(points.off_axis(end)) for end in interval)
        jump = 0.0 if joint.is_bend else after - before
        yield CurveBreak(place, min(low, place), max(high, place), jump)
