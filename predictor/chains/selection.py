"""The choice of a regressor: the one that predicts settings it did not learn from best."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.chains.regressor import REGRESSORS
from predictor.chains.settings import Settings

Array = NDArray[np.float64]

FOLDS = 5
FEWEST = 5
"""Settings below which nothing is compared."""
LEARNT_FROM = 400
"""Settings of a comparison; with more, these are drawn at random."""
LARGEST_ERROR = float(np.log(7.0))
"""Errors count up to this factor, so that one far extrapolation does not decide."""
FAR_BEHIND = 1.5
"""A regressor whose error on the first fold is this many times the smallest is not tried on the others."""
CLOSE = 1.02
"""The first regressor in order is chosen when its error is at most this many times the smallest."""


@dataclass(frozen=True)
class RegressorError:
    """How well one regressor predicts settings that it did not learn from.

    Parameters
    ----------
    regressor
        Its name.
    errors
        Natural logarithm of the value over the predicted one, per setting; NaN for settings that were not predicted.
    mape_pct
        Mean absolute error, % of the value.
    rmse
        Root mean squared error, in the unit of the measure.
    """

    regressor: str
    errors: Array
    mape_pct: float
    rmse: float

    @property
    def size(self) -> float:
        """Mean absolute logarithm, by which regressors are compared."""
        return float(np.nanmean(np.minimum(np.abs(self.errors), LARGEST_ERROR)))

    @property
    def complete(self) -> bool:
        """Whether it was tried on every fold."""
        return bool(np.isfinite(self.errors).sum() >= min(len(self.errors), LEARNT_FROM))


def compared(
    settings: Settings, names: Iterable[str] | None = None, *, race: bool = False, seed: int = 0
) -> list[RegressorError]:
    """Each regressor's error by cross-validation, in the order of the registry.

    All repeats of a setting are on one side of each fold, since a setting is one row here.

    Parameters
    ----------
    settings
        At least two.
    names
        Of the regressors; by default all.
    race
        Whether to try only those on all folds that are not far behind on the first.
    seed
        Of the folds.
    """
    order = np.random.default_rng(seed).permutation(len(settings))[:LEARNT_FROM]
    count = min(FOLDS, len(order))
    folds = [order[start::count] for start in range(count)]
    names = list(REGRESSORS if names is None else names)
    errors = {name: np.full(len(settings), np.nan) for name in names}
    racing = names
    for number, left_out in enumerate(folds):
        for name in racing:
            errors[name][left_out] = _errors(name, settings, np.setdiff1d(order, left_out), left_out)
        if race and number == 0:
            sizes = {name: _error_of(name, settings, errors[name]).size for name in names}
            racing = [name for name in names if sizes[name] <= FAR_BEHIND * min(sizes.values())]
    return [_error_of(name, settings, errors[name]) for name in names]


def _errors(name: str, settings: Settings, learnt: NDArray[np.intp], left_out: NDArray[np.intp]) -> Array:
    fitted = REGRESSORS.find(name)().fit(settings.at(learnt))
    return np.asarray(np.log(settings.value[left_out]) - fitted.predict(settings.inputs[left_out]))


def _error_of(name: str, settings: Settings, errors: Array) -> RegressorError:
    relative = np.abs(np.expm1(-errors))
    return RegressorError(
        name, errors, 100 * float(np.nanmean(relative)), float(np.sqrt(np.nanmean((relative * settings.value) ** 2)))
    )


def best_of(errors: Sequence[RegressorError]) -> RegressorError:
    """The first of those tried on every fold whose error is as small as the smallest, within `CLOSE`."""
    complete = [one for one in errors if one.complete]
    least = min(one.size for one in complete)
    return next(one for one in complete if one.size <= CLOSE * least + 1e-12)
