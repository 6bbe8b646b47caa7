"""Fitted models as code: the registry of languages, and what all of them say about a model."""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import sympy

from predictor.fitting.family import FAMILIES
from predictor.fitting.fitted_model import CurveSegment, FittedModel
from profiles.registry import Registry

CodeWriter = Callable[[Sequence[FittedModel]], str]
"""Writes a file of code: a function, or what corresponds to it, per model; the models differ by their settings."""

CODES: Registry[CodeWriter] = Registry(
    "language", "predictor.fitting.code", "placer.fit_codes", "--code", first=("python", "c", "latex", "p4")
)
"""Every language by name: the files of `predictor/fitting/code/`, then the entry points of other packages."""

SHOWN_IN_COMMENTS = " _-+.,:;/%()[]<>=#|&@!^~"
LONGEST_IN_COMMENTS = 60


def facts(model: FittedModel) -> list[str]:
    """What readers of the code should know, one line each: what was fitted, where it holds, and how well."""
    x, y = comment_text(model.x), comment_text(model.y)
    setting = ", ".join(f"{comment_text(name)}={value:.12g}" for name, value in model.setting.items())
    errors = [f"{model.smape_pct:.3g} % of the fit"]
    if model.left_out_smape_pct is not None:
        errors.append(f"{model.left_out_smape_pct:.3g} % at points left out of the fit")
    segments = len(model.segments)
    return [
        f"{y} over {x}{f' at {setting}' if setting else ''}, fitted by `placer fit`",
        f"to {model.points} measurements: {segments} segment{'s' if segments > 1 else ''}.",
        f"Fitted range: {model.start:.12g} <= {x} <= {model.end:.12g}; beyond it, extrapolated{_beyond(model)}.",
        f"Error (sMAPE): {', '.join(errors)};",
        f"estimated noise of the measurements: {model.noise_pct:.3g} %.",
    ]


def _beyond(model: FittedModel) -> str:
    words = zip(("below", "above"), model.reach, strict=True)
    doubtful = [f"{word} {end:.12g}" for word, end in words if end is not None]
    return f", without support {' and '.join(doubtful)}" if doubtful else ""


def comment_text(name: str) -> str:
    """A user's text inside a comment of any language: nothing that could end the comment or continue its line."""
    shown = "".join(character if character.isalnum() or character in SHOWN_IN_COMMENTS else "_" for character in name)
    return shown if len(shown) <= LONGEST_IN_COMMENTS else f"{shown[:LONGEST_IN_COMMENTS]}..."


# Names of columns as identifiers of a programming language.


LONGEST_NAME = 60


def identifier(text: str, avoided: Collection[str], empty: str = "x") -> str:
    """An identifier of ASCII letters, digits and underscores: `cycles/packet` becomes `cycles_packet`. `text`: whatever
    a column is called. `avoided`: keywords, and names that are taken; those get an underscore at the end. `empty`: what
    stands for a text without letters and digits."""
    letters = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    name = re.sub(r"[^0-9A-Za-z]+", "_", letters).strip("_")[:LONGEST_NAME].rstrip("_") or empty
    if name[0].isdigit():
        name = f"{empty}_{name}"
    while name in avoided:
        name += "_"
    return name


def function_names(models: Sequence[FittedModel], avoided: Collection[str]) -> list[str]:
    """Names for the functions of models, all different: of y, and of the setting, as in `cycles_packet_size_64`."""
    names: list[str] = []
    for model in models:
        setting = "".join(f" {name} {_spell_number(value)}" for name, value in model.setting.items())
        names.append(identifier(model.y + setting, {*avoided, *names}, "y"))
    return names


def _spell_number(value: float) -> str:
    return f"{value:.12g}".replace("-", "minus ").replace(".", " point ").replace("+", "")


# The formula of a segment as a sympy expression, from the family's own definition, and as code.


DOUBLE_DIGITS = 17
"""Decimal digits that hold every double exactly enough to give it back."""


def expression(segment: CurveSegment, x: str, parameters: Sequence[float] | None = None) -> Any:
    """The segment's function of a symbol. `segment`: its family, and its parameters. `x`: name of the variable; the
    symbol is that, less the origin of the formula. `parameters`: others to use instead."""
    numbers = [sympy.Float(float(number), DOUBLE_DIGITS) for number in parameters or segment.parameters]
    symbol = sympy.Symbol(segment.variable(x), real=True)
    return sympy.sympify(FAMILIES[segment.family].value(numbers, symbol, sympy))


class DoublePrinter:
    """Prints numbers so that no digit is lost; a base class before the printer of a language."""

    def _print_Float(self, number: Any) -> str:
        return double(number)


def branches(model: FittedModel, x: str, printer: Any) -> Iterator[tuple[str, str | None]]:
    """The formula of each segment as code, and the breakpoint before which it holds; None for the last segment."""
    ends = [*(double(curve_break.at) for curve_break in model.breakpoints), None]
    for segment, end in zip(model.segments, ends, strict=True):
        yield printer.doprint(expression(segment, x)), end


def double(number: Any) -> str:
    """The shortest text that gives the same double back, of a number, also of sympy."""
    return repr(float(number))
