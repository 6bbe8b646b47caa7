"""Significant digits: what training learns from one stage to the next is the same on every processor.

Processors round sums, products of matrices and exponentials differently: libraries choose the instructions that each
has, and with these the order of additions. The last digits of a result are therefore not those of the measurements, and
they grow: two splits of a tree that gain equally swap places, and an optimiser ends elsewhere. Each stage of training
keeps the digits that its measurements determine, and more, and drops those that rounding reaches, so that the next
stage begins with the same bytes everywhere. A number closer to the middle between two neighbours than rounding differs
may still be rounded either way; the digits below are so few that this is rare."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

VALUE_BITS = 24
"""Binary digits of values, 6e-8 of one: logarithms of throughput, known to 1e-3, and what is computed from them."""
PARAMETER_BITS = 10
"""Binary digits of lengths and variances that an optimiser finds, to 0.1 %; measurements determine them to 10 %."""


def significant(values: ArrayLike, bits: int = VALUE_BITS, *, of: ArrayLike | None = None) -> NDArray[np.float64]:
    """The values, rounded to that many binary digits. Every operation here is exact, so that equal values stay equal on
    every processor. `values`: any shape; what is infinite or not a number stays so. `bits`: how many digits. `of`: the
    magnitude whose digits are counted, as a shape that `values` can be divided by; each value's own by default. Sums of
    values are as exact as their largest, and differences near zero have no digits of their own."""
    numbers = np.asarray(values, dtype=np.float64)
    step = np.ldexp(1.0, np.frexp(numbers if of is None else of)[1] - bits)
    finite = np.isfinite(numbers)
    rounded: NDArray[np.float64] = np.rint(np.where(finite, numbers, 0.0) / step) * step
    return np.where(finite, rounded, numbers)


def significant_number(value: float) -> float:
    """What `significant` makes of a finite number."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(math.ldexp(mantissa, VALUE_BITS)), exponent - VALUE_BITS)
