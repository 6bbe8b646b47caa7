"""One NF's profile as a function: what it reaches at any configuration and workload, and how wrong that may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from predictor.chains.input_scale import InputScale
from predictor.chains.regressor import REGRESSORS, Regressor
from predictor.chains.selection import FEWEST, RegressorError, best_of, compared
from predictor.chains.settings import NORMAL, Settings, settings_of, without_strange

Array = NDArray[np.float64]

FOLLOWS = "smooth"
"""The regressor of profiles with too few settings to compare any."""
UNKNOWN_ERROR = 0.1
"""Relative standard deviation of a prediction between settings when there are too few to measure it."""
NEAR, NEAR_ENOUGH = 2.0, 0.02
"""How near to the measured values a regressor must come at the median: in standard deviations of their noise, or
relative."""
BEYOND = 2.0
"""How many times larger errors are assumed outside of the measured range."""


@dataclass(frozen=True)
class ProfiledNf:
    """A fitted profile.

    Parameters
    ----------
    name
        Of the NF.
    settings
        What was measured.
    regressor
        The name of the fitted regressor.
    fitted
        The function.
    compared
        The errors of the regressors that were compared, empty when one was given.
    """

    name: str
    settings: Settings
    regressor: str
    fitted: Regressor
    compared: tuple[RegressorError, ...] = ()

    @classmethod
    def fit(
        cls, name: str, inputs: tuple[str, ...], measured_at: Array, measured: Array, *, regressor: str | None = None
    ) -> ProfiledNf:
        """The profile of single measurements.

        Parameters
        ----------
        name
            Of the NF.
        inputs
            Names of configuration and workload columns.
        measured_at
            Their values, shape (measurements, inputs).
        measured
            What was measured, above 0, shape (measurements,).
        regressor
            One of `REGRESSORS`; None chooses the one with the smallest error by cross-validation.

        Raises
        ------
        InputError
            When there is no such regressor.
        """
        settings = without_strange(settings_of(inputs, measured_at, measured))
        errors = _errors(settings, regressor)
        if regressor is not None or not errors:
            chosen = regressor or FOLLOWS
            return cls(name, settings, chosen, REGRESSORS.find(chosen)().fit(settings), tuple(errors))
        chosen, fitted = _chosen(settings, errors)
        return cls(name, settings, chosen, fitted, tuple(errors))

    def predict(self, inputs: Array) -> Array:
        """What the NF reaches alone at `inputs`, shape (N, inputs): shape (N,)."""
        return np.asarray(np.exp(self.fitted.predict(inputs)))

    def error(self, inputs: Array) -> Array:
        """Relative standard deviation of the error of `predict`, without the noise of a measurement, shape (N,)."""
        error = np.where(self._measured_at(inputs), self._error_at_settings, self._error_between)
        return np.asarray(np.where(self.extrapolated(inputs), np.maximum(BEYOND * error, UNKNOWN_ERROR), error))

    def extrapolated(self, inputs: Array) -> NDArray[np.bool_]:
        """Whether any input is outside its measured range, shape (N,)."""
        return self.scale.outside(inputs)

    @cached_property
    def scale(self) -> InputScale:
        """The measured range of its inputs."""
        return InputScale.of(self.settings.inputs)

    @cached_property
    def _error_at_settings(self) -> float:
        """Root mean square of misfit at the measured settings, or what noise leaves of the value there."""
        misfit = np.log(self.settings.value) - self.fitted.predict(self.settings.inputs)
        return float(np.hypot(_robust(misfit), np.sqrt(np.median(self.settings.variance))))

    @cached_property
    def _error_between(self) -> float:
        found = next((one for one in self.compared if one.regressor == self.regressor), None)
        if found is None:
            return max(UNKNOWN_ERROR, self._error_at_settings)
        errors = found.errors[np.isfinite(found.errors)]
        return max(_robust(errors), self._error_at_settings)

    def _measured_at(self, inputs: Array) -> NDArray[np.bool_]:
        known = {tuple(row) for row in self.settings.inputs.tolist()}
        return np.array([tuple(row) in known for row in inputs.tolist()], dtype=bool)


def _errors(settings: Settings, regressor: str | None) -> list[RegressorError]:
    if len(settings) < FEWEST:
        return []
    names: Iterable[str] | None = None if regressor is None else [regressor]
    return compared(settings, names, race=regressor is None)


def _chosen(settings: Settings, errors: Sequence[RegressorError]) -> tuple[str, Regressor]:
    """The regressor with the smallest left-out error among those that come near what was measured.

    A polynomial may be best between few settings, because of the ends that it continues, and yet miss all of them.
    """
    left, best = list(errors), None
    while any(one.complete for one in left):
        name = best_of(left).regressor
        fitted = REGRESSORS.find(name)().fit(settings)
        best = best or (name, fitted)
        misfit = np.median(np.abs(np.log(settings.value) - fitted.predict(settings.inputs)))
        if misfit <= max(NEAR * float(np.sqrt(np.median(settings.variance))), NEAR_ENOUGH):
            return name, fitted
        left = [one for one in left if one.regressor != name]
    assert best is not None
    return best


def _robust(errors: Array) -> float:
    """Standard deviation by the median, and at least half of the root mean square."""
    if not len(errors):
        return 0.0
    return max(NORMAL * float(np.median(np.abs(errors))), float(np.sqrt((errors**2).mean())) / 2)
