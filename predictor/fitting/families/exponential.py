"""The exponential function, and one over it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from predictor.fitting.family import FAMILIES, Family, Functions


class Exponential(Family):
    """a + b*exp(c*x)."""

    terms = 2
    has_rate = True

    def columns(self, x: Any, functions: Functions, rate: Any = 0.0) -> Sequence[Any]:
        return [1.0, functions.exp(rate * x)]

    def formula(self, numbers: Sequence[str], x: str) -> str:
        return "{} + {}*exp({}*{x})".format(*numbers, x=x)


class InverseExponential(Exponential):
    """1 / (a + b*exp(c*x)): the logistic function."""

    reciprocal = True

    def formula(self, numbers: Sequence[str], x: str) -> str:
        return f"1 / ({super().formula(numbers, x)})"


FAMILIES.register("exp")(Exponential())
FAMILIES.register("inverse-exp")(InverseExponential())
