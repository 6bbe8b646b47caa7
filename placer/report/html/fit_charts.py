"""The charts of a fitted model: its points with segments and breakpoints, and what the model does not explain."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from placer.report.html import charts
from placer.report.html.fit_tables import INTERVAL, KINDS, MEASURED, MODEL, NOISE
from placer.report.html.page import Chart
from placer.report.text.fit import wide_axis

LOW = 190
"""Height of the deviations, pixels."""
WIDE_TITLE = 300
"""Width of a title below an axis, pixels; longer ones are cut."""
BEYOND = 0.5
"""By which share of the points' span a formula is drawn beyond them: near a pole it would hide them."""


def fitted_curve(points: pd.DataFrame, lines: pd.DataFrame, breaks: pd.DataFrame, x_title: str, y_title: str) -> Chart:
    """Points, a line per segment, and a rule with its band per breakpoint; a wide range has a logarithmic axis.

    Parameters
    ----------
    points, lines, breaks
        As of `points_table`, `lines_table` and `breaks_table`.
    """
    known = [MEASURED, MODEL, *([INTERVAL] if len(breaks) else [])]
    axis = alt.Axis(format="~s", titleLimit=charts.TALL)
    y = alt.Y(f"{MEASURED}:Q", title=y_title, scale=_tall_enough(points[MEASURED], lines["y"]), axis=axis)
    x = _across(points, x_title)
    dots = (
        alt.Chart(points.assign(what=MEASURED))
        .mark_point(filled=True, size=36, opacity=0.55)
        .encode(x=x, y=y, color=_of(known), tooltip=[_number("x", x_title), _number(MEASURED, y_title)])
    )
    formula = alt.Tooltip("formula:N", title=y_title)
    curves = (
        alt.Chart(lines.assign(what=MODEL))
        .mark_line(strokeWidth=2.5, clip=True)
        .encode(x=x, y=alt.Y("y:Q", title=y_title), detail="segment:N", color=_of(known), tooltip=[formula])
    )
    return charts.sized(charts.layers(*_breaks(breaks, x, known), dots, curves), charts.TALL, known)


def _breaks(breaks: pd.DataFrame, x: alt.X, known: Sequence[str]) -> list[alt.Chart]:
    if breaks.empty:
        return []
    base = alt.Chart(breaks.assign(what=INTERVAL))
    tooltip = [*(_number(name, name) for name in ("at", "low", "high")), "change:N"]
    ends = {"x": _column(x, "low"), "x2": "high:Q"}
    return [
        base.mark_rect(opacity=0.22).encode(**ends, color=_of(known), tooltip=tooltip),
        base.mark_rule(strokeWidth=1.5).encode(x=_column(x, "at"), color=_of(known), tooltip=tooltip),
    ]


def deviations(points: pd.DataFrame, band_pct: float, x_title: str) -> Chart:
    """How far points are from the model, %, over the band of the noise; `points` as of `points_table`."""
    found = points.dropna(subset=["deviation"])
    known = [MEASURED, NOISE]
    x = _across(points, x_title)
    y = alt.Y("deviation:Q", title="deviation, %")
    band = pd.DataFrame({"low": [-band_pct], "high": [band_pct], "what": [NOISE]})
    tooltip = [_number("x", x_title), alt.Tooltip("deviation:Q", format=".2f")]
    return charts.sized(
        charts.layers(
            alt.Chart(band).mark_rect(opacity=0.22).encode(y=alt.Y("low:Q"), y2="high:Q", color=_of(known)),
            alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(style="guide").encode(y=alt.Y("zero:Q")),
            alt.Chart(found.assign(what=MEASURED))
            .mark_point(filled=True, size=36, opacity=0.55)
            .encode(x=x, y=y, color=_of(known), tooltip=tooltip),
        ),
        LOW,
        known,
    )


def _across(points: pd.DataFrame, title: str) -> alt.X:
    axis = alt.Axis(grid=False, tickCount=6, format="~s", titleLimit=WIDE_TITLE)
    return alt.X("x:Q", title=title, scale=_scale(points["x"]), axis=axis)


def _column(x: alt.X, column: str) -> alt.X:
    """The same axis for another column."""
    again: alt.X = x.copy()
    again.shorthand = f"{column}:Q"
    return again


def _scale(values: pd.Series[float]) -> alt.Scale:
    """Logarithmic where the values are positive and span much; without zero, which would hide the curve's shape."""
    return alt.Scale(type="log", nice=False) if wide_axis(values.to_numpy()) else alt.Scale(zero=False)


def _tall_enough(points: pd.Series[float], lines: pd.Series[float]) -> alt.Scale:
    """A scale that holds all points, and of lines that leave them far behind a part."""
    low, high = float(points.min()), float(points.max())
    scale = _scale(points)
    logarithmic = wide_axis(points.to_numpy())
    room = (high / low) ** BEYOND if logarithmic else BEYOND * ((high - low) or abs(high) or 1.0)
    least, most = (low / room, high * room) if logarithmic else (low - room, high + room)
    if lines.empty or (lines.min() >= least and lines.max() <= most):
        return scale
    scale.domain = [max(least, min(low, float(lines.min()))), min(most, max(high, float(lines.max())))]
    return scale


def _of(known: Sequence[str]) -> alt.Color:
    """The colour of what a mark is, the same in every chart."""
    legend = alt.Legend(values=list(known), symbolType="circle", symbolOpacity=1, symbolStrokeWidth=0)
    return alt.Color("what:N", scale=alt.Scale(domain=list(KINDS)), legend=legend, title=None)


def _number(column: str, title: str) -> alt.Tooltip:
    return alt.Tooltip(f"{column}:Q", title=title, format=",.5~g")
