"""Polynomials of degree 0 to 5, and one over those of degree 1 and 2."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from predictor.fitting.family import FAMILIES, Family, Functions

MOST_CANCELLED = 1e7
"""How much larger than their sum the terms of a polynomial may be: far from 0, high degrees lose all digits."""


class PolynomialFamily(Family):
    """a + b*x + c*x^2 + ..., up to its degree."""

    degree: ClassVar[int]

    def __init_subclass__(cls) -> None:
        cls.terms = cls.degree + 1

    def columns(self, x: Any, functions: Functions, rate: Any = 0.0) -> Sequence[Any]:
        return [x**power if power else 1.0 for power in range(self.terms)]

    def local_columns(self, x: Any, start: Any, span: float, rate: Any = 0.0) -> Sequence[Any]:
        return self.columns((x - start) / span, np)

    def is_sound(self, first: Any, last: Any, rate: Any = 0.0) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            far = 2 * np.maximum(np.abs(first), np.abs(last)) / np.abs(np.subtract(last, first))
        return (self.degree < 2) | (far**self.degree <= MOST_CANCELLED)

    def plain(self, local: Sequence[float], start: float, span: float, rate: float) -> tuple[float, ...]:
        shifted = np.polynomial.Polynomial([-start / span, 1 / span])
        power, total = np.polynomial.Polynomial([1.0]), np.zeros(self.terms)
        for number in local:
            total[: len(power.coef)] += number * np.asarray(power.coef, dtype=float)
            power = power * shifted
        return tuple(float(number) for number in total)

    def value(self, parameters: Sequence[Any], x: Any, functions: Functions) -> Any:
        total = parameters[-1]
        for number in reversed(parameters[:-1]):
            total = total * x + number
        return 1 / total if self.reciprocal else total

    def formula(self, numbers: Sequence[str], x: str) -> str:
        names = ["", f"*{x}", *(f"*{x}^{power}" for power in range(2, self.terms))][: self.terms]
        total = " + ".join(number + name for number, name in zip(numbers, names, strict=True))
        return f"1 / ({total})" if self.reciprocal else total


def _of_degree(degree: int, nested_in: str, reciprocal: bool = False) -> Family:
    members = {"degree": degree, "reciprocal": reciprocal, "nested_in": nested_in, "__doc__": "See PolynomialFamily."}
    family: Family = type(f"Degree{degree}", (PolynomialFamily,), members)()
    return family


POLYNOMIAL_NAMES = ("constant", "linear", "quadratic", "degree-3", "degree-4", "degree-5")
for _degree, _name in enumerate(POLYNOMIAL_NAMES):
    FAMILIES.register(_name)(_of_degree(_degree, POLYNOMIAL_NAMES[-1]))
for _degree in (1, 2):
    FAMILIES.register(f"inverse-{POLYNOMIAL_NAMES[_degree]}")(
        _of_degree(_degree, f"inverse-{POLYNOMIAL_NAMES[2]}", reciprocal=True)
    )
