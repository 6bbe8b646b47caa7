"""The page of `placer fit` and of a sweep's models: the formulas, their curves, their breakpoints, their errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import altair as alt
import pandas as pd

from placer.report.html import Figure, Page, Section, Tile, charts
from placer.report.html import fit_tables as tables
from placer.report.html.page import Chart
from placer.report.text import fit as words
from placer.report.text.table import count_noun
from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.points import MeasuredCurve

MOST_POINTS, LEAST_POINTS, POINTS_OF_PAGE = 1_000, 100, 6_000
"""How many points of a curve are drawn: all curves together have about as many as the page may have."""
MOST_FITS = 24  # that have a section of their own
ERRORS_NOTE = (
    "Errors are symmetric mean absolute percentage errors (sMAPE): 100/n · Σ |f − g| / (|f| + |g|). A deviation of 2 % "
    "is an error of about 1 %."
)


def fit_page(fits: Sequence[FittedModel], curves: Sequence[MeasuredCurve], command: str) -> Page:
    """The page of fitted models. `fits`: at least one; several are of several settings, or of several metrics of a
    sweep. `curves`: what each was fitted to, in the same order. `command`: that makes the page again."""
    most = min(max(POINTS_OF_PAGE // len(fits), LEAST_POINTS), MOST_POINTS)
    pairs = list(zip(fits, curves, strict=True))
    if len(fits) == 1:
        (fit,), (curve,) = fits, curves
        return Page(
            f"Fitted model: {words.model_name(fit)}",
            (_formula(fit), _errors(fit), words.extrapolation_text(fit), ERRORS_NOTE),
            _tiles(fit),
            tuple(_sections_of_one(fit, curve, most)),
            command,
        )
    return Page(
        f"{len(fits)} fitted models: {_common_name(fits)}",
        tuple(_summary_of_all(fits)),
        _tiles_of_all(fits),
        tuple(_sections_of_all(pairs, most)),
        command,
    )


def _formula(fit: FittedModel) -> str:
    """The first sentence: the formula of one segment, or what the segments are."""
    if len(fit.segments) == 1:
        (segment,) = fit.segments
        return (
            f"{fit.y} = {tables.mathematics(segment.formula(tables.NAME_PLACEHOLDER), fit.x)}, for {fit.x} from "
            f"{words.span_text(fit.start, fit.end)}."
        )
    breaks = [f"{words.break_text(point)} at {words.number_text(point.at)}" for point in fit.breakpoints]
    happens = " and ".join([", ".join(breaks[:-1]), breaks[-1]] if breaks[1:] else breaks)
    return f"{fit.y} over {fit.x} has {words.parts_text(fit)}: it {happens}."


def _errors(fit: FittedModel) -> str:
    sentences = [words.errors_text(fit), words.errors_verdict(fit).rstrip("."), *fit.notes]
    return " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences)


def _tiles(fit: FittedModel) -> tuple[Tile, ...]:
    return (
        Tile(f"{len(fit.segments):,}", "segment" if len(fit.segments) == 1 else "segments"),
        Tile(words.error_text(fit.smape_pct), "error of the fit"),
        Tile(words.error_text(fit.left_out_smape_pct), "error at left-out points"),
        Tile(words.error_text(fit.noise_pct), "noise of the points"),
        Tile(f"{fit.points:,}", "points"),
    )


def _sections_of_one(fit: FittedModel, curve: MeasuredCurve, most: int) -> Iterator[Section]:
    yield Section(
        "model", "Segments", _draw(fit, curve, most), (_curve_figure("curve", fit, curve, most),),
        tables.segments_list(fit), expanded=True, notes=_notes(fit),
    )  # fmt: skip
    if fit.breakpoints:
        text = f"The true place lies in its interval with a probability of 90 %. A jump is in the unit of {fit.y}."
        yield Section("breakpoints", "Breakpoints", text, table=tables.breaks_list([fit], [""]), expanded=True)
    points = tables.points_table(fit, curve, most).rename(columns={"x": fit.x, "deviation": "deviation, %"})
    yield Section(
        "deviations", "What the model does not explain",
        "A pattern here, such as points above the model on one side of it, is what no formula of a segment has.",
        (_deviation_figure("deviations", fit, curve, most),), points,
    )  # fmt: skip


def _common_name(fits: Sequence[FittedModel]) -> str:
    ys, xs = (list(dict.fromkeys(names)) for names in ([fit.y for fit in fits], [fit.x for fit in fits]))
    return f"{', '.join(ys[:3])}{', …' if ys[3:] else ''} over {', '.join(xs)}"


def _summary_of_all(fits: Sequence[FittedModel]) -> Iterator[str]:
    worst = max(fits, key=_rank)
    unknown = sum(fit.left_out_smape_pct is None for fit in fits)
    largest = f"{words.error_text(worst.smape_pct)}, of {words.model_name(worst)}"
    yield f"{len(fits)} curves are fitted; the largest error is {largest}."
    above = sum(fit.left_out_smape_pct is not None and not words.explains(fit) for fit in fits)
    of = count_noun(above, "model") if above else "no model"
    others = f" Of {count_noun(unknown, 'model')} it is not known: there are too few points." if unknown else ""
    yield f"The error at points that were left out is clearly above the noise of {of}.{others}"
    yield "Each holds where it was measured. Values beyond are extrapolated: no measurement supports them."
    yield ERRORS_NOTE


def _rank(fit: FittedModel) -> float:
    return fit.smape_pct


def _tiles_of_all(fits: Sequence[FittedModel]) -> tuple[Tile, ...]:
    left_out = [fit.left_out_smape_pct for fit in fits if fit.left_out_smape_pct is not None]
    return (
        Tile(f"{len(fits):,}", "models"),
        Tile(words.error_text(max(fit.smape_pct for fit in fits)), "largest error of a fit"),
        Tile(
            words.error_text(max(left_out)) if left_out else words.UNKNOWN_TEXT,
            "largest error at left-out points",
        ),
        Tile(words.error_text(max(fit.noise_pct for fit in fits)), "largest noise of points"),
        Tile(f"{sum(fit.points for fit in fits):,}", "points"),
    )


def _sections_of_all(pairs: Sequence[tuple[FittedModel, MeasuredCurve]], most: int) -> Iterator[Section]:
    fits = [fit for fit, _ in pairs]
    drawn = sorted(sorted(range(len(fits)), key=lambda place: -_rank(fits[place]))[:MOST_FITS])
    text = "A row per curve: the families of its segments, where they meet, and its errors."
    if len(drawn) < len(fits):
        text += f" The {len(drawn)} with the largest errors are drawn below."
    yield Section("models", "All models", text, table=tables.fits_list(fits), expanded=True)
    if any(fit.breakpoints for fit in fits):
        text = "The true place lies in its interval with a probability of 90 %."
        names = [words.model_name(fit) for fit in fits]
        yield Section("breakpoints", "Breakpoints", text, table=tables.breaks_list(fits, names), expanded=True)
    for place in drawn:
        fit, curve = pairs[place]
        figures = (
            _curve_figure(f"curve-{place + 1}", fit, curve, most),
            _deviation_figure(f"deviations-{place + 1}", fit, curve, most),
        )
        text = f"{_errors(fit)} {_draw(fit, curve, most)}"
        yield Section(
            f"model-{place + 1}", words.model_name(fit), text, figures, tables.segments_list(fit), expanded=True,
            notes=_notes(fit),
        )  # fmt: skip


def _draw(fit: FittedModel, curve: MeasuredCurve, most: int) -> str:
    """How many points there are, how many of them are repeats, and whether all are drawn."""
    different, rows = len(set(curve.x.tolist())), len(curve.x)
    text = f"{count_noun(rows, 'point')} at {count_noun(different, 'value')} of {fit.x}."
    if different < rows:
        text += " Repeats are drawn one by one."
    if (drawn := len(tables.points_table(fit, curve, most))) < rows:
        text += (
            f" {drawn:,} of them are drawn: the lowest and the highest of every group of neighbours, so that what lies "
            "outside stays visible."
        )
    return text


def _notes(fit: FittedModel) -> tuple[str, ...]:
    """Below the segments: how to read their ends."""
    if len(fit.segments) == 1:
        return ()
    return ("A segment holds from its first value up to, but without, its last; the last segment includes it.",)


def _curve_figure(name: str, fit: FittedModel, curve: MeasuredCurve, most: int) -> Figure:
    axis = "logarithmic axis" if words.wide_axis(curve.x) else "linear axis"
    setting = words.setting_text(fit.setting)
    caption = f"Measured points and the model{f', {setting}' if setting else ''}; {axis}. {tables.spoken(fit)}"
    points = tables.points_table(fit, curve, most)
    return Figure(
        name,
        caption,
        draw_fitted_curve(points, tables.lines_table(fit, curve), tables.breaks_table(fit), fit.x, fit.y),
    )


def _deviation_figure(name: str, fit: FittedModel, curve: MeasuredCurve, most: int) -> Figure:
    points, band = tables.points_table(fit, curve, most), tables.noise_band_pct(fit)
    found = points["deviation"].dropna()
    inside = f"{100 * (found.abs() <= band).mean():.0f} % of the drawn points are in it" if len(found) else "no points"
    caption = (
        f"Deviation of each point from the model. The band, ±{band:.2g} %, would hold nine points in ten if they "
        f"deviated by normal noise alone; {inside}."
    )
    if len(found) < len(points):
        caption += " Points where the model is 0 have no deviation in % and are left out."
    return Figure(name, caption, deviations(points, band, fit.x))


# The charts of a fitted model: its points with segments and breakpoints, and what the model does not explain.


LOW_HEIGHT = 190  # height of the deviations, pixels
WIDE_TITLE = 300  # width of a title below an axis, pixels; longer ones are cut
DRAWN_BEYOND = 0.5  # by which share of the points' span a formula is drawn beyond them: near a pole it would hide them


def draw_fitted_curve(
    points: pd.DataFrame, lines: pd.DataFrame, breaks: pd.DataFrame, x_title: str, y_title: str
) -> Chart:
    """Points, a line per segment, and a rule with its band per breakpoint; a wide range has a logarithmic axis.
    `points`, `lines`, `breaks`: as of `points_table`, `lines_table` and `breaks_table`."""
    known = [tables.MEASURED_MARK, tables.MODEL_MARK, *([tables.INTERVAL_MARK] if len(breaks) else [])]
    axis = alt.Axis(format="~s", titleLimit=charts.TALL_HEIGHT)
    y = alt.Y(
        f"{tables.MEASURED_MARK}:Q",
        title=y_title,
        scale=_tall_enough(points[tables.MEASURED_MARK], lines["y"]),
        axis=axis,
    )
    x = _across(points, x_title)
    dots = (
        alt.Chart(points.assign(what=tables.MEASURED_MARK))
        .mark_point(filled=True, size=36, opacity=0.55)
        .encode(x=x, y=y, color=_of(known), tooltip=[_number("x", x_title), _number(tables.MEASURED_MARK, y_title)])
    )
    formula = alt.Tooltip("formula:N", title=y_title)
    curves = (
        alt.Chart(lines.assign(what=tables.MODEL_MARK))
        .mark_line(strokeWidth=2.5, clip=True)
        .encode(x=x, y=alt.Y("y:Q", title=y_title), detail="segment:N", color=_of(known), tooltip=[formula])
    )
    return charts.fit_to_page(charts.layers(*_breaks(breaks, x, known), dots, curves), charts.TALL_HEIGHT, known)


def _breaks(breaks: pd.DataFrame, x: alt.X, known: Sequence[str]) -> list[alt.Chart]:
    if breaks.empty:
        return []
    base = alt.Chart(breaks.assign(what=tables.INTERVAL_MARK))
    tooltip = [*(_number(name, name) for name in ("at", "low", "high")), "change:N"]
    ends = {"x": _column(x, "low"), "x2": "high:Q"}
    return [
        base.mark_rect(opacity=0.22).encode(**ends, color=_of(known), tooltip=tooltip),
        base.mark_rule(strokeWidth=1.5).encode(x=_column(x, "at"), color=_of(known), tooltip=tooltip),
    ]


def deviations(points: pd.DataFrame, band_pct: float, x_title: str) -> Chart:
    """How far points are from the model, %, over the band of the noise; `points` as of `points_table`."""
    found = points.dropna(subset=["deviation"])
    known = [tables.MEASURED_MARK, tables.NOISE_MARK]
    x = _across(points, x_title)
    y = alt.Y("deviation:Q", title="deviation, %")
    band = pd.DataFrame({"low": [-band_pct], "high": [band_pct], "what": [tables.NOISE_MARK]})
    tooltip = [_number("x", x_title), alt.Tooltip("deviation:Q", format=".2f")]
    return charts.fit_to_page(
        charts.layers(
            alt.Chart(band).mark_rect(opacity=0.22).encode(y=alt.Y("low:Q"), y2="high:Q", color=_of(known)),
            alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(style="guide").encode(y=alt.Y("zero:Q")),
            alt.Chart(found.assign(what=tables.MEASURED_MARK))
            .mark_point(filled=True, size=36, opacity=0.55)
            .encode(x=x, y=y, color=_of(known), tooltip=tooltip),
        ),
        LOW_HEIGHT,
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
    return alt.Scale(type="log", nice=False) if words.wide_axis(values.to_numpy()) else alt.Scale(zero=False)


def _tall_enough(points: pd.Series[float], lines: pd.Series[float]) -> alt.Scale:
    """A scale that holds all points, and of lines that leave them far behind a part."""
    low, high = float(points.min()), float(points.max())
    scale = _scale(points)
    logarithmic = words.wide_axis(points.to_numpy())
    room = (high / low) ** DRAWN_BEYOND if logarithmic else DRAWN_BEYOND * ((high - low) or abs(high) or 1.0)
    least, most = (low / room, high * room) if logarithmic else (low - room, high + room)
    if lines.empty or (lines.min() >= least and lines.max() <= most):
        return scale
    scale.domain = [max(least, min(low, float(lines.min()))), min(most, max(high, float(lines.max())))]
    return scale


def _of(known: Sequence[str]) -> alt.Color:
    """The colour of what a mark is, the same in every chart."""
    legend = alt.Legend(values=list(known), symbolType="circle", symbolOpacity=1, symbolStrokeWidth=0)
    return alt.Color("what:N", scale=alt.Scale(domain=list(tables.MARK_KINDS)), legend=legend, title=None)


def _number(column: str, title: str) -> alt.Tooltip:
    return alt.Tooltip(f"{column}:Q", title=title, format=",.5~g")
