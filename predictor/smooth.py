"""Smooth interpolation of a few measured points: Gaussian process regression (Rasmussen & Williams, 2006, chapter 2).

Training is scikit-learn's; what is learnt is kept as plain arrays.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

ENOUGH = 4
TUNED_ON = 160
ROOT5 = 5**0.5


@dataclass(frozen=True)
class Smooth:
    """One or several smooth functions of the same inputs.

    Parameters
    ----------
    low, high
        Range of each input as measured; inputs are brought into it. Shape (inputs,).
    scale
        Per input, one over the length in which the functions change; 0 when they do not. Shape (inputs,).
    points
        Where they were measured, divided by length. Shape (points, inputs).
    weights
        Shape (points, outputs).
    mean
        Shape (outputs,).
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    scale: NDArray[np.float64]
    points: NDArray[np.float64]
    weights: NDArray[np.float64]
    mean: NDArray[np.float64]

    @classmethod
    def fit(cls, inputs: NDArray[np.float64], outputs: NDArray[np.float64]) -> Smooth:
        """Fit `outputs`, shape (N, outputs), measured with noise at `inputs`, shape (N, inputs)."""
        low, high = inputs.min(axis=0), inputs.max(axis=0)
        mean, spread = outputs.mean(axis=0), outputs.std(axis=0)
        varying = high > low
        if len(inputs) < ENOUGH or not varying.any() or not (spread > 0).any():
            nothing = np.zeros((0, inputs.shape[1]))
            return cls(low, high, np.zeros(len(low)), nothing, np.zeros((0, len(mean))), mean)
        unit = np.where(varying, high - low, 1.0)
        spread = np.where(spread > 0, spread, 1.0)
        lengths, noise = _tune(((inputs - low) / unit)[:, varying], (outputs - mean) / spread)
        scale = np.zeros(len(low))
        scale[varying] = 1.0 / (lengths * unit[varying])
        points = (inputs - low) * scale
        covariance = _matern(points, points)
        covariance[np.diag_indices(len(points))] += noise
        weights = cho_solve(cho_factor(covariance, lower=True), outputs - mean)
        return cls(low, high, scale, points, weights, mean)

    def __call__(self, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """The functions at `inputs`, shape (N, inputs): shape (N, outputs)."""
        if not len(self.points):
            return np.tile(self.mean, (len(inputs), 1))
        near = (np.clip(inputs, self.low, self.high) - self.low) * self.scale
        answer: NDArray[np.float64] = self.mean + _matern(near, self.points) @ self.weights
        return answer

    def as_arrays(self) -> dict[str, NDArray[np.float64]]:
        """What was learnt, as plain arrays."""
        return {name: getattr(self, name) for name in ("low", "high", "scale", "points", "weights", "mean")}


def _matern(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Matérn covariance of smoothness 5/2, shape (len(left), len(right))."""
    squared = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)[None, :] - 2 * left @ right.T
    distance = ROOT5 * np.sqrt(np.maximum(squared, 0.0))
    covariance: NDArray[np.float64] = (1 + distance + distance**2 / 3) * np.exp(-distance)
    return covariance


def _tune(inputs: NDArray[np.float64], outputs: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Lengths per input, and noise variance relative to the function's, by maximum likelihood."""
    every = -(-len(inputs) // TUNED_ON)
    kernel = ConstantKernel(1.0, (1e-2, 1e2)) * Matern(
        np.full(inputs.shape[1], 0.5), (0.03, 30.0), nu=2.5
    ) + WhiteKernel(1e-2, (1e-5, 1.0))
    process = GaussianProcessRegressor(kernel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        process.fit(inputs[::every], outputs[::every])
    signal, lengths = process.kernel_.k1.k1.constant_value, process.kernel_.k1.k2.length_scale
    return np.atleast_1d(lengths), float(process.kernel_.k2.noise_level / signal)
