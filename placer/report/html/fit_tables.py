"""What the page of fitted models draws and lists: points that are thinned, segments as lines, breakpoints as bands."""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from placer.report.text.fit import break_text, error_text, number_text, span_text, wide_axis
from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.points import MeasuredCurve
from profiles.arrays import Floats

MEASURED_MARK, MODEL_MARK, INTERVAL_MARK, NOISE_MARK = MARK_KINDS = (
    "measured",
    "model",
    "breakpoint, 90 % interval",
    "noise",
)
"""What marks of charts are, which decides their colour."""
LINE_STEPS = 400  # of all lines of a model, in x
LEAST_STEPS = 25  # of a line
NINE_IN_TEN = 1.645  # standard deviations around a normal mean that hold nine in ten
MEAN_SIZE = np.sqrt(2 / np.pi)  # of a normal deviation, in standard deviations
SUPERSCRIPT_DIGITS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
NAME_PLACEHOLDER = "\ue000"  # stands for the name of x while a formula is rewritten


def points_table(fit: FittedModel, curve: MeasuredCurve, most: int) -> pd.DataFrame:
    """Points by rising x: `x`, `measured`, `model`, and the `deviation` of the measured one, % of the model. Of more
    points than `most`, the lowest and highest of every group of neighbours; those outside hide none."""
    order = np.lexsort((curve.y, curve.x))
    kept = order[_extremes(curve.y[order], most)]
    x, y = curve.x[kept], curve.y[kept]
    model = fit.predict(x)
    with np.errstate(all="ignore"):
        deviation = 100 * (y - model) / np.abs(model)
    return pd.DataFrame(
        {"x": x, MEASURED_MARK: y, MODEL_MARK: model, "deviation": np.where(np.isfinite(deviation), deviation, np.nan)}
    )


def _extremes(y: Floats, most: int) -> NDArray[np.int_]:
    """Places of the lowest and highest of each group of neighbours, in order; of few values all places."""
    if len(y) <= most:
        return np.arange(len(y))
    groups = np.array_split(np.arange(len(y)), max(most // 2, 1))
    kept = {int(group[at(y[group])]) for group in groups for at in (np.argmin, np.argmax)}
    return np.array(sorted(kept))


def lines_table(fit: FittedModel, curve: MeasuredCurve) -> pd.DataFrame:
    """Points of each segment's line: its number as `segment`, `x`, `y`, and its `formula`."""
    steps = max(LINE_STEPS // len(fit.segments), LEAST_STEPS)
    spaced = np.geomspace if wide_axis(curve.x) else np.linspace
    rows = []
    for number, segment in enumerate(fit.segments, start=1):
        x = spaced(segment.start, segment.end, steps)
        rows.append(pd.DataFrame({"segment": number, "x": x, "y": segment.predict(x), "formula": segment.formula("x")}))
    table = pd.concat(rows, ignore_index=True)
    table["y"] = table["y"].where(np.isfinite(table["y"]))
    return table.dropna(subset=["y"])


def breaks_table(fit: FittedModel) -> pd.DataFrame:
    """A row per breakpoint, for its rule and its band within the axis: `at`, `low`, `high`, `change` in words."""
    return pd.DataFrame(
        [
            (point.at, max(point.low, fit.start), min(point.high, fit.end), break_text(point))
            for point in fit.breakpoints
        ],
        columns=["at", "low", "high", "change"],
    )


def noise_band_pct(fit: FittedModel) -> float:
    """Deviation (%) within which nine in ten points are, if it is normal noise and nothing else. The noise is an sMAPE,
    whose denominator is about twice the value: the mean deviation is twice as large."""
    return float(2 * fit.noise_pct / MEAN_SIZE * NINE_IN_TEN)


def segments_list(fit: FittedModel) -> pd.DataFrame:
    """The table of segments that readers see."""
    return pd.DataFrame(
        [
            {
                "from": number_text(segment.start),
                "to": number_text(segment.end),
                "family": segment.family,
                f"{fit.y} =": mathematics(segment.formula(NAME_PLACEHOLDER), fit.x),
                "points": segment.points,
                "error, %": segment.smape_pct,
            }
            for segment in fit.segments
        ]
    )


def breaks_list(fits: Sequence[FittedModel], names: Sequence[str]) -> pd.DataFrame:
    """The table of breakpoints that readers see; of several models, the first column names the model."""
    rows = [
        {
            "curve": name,
            "at": number_text(point.at),
            "from, 90 %": number_text(point.low),
            "to, 90 %": number_text(point.high),
            "jump": number_text(point.jump) if point.jump else "–",
            "kind": "jump" if point.jump else "bend",
        }
        for fit, name in zip(fits, names, strict=True)
        for point in fit.breakpoints
    ]
    table = pd.DataFrame(rows, columns=["curve", "at", "from, 90 %", "to, 90 %", "jump", "kind"])
    return table if len(fits) > 1 else table.drop(columns="curve")


def fits_list(fits: Sequence[FittedModel]) -> pd.DataFrame:
    """A row per model: what it is of, its settings, its parts and its errors."""
    several_y, several_x = len({fit.y for fit in fits}) > 1, len({fit.x for fit in fits}) > 1
    settings = dict.fromkeys(name for fit in fits for name in fit.setting)
    return pd.DataFrame(
        [
            {
                **({"y": fit.y} if several_y else {}),
                **({"x": fit.x} if several_x else {}),
                **{f"{name} ": number_text(fit.setting[name]) if name in fit.setting else None for name in settings},
                "points": fit.points,
                "families": ", ".join(segment.family for segment in fit.segments),
                "breakpoints": "; ".join(number_text(point.at) for point in fit.breakpoints) or "–",
                "error, %": fit.smape_pct,
                "left out, %": float("nan") if fit.left_out_smape_pct is None else fit.left_out_smape_pct,
                "noise, %": fit.noise_pct,
            }
            for fit in fits
        ]
    ).rename(columns=str.strip)


def spoken(fit: FittedModel) -> str:
    """The curve for readers who cannot see it: each segment's ends, and what happens between segments."""
    parts = []
    for number, segment in enumerate(fit.segments):
        first, last = segment.predict(np.array([segment.start, segment.end]))
        if number:
            parts.append(break_text(fit.breakpoints[number - 1]))
        over = f"from {span_text(segment.start, segment.end)}"
        if abs(last - first) <= 1e-9 * max(abs(first), abs(last)):
            parts.append(f"{over} it is {number_text(first)}")
        else:
            parts.append(f"{over} it goes from {number_text(first)} to {number_text(last)}")
    return f"{fit.y}: " + ", ".join(parts) + f". Error {error_text(fit.smape_pct)}."


def mathematics(formula: str, name: str) -> str:
    """A formula of `NAME_PLACEHOLDER` in plain mathematics: dots for products, exponents raised."""
    formula = re.sub(
        r"e\+?(-?)0*(\d+)", lambda found: "·10" + (found[1] + found[2]).translate(SUPERSCRIPT_DIGITS), formula
    )
    formula = re.sub(r"\^(\d)", lambda found: found[1].translate(SUPERSCRIPT_DIGITS), formula)
    return formula.replace("*", "·").replace("-", "−").replace(NAME_PLACEHOLDER, name)
