"""One over x, and one over that: what saturates."""

from collections.abc import Sequence
from typing import Any

from predictor.fitting.family import FAMILIES, Family, Functions


class Inverse(Family):
    """a + b/x."""

    terms = 2
    of_positive_x = True

    def columns(self, x: Any, functions: Functions, rate: Any = 0.0) -> Sequence[Any]:
        return [1.0, 1 / x]

    def formula(self, numbers: Sequence[str], x: str) -> str:
        return "{} + {}/{x}".format(*numbers, x=x)


class Saturating(Inverse):
    """1 / (a + b/x): rises like x/b, and saturates at 1/a."""

    reciprocal = True

    def formula(self, numbers: Sequence[str], x: str) -> str:
        return f"1 / ({super().formula(numbers, x)})"


FAMILIES.register("inverse")(Inverse())
FAMILIES.register("inverse-inverse")(Saturating())
