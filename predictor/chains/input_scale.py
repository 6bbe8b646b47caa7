"""Inputs on a common scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

WIDE = 4.0
"""Largest over smallest value of an input from which its logarithm is used."""


@dataclass(frozen=True)
class InputScale:
    """Inputs as shares of their measured range, from 0 to 1; those of wide range by their logarithms.

    Parameters
    ----------
    low, high
        Of each input as measured. Shape (inputs,).
    offset
        What is added before the logarithm; NaN where the input itself is used. Shape (inputs,).
    """

    low: Array
    high: Array
    offset: Array

    @classmethod
    def of(cls, inputs: Array) -> InputScale:
        """The scale of measured inputs, shape (settings, inputs)."""
        low, high = inputs.min(axis=0), inputs.max(axis=0)
        positive = np.where(inputs > 0, inputs, np.inf).min(axis=0)
        offset = np.full(len(low), np.nan)
        for at, (smallest, largest, least) in enumerate(zip(low, high, positive, strict=True)):
            if smallest >= 0 and np.isfinite(least) and largest / least >= WIDE:
                offset[at] = 0.0 if smallest > 0 else least
        return cls(low, high, offset)

    def __call__(self, inputs: Array) -> Array:
        """The inputs as shares of the range, shape (N, inputs); an input that never varied is 0."""
        scaled = np.empty_like(inputs, dtype=np.float64)
        for at, (low, high, offset) in enumerate(zip(self.low, self.high, self.offset, strict=True)):
            column = inputs[:, at]
            if high <= low:
                scaled[:, at] = 0.0
            elif np.isnan(offset):
                scaled[:, at] = (column - low) / (high - low)
            else:
                smallest = max(low + offset, 1e-300) / 1e3
                logarithm = np.log(np.maximum(column + offset, smallest))
                scaled[:, at] = (logarithm - np.log(low + offset)) / (np.log(high + offset) - np.log(low + offset))
        return scaled

    def outside(self, inputs: Array) -> NDArray[np.bool_]:
        """Whether any input is outside its measured range, shape (N,)."""
        room = 1e-9 * np.maximum(np.abs(self.low), np.abs(self.high))
        return np.asarray(((inputs < self.low - room) | (inputs > self.high + room)).any(axis=1))
