"""A power of x."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from predictor.fitting.family import FAMILIES, Family, Functions
from profiles.arrays import Floats

EXPONENTS = (0.2, 0.3, 0.45, 0.65, 0.95, 1.4, 2.0, 2.8, 4.0)
"""Sizes of the exponents that are tried; smaller ones are like the logarithm."""
LARGEST_POWER = 300.0  # largest logarithm of the power within a formula


class Power(Family):
    """a + b*x^c."""

    terms = 2
    has_rate = True
    of_positive_x = True

    def columns(self, x: Any, functions: Functions, rate: Any = 0.0) -> Sequence[Any]:
        return [1.0, functions.exp(rate * functions.log(x))]

    def rates(self, shortest: float, longest: float) -> Floats:
        return np.array([*(-size for size in reversed(EXPONENTS)), *EXPONENTS])

    def rate_unit(self, span: float) -> float:
        return 1.0

    def local_columns(self, x: Any, start: Any, span: float, rate: Any = 0.0) -> Sequence[Any]:
        power = rate * np.log(x / start)
        return [1.0, np.exp(np.clip(power, -LARGEST_POWER, LARGEST_POWER))]

    def is_sound(self, first: Any, last: Any, rate: Any = 0.0) -> Any:
        return np.abs(rate) * np.maximum(np.abs(np.log(first)), np.abs(np.log(last))) <= LARGEST_POWER

    def plain(self, local: Sequence[float], start: float, span: float, rate: float) -> tuple[float, ...]:
        return local[0], local[1] * float(np.exp(-rate * np.log(start))), rate

    def formula(self, numbers: Sequence[str], x: str) -> str:
        return "{} + {}*{x}^({})".format(*numbers, x=x)


FAMILIES.register("power")(Power())
