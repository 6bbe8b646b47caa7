"""The fitted models of a sweep as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from placer.report.text.table import text_table
from predictor.fitting.fitted_model import CurveBreak, FittedModel

HEADINGS = ("curve", "segments", "breakpoints (90 % interval)", "error", "left out", "noise")


def as_table(fits: Sequence[FittedModel]) -> str:
    """A row per model: its segments, where they meet, and its errors beside the noise."""
    return text_table(HEADINGS, map(_row, fits), words=3)


def _row(model: FittedModel) -> list[str]:
    setting = ", ".join(f"{key} = {value:g}" for key, value in model.setting.items())
    return [
        f"{model.y} over {model.x}" + (f", {setting}" if setting else ""),
        ", ".join(segment.family for segment in model.segments),
        "; ".join(map(_place, model.breakpoints)) or "none",
        _percent(model.smape_pct),
        "not known" if model.left_out_smape_pct is None else _percent(model.left_out_smape_pct),
        _percent(model.noise_pct),
    ]


def _place(one: CurveBreak) -> str:
    return f"{one.at:,.4g} ({one.low:,.4g} to {one.high:,.4g})"


def _percent(value: float) -> str:
    return f"{value:.2g} %"
