"""A fitted model in a terminal: its curve, its segments, its breakpoints, its errors."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from placer.report.text.table import count_noun, csv_text
from predictor.fitting.fitted_model import CurveBreak, FittedModel
from predictor.fitting.points import MeasuredCurve
from profiles.arrays import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from profiles.files.csv_table import CsvTable


PLOT_ROWS = 6
WIDEST_CURVE = 72  # characters of the widest curve
NARROWEST_CURVE = 8  # a terminal too narrow for it shows no curve
WIDE_RANGE_FACTOR = 50.0  # a curve whose largest x is more than so many times its smallest has a logarithmic axis


def format_fit(fit: FittedModel, curve: MeasuredCurve | None, width: int, *, encoding: str = "utf-8") -> str:
    """The model for people, ending in a newline. `curve`: what was fitted; without it no curve is drawn. `width`: of
    the terminal, in characters; longer lines are broken. `encoding`: of the terminal. Where it is not UTF-8, the curve
    is of plain ASCII, and what it does not have is replaced."""
    unicode = encoding.lower().replace("-", "").replace("_", "") == "utf8"
    lines = [f"{model_name(fit)}: {fit.points:,} points"]
    if curve is not None:
        lines += _curve(fit, curve, width, unicode)
    for number, segment in enumerate(fit.segments):
        if number:
            lines.append(_break(fit.breakpoints[number - 1]))
        span, formula = span_text(segment.start, segment.end), segment.formula(fit.x)
        lines.append(f"{span}: {fit.y} = {formula} ({segment.family}), {error_text(segment.smape_pct)}")
    lines.append(f"{errors_text(fit)} (sMAPE)")
    lines += [f"note: {note}" for note in fit.notes]
    if reach := reach_text(fit):
        lines.append(f"it can be continued {reach}")
    text = "\n".join(_printable(broken) for line in lines for broken in _broken(line, width)) + "\n"
    return text if unicode else text.encode(encoding, "replace").decode(encoding)


def wide_axis(x: np.ndarray) -> bool:
    """Whether an axis of these values is logarithmic."""
    return bool(len(x)) and float(x.min()) > 0 and float(x.max()) > WIDE_RANGE_FACTOR * float(x.min())


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
    rows = draw_curve(scale(curve.x), curve.y, columns, PLOT_ROWS, braille=braille)
    for label, row in zip([top, *[""] * (PLOT_ROWS - 2), bottom], rows, strict=True):
        yield f"{label:>{margin - 1}} {row}".rstrip(" \u2800")
    ends = scale(np.array([curve.x.min(), curve.x.max()]))
    carets = [" "] * columns
    for point in fit.breakpoints:
        if curve.x.min() <= point.at <= curve.x.max():
            share = (scale(np.array([point.at]))[0] - ends[0]) / max(ends[1] - ends[0], 1e-300)
            carets[min(int(share * columns), columns - 1)] = "^"
    if fit.breakpoints:
        yield (" " * margin + "".join(carets)).rstrip()
    # The smallest and the largest x at the ends of the axis, its name between them where there is space.
    left, right = (number_text(value) for value in (curve.x.min(), curve.x.max()))
    name = f"{fit.x} (log)" if log else fit.x
    space = columns - len(left) - len(right)
    yield " " * margin + (left + (name if len(name) + 2 <= space else "").center(max(space, 1)) + right)


# What is said of a fitted model, in terminals and on pages.


SENTENCE_DIGITS = 4  # significant digits of a number in a sentence
SAME_ERROR_FACTOR = 1.25  # an error of at most this many times the noise is as small as the measurements allow
UNKNOWN_TEXT = "unknown"
LARGEST_SPELLED, SMALLEST_SPELLED = 1e15, 1e-4  # numbers outside are written with an exponent


def number_text(value: float) -> str:
    """A number with the digits that it needs: `4,096`, `12.1`, `0.00021`, `3.2e-09`; whole ones keep all digits."""
    size = abs(value)
    if size and not SMALLEST_SPELLED <= size < LARGEST_SPELLED:
        return f"{value:.{SENTENCE_DIGITS}g}"
    if float(value).is_integer() or size >= 10**SENTENCE_DIGITS:
        return f"{value:,.0f}"
    return f"{value:,.{SENTENCE_DIGITS}g}"


def setting_text(setting: Mapping[str, float]) -> str:
    """The values of other columns: `key_width 8, rules 100`; empty where there are none."""
    return ", ".join(f"{name} {number_text(value)}" for name, value in setting.items())


def model_name(fit: FittedModel) -> str:
    """What depends on what: `cycles over entries, key_width 8`."""
    setting = setting_text(fit.setting)
    return f"{fit.y} over {fit.x}" + (f", {setting}" if setting else "")


def span_text(start: float, end: float) -> str:
    """A range of x."""
    return f"{number_text(start)} to {number_text(end)}"


def break_text(point: CurveBreak) -> str:
    """What happens at a breakpoint: `jumps by 12.1`, or `bends`."""
    return f"jumps by {number_text(point.jump)}" if point.jump else "bends"


def error_text(pct: float | None) -> str:
    """An error; one that is not known says so."""
    return UNKNOWN_TEXT if pct is None else f"{pct:.2f} %"


def errors_text(fit: FittedModel) -> str:
    """Error of the fit, error at points that were left out, and noise, side by side."""
    return (
        f"error of the fit {error_text(fit.smape_pct)}, at points left out of the fit "
        f"{error_text(fit.left_out_smape_pct)}, noise {error_text(fit.noise_pct)}"
    )


def explains(fit: FittedModel) -> bool:
    """Whether the error at points that were left out is known, and no larger than noise explains."""
    return fit.left_out_smape_pct is not None and fit.left_out_smape_pct <= SAME_ERROR_FACTOR * fit.noise_pct


def errors_verdict(fit: FittedModel) -> str:
    """What the error at points that were left out means beside the noise, in a sentence."""
    if fit.left_out_smape_pct is None:
        return "Too few points to leave some out: how well the model predicts other points is not known."
    if explains(fit):
        return "The model predicts other points about as exactly as they can be measured."
    if fit.noise_pct <= 0:
        return "The points show no noise; what is left is the model's own error."
    times = fit.left_out_smape_pct / fit.noise_pct
    return f"Its error at other points is {times:.1f} times the noise: some of the curve is not explained."


def extrapolation_text(fit: FittedModel) -> str:
    """Where the model holds, and what it is beyond, in two sentences."""
    return (
        f"It holds for {fit.x} from {span_text(fit.start, fit.end)}, where {fit.y} was measured. Beyond, the outer "
        "formulas are continued: such values are extrapolated, no measurement supports them, and their error is not "
        "known." + (f" They are given {reach} only." if (reach := reach_text(fit)) else "")
    )


def reach_text(fit: FittedModel) -> str:
    """How far it may be continued: `down to 0.5 and up to 200`; empty where nothing limits it."""
    words = zip(("down to", "up to"), fit.reach, strict=True)
    return " and ".join(f"{word} {number_text(end)}" for word, end in words if end is not None)


def parts_text(fit: FittedModel) -> str:
    """Of how many segments it is, and their families: `2 segments (constant, log)`."""
    families = ", ".join(segment.family for segment in fit.segments)
    return f"{count_noun(len(fit.segments), 'segment')} ({families})"


# A curve in the characters of a terminal: Braille dots, or plain ASCII.


BRAILLE_START = 0x2800
BRAILLE_BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Of the dots of a Braille character, by column and row."""
ASCII_DOTS = " '-|.:||"  # by which thirds of a character have points: the first bit is the upper one
ASCII_ROWS = 3


def draw_curve(x: Floats, y: Floats, columns: int, rows: int, *, braille: bool) -> list[str]:
    """The points in a box of characters, one string per row, the largest y at the top. `x` and `y`: finite numbers, at
    least one. `columns` and `rows`: size of the box in characters. `braille`: whether Braille dots may be used;
    otherwise plain ASCII."""
    across, down = (2, 4) if braille else (1, ASCII_ROWS)
    at = _places(x, columns * across)
    depth = rows * down - 1 - _places(y, rows * down)
    characters = np.zeros((rows, columns), dtype=int)
    bits = np.array(BRAILLE_BITS if braille else [[1, 2, 4]])
    np.bitwise_or.at(characters, (depth // down, at // across), bits[at % across, depth % down])
    return [
        "".join(chr(BRAILLE_START + bits) if braille else ASCII_DOTS[bits] for bits in row)
        for row in characters.tolist()
    ]


def _places(values: Floats, count: int) -> NDArray[np.int_]:
    """Of each value its place among `count`; equal values are in the middle."""
    low, span = values.min(), np.ptp(values)
    if not span > 0:
        return np.full(len(values), count // 2)
    places: NDArray[np.int_] = np.minimum((values - low) / span * count, count - 1).astype(int)
    return places


# Points as they were written, with what a fitted model predicts there, as CSV.


ADDED_COLUMNS = ("predicted", "extrapolated")


def format_fitted_points(table: CsvTable, predicted: NDArray[np.float64], extrapolated: NDArray[np.bool_]) -> str:
    """The rows of a table with two columns more; `predicted` is empty where the formula has no finite value."""
    kept = [at for at, column in enumerate(table.header) if column not in ADDED_COLUMNS]
    rows = [
        [*(row[at] for at in kept), f"{value:.15g}" if math.isfinite(value) else "", str(outside).lower()]
        for row, value, outside in zip(table.rows, predicted.tolist(), extrapolated.tolist(), strict=True)
    ]
    return csv_text([*(table.header[at] for at in kept), *ADDED_COLUMNS], rows)
