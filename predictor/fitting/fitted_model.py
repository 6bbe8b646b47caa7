"""A fitted model: one formula per segment of x, and where they meet (CONTRACTS 8)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.family import FAMILIES, values
from profiles.arrays import Floats

DIGITS_TRIED = (4, 6, 9, 12, 15, 17)
"""Significant digits that are tried for the numbers of a formula."""
READABLE_ERROR = 1e-4
"""A formula is shown with as many digits as keep its values within this share of the model's."""


@dataclass(frozen=True)
class CurveSegment:
    """One formula, for start <= x < end."""

    start: float
    end: float
    """In the unit of x."""
    family: str
    """A name of `FAMILIES`."""
    parameters: tuple[float, ...]
    """In the order of the formula."""
    points: int
    """How many rows were fitted, repeats counted."""
    smape_pct: float
    """Symmetric mean absolute percentage error of these points, 0 to 100."""
    origin: float = 0.0
    """What the formula subtracts from x; where x is far from 0, as in Unix times, it would lose its digits."""

    def predict(self, x: Floats) -> Floats:
        """The formula's values at x, in the unit of y."""
        return values(self.family, self.parameters, x - self.origin)

    def variable(self, x: str) -> str:
        """What the formula is of, in plain mathematics and in most languages: `x`, or `(x - 1700000000.0)`."""
        return f"({x} - {self.origin!r})" if self.origin else x

    def formula(self, x: str) -> str:
        """In plain mathematics, with as many digits as its values need."""
        x = f"({x} - {self.origin:.15g})" if self.origin else x
        return FAMILIES[self.family].formula(self.shown_parameters(), x).replace("+ -", "- ")

    def shown_parameters(self) -> list[str]:
        """The parameters as text, with as many digits as the values need."""
        at = np.linspace(self.start, self.end, 50)
        exact = self.predict(at)
        near = READABLE_ERROR * np.abs(exact).max()
        for digits in DIGITS_TRIED:
            numbers = [f"{number:.{digits}g}" for number in self.parameters]
            if np.all(np.abs(values(self.family, [float(n) for n in numbers], at - self.origin) - exact) <= near):
                break
        return numbers


@dataclass(frozen=True)
class CurveBreak:
    """Where one segment ends and the next begins."""

    at: float
    """The next segment's start."""
    low: float
    high: float
    """Interval that contains the true place with a probability of 90 %."""
    jump: float
    """By how much the value changes there, in the unit of y; 0 where only the slope changes."""


@dataclass(frozen=True)
class FittedModel:
    """A readable model of one measured curve."""

    x: str
    y: str
    """Names of the columns."""
    points: int
    """How many rows were fitted, repeats counted."""
    segments: tuple[CurveSegment, ...]
    breakpoints: tuple[CurveBreak, ...]
    """By rising x; there is one breakpoint less."""
    smape_pct: float
    """Error of the fit."""
    left_out_smape_pct: float | None
    """Error at points that were left out of the fit; None where there were too few."""
    noise_pct: float
    """Estimated error of the points themselves: their sMAPE against the true curve."""
    seconds: float
    """Time of solving."""
    setting: Mapping[str, float] = field(default_factory=dict)
    """Values of other columns for which it holds."""
    reach: tuple[float | None, float | None] = (None, None)
    """The least and the largest x to which it may be continued; None where nothing is against it."""
    notes: tuple[str, ...] = ()
    """What users should know: that it does not explain the points, and what would help."""

    @property
    def start(self) -> float:
        """The smallest x that was fitted."""
        return self.segments[0].start

    @property
    def end(self) -> float:
        """The largest x that was fitted."""
        return self.segments[-1].end

    def predict(self, x: Sequence[float] | Floats) -> Floats:
        """Values at x, shape of x; beyond what was measured the outer segments are extrapolated, as far as they may be
        continued: NaN beyond."""
        at = np.asarray(x, dtype=float)
        places = np.searchsorted([point.at for point in self.breakpoints], at, side="right")
        predicted = np.empty_like(at)
        for number, segment in enumerate(self.segments):
            predicted[places == number] = segment.predict(at[places == number])
        predicted[self.beyond_reach(at)] = np.nan
        return predicted

    def beyond_reach(self, x: Floats) -> NDArray[np.bool_]:
        """Which x are farther outside than it may be continued, shape of x."""
        low, high = (end if end is not None else sign * np.inf for sign, end in zip((-1, 1), self.reach, strict=True))
        return np.asarray((x < low) | (x > high))

    def extrapolated(self, x: Sequence[float] | Floats) -> NDArray[np.bool_]:
        """Which x are outside what was measured, shape of x."""
        at = np.asarray(x, dtype=float)
        return (at < self.start) | (at > self.end)


def smape_pct(predicted: Floats, measured: Floats) -> float:
    """Symmetric mean absolute percentage error, 0 to 100; zero against zero is no error."""
    scale = np.abs(predicted) + np.abs(measured)
    difference = np.abs(predicted - measured)
    return float(100.0 * np.mean(np.divide(difference, scale, out=np.zeros_like(scale), where=scale > 0)))
