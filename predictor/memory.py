"""Memory contention: gradient boosting on the competitors' counters and the NF's traffic (Tomur, 4.1.2 and 5.1.2).

A few hundred runs leave wide gaps in so many dimensions, and trees answer a gap with a step. Boosting therefore starts
from a smooth trend over what contention is made of, the competitors' rate of cache accesses and their working set, and
trees learn what the trend leaves: what the other counters tell, and contention beyond what NFs can exert.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingRegressor

from predictor.smooth import Smooth
from predictor.trees import Trees
from profiles import COUNTERS

Array = NDArray[np.float64]

SEEDS = 3
ENOUGH = 10
BOOSTING = {"n_estimators": 120, "learning_rate": 0.1, "max_depth": 3, "subsample": 0.7, "min_samples_leaf": 2}
READS, WRITES, WORKING_SET = (COUNTERS.index(name) for name in ("l2crd", "l2cwr", "wss"))
ACCESS_UNIT = 1e6
WORKING_SET_UNIT = 0.3
"""Accesses per second and MB below which contention is not felt: where the scales turn from linear to logarithmic."""


@dataclass(frozen=True)
class MemoryRuns:
    """Runs beside memory contention, one row each.

    Parameters
    ----------
    counters
        The competitors', summed, shape (N, 7).
    traffic
        Shape (N, 3).
    own_wss
        The NF's own working set alone (MB), shape (N,); zero where it is not known.
    """

    counters: Array
    traffic: Array
    own_wss: Array

    def __getitem__(self, rows: NDArray[np.bool_]) -> MemoryRuns:
        return MemoryRuns(self.counters[rows], self.traffic[rows], self.own_wss[rows])

    def accesses(self) -> Array:
        """The competitors' cache accesses per second."""
        return access_rate(self.counters)

    def contention(self) -> Array:
        """What the trend is a function of, shape (N, 6)."""
        return np.column_stack(
            [
                np.log1p(self.accesses() / ACCESS_UNIT),
                np.log1p(self.counters[:, WORKING_SET] / WORKING_SET_UNIT),
                np.log1p(self.own_wss / WORKING_SET_UNIT),
                np.log(np.maximum(self.traffic[:, :2], 1.0)),
                self.traffic[:, 2],
            ]
        )

    def features(self) -> Array:
        """What the trees see: the seven counters and the traffic attributes, shape (N, 10)."""
        return np.concatenate([self.counters, self.traffic], axis=1)


@dataclass(frozen=True)
class MemoryModel:
    """The logarithm of throughput under memory contention, relative to what it was trained with.

    Parameters
    ----------
    trend
        Smooth, for contention that NFs can exert.
    most_accesses
        Cache accesses per second up to which that is.
    beyond
        Trees for contention above, which add to the trend's edge.
    errors
        Of the trend under contention at traffic left out: measured over predicted, logarithm, shape (M,).
    """

    trend: Smooth
    most_accesses: float
    beyond: Trees
    errors: Array

    @classmethod
    def fit(cls, runs: MemoryRuns, logarithm: Array, *, most_accesses: float = np.inf, seed: int = 0) -> MemoryModel:
        """Learn `logarithm`, shape (N,), from `runs`.

        Parameters
        ----------
        most_accesses
            Cache accesses per second that competing NFs can exert.
        seed
            Seeds the boosting.
        """
        if (runs.accesses() <= most_accesses).sum() < ENOUGH:
            most_accesses = np.inf
        likely = runs.accesses() <= most_accesses
        settings = np.unique(runs.traffic, axis=0, return_inverse=True)[1].ravel().astype(np.intp)
        inputs = runs.contention()
        trend = Smooth.fit(inputs[likely], logarithm[likely, None], settings[likely])
        left = logarithm - trend(inputs)[:, 0]
        errors = trend.left_out(logarithm[likely, None], settings[likely])[:, 0]
        contended = (runs.counters[likely] > 0).any(axis=1)
        return cls(trend, most_accesses, _boosted(runs.features()[~likely], left[~likely], seed), errors[contended])

    def __call__(self, runs: MemoryRuns) -> Array:
        """The logarithm at each row."""
        logarithm = self.trend(runs.contention())[:, 0]
        far = runs.accesses() > self.most_accesses
        if far.any():
            logarithm[far] += self.beyond.predict(runs[far].features())
        return logarithm

    def as_arrays(self) -> dict[str, Array]:
        """What was learnt, as plain arrays."""
        return {
            "most_accesses": np.array([self.most_accesses]),
            "errors": self.errors,
            **{f"trend_{name}": array for name, array in self.trend.as_arrays().items()},
            **{f"beyond_{name}": array for name, array in self.beyond.as_arrays().items()},
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> MemoryModel:
        """The model that `as_arrays` gave."""
        trend, beyond = (
            {name.removeprefix(part): array for name, array in arrays.items() if name.startswith(part)}
            for part in ("trend_", "beyond_")
        )
        most_accesses = float(arrays["most_accesses"][0])
        return cls(Smooth.from_arrays(trend), most_accesses, Trees.from_arrays(beyond), arrays["errors"])


def access_rate(counters: Array) -> Array:
    """Cache accesses per second of rows of counters, shape (N, 7)."""
    return counters[:, READS] + counters[:, WRITES]


def _boosted(features: Array, left: Array, seed: int) -> Trees:
    """Trees for what the trend left; none where there are too few runs."""
    if len(left) < ENOUGH:
        return Trees.none(features.shape[1])
    models = [GradientBoostingRegressor(**BOOSTING, random_state=seed * SEEDS + offset) for offset in range(SEEDS)]
    return Trees.of([model.fit(features, left) for model in models])
