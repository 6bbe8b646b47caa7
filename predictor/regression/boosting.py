"""Gradient boosting with as many stages as improve predictions of unseen runs (Friedman, 2002).

The number of stages is chosen by cross-validation in which the runs of one setting are left out together, so that
trees which merely memorise a setting are not rewarded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.regression.stages import Stages, fit_stages
from predictor.regression.trees import Trees

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

STAGES = 80
SUBSAMPLE, LEAST_IN_LEAF = 0.7, 2
SEEDS = 3
FOLDS = 4
ENOUGH = 10
"""Runs below which there are no trees."""


@dataclass(frozen=True)
class Boosted:
    """Trees that correct another model.

    Parameters
    ----------
    trees
        The mean of ensembles that differ in their random subsamples.
    stages
        Trees per ensemble; 0 where boosting did not help.
    unseen
        Their contribution to each row when its setting is left out of training, shape (N,).
    """

    trees: Trees
    stages: int
    unseen: Array


def boost(
    features: Array, left: Array, settings: Rows, seed: int, *, left_by: Callable[[Rows], Array] | None = None
) -> Boosted:
    """Learn the residuals of another model.

    Parameters
    ----------
    features, left
        Shapes (N, features) and (N,).
    settings
        Equal numbers for runs of one setting, shape (N,).
    seed
        Seeds folds and subsamples.
    left_by
        Residuals of every row when the other model learns from some rows only, shape (N,); None where it does not
        learn from these rows at all.
    """
    missed, added = np.empty((len(left), STAGES + 1)), np.zeros((len(left), STAGES + 1))
    folds = list(_folds(settings, seed)) if len(left) >= ENOUGH else []
    for kept, out in folds:
        target = left if left_by is None else left_by(kept)
        fitted = _fit(features[kept], target[kept], STAGES, seed)
        added[out, 1:] = np.column_stack(list(fitted.predictions(features[out])))
        missed[out] = target[out, None] - added[out]
    stages = _best(missed**2, settings) if folds else 0
    if not stages:
        return Boosted(Trees.none(features.shape[1]), 0, added[:, 0])
    models = [_fit(features, left, stages, seed * SEEDS + offset) for offset in range(SEEDS)]
    return Boosted(Trees.of(models), stages, added[:, stages])


def _best(squared: Array, settings: Rows) -> int:
    """The number of stages, one per column, with the least error; 0 unless it gains more than its standard error.

    The standard error is over settings: a gain from a single setting is never above it.
    """
    stages = int(squared.mean(axis=0).argmin())
    _, setting = np.unique(settings, return_inverse=True)
    gains = np.bincount(setting, squared[:, 0] - squared[:, stages])
    return stages if gains.sum() > np.sqrt((gains**2).sum()) else 0


def _fit(features: Array, target: Array, stages: int, seed: int) -> Stages:
    return fit_stages(features, target, stages, seed=seed, subsample=SUBSAMPLE, min_samples_leaf=LEAST_IN_LEAF)


def _folds(settings: Rows, seed: int) -> Iterator[tuple[Rows, Rows]]:
    """Rows to learn from and rows left out, each setting as a whole."""
    _, setting = np.unique(settings, return_inverse=True)
    fold = np.random.default_rng(seed).permutation(np.arange(setting.max() + 1) % FOLDS)[setting]
    for at in np.unique(fold):
        if (fold != at).any():
            yield np.flatnonzero(fold != at), np.flatnonzero(fold == at)
