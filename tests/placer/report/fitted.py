"""Fitted models and curves for tests of reports, made by hand."""

from __future__ import annotations

import numpy as np

from predictor.fitting.curve import MeasuredCurve
from predictor.fitting.fitted_model import CurveBreak, CurveSegment, FittedModel, smape_pct


def cache_model(key_width: float = 8.0, left_out: float | None = 0.5) -> FittedModel:
    """Cycles per packet over table entries: constant in the cache, then a jump and a logarithm."""
    return FittedModel(
        "entries",
        "cycles",
        120,
        (
            CurveSegment(1.0, 4096.0, "constant", (123.4,), 36, 0.41),
            CurveSegment(4096.0, 1048576.0, "log", (100.0, 4.28), 24, 0.47),
        ),
        (CurveBreak(4096.0, 3890.0, 4310.0, 12.2),),
        0.43,
        left_out,
        0.45,
        0.2,
        {"key_width": key_width},
    )


def line_model(x: str = "rules", y: str = "cycles") -> FittedModel:
    """A straight line over a few rules, with neither breakpoints nor points to leave out."""
    segment = CurveSegment(0.0, 4.0, "linear", (50.0, 2.5), 3, 0.2)
    return FittedModel(x, y, 3, (segment,), (), 0.2, None, 0.3, 0.01)


def bent_model() -> FittedModel:
    """A line that bends into another."""
    segments = (
        CurveSegment(0.0, 10.0, "linear", (10.0, 1.0), 11, 0.1),
        CurveSegment(10.0, 20.0, "linear", (0.0, 2.0), 10, 0.1),
    )
    return FittedModel("flows", "us", 21, segments, (CurveBreak(10.0, 9.0, 11.5, 0.0),), 0.1, 2.0, 0.1, 0.0)


def curve_of(fit: FittedModel, repeats: int = 2, seed: int = 0, rows: int | None = None) -> MeasuredCurve:
    """Points of a model with 1 % noise, evenly on its axis, each x as often as `repeats`."""
    rng = np.random.default_rng(seed)
    different = (rows or fit.points) // repeats
    start, end = fit.start, fit.end
    x = np.geomspace(start, end, different) if start > 0 else np.linspace(start, end, different)
    x = np.repeat(x, repeats)
    y = fit.predict(x) * (1 + 0.01 * rng.normal(size=len(x)))
    assert smape_pct(fit.predict(x), y) < 2
    return MeasuredCurve(fit.x, fit.y, x, y, fit.setting)
