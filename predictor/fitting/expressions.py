"""The formula of a segment as a sympy expression, from the family's own definition, and as code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sympy

from predictor.fitting.family import FAMILIES
from predictor.fitting.fitted_model import CurveSegment, FittedModel

DIGITS = 17
"""Decimal digits that hold every double exactly enough to give it back."""


def expression(segment: CurveSegment, x: str, parameters: Sequence[float] | None = None) -> Any:
    """The segment's function of a symbol.

    Parameters
    ----------
    segment
        Its family, and its parameters.
    x
        Name of the symbol.
    parameters
        Others to use instead.
    """
    numbers = [sympy.Float(float(one), DIGITS) for one in parameters or segment.parameters]
    return sympy.sympify(FAMILIES[segment.family].value(numbers, sympy.Symbol(x, real=True), sympy))


class DoublePrinter:
    """Prints numbers so that no digit is lost; a base class before the printer of a language."""

    def _print_Float(self, number: Any) -> str:
        return double(number)


def branches(model: FittedModel, x: str, printer: Any) -> Iterator[tuple[str, str | None]]:
    """The formula of each segment as code, and the breakpoint before which it holds; None for the last segment."""
    ends = [*(double(one.at) for one in model.breakpoints), None]
    for segment, end in zip(model.segments, ends, strict=True):
        yield printer.doprint(expression(segment, x)), end


def double(number: Any) -> str:
    """The shortest text that gives the same double back, of a number, also of sympy."""
    return repr(float(number))
