"""One NF's profile as a function: what it reaches at any configuration and workload, and how wrong that may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from predictor.chains.regressor import REGRESSORS, Regressor
from predictor.chains.settings import DEVIATION_OF_MAD, InputScale, Settings, settings_of, without_strange
from profiles.arrays import Floats

DEFAULT_REGRESSOR = "smooth"
"""The regressor of profiles with too few settings to compare any."""
COMPARED_REGRESSORS = ("smooth", "monotone", "interpolation")
"""Those that are compared for each profile: the others take ten times as long and are rarely better."""
UNKNOWN_ERROR = 0.1
"""Relative standard deviation of a prediction between settings when there are too few to measure it."""
NEAR_DEVIATIONS, NEAR_ENOUGH = 2.0, 0.02
"""How near to the measured values a regressor must come at the median: in standard deviations of their noise, or
relative."""
EXTRAPOLATION_FACTOR = 2.0
"""How many times larger errors are assumed outside of the measured range."""


@dataclass(frozen=True)
class ProfiledNf:
    """A fitted profile."""

    name: str
    settings: Settings
    """What was measured."""
    regressor: str
    """The name of the fitted regressor."""
    fitted: Regressor
    """The function."""
    compared: tuple[RegressorError, ...] = ()
    """The errors of the regressors that were compared, empty when one was given."""

    @classmethod
    def fit(
        cls, name: str, inputs: tuple[str, ...], measured_at: Floats, measured: Floats, *, regressor: str | None = None
    ) -> ProfiledNf:
        """The profile of single measurements. `name`: of the NF. `inputs`: names of configuration and workload columns.
        `measured_at`: their values, shape (measurements, inputs). `measured`: what was measured, above 0, shape
        (measurements,). `regressor`: one of `REGRESSORS`; None chooses among `COMPARED_REGRESSORS` by
        cross-validation. Raises `InputError` when there is no such regressor."""
        settings = without_strange(settings_of(inputs, measured_at, measured))
        errors = _errors(settings, regressor)
        if regressor is not None or not errors:
            chosen = regressor or DEFAULT_REGRESSOR
            return cls(name, settings, chosen, REGRESSORS.find(chosen)().fit(settings), tuple(errors))
        chosen, fitted = _choose_regressor(settings, errors)
        return cls(name, settings, chosen, fitted, tuple(errors))

    def predict(self, inputs: Floats) -> Floats:
        """What the NF reaches alone at `inputs`, shape (N, inputs): shape (N,)."""
        return np.asarray(np.exp(self.fitted.predict(inputs)))

    def error(self, inputs: Floats) -> Floats:
        """Relative standard deviation of the error of `predict`, without the noise of a measurement, shape (N,)."""
        error = np.where(self._measured_at(inputs), self._error_at_settings, self._error_between)
        return np.asarray(
            np.where(self.extrapolated(inputs), np.maximum(EXTRAPOLATION_FACTOR * error, UNKNOWN_ERROR), error)
        )

    def extrapolated(self, inputs: Floats) -> NDArray[np.bool_]:
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
        found = next((regressor for regressor in self.compared if regressor.regressor == self.regressor), None)
        if found is None:
            return max(UNKNOWN_ERROR, self._error_at_settings)
        return max(_robust(found.errors[np.isfinite(found.errors)]), self._error_at_settings)

    def _measured_at(self, inputs: Floats) -> NDArray[np.bool_]:
        known = {tuple(row) for row in self.settings.inputs.tolist()}
        return np.array([tuple(row) in known for row in inputs.tolist()], dtype=bool)


def _errors(settings: Settings, regressor: str | None) -> list[RegressorError]:
    if len(settings) < FEWEST_SETTINGS:
        return []
    names = COMPARED_REGRESSORS if regressor is None else [regressor]
    return compare_regressors(settings, names, race=regressor is None)


def _choose_regressor(settings: Settings, errors: Sequence[RegressorError]) -> tuple[str, Regressor]:
    """The regressor with the smallest left-out error among those that come near what was measured. A polynomial may be
    best between few settings, because of the ends that it continues, and yet miss all of them."""
    left, best = list(errors), None
    while any(error.complete for error in left):
        name = best_of(left).regressor
        fitted = REGRESSORS.find(name)().fit(settings)
        best = best or (name, fitted)
        misfit = np.median(np.abs(np.log(settings.value) - fitted.predict(settings.inputs)))
        if misfit <= max(NEAR_DEVIATIONS * float(np.sqrt(np.median(settings.variance))), NEAR_ENOUGH):
            return name, fitted
        left = [error for error in left if error.regressor != name]
    assert best is not None
    return best


def _robust(errors: Floats) -> float:
    """Standard deviation by the median, and at least half of the root mean square."""
    if not len(errors):
        return 0.0
    return max(DEVIATION_OF_MAD * float(np.median(np.abs(errors))), float(np.sqrt((errors**2).mean())) / 2)


# The choice of a regressor: the one that predicts settings it did not learn from best.


CROSS_VALIDATION_FOLDS = 5
FEWEST_SETTINGS = 5
"""Settings below which nothing is compared."""
LEARNT_FROM = 400
"""Settings of a comparison; with more, these are drawn at random."""
LARGEST_ERROR = float(np.log(7.0))
"""Errors count up to this factor, so that one far extrapolation does not decide."""
FAR_BEHIND = 1.5
"""A regressor whose error on the first fold is this many times the smallest is not tried on the others."""
CLOSE_ERROR_FACTOR = 1.02
"""The first regressor in order is chosen when its error is at most this many times the smallest."""


@dataclass(frozen=True)
class RegressorError:
    """How well one regressor predicts settings that it did not learn from."""

    regressor: str
    """Its name."""
    errors: Floats
    """Natural logarithm of the value over the predicted one, per setting; NaN for settings that were not predicted."""
    mape_pct: float
    """Mean absolute error, % of the value."""
    rmse: float
    """Root mean squared error, in the unit of the measure."""

    @property
    def size(self) -> float:
        """Mean absolute logarithm, by which regressors are compared."""
        return float(np.nanmean(np.minimum(np.abs(self.errors), LARGEST_ERROR)))

    @property
    def complete(self) -> bool:
        """Whether it was tried on every fold."""
        return bool(np.isfinite(self.errors).sum() >= min(len(self.errors), LEARNT_FROM))


def compare_regressors(
    settings: Settings, names: Iterable[str] | None = None, *, race: bool = False, seed: int = 0
) -> list[RegressorError]:
    """Each regressor's error by cross-validation, in the order of the registry. All repeats of a setting are on one
    side of each fold, since a setting is one row here. `settings`: at least two. `names`: of the regressors; by default
    all. `race`: whether to try only those on all folds that are not far behind on the first. `seed`: of the folds."""
    order = np.random.default_rng(seed).permutation(len(settings))[:LEARNT_FROM]
    count = min(CROSS_VALIDATION_FOLDS, len(order))
    folds = [order[start::count] for start in range(count)]
    names = list(REGRESSORS if names is None else names)
    errors = {name: np.full(len(settings), np.nan) for name in names}
    racing = names
    for number, left_out in enumerate(folds):
        for name in racing:
            errors[name][left_out] = _errors_on(name, settings, np.setdiff1d(order, left_out), left_out)
        if race and number == 0:
            sizes = {name: _error_of(name, settings, errors[name]).size for name in names}
            racing = [name for name in names if sizes[name] <= FAR_BEHIND * min(sizes.values())]
    return [_error_of(name, settings, errors[name]) for name in names]


def _errors_on(name: str, settings: Settings, learnt: NDArray[np.intp], left_out: NDArray[np.intp]) -> Floats:
    fitted = REGRESSORS.find(name)().fit(settings.at(learnt))
    return np.asarray(np.log(settings.value[left_out]) - fitted.predict(settings.inputs[left_out]))


def _error_of(name: str, settings: Settings, errors: Floats) -> RegressorError:
    relative = np.abs(np.expm1(-errors))
    return RegressorError(
        name, errors, 100 * float(np.nanmean(relative)), float(np.sqrt(np.nanmean((relative * settings.value) ** 2)))
    )


def best_of(errors: Sequence[RegressorError]) -> RegressorError:
    """The first of those tried on every fold whose error is as small as the smallest, within `CLOSE_ERROR_FACTOR`."""
    complete = [error for error in errors if error.complete]
    least = min(error.size for error in complete)
    return next(error for error in complete if error.size <= CLOSE_ERROR_FACTOR * least + 1e-12)
