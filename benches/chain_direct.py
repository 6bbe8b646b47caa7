"""Models that are trained on measured chains themselves, to compare predictions from single functions with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from sklearn.ensemble import GradientBoostingRegressor

from benches.chain_settings import MeasuredSetting
from profiles.arrays import Floats

Rows = NDArray[np.intp]

FOLDS = 5
LEAST_COST = 1e-9


def cross_validated(settings: Sequence[MeasuredSetting], nfs: Sequence[str], seed: int) -> tuple[str, Floats]:
    """The better of the models below, and what it predicts (kpps) of each setting, shape (settings,).

    A chain is left out at all of its traffics together. That the better one is chosen by the very errors that are
    reported favours it.
    """
    keys = list(dict.fromkeys(one.key for one in settings))
    fold_of = dict(zip(keys, np.random.default_rng(seed).permutation(len(keys)) % FOLDS, strict=True))
    fold = np.array([fold_of[one.key] for one in settings])
    predicted = {}
    for name, model in MODELS.items():
        predicted[name] = np.empty(len(settings))
        for number in np.unique(fold):
            left_out = np.flatnonzero(fold == number)
            predicted[name][left_out] = model(settings, nfs, np.flatnonzero(fold != number), left_out)
    measured = np.array([one.kpps.mean() for one in settings])
    best = min(predicted, key=lambda name: float(np.abs(predicted[name] / measured - 1).mean()))
    return best, predicted[best]


def costs_of_chains(settings: Sequence[MeasuredSetting], nfs: Sequence[str], learnt: Rows, asked: Rows) -> Floats:
    """Per traffic a cost of each function, of the source, and of a ring: those that fit the chains best.

    On a core costs add, the slowest core counts.
    """
    visits = np.array([_visits(one, nfs) for one in settings])
    traffic = np.array([hash(one.load.traffic) for one in settings])
    logarithm = np.array([np.log(one.kpps).mean() for one in settings])
    predicted = np.full(len(asked), logarithm[learnt].mean())
    for value in np.unique(traffic[asked]):
        known, wanted = learnt[traffic[learnt] == value], traffic[asked] == value
        if len(known):
            costs = _fitted(visits[known], logarithm[known])
            predicted[wanted] = _log_kpps(visits[asked[wanted]], costs)
    return np.asarray(np.exp(predicted))


def boosting(settings: Sequence[MeasuredSetting], nfs: Sequence[str], learnt: Rows, asked: Rows) -> Floats:
    """Gradient boosting on where functions are, packet size and flows, of logarithms."""
    inputs = np.array(
        [[*_visits(one, nfs).ravel(), *np.log(list(one.at.values())), len(one.load.cores)] for one in settings]
    )
    logarithm = np.array([np.log(one.kpps).mean() for one in settings])
    fitted = GradientBoostingRegressor(n_estimators=300, max_depth=4, random_state=0)
    fitted.fit(inputs[learnt], logarithm[learnt])
    return np.asarray(np.exp(fitted.predict(inputs[asked])))


MODELS: dict[str, Callable[[Sequence[MeasuredSetting], Sequence[str], Rows, Rows], Floats]] = {
    "costs": costs_of_chains,
    "boosting": boosting,
}


def _visits(one: MeasuredSetting, nfs: Sequence[str]) -> Floats:
    """Packets per core and function, then those that enter by the source and by a ring; shape (2, functions + 2)."""
    visits = np.zeros((2, len(nfs) + 2))
    for core, stages in enumerate(one.load.cores):
        for at in stages:
            visits[core, nfs.index(one.chain.stages[at].nf)] += one.chain.stages[at].share
        visits[core, len(nfs) + (core > 0)] = one.chain.stages[min(stages)].share
    return visits


def _log_kpps(visits: Floats, costs: Floats) -> Floats:
    return np.asarray(-np.log(np.maximum((visits @ np.exp(costs)).max(axis=1), LEAST_COST)))


def _fitted(visits: Floats, logarithm: Floats) -> Floats:
    """Logarithms of costs, drawn to one mean where chains say nothing."""
    start = np.full(visits.shape[2], -logarithm.mean() - np.log(2))

    def residuals(costs: Floats) -> Floats:
        return np.concatenate([_log_kpps(visits, costs) - logarithm, 0.01 * (costs - start)])

    return np.asarray(least_squares(residuals, start, loss="soft_l1", f_scale=0.1).x)
