"""The time of one stage: a linear law, a smooth correction of it, and how much its p99 is above its mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from predictor.regression.gaussian_process import GaussianProcess
from profiles.arrays import Floats
from profiles.traffic import ATTRIBUTES

LEAST_US = 1e-3  # below the resolution of any clock: a stage that takes no time is taken for this
ENOUGH_MEASUREMENTS = 8  # measurements from which a smooth correction is fitted
TYPICAL_NOISE = 0.05  # typical variance of measurement noise as a share of the correction's


@dataclass(frozen=True)
class StageTime:
    """Mean and p99 of one stage over batch and traffic."""

    law: Law  # its kind
    per_executor: int  # packets per executor
    coefficients: Floats  # of the law's terms, us. Shape (terms,).
    correction: GaussianProcess  # logarithm of measured over the law's time
    tail: GaussianProcess  # logarithm of p99 over mean
    low: Floats
    high: Floats  # range of each input as measured, shape (len(INPUTS),)
    left_out_pct: Floats  # absolute error of each measured mean as predicted without it, %

    @classmethod
    def fit(cls, law: Law, per_executor: int, inputs: Floats, mean: Floats, p99: Floats) -> StageTime:
        """Fit to measured means and p99s (us); a p99 that is NaN was not measured. `inputs`: shape (N, len(INPUTS)).
        `mean` and `p99`: shape (N,)."""
        mean = np.maximum(mean, LEAST_US)
        coefficients = _line(terms(law, inputs, per_executor), mean)
        at = coordinates(law, inputs, per_executor)
        rest = np.log(mean / (terms(law, inputs, per_executor) @ coefficients))[:, None]
        settings = _settings(inputs)
        correction = GaussianProcess.none(at.shape[1])
        left = rest
        if len(np.unique(settings)) >= ENOUGH_MEASUREMENTS:
            correction = GaussianProcess.fit(at, rest, settings, anchored=True, noise=TYPICAL_NOISE)
            left = correction.left_out(rest, settings)
        known = np.isfinite(p99)
        ratio = np.log(np.maximum(p99[known], mean[known]) / mean[known])[:, None]
        tail = GaussianProcess.none(at.shape[1])
        if known.any():
            tail = GaussianProcess.fit(at[known], ratio, settings[known], noise=TYPICAL_NOISE)
        error = 100 * np.abs(np.expm1(left[:, 0]))
        return cls(law, per_executor, coefficients, correction, tail, inputs.min(axis=0), inputs.max(axis=0), error)

    def mean(self, inputs: Floats) -> Floats:
        """Mean time (us) of each of `inputs`, shape (N, len(INPUTS)): shape (N,)."""
        line = terms(self.law, inputs, self.per_executor) @ self.coefficients
        value: Floats = line * np.exp(self.correction(coordinates(self.law, inputs, self.per_executor))[:, 0])
        return value

    def tail_ratio(self, inputs: Floats) -> Floats:
        """p99 over mean of each of `inputs`, at least 1; 1 where no p99 was measured."""
        ratio = self.tail(coordinates(self.law, inputs, self.per_executor))[:, 0]
        value: Floats = np.exp(np.maximum(ratio, 0.0))
        return value

    def outside(self, inputs: Floats) -> list[str]:
        """Which of one row of inputs are outside what was measured, in words."""
        return [
            f"{name} {value:g} is outside the measured {low:g} to {high:g}"
            for name, value, low, high in zip(STAGE_INPUTS, inputs, self.low, self.high, strict=True)
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


def _line(columns: Floats, mean: Floats) -> Floats:
    """Coefficients, none negative, of least squared relative error."""
    from scipy.optimize import nnls

    weighted = columns / mean[:, None]
    scale = np.maximum(np.abs(weighted).max(axis=0), 1e-300)
    found: Floats = nnls(weighted / scale, np.ones(len(mean)))[0] / scale
    return found if (columns @ found).min() > 0 else np.append(mean.mean(), np.zeros(columns.shape[1] - 1))


def _settings(inputs: Floats) -> NDArray[np.intp]:
    """Equal numbers for measurements at one setting."""
    numbers: NDArray[np.intp] = np.unique(inputs, axis=0, return_inverse=True)[1].reshape(-1)
    return numbers


# What the time of a stage depends on: the terms of its linear law, and the inputs of what the law leaves over.
#
# Grus (section V-A) fits one straight line per stage: over the batch for transfers, over executors for kernels. Here
# the slope also depends on the traffic, and a smooth correction (`stage_time`) follows whatever the line does not.


STAGE_INPUTS = ("count", *ATTRIBUTES)
"""Columns of the inputs of every stage: packets of the batch (of the minibatch for kernels), then the traffic."""
KB_PER_BYTE = 1e-3  # sizes in terms are in units of 1,000 bytes, so that coefficients are of one order


class Law(Enum):
    """The kinds of stages."""

    TRANSFER = "transfer"
    """Copies over the bus, and pre- and post-processing: a fixed time, and one per packet and byte."""
    KERNEL = "kernel"
    """Kernels: a fixed time, and one per executor; within its last executor a minibatch costs little more."""


def executors(packets: Floats, per_executor: int) -> Floats:
    """The executors that this many packets occupy."""
    whole: Floats = np.ceil(packets / per_executor)
    return whole


def terms(law: Law, inputs: Floats, per_executor: int) -> Floats:
    """The terms of the linear law, shape (N, terms); their coefficients are not negative."""
    count, _, size, mtbr = inputs.T
    ones = np.ones(len(inputs))
    if law is Law.TRANSFER:
        return np.column_stack([ones, count, count * size * KB_PER_BYTE])
    used = executors(count, per_executor)
    return np.column_stack(
        [
            ones,
            used,
            size * KB_PER_BYTE,
            used * size * KB_PER_BYTE,
            count * KB_PER_BYTE,
            used * size * mtbr * KB_PER_BYTE * KB_PER_BYTE,
        ]
    )


def coordinates(law: Law, inputs: Floats, per_executor: int) -> Floats:
    """The inputs of the smooth correction, shape (N, coordinates): logarithms, so that ranges are of one order."""
    count, flows, size, mtbr = inputs.T
    traffic = [np.log(flows), np.log(size), np.log1p(mtbr)]
    if law is Law.TRANSFER:
        return np.column_stack([np.log(count), *traffic])
    used = executors(count, per_executor)
    return np.column_stack([np.log(used), count / (used * per_executor), *traffic])
