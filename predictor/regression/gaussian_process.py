"""Smooth interpolation of measurements: Gaussian process regression (Rasmussen & Williams, 2006, chapters 2 and 5).

Measurements at one setting may share a deviation: repeats agree better than settings that differ a little. The process
has noise per measurement and per setting, and estimates both from the data, so that many measurements at one setting do
not outweigh the trend through all others.

SciPy is imported where functions are fitted; evaluating them, by compiled code in `processes`, does not need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from predictor.regression.compiled import pad
from predictor.regression.processes import ROOT5, Processes, square_distances, write_nearness, write_values
from predictor.regression.significant import PARAMETER_BITS, significant
from profiles.arrays import Floats
from profiles.shown import Shown

ENOUGH_MEASUREMENTS = 4
FLAT_RANGE = 0.05  # a range of an input below which it is noise; inputs are logarithms, or far wider
STILL_SPREAD = 1e-9  # a spread of an output below which it is constant; outputs are logarithms
TUNED_ON = 300
TYPICAL_LENGTH, LENGTH_BOUNDS, LENGTH_SPREAD = 1.0, (0.03, 30.0), 1.5
"""Typical length in which functions change, as a share of the measured range; its bounds; its spread (natural log)."""
TYPICAL_NOISE, NOISE_BOUNDS, NOISE_SPREAD = 1e-2, (1e-6, 1.0), 5.0
"""Typical noise variance as a share of the function's; its bounds; its spread (natural log)."""
SHARED_VARIANCE, SHARED_SPREAD = 1e-3, 2.0
"""Typical variance that measurements of one setting share, and its spread (natural log)."""
TUNING_STEPS = 60
ARRAY_FIELDS = ("low", "high", "scale", "noise", "points", "weights", "mean", "anchored")


@dataclass(frozen=True, repr=False)
class GaussianProcess(Shown):
    """One or several smooth functions of the same inputs."""

    low: Floats
    high: Floats  # range of each input as measured. Shape (inputs,).
    scale: Floats  # per input, one over the length in which the functions change; 0 when they do not. Shape (inputs,).
    noise: Floats  # variance per measurement and per setting, relative to the functions'. Shape (2,).
    points: Floats  # where they were measured, divided by length. Shape (points, inputs).
    weights: Floats  # shape (points, outputs)
    mean: Floats  # where nothing was measured near. Shape (outputs,).
    anchored: bool = False
    """Whether functions return to zero away from what was measured; else they are constant beyond the measured range.
    """

    @classmethod
    def fit(
        cls,
        inputs: Floats,
        outputs: Floats,
        settings: NDArray[np.intp] | None = None,
        *,
        anchored: bool = False,
        noise: float = TYPICAL_NOISE,
    ) -> GaussianProcess:
        """Fit functions to noisy measurements. `inputs` and `outputs`: shapes (N, inputs) and (N, outputs). `settings`:
        equal numbers for measurements at one setting, shape (N,). `anchored`: as the attribute. `noise`: typical
        variance of the noise as a share of the functions'."""
        inputs, outputs = significant(inputs, of=1.0), significant(outputs, of=1.0)
        low, high = inputs.min(axis=0), inputs.max(axis=0)
        centre = np.zeros(outputs.shape[1]) if anchored else outputs.mean(axis=0)
        varying, spread = high - low > FLAT_RANGE, np.sqrt(((outputs - centre) ** 2).mean(axis=0))
        empty = cls(low, high, np.zeros(len(low)), np.zeros(2), inputs[:0], outputs[:0], centre, anchored)
        moving = spread > STILL_SPREAD
        if len(inputs) < ENOUGH_MEASUREMENTS or not varying.any() or not moving.any():
            return empty
        unit, every = np.where(varying, high - low, 1.0), -(-len(inputs) // TUNED_ON)
        same = _same(settings, len(inputs))
        lengths, noises = _tune(
            ((inputs - low) / unit)[::every, varying],
            ((outputs - centre) / np.where(moving, spread, 1.0))[::every, moving],
            None if same is None else same[::every, ::every],
            noise,
        )
        # the effect of an input that did not vary is unknown: an anchored function fades along it
        scale = np.full(len(low), 1.0 / TYPICAL_LENGTH if anchored else 0.0)
        scale[varying] = 1.0 / (lengths * unit[varying])
        tuned = replace(empty, scale=scale, noise=noises, points=(inputs - low) * scale)
        return tuned.refitted(inputs, outputs, settings)

    def refitted(self, inputs: Floats, outputs: Floats, settings: NDArray[np.intp] | None = None) -> GaussianProcess:
        """The functions with the same lengths and noise, fitted to these measurements instead."""
        if not len(self.points):
            return self
        from scipy.linalg import cho_factor, cho_solve

        moved = replace(self, points=(inputs - self.low) * self.scale)
        weights = cho_solve(cho_factor(moved._covariance(settings), lower=True), outputs - self.mean)
        return replace(moved, weights=significant(weights, of=np.abs(weights).max(axis=0)))

    def left_out(self, outputs: Floats, settings: NDArray[np.intp] | None = None) -> Floats:
        """How far `outputs`, which were fitted, are from predictions without them; shape (N, outputs). The measurements
        of one setting are left out together (Rasmussen & Williams, section 5.4.2, by blocks)."""
        if not len(self.points):
            return outputs - self.mean
        from scipy.linalg import cho_factor, cho_solve

        inverse = cho_solve(cho_factor(self._covariance(settings), lower=True), np.eye(len(self.points)))
        pulled = inverse @ (outputs - self.mean)
        if settings is None:
            return significant(pulled / np.diag(inverse)[:, None], of=1.0)
        left: Floats = np.empty_like(pulled)
        for setting in np.unique(settings):
            rows = np.flatnonzero(settings == setting)
            left[rows] = np.linalg.solve(inverse[np.ix_(rows, rows)], pulled[rows])
        return significant(left, of=1.0)

    def nearness(self, inputs: Floats) -> Floats:
        """The similarity of each of `inputs` to the most similar measured point, from 0 to 1, shape (N,)."""
        nearness = np.empty(len(inputs))
        write_nearness(self._processes, np.ascontiguousarray(inputs, dtype=np.float64), nearness)
        return nearness

    def _covariance(self, settings: NDArray[np.intp] | None) -> Floats:
        # Matérn covariance of smoothness 5/2 at squared distances.
        squared = square_distances(self.points, self.points)
        distance = ROOT5 * np.sqrt(np.maximum(squared, 0.0))
        covariance: Floats = (1 + distance * (1 + distance / 3)) * np.exp(-distance)
        same = _same(settings, len(self.points))
        if same is not None:
            covariance += self.noise[1] * same
        covariance[np.diag_indices(len(covariance))] += self.noise[0]
        return covariance

    def __call__(self, inputs: Floats) -> Floats:
        """The functions at `inputs`, shape (N, inputs): shape (N, outputs)."""
        values = np.empty((len(inputs), len(self.mean)))
        write_values(self._processes, np.ascontiguousarray(inputs, dtype=np.float64), values)
        return values

    @cached_property
    def _processes(self) -> Processes:
        return side_by_side([self])

    def as_arrays(self) -> dict[str, Floats]:
        """What was learnt, as plain arrays."""
        return {name: np.asarray(getattr(self, name), dtype=np.float64) for name in ARRAY_FIELDS}

    @classmethod
    def none(cls, inputs: int) -> GaussianProcess:
        """The function that is zero everywhere."""
        nothing = np.zeros(inputs)
        return cls(nothing, nothing, nothing, np.zeros(2), np.zeros((0, inputs)), np.zeros((0, 1)), np.zeros(1), True)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Floats]) -> GaussianProcess:
        """The functions that `as_arrays` returned."""
        low, high, scale, noise, points, weights, mean, anchored = (arrays[name] for name in ARRAY_FIELDS)
        return cls(low, high, scale, noise, points, weights, mean, bool(anchored))


def side_by_side(processes: Sequence[GaussianProcess]) -> Processes:
    """The processes as compiled code reads them."""
    return Processes(
        low=pad([process.low for process in processes]),
        high=pad([process.high for process in processes]),
        scale=pad([process.scale for process in processes]),
        points=pad([process.points.T for process in processes]),
        weights=pad([process.weights.T for process in processes]),
        mean=pad([process.mean for process in processes]),
        anchored=np.array([process.anchored for process in processes], dtype=np.bool_),
        size=np.array([len(process.points) for process in processes], dtype=np.int64),
    )


def _same(settings: NDArray[np.intp] | None, count: int) -> Floats | None:
    """Which measurements share a setting, shape (N, N); None when none do, or all."""
    if settings is None or len(np.unique(settings)) in (1, count):
        return None
    same: Floats = (settings[:, None] == settings[None, :]).astype(np.float64)
    return same


def _tune(inputs: Floats, outputs: Floats, same: Floats | None, noise: float) -> tuple[Floats, Floats]:
    """The most likely lengths per input, and noise per measurement and setting, with a prior around typical lengths."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve
    from scipy.optimize import minimize

    count, width = inputs.shape
    apart = [(column[:, None] - column[None, :]) ** 2 for column in inputs.T]

    def cost(logarithms: Floats) -> tuple[float, Floats]:
        lengths, variances = np.exp(logarithms[:width]), np.exp(logarithms[width:])
        scaled = [squared / length**2 for squared, length in zip(apart, lengths, strict=True)]
        distance = ROOT5 * np.sqrt(np.add.reduce(scaled))
        decay = np.exp(-distance)
        covariance = (1 + distance * (1 + distance / 3)) * decay
        slope = 5 / 3 * (1 + distance) * decay
        if same is not None:
            covariance += variances[1] * same
        covariance[np.diag_indices(count)] += variances[0]
        try:
            factor = cho_factor(covariance, lower=True)
        except LinAlgError:
            return 1e12, np.zeros(len(logarithms))
        solved, inverse = cho_solve(factor, outputs), cho_solve(factor, np.eye(count))
        fit = (outputs * solved).sum(axis=0)
        value = outputs.shape[1] * np.log(np.diag(factor[0])).sum() + 0.5 * count * np.log(fit / count).sum()
        pull = outputs.shape[1] * inverse - (solved * (count / fit)) @ solved.T
        gradient = [0.5 * float((pull * slope * squared).sum()) for squared in scaled]
        gradient.append(0.5 * float(np.diag(pull).sum() * variances[0]))
        if same is not None:
            gradient.append(0.5 * float((pull * same).sum() * variances[1]))
        away = (logarithms - typical) / spread
        return float(value + 0.5 * (away**2).sum()), np.array(gradient) + away / spread

    noises = 1 if same is None else 2
    typical = np.log([TYPICAL_LENGTH] * width + [noise, SHARED_VARIANCE][:noises])
    spread = np.array([LENGTH_SPREAD] * width + [NOISE_SPREAD, SHARED_SPREAD][:noises])
    bounds = [tuple(np.log(LENGTH_BOUNDS))] * width + [tuple(np.log(NOISE_BOUNDS))] * noises
    found = minimize(cost, typical, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": TUNING_STEPS}).x
    likely = significant(np.exp(found), PARAMETER_BITS)
    return likely[:width], np.append(likely[width:], 0.0)[:2]
