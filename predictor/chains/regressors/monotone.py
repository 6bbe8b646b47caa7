"""Monotone interpolation: rises and falls only where the measurements do, beyond their noise. On a grid of settings,
values are first made monotone along each input that has a direction (isotonic regression), then interpolated along one
input after the other by monotone cubics (Fritsch & Carlson, 1980) of the logarithms. What a grid lacks is filled by the
regressor `smooth`, which also takes over where there is no grid."""

from typing import Self

import numpy as np

from predictor.chains.regressor import REGRESSORS, Regressor
from predictor.chains.regressors.smooth import Smooth
from predictor.chains.settings import InputScale, Settings
from profiles.arrays import Floats

FULL_ENOUGH = 0.5  # share of a grid's points that must be measured
AGREEING_SHARE = 0.9
"""Share of significant changes along an input that must have one sign for the input to have a direction."""
SIGNIFICANT_DEVIATIONS = 2.0  # standard deviations of a significant change
PROJECTION_ROUNDS, SETTLED_CHANGE = 20, 1e-4  # of the projections, and the change of logarithms at which they end


@REGRESSORS.register("monotone")
class Monotone(Regressor):
    """Monotone cubics through the settings of a grid; `smooth` elsewhere."""

    def fit(self, settings: Settings) -> Self:
        self.scale_ = InputScale.of(settings.inputs)
        points = self.scale_(settings.inputs)
        self.axes_ = [np.unique(column) for column in points.T]
        size = int(np.prod([len(axis) for axis in self.axes_]))
        self.smooth_ = Smooth().fit(settings)
        self.grid_: Floats | None = None
        if len(settings) >= FULL_ENOUGH * size:
            self.grid_ = self._grid(settings, points)
        return self

    def predict(self, inputs: Floats) -> Floats:
        if self.grid_ is None:
            return self.smooth_.predict(inputs)
        points = self.scale_(inputs)
        inside = np.column_stack(
            [np.clip(column, axis[0], axis[-1]) for column, axis in zip(points.T, self.axes_, strict=True)]
        )
        return _along_axes(self.axes_, self.grid_, inside)

    def _grid(self, settings: Settings, points: Floats) -> Floats:
        shape = tuple(len(axis) for axis in self.axes_)
        place = tuple(np.searchsorted(axis, column) for axis, column in zip(self.axes_, points.T, strict=True))
        values, variance = np.full(shape, np.nan), np.full(shape, np.inf)
        values[place], variance[place] = np.log(settings.value), settings.variance
        missing = np.isnan(values)
        if missing.any():
            at = np.column_stack([axis[i] for axis, i in zip(self.axes_, np.nonzero(missing), strict=True)])
            values[missing] = self.smooth_.level_ + self.smooth_.process_(at)[0]
            variance[missing] = 10 * settings.variance.max()
        return _make_monotone(values, variance)


def _make_monotone(values: Floats, variance: Floats) -> Floats:
    """The nearest values that are monotone along each axis with a direction, by weighted least squares."""
    directions = [_direction(values, variance, axis) for axis in range(values.ndim)]
    made, kept = values, [np.zeros_like(values) for _ in directions]
    for _ in range(PROJECTION_ROUNDS):  # Dykstra's projections
        start = made
        for axis, direction in enumerate(directions):
            if direction:
                before = made + kept[axis]
                made = _isotonic(before, 1 / variance, axis, direction)
                kept[axis] = before - made
        if np.abs(made - start).max() < SETTLED_CHANGE:
            break
    return made


def _isotonic(values: Floats, weights: Floats, axis: int, direction: int) -> Floats:
    """The nearest values that are monotone along one axis."""
    from scipy.optimize import isotonic_regression

    made = np.moveaxis(values.copy(), axis, -1)
    for at in np.ndindex(made.shape[:-1]):
        if (direction * np.diff(made[at]) < 0).any():
            weight = np.moveaxis(weights, axis, -1)[at]
            made[at] = isotonic_regression(made[at], weights=weight, increasing=direction > 0).x
    return np.moveaxis(made, -1, axis)


def _direction(values: Floats, variance: Floats, axis: int) -> int:
    """1 or -1 when significant changes along the axis have one sign, else 0."""
    change = np.diff(values, axis=axis)
    before, after = (np.delete(variance, gone, axis=axis) for gone in (-1, 0))
    significant = np.abs(change) > SIGNIFICANT_DEVIATIONS * np.sqrt(before + after)
    rising, falling = (change[significant] > 0).sum(), (change[significant] < 0).sum()
    if rising + falling == 0 or max(rising, falling) < AGREEING_SHARE * (rising + falling):
        return 0
    return 1 if rising > falling else -1


def _along_axes(axes: list[Floats], grid: Floats, points: Floats) -> Floats:
    """Interpolation at `points`, shape (N, axes), one axis after the other."""
    from scipy.interpolate import PchipInterpolator

    if not axes:
        return np.full(len(points), float(grid))
    if len(axes[0]) == 1:
        return _along_axes(axes[1:], grid[0], points[:, 1:])
    values, at_value = np.unique(points[:, 0], return_inverse=True)
    slices = PchipInterpolator(axes[0], grid, axis=0)(values)
    reached = np.empty(len(points))
    for number in range(len(values)):
        rows = at_value.reshape(-1) == number
        reached[rows] = _along_axes(axes[1:], slices[number], points[rows, 1:])
    return reached
