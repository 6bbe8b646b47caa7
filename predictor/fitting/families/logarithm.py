"""Logarithm, and one over it."""

from collections.abc import Sequence
from typing import Any

from predictor.fitting.family import FAMILIES, Family, Functions


class Logarithm(Family):
    """a + b*ln(x)."""

    terms = 2
    of_positive_x = True

    def columns(self, x: Any, functions: Functions, rate: Any = 0.0) -> Sequence[Any]:
        return [1.0, functions.log(x)]

    def formula(self, numbers: Sequence[str], x: str) -> str:
        return "{} + {}*ln({x})".format(*numbers, x=x)


class InverseLogarithm(Logarithm):
    """1 / (a + b*ln(x))."""

    reciprocal = True

    def formula(self, numbers: Sequence[str], x: str) -> str:
        return f"1 / ({super().formula(numbers, x)})"


FAMILIES.register("log")(Logarithm())
FAMILIES.register("inverse-log")(InverseLogarithm())
