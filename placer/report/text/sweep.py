"""The fitted models of a sweep as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from placer.report.text.table import text_table
from predictor.fitting.fitted_model import CurveBreak, FittedModel

HEADINGS = ("curve", "segments", "breakpoints (90 % interval)", "error", "left out", "noise")


def as_table(fits: Sequence[FittedModel]) -> str:
    """A row per model: its segments, where they meet, and its errors (sMAPE) beside the noise."""
    return text_table(HEADINGS, map(_row, fits), words=3)


def _row(model: FittedModel) -> list[str]:
    setting = "".join(f", {key} {value:g}" for key, value in model.setting.items())
    return [
        f"{model.y} over {model.x}{setting}",
        ", ".join(segment.family for segment in model.segments),
        "; ".join(map(_place, model.breakpoints)) or "none",
        *map(_percent, (model.smape_pct, model.left_out_smape_pct, model.noise_pct)),
    ]


def _place(one: CurveBreak) -> str:
    at, low, high = (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" for value in (one.at, one.low, one.high))
    return f"{at} [{low}, {high}]"


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f} %"
