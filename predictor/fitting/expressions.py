"""The formula of a segment as a sympy expression, from the family's own definition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from predictor.fitting.family import FAMILIES
from predictor.fitting.fitted_model import CurveSegment

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


def double(number: Any) -> str:
    """The shortest text that gives the same double back, of a sympy number."""
    return repr(float(number))
