"""The time of one stage: a linear law, a smooth correction of it, and how much its p99 is above its mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.gpu.laws import INPUTS, Law, coordinates, terms
from predictor.regression.gaussian_process import GaussianProcess

Array = NDArray[np.float64]

LEAST_US = 1e-3
"""Below the resolution of any clock: a stage that takes no time is taken for this."""
ENOUGH = 8
"""Measurements from which a smooth correction is fitted."""
NOISE = 0.05
"""Typical variance of measurement noise as a share of the correction's."""


@dataclass(frozen=True)
class StageTime:
    """Mean and p99 of one stage over batch and traffic.

    Parameters
    ----------
    law
        Its kind.
    per_executor
        Packets per executor.
    coefficients
        Of the law's terms, us. Shape (terms,).
    correction
        Logarithm of measured over the law's time.
    tail
        Logarithm of p99 over mean.
    low, high
        Range of each input as measured, shape (len(INPUTS),).
    left_out_pct
        Absolute error of each measured mean as predicted without it, %.
    """

    law: Law
    per_executor: int
    coefficients: Array
    correction: GaussianProcess
    tail: GaussianProcess
    low: Array
    high: Array
    left_out_pct: Array

    @classmethod
    def fit(cls, law: Law, per_executor: int, inputs: Array, mean: Array, p99: Array) -> StageTime:
        """Fit to measured means and p99s (us); a p99 that is NaN was not measured.

        Parameters
        ----------
        inputs
            Shape (N, len(INPUTS)).
        mean, p99
            Shape (N,).
        """
        mean = np.maximum(mean, LEAST_US)
        coefficients = _line(terms(law, inputs, per_executor), mean)
        at = coordinates(law, inputs, per_executor)
        line = terms(law, inputs, per_executor) @ coefficients
        rest = np.log(mean / line)[:, None]
        settings = _settings(inputs)
        correction = GaussianProcess.none(at.shape[1])
        left = rest
        if len(np.unique(settings)) >= ENOUGH:
            correction = GaussianProcess.fit(at, rest, settings, anchored=True, noise=NOISE)
            left = correction.left_out(rest, settings)
        known = np.isfinite(p99)
        ratio = np.log(np.maximum(p99[known], mean[known]) / mean[known])[:, None]
        tail = GaussianProcess.none(at.shape[1])
        if known.any():
            tail = GaussianProcess.fit(at[known], ratio, settings[known], noise=NOISE)
        error = 100 * np.abs(np.expm1(left[:, 0]))
        return cls(law, per_executor, coefficients, correction, tail, inputs.min(axis=0), inputs.max(axis=0), error)

    def mean(self, inputs: Array) -> Array:
        """Mean time (us) of each of `inputs`, shape (N, len(INPUTS)): shape (N,)."""
        line = terms(self.law, inputs, self.per_executor) @ self.coefficients
        value: Array = line * np.exp(self.correction(coordinates(self.law, inputs, self.per_executor))[:, 0])
        return value

    def tail_ratio(self, inputs: Array) -> Array:
        """p99 over mean of each of `inputs`, at least 1; 1 where no p99 was measured."""
        ratio = self.tail(coordinates(self.law, inputs, self.per_executor))[:, 0]
        value: Array = np.exp(np.maximum(ratio, 0.0))
        return value

    def outside(self, inputs: Array) -> list[str]:
        """Which of one row of inputs are outside what was measured, in words."""
        return [
            f"{name} {value:g} is outside the measured {low:g} to {high:g}"
            for name, value, low, high in zip(INPUTS, inputs, self.low, self.high, strict=True)
            if not low <= value <= high
        ]

    @property
    def error_pct(self) -> float:
        """Mean absolute error of left-out measurements, %."""
        return float(self.left_out_pct.mean())

    def as_arrays(self) -> dict[str, NDArray[np.generic]]:
        """What was learnt, as plain arrays."""
        own: dict[str, NDArray[np.generic]] = {
            "law": np.array(self.law.value),
            "per_executor": np.array(self.per_executor),
            **{name: getattr(self, name) for name in ("coefficients", "low", "high", "left_out_pct")},
        }
        for part in ("correction", "tail"):
            own |= {f"{part}.{name}": value for name, value in getattr(self, part).as_arrays().items()}
        return own

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> StageTime:
        """The stage that `as_arrays` returned."""

        def process(part: str) -> GaussianProcess:
            mine = {
                name.removeprefix(f"{part}."): np.asarray(one) for name, one in arrays.items() if name.startswith(part)
            }
            return GaussianProcess.from_arrays(mine)

        coefficients, low, high, left = (
            np.asarray(arrays[name], dtype=np.float64) for name in ("coefficients", "low", "high", "left_out_pct")
        )
        law, per_executor = Law(str(arrays["law"])), int(arrays["per_executor"])
        return cls(law, per_executor, coefficients, process("correction"), process("tail"), low, high, left)


def _line(columns: Array, mean: Array) -> Array:
    """Coefficients, none negative, of least squared relative error."""
    from scipy.optimize import nnls

    weighted = columns / mean[:, None]
    scale = np.maximum(np.abs(weighted).max(axis=0), 1e-300)
    found: Array = nnls(weighted / scale, np.ones(len(mean)))[0] / scale
    return found if (columns @ found).min() > 0 else np.append(mean.mean(), np.zeros(columns.shape[1] - 1))


def _settings(inputs: Array) -> NDArray[np.intp]:
    """Equal numbers for measurements at one setting."""
    numbers: NDArray[np.intp] = np.unique(inputs, axis=0, return_inverse=True)[1].reshape(-1)
    return numbers
