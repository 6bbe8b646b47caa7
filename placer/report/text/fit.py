"""A fitted model in a terminal: its curve, its segments, its breakpoints, its errors."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import numpy as np

from placer.report.text.dots import drawn_curve
from placer.report.text.fit_words import break_text, error_text, errors_text, model_name, number_text, span_text
from predictor.fitting.curve import MeasuredCurve
from predictor.fitting.fitted_model import CurveBreak, CurveSegment, FittedModel

ROWS = 6
WIDEST_CURVE = 72
"""Characters of the widest curve."""
NARROWEST_CURVE = 8
"""A terminal too narrow for it shows no curve."""
WIDE = 50.0
"""A curve whose largest x is more than so many times its smallest has a logarithmic axis."""


def shown(fit: FittedModel, curve: MeasuredCurve | None, width: int, *, encoding: str = "utf-8") -> str:
    """The model for people, ending in a newline.

    Parameters
    ----------
    curve
        What was fitted; without it no curve is drawn.
    width
        Of the terminal, in characters; longer lines are broken.
    encoding
        Of the terminal. Where it is not UTF-8, the curve is of plain ASCII, and what it does not have is replaced.
    """
    unicode = encoding.lower().replace("-", "").replace("_", "") == "utf8"
    lines = [f"{model_name(fit)}: {fit.points:,} points"]
    if curve is not None:
        lines += _curve(fit, curve, width, unicode)
    for number, segment in enumerate(fit.segments):
        if number:
            lines.append(_break(fit.breakpoints[number - 1]))
        lines.append(_segment(fit, segment))
    lines.append(f"{errors_text(fit)} (sMAPE)")
    text = "\n".join(_printable(broken) for line in lines for broken in _broken(line, width)) + "\n"
    return text if unicode else text.encode(encoding, "replace").decode(encoding)


def wide_axis(x: np.ndarray) -> bool:
    """Whether an axis of these values is logarithmic."""
    return bool(len(x)) and float(x.min()) > 0 and float(x.max()) > WIDE * float(x.min())


def _segment(fit: FittedModel, segment: CurveSegment) -> str:
    span, formula = span_text(segment.start, segment.end), segment.formula(fit.x)
    return f"{span}: {fit.y} = {formula} ({segment.family}), {error_text(segment.smape_pct)}"


def _break(point: CurveBreak) -> str:
    return f"at {number_text(point.at)} [{number_text(point.low)}, {number_text(point.high)}]: {break_text(point)}"


def _printable(line: str) -> str:
    """The line without what would steer the terminal: names of columns may hold anything."""
    return "".join(letter if letter.isprintable() else "?" for letter in line)


def _broken(line: str, width: int) -> list[str]:
    """The line in parts of at most `width` characters; what is aligned stays."""
    if len(line) <= width or not line.strip():
        return [line]
    return textwrap.wrap(line, max(width, 20), subsequent_indent="    ", break_on_hyphens=False)


def _curve(fit: FittedModel, curve: MeasuredCurve, width: int, braille: bool) -> Iterator[str]:
    """The points, labelled with the largest and smallest y and x; a caret below each breakpoint."""
    top, bottom = (number_text(value) for value in (curve.y.max(), curve.y.min()))
    margin = max(len(top), len(bottom)) + 1
    columns = min(width, WIDEST_CURVE) - margin
    if columns < NARROWEST_CURVE:
        return
    log = wide_axis(curve.x)
    scale = np.log if log else np.asarray
    rows = drawn_curve(scale(curve.x), curve.y, columns, ROWS, braille=braille)
    for label, row in zip([top, *[""] * (ROWS - 2), bottom], rows, strict=True):
        yield f"{label:>{margin - 1}} {row}".rstrip(" \u2800")
    ends = scale(np.array([curve.x.min(), curve.x.max()]))
    carets = [" "] * columns
    for point in fit.breakpoints:
        if curve.x.min() <= point.at <= curve.x.max():
            share = (scale(np.array([point.at]))[0] - ends[0]) / max(ends[1] - ends[0], 1e-300)
            carets[min(int(share * columns), columns - 1)] = "^"
    if fit.breakpoints:
        yield (" " * margin + "".join(carets)).rstrip()
    yield " " * margin + _ends(fit, curve, columns, log)


def _ends(fit: FittedModel, curve: MeasuredCurve, columns: int, log: bool) -> str:
    """The smallest and the largest x at the ends of the axis, its name between them where there is space."""
    left, right = (number_text(value) for value in (curve.x.min(), curve.x.max()))
    name = f"{fit.x} (log)" if log else fit.x
    space = columns - len(left) - len(right)
    return left + (name if len(name) + 2 <= space else "").center(max(space, 1)) + right
