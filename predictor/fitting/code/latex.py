"""A fitted model as LaTeX: an equation with a case per segment, for the package amsmath. Numbers have as many digits as
the values need to be right to 0.01 % of the largest, as in the formula of the model."""

import re
from collections.abc import Sequence
from typing import Any

import sympy
from sympy.printing.latex import LatexPrinter

from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.generated_code import CODES, double, expression, facts, function_names, identifier

INPUT_SYMBOL = "x"


class _Printer(LatexPrinter):  # type: ignore[misc]
    def __init__(self, x: str) -> None:
        super().__init__({"ln_notation": True, "order": "old"})
        self._x = x

    def _print_Symbol(self, symbol: Any, style: str = "plain") -> str:
        return self._x

    def _print_Float(self, number: Any) -> str:
        return _number(double(number))


@CODES.register("latex")
def latex_code(models: Sequence[FittedModel]) -> str:
    """An equation per model."""
    names = function_names(models, ())
    return "\n\n".join(_equation(model, name) for model, name in zip(models, names, strict=True)) + "\n"


def _equation(model: FittedModel, name: str) -> str:
    x = _variable(identifier(model.x, ()))
    lines = [*(f"% {fact}" for fact in facts(model)), r"\["]
    lines += [f"{_variable(name)}({x}) =", r"\begin{cases}"]
    for number, segment in enumerate(model.segments):
        shown = [float(parameter) for parameter in segment.shown_parameters()]
        of = rf"({x} - {_number(repr(segment.origin))})" if segment.origin else x
        value = _Printer(of).doprint(sympy.expand(expression(segment, INPUT_SYMBOL, shown)))
        until = r"\leq" if number == len(model.segments) - 1 else "<"
        lines.append(rf"  {value} & {_number(repr(segment.start))} \leq {x} {until} {_number(repr(segment.end))} \\")
    return "\n".join([*lines, r"\end{cases}", r"\]"])


def _variable(name: str) -> str:
    escaped = name.replace("_", r"\_")
    return escaped if len(name) == 1 else rf"\mathit{{{escaped}}}"


def _number(text: str) -> str:
    mantissa, _, exponent = text.partition("e")
    mantissa = re.sub(r"\.0$", "", mantissa)
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa
