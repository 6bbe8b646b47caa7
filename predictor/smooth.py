"""Smooth interpolation of measurements: Gaussian process regression (Rasmussen & Williams, 2006, chapters 2 and 5).

Measurements made at one setting may share a deviation of their own: repeats agree better than settings that differ a
little. The process knows noise per measurement and per setting, and tells both from the data, so that many
measurements of one setting do not outvote the trend through all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize

Array = NDArray[np.float64]

ENOUGH = 4
FLAT = 0.05
"""A range of an input below which it is noise; inputs are logarithms, or far wider."""
TUNED_ON = 300
LENGTH, LENGTHS, LENGTH_SPREAD = 1.0, (0.03, 30.0), 1.5
"""Typical length in which functions change, as a share of the measured range; its bounds; its spread (natural log)."""
NOISE, NOISES, NOISE_SPREAD = 1e-2, (1e-6, 1.0), 5.0
"""Typical noise variance as a share of the function's; its bounds; its spread (natural log)."""
SHARED, SHARED_SPREAD = 1e-3, 2.0
"""Typical variance that measurements of one setting share, and its spread (natural log)."""
ITERATIONS = 60
ROOT5 = 5**0.5
ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Smooth:
    """One or several smooth functions of the same inputs.

    Parameters
    ----------
    low, high
        Range of each input as measured; inputs are brought into it. Shape (inputs,).
    scale
        Per input, one over the length in which the functions change; 0 when they do not. Shape (inputs,).
    noise
        Variance per measurement and per setting, relative to the functions'. Shape (2,).
    points
        Where they were measured, divided by length. Shape (points, inputs).
    weights
        Shape (points, outputs).
    mean
        Shape (outputs,).
    """

    low: Array
    high: Array
    scale: Array
    noise: Array
    points: Array
    weights: Array
    mean: Array

    @classmethod
    def fit(cls, inputs: Array, outputs: Array, settings: NDArray[np.intp] | None = None) -> Smooth:
        """Fit `outputs`, shape (N, outputs), measured with noise at `inputs`, shape (N, inputs).

        `settings` tells, by equal numbers, which measurements were made at one setting.
        """
        low, high = inputs.min(axis=0), inputs.max(axis=0)
        varying, spread = high - low > FLAT, outputs.std(axis=0)
        scale, noise = np.zeros(len(low)), np.array([NOISE, 0.0])
        if len(inputs) >= ENOUGH and varying.any() and spread.max() > 0:
            unit = np.where(varying, high - low, 1.0)
            standard = (outputs - outputs.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
            every = -(-len(inputs) // TUNED_ON)
            same = _same(settings, len(inputs))
            lengths, noise = _tune(
                ((inputs - low) / unit)[::every, varying],
                standard[::every],
                None if same is None else same[::every, ::every],
            )
            scale[varying] = 1.0 / (lengths * unit[varying])
        return cls._solved(low, high, scale, noise, inputs, outputs, settings)

    def refitted(self, inputs: Array, outputs: Array, settings: NDArray[np.intp] | None = None) -> Smooth:
        """The same lengths and noise with other measurements."""
        return self._solved(self.low, self.high, self.scale, self.noise, inputs, outputs, settings)

    @classmethod
    def _solved(
        cls,
        low: Array,
        high: Array,
        scale: Array,
        noise: Array,
        inputs: Array,
        outputs: Array,
        settings: NDArray[np.intp] | None,
    ) -> Smooth:
        mean = outputs.mean(axis=0)
        if not scale.any():
            return cls(low, high, scale, noise, np.zeros((0, len(low))), np.zeros((0, len(mean))), mean)
        points = (inputs - low) * scale
        covariance = _matern(_squared(points, points))
        same = _same(settings, len(inputs))
        if same is not None:
            covariance += noise[1] * same
        covariance[np.diag_indices(len(points))] += noise[0]
        weights = cho_solve(cho_factor(covariance, lower=True), outputs - mean)
        return cls(low, high, scale, noise, points, weights, mean)

    def __call__(self, inputs: Array) -> Array:
        """The functions at `inputs`, shape (N, inputs): shape (N, outputs)."""
        answer = np.tile(self.mean, (len(inputs), 1))
        if len(self.points):
            for start in range(0, len(inputs), ROWS_AT_ONCE):
                part = slice(start, start + ROWS_AT_ONCE)
                near = (np.clip(inputs[part], self.low, self.high) - self.low) * self.scale
                answer[part] += _matern(_squared(near, self.points)) @ self.weights
        return answer

    def as_arrays(self) -> dict[str, Array]:
        """What was learnt, as plain arrays."""
        return {name: getattr(self, name) for name in ("low", "high", "scale", "noise", "points", "weights", "mean")}


def _same(settings: NDArray[np.intp] | None, count: int) -> Array | None:
    """Which measurements share a setting, shape (N, N); None when each is alone."""
    if settings is None or len(np.unique(settings)) in (1, count):
        return None
    same: Array = (settings[:, None] == settings[None, :]).astype(np.float64)
    return same


def _squared(left: Array, right: Array) -> Array:
    squared: Array = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)[None, :] - 2 * left @ right.T
    return squared


def _matern(squared: Array) -> Array:
    """Matérn covariance of smoothness 5/2 at squared distances."""
    distance = ROOT5 * np.sqrt(np.maximum(squared, 0.0))
    covariance: Array = (1 + distance * (1 + distance / 3)) * np.exp(-distance)
    return covariance


def _tune(inputs: Array, outputs: Array, same: Array | None) -> tuple[Array, Array]:
    """Lengths per input, and noise per measurement and setting: the most likely, lengths not far from the typical."""
    count, width = inputs.shape
    apart = [(column[:, None] - column[None, :]) ** 2 for column in inputs.T]

    def cost(logarithms: Array) -> tuple[float, Array]:
        lengths, noise = np.exp(logarithms[:width]), np.exp(logarithms[width:])
        scaled = [squared / length**2 for squared, length in zip(apart, lengths, strict=True)]
        distance = ROOT5 * np.sqrt(np.add.reduce(scaled))
        decay = np.exp(-distance)
        covariance = (1 + distance * (1 + distance / 3)) * decay
        slope = 5 / 3 * (1 + distance) * decay
        if same is not None:
            covariance += noise[1] * same
        covariance[np.diag_indices(count)] += noise[0]
        try:
            factor = cho_factor(covariance, lower=True)
        except LinAlgError:
            return 1e12, np.zeros(len(logarithms))
        solved, inverse = cho_solve(factor, outputs), cho_solve(factor, np.eye(count))
        fit = (outputs * solved).sum(axis=0)
        value = outputs.shape[1] * np.log(np.diag(factor[0])).sum() + 0.5 * count * np.log(fit / count).sum()
        pull = outputs.shape[1] * inverse - (solved * (count / fit)) @ solved.T
        gradient = [0.5 * float((pull * slope * squared).sum()) for squared in scaled]
        gradient.append(0.5 * float(np.diag(pull).sum() * noise[0]))
        if same is not None:
            gradient.append(0.5 * float((pull * same).sum() * noise[1]))
        away = (logarithms - typical) / spread
        return float(value + 0.5 * (away**2).sum()), np.array(gradient) + away / spread

    noises = 1 if same is None else 2
    typical = np.log([LENGTH] * width + [NOISE, SHARED][:noises])
    spread = np.array([LENGTH_SPREAD] * width + [NOISE_SPREAD, SHARED_SPREAD][:noises])
    bounds = [tuple(np.log(LENGTHS))] * width + [tuple(np.log(NOISES))] * noises
    found = minimize(cost, typical, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": ITERATIONS}).x
    noise = np.exp(found[width:])
    return np.exp(found[:width]), np.array([noise[0], noise[1] if noises == 2 else 0.0])
