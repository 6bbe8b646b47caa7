"""The page of `placer fit` and of a sweep's models: the formulas, their curves, their breakpoints, their errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placer.report.html import Figure, Page, Section, Tile
from placer.report.html.fit_charts import deviations, fitted_curve
from placer.report.html.fit_tables import (
    NAME,
    breaks_list,
    breaks_table,
    fits_list,
    lines_table,
    mathematics,
    noise_band_pct,
    points_table,
    segments_list,
    spoken,
)
from placer.report.text.counts import counted
from placer.report.text.fit import wide_axis
from placer.report.text.fit_words import (
    UNKNOWN,
    break_text,
    error_text,
    errors_text,
    errors_verdict,
    explains,
    extrapolation_text,
    model_name,
    number_text,
    parts_text,
    setting_text,
    span_text,
)
from predictor.fitting.curve import MeasuredCurve
from predictor.fitting.fitted_model import FittedModel

MOST_POINTS, LEAST_POINTS, POINTS_OF_PAGE = 1_000, 100, 6_000
"""How many points of a curve are drawn: all curves together have about as many as the page may have."""
MOST_FITS = 24
"""That have a section of their own."""
ERRORS = (
    "Errors are symmetric mean absolute percentage errors (sMAPE): 100/n · Σ |f − g| / (|f| + |g|). A deviation of 2 % "
    "is an error of about 1 %."
)


def fit_page(fits: Sequence[FittedModel], curves: Sequence[MeasuredCurve], command: str) -> Page:
    """The page of fitted models.

    Parameters
    ----------
    fits
        At least one; several are of several settings, or of several metrics of a sweep.
    curves
        What each was fitted to, in the same order.
    command
        That makes the page again.
    """
    most = min(max(POINTS_OF_PAGE // len(fits), LEAST_POINTS), MOST_POINTS)
    pairs = list(zip(fits, curves, strict=True))
    if len(fits) == 1:
        (fit,), (curve,) = fits, curves
        return Page(
            f"Fitted model: {model_name(fit)}",
            (_formula(fit), _errors(fit), extrapolation_text(fit), ERRORS),
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
            f"{fit.y} = {mathematics(segment.formula(NAME), fit.x)}, for {fit.x} from {span_text(fit.start, fit.end)}."
        )
    breaks = [f"{break_text(point)} at {number_text(point.at)}" for point in fit.breakpoints]
    happens = " and ".join([", ".join(breaks[:-1]), breaks[-1]] if breaks[1:] else breaks)
    return f"{fit.y} over {fit.x} has {parts_text(fit)}: it {happens}."


def _errors(fit: FittedModel) -> str:
    sentence = errors_text(fit)
    return f"{sentence[0].upper()}{sentence[1:]}. {errors_verdict(fit)}"


def _tiles(fit: FittedModel) -> tuple[Tile, ...]:
    return (
        Tile(f"{len(fit.segments):,}", "segment" if len(fit.segments) == 1 else "segments"),
        Tile(error_text(fit.smape_pct), "error of the fit"),
        Tile(error_text(fit.left_out_smape_pct), "error at left-out points"),
        Tile(error_text(fit.noise_pct), "noise of the points"),
        Tile(f"{fit.points:,}", "points"),
    )


def _sections_of_one(fit: FittedModel, curve: MeasuredCurve, most: int) -> Iterator[Section]:
    yield Section(
        "model", "Segments", _drawn(fit, curve, most), (_curve_figure("curve", fit, curve, most),), segments_list(fit),
        expanded=True, notes=_notes(fit),
    )  # fmt: skip
    if fit.breakpoints:
        text = f"The true place lies in its interval with a probability of 90 %. A jump is in the unit of {fit.y}."
        yield Section("breakpoints", "Breakpoints", text, table=breaks_list([fit], [""]), expanded=True)
    points = points_table(fit, curve, most).rename(columns={"x": fit.x, "deviation": "deviation, %"})
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
    yield f"{len(fits)} curves are fitted; the largest error is {error_text(worst.smape_pct)}, of {model_name(worst)}."
    above = sum(fit.left_out_smape_pct is not None and not explains(fit) for fit in fits)
    of = counted(above, "model") if above else "no model"
    others = f" Of {counted(unknown, 'model')} it is not known: there are too few points." if unknown else ""
    yield f"The error at points that were left out is clearly above the noise of {of}.{others}"
    yield "Each holds where it was measured. Values beyond are extrapolated: no measurement supports them."
    yield ERRORS


def _rank(fit: FittedModel) -> float:
    return fit.smape_pct


def _tiles_of_all(fits: Sequence[FittedModel]) -> tuple[Tile, ...]:
    left_out = [fit.left_out_smape_pct for fit in fits if fit.left_out_smape_pct is not None]
    return (
        Tile(f"{len(fits):,}", "models"),
        Tile(error_text(max(fit.smape_pct for fit in fits)), "largest error of a fit"),
        Tile(error_text(max(left_out)) if left_out else UNKNOWN, "largest error at left-out points"),
        Tile(error_text(max(fit.noise_pct for fit in fits)), "largest noise of points"),
        Tile(f"{sum(fit.points for fit in fits):,}", "points"),
    )


def _sections_of_all(pairs: Sequence[tuple[FittedModel, MeasuredCurve]], most: int) -> Iterator[Section]:
    fits = [fit for fit, _ in pairs]
    drawn = sorted(sorted(range(len(fits)), key=lambda place: -_rank(fits[place]))[:MOST_FITS])
    text = "A row per curve: the families of its segments, where they meet, and its errors."
    if len(drawn) < len(fits):
        text += f" The {len(drawn)} with the largest errors are drawn below."
    yield Section("models", "All models", text, table=fits_list(fits), expanded=True)
    if any(fit.breakpoints for fit in fits):
        text = "The true place lies in its interval with a probability of 90 %."
        names = [model_name(fit) for fit in fits]
        yield Section("breakpoints", "Breakpoints", text, table=breaks_list(fits, names), expanded=True)
    for place in drawn:
        fit, curve = pairs[place]
        figures = (
            _curve_figure(f"curve-{place + 1}", fit, curve, most),
            _deviation_figure(f"deviations-{place + 1}", fit, curve, most),
        )
        text = f"{_errors(fit)} {_drawn(fit, curve, most)}"
        yield Section(
            f"model-{place + 1}", model_name(fit), text, figures, segments_list(fit), expanded=True, notes=_notes(fit)
        )


def _drawn(fit: FittedModel, curve: MeasuredCurve, most: int) -> str:
    """How many points there are, how many of them are repeats, and whether all are drawn."""
    different, rows = len(set(curve.x.tolist())), len(curve.x)
    text = f"{counted(rows, 'point')} at {counted(different, 'value')} of {fit.x}."
    if different < rows:
        text += " Repeats are drawn one by one."
    if (drawn := len(points_table(fit, curve, most))) < rows:
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
    axis = "logarithmic axis" if wide_axis(curve.x) else "linear axis"
    setting = setting_text(fit.setting)
    caption = f"Measured points and the model{f', {setting}' if setting else ''}; {axis}. {spoken(fit)}"
    points = points_table(fit, curve, most)
    return Figure(name, caption, fitted_curve(points, lines_table(fit, curve), breaks_table(fit), fit.x, fit.y))


def _deviation_figure(name: str, fit: FittedModel, curve: MeasuredCurve, most: int) -> Figure:
    points, band = points_table(fit, curve, most), noise_band_pct(fit)
    found = points["deviation"].dropna()
    inside = f"{100 * (found.abs() <= band).mean():.0f} % of the drawn points are in it" if len(found) else "no points"
    caption = (
        f"Deviation of each point from the model. The band, ±{band:.2g} %, would hold nine points in ten if they "
        f"deviated by normal noise alone; {inside}."
    )
    if len(found) < len(points):
        caption += " Points where the model is 0 have no deviation in % and are left out."
    return Figure(name, caption, deviations(points, band, fit.x))
