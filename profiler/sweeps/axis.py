"""The range of a varied key, even on a linear or logarithmic scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

DIGITS = 6
"""Significant digits of a value, more where the range is short beside its ends."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of one varied key.

    Parameters
    ----------
    start, end
        The ends, which are measured.
    scale
        On which points are even.
    whole
        Whether it holds whole numbers only.
    """

    start: float
    end: float
    scale: Literal["linear", "log"] = "linear"
    whole: bool = False

    def position(self, value: float) -> float:
        """Where a value is on the scale, 0 at the start and 1 at the end."""
        if self.scale == "log":
            return math.log(value / self.start) / math.log(self.end / self.start)
        return (value - self.start) / (self.end - self.start)

    def at(self, position: float) -> float:
        """The value at a position in [0, 1]."""
        if position in (0, 1):
            return self.end if position else self.start
        if self.scale == "log":
            value = self.start * (self.end / self.start) ** position
        else:
            value = self.start + (self.end - self.start) * position
        value = float(round(value)) if self.whole else float(f"{value:.{self._digits}g}")
        return min(max(value, self.start), self.end)

    def even(self, count: int) -> list[float]:
        """So many values or, of whole numbers, as many as there are; rising, with both ends, as even as they can be."""
        if self.whole and count > self.end - self.start:
            return [self.start + step for step in range(int(self.end - self.start) + 1)]
        found = {self.at(number / (count - 1)) for number in range(count)}
        while len(found) < count:  # several positions were rounded to one whole number
            ordered = sorted(found)
            pairs = [(self.position(b) - self.position(a), a, b) for a, b in pairwise(ordered)]
            halves = ((self.between(a, b), width) for width, a, b in sorted(pairs, reverse=True))
            found.add(next(half for half, _ in halves if half is not None))
        return sorted(found)

    def between(self, low: float, high: float) -> float | None:
        """The middle of two values on the scale; None where no value lies between them."""
        middle = self.at((self.position(low) + self.position(high)) / 2)
        if self.whole and middle in (low, high):
            middle = low + 1
        return middle if low < middle < high else None

    @property
    def _digits(self) -> int:
        largest = max(abs(self.start), abs(self.end))
        return DIGITS + math.floor(math.log10(largest / (self.end - self.start)) + 1)
