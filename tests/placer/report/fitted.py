"""Fitted models and curves for tests of reports, made by hand."""

import numpy as np

from predictor.fitting.fitted_model import CurveBreak, FittedModel, smape_pct
from predictor.fitting.points import MeasuredCurve
from tests.predictor.fitting.made_up_models import made_up


def cache_model(key_width: float = 8.0, left_out: float | None = 0.5) -> FittedModel:
    """Cycles per packet over table entries: constant in the cache, then a jump and a logarithm."""
    return made_up(
        (1.0, 4096.0, 1048576.0), ("constant", (123.4,)), ("log", (100.0, 4.28)),
        y="cycles", setting={"key_width": key_width}, breaks=[CurveBreak(4096.0, 3890.0, 4310.0, 12.2)],
        errors=(0.43, left_out, 0.45), of_segments=[(36, 0.41), (24, 0.47)],
    )  # fmt: skip


def line_model(x: str = "rules", y: str = "cycles") -> FittedModel:
    """A straight line over a few rules, with neither breakpoints nor points to leave out."""
    return made_up((0.0, 4.0), ("linear", (50.0, 2.5)), x=x, y=y, points=3, errors=(0.2, None, 0.3))


def bent_model() -> FittedModel:
    """A line that bends into another."""
    return made_up(
        (0.0, 10.0, 20.0), ("linear", (10.0, 1.0)), ("linear", (0.0, 2.0)),
        x="flows", y="us", breaks=[CurveBreak(10.0, 9.0, 11.5, 0.0)], points=21, errors=(0.1, 2.0, 0.1),
    )  # fmt: skip


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
