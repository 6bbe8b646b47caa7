"""The exponential function, and one over it."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from predictor.fitting.family import FAMILIES, Family, Functions
from profiles.arrays import Floats

SLOWEST_RATE, FASTEST_RATE, RATE_STEP = 0.5, 12.0, 1.5
"""The exponent across a segment that is tried, from the longest segment to the shortest, and the ratio of two rates."""
RATE_LIMIT = 25.0  # largest exponent within a segment: what is steeper is a jump
LARGEST_EXPONENT = 300.0  # largest exponent of the formula: beyond, its factor can hardly be written


class Exponential(Family):
    """a + b*exp(c*x)."""

    terms = 2
    has_rate = True

    def columns(self, x: Any, functions: Functions, rate: Any = 0.0) -> Sequence[Any]:
        return [1.0, functions.exp(rate * x)]

    def rates(self, shortest: float, longest: float) -> Floats:
        low, high = SLOWEST_RATE / longest, FASTEST_RATE / shortest
        sizes = np.geomspace(low, high, max(4, 1 + math.ceil(math.log(high / low) / math.log(RATE_STEP))))
        return np.concatenate([-sizes[::-1], sizes])

    def local_columns(self, x: Any, start: Any, span: float, rate: Any = 0.0) -> Sequence[Any]:
        power = rate * (x - start)
        with np.errstate(over="ignore"):
            return [1.0, np.where(np.abs(power) <= RATE_LIMIT, np.exp(power), np.nan)]

    def is_sound(self, first: Any, last: Any, rate: Any = 0.0) -> Any:
        return np.abs(rate) * np.maximum(np.abs(first), np.abs(last)) <= LARGEST_EXPONENT

    def plain(self, local: Sequence[float], start: float, span: float, rate: float) -> tuple[float, ...]:
        return local[0], local[1] * math.exp(-rate * start), rate

    def formula(self, numbers: Sequence[str], x: str) -> str:
        return "{} + {}*exp({}*{x})".format(*numbers, x=x)


class InverseExponential(Exponential):
    """1 / (a + b*exp(c*x)): the logistic function."""

    reciprocal = True

    def formula(self, numbers: Sequence[str], x: str) -> str:
        return f"1 / ({super().formula(numbers, x)})"


FAMILIES.register("exp")(Exponential())
FAMILIES.register("inverse-exp")(InverseExponential())
