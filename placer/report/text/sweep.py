"""The fitted models of a sweep as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from placer.report.text.fit_words import error_text, model_name, number_text
from placer.report.text.table import text_table
from predictor.fitting.fitted_model import CurveBreak, FittedModel

HEADINGS = ("curve", "segments", "breakpoints (90 % interval)", "error", "left out", "noise")
DIGITS = 4


def as_table(fits: Sequence[FittedModel]) -> str:
    """A row per model: its segments, where they meet, and its errors (sMAPE) beside the noise."""
    return text_table(HEADINGS, map(_row, fits), words=3)


def _row(model: FittedModel) -> list[str]:
    return [
        model_name(model),
        ", ".join(segment.family for segment in model.segments),
        "; ".join(map(_place, model.breakpoints)) or "none",
        error_text(model.smape_pct),
        error_text(model.left_out_smape_pct),
        error_text(model.noise_pct),
    ]


def _place(one: CurveBreak) -> str:
    at, low, high = (number_text(value, DIGITS) for value in (one.at, one.low, one.high))
    return f"{at} [{low}, {high}]"
