"""Numbers of certificates, with the exact value of their decimals."""

from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator, Field

LARGEST_FILE = 1_000_000_000  # bytes
LARGEST_EXPONENT = 100  # numbers of more digits than this, before or after the decimal point, are refused


def _number(value: object) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number")
    if value and not 10.0**-LARGEST_EXPONENT <= abs(value) <= 10.0**LARGEST_EXPONENT:
        raise ValueError(f"{value!r} is too large or too small")
    return Fraction(str(value))


Exact = Annotated[Fraction, BeforeValidator(_number)]
Index = Annotated[int, Field(ge=0, le=10**9)]
