"""The interface of a family of functions, and the registry of all of them. A family is `sum(b_k * column_k(x))`, or one
over it, with parameters `b_k`; its columns may depend on one more parameter, its rate, as in `exp(rate * x)`. So a fit
is linear least squares, at each rate that is tried."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from profiles.arrays import Floats
from profiles.registry import Registry


class Functions(Protocol):
    """Where `log` and `exp` come from: numpy for numbers, sympy for symbols."""

    def log(self, x: Any) -> Any:
        """Natural logarithm."""

    def exp(self, x: Any) -> Any:
        """Exponential function."""


class Family(ABC):
    """A family of functions of one variable. A new one is one entry of a file in `families/` that registers it."""

    terms: ClassVar[int]  # number of columns; the first is always 1
    has_rate: ClassVar[bool] = False  # whether the columns depend on a rate, which then is the last parameter
    reciprocal: ClassVar[bool] = False  # whether it is one over the sum
    of_positive_x: ClassVar[bool] = False  # whether x must be above zero
    nested_in: ClassVar[str] = ""  # the name of a family with the same first columns and more of them, if there is one

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.terms + self.has_rate

    @abstractmethod
    def columns(self, x: Any, functions: Functions, rate: Any = 0.0) -> Sequence[Any]:
        """The columns at x, an array or a symbol; the first is the number 1."""

    def value(self, parameters: Sequence[Any], x: Any, functions: Functions) -> Any:
        """The function at x, an array or a symbol; parameters in the order of the formula."""
        columns = self.columns(x, functions, parameters[-1] if self.has_rate else 0.0)
        total = sum(b * column for b, column in zip(parameters, columns, strict=False))
        return 1 / total if self.reciprocal else total

    @abstractmethod
    def formula(self, numbers: Sequence[str], x: str) -> str:
        """The function in plain mathematics; `numbers` are the parameters as text."""

    def rates(self, shortest: float, longest: float) -> Floats:
        """Rates to try for segments of these lengths; one that has no effect for a family without."""
        return np.zeros(1)

    def rate_unit(self, span: float) -> float:
        """A small rate within a segment is small beside one over this, in the unit of x."""
        return span

    def local_columns(self, x: Any, start: Any, span: float, rate: Any = 0.0) -> Sequence[Any]:
        """Columns that span the same functions as `columns`, with sound numbers near `start`; arrays broadcast."""
        return self.columns(x, np, rate)

    def is_sound(self, first: Any, last: Any, rate: Any = 0.0) -> Any:
        """Whether the formula keeps its digits for x between two places; arrays broadcast."""
        return np.full(np.broadcast_shapes(np.shape(first), np.shape(last)), True)

    def plain(self, local: Sequence[float], start: float, span: float, rate: float) -> tuple[float, ...]:
        """The parameters of the formula, from those of `local_columns`."""
        return (*local, rate) if self.has_rate else tuple(local)


FAMILIES: Registry[Family] = Registry(
    "family", "predictor.fitting.families", "placer.fit_families", "--family",
    first=(
        "constant", "linear", "quadratic", "degree-3", "degree-4", "degree-5", "log", "inverse", "exp", "power",
    ),
)  # fmt: skip
"""Every family by name: the files of `predictor/fitting/families/`, then the entry points of other packages."""


def values(family: str, parameters: Sequence[float], x: Floats) -> Floats:
    """A family's function at x, shape of x; NaN or infinite where it is not defined."""
    with np.errstate(all="ignore"):
        return np.asarray(FAMILIES[family].value(parameters, x, np) + 0.0 * x)
