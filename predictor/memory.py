"""Memory contention: gradient boosting on the competitors' counters and the NF's traffic (Tomur, 4.1.2 and 5.1.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingRegressor

from predictor.trees import Trees

SEEDS = 3
BOOSTING = {"n_estimators": 150, "learning_rate": 0.08, "max_depth": 3, "subsample": 0.7, "min_samples_leaf": 2}


@dataclass(frozen=True)
class MemoryModel:
    """The logarithm of throughput under memory contention, relative to what it was trained with.

    Parameters
    ----------
    trees
        Features: the competitors' summed counters, then the traffic attributes at `attributes`.
    attributes
        Positions of the traffic attributes that matter.
    """

    trees: Trees
    attributes: tuple[int, ...]

    @classmethod
    def fit(
        cls,
        counters: NDArray[np.float64],
        traffic: NDArray[np.float64],
        log_throughput: NDArray[np.float64],
        seed: int,
    ) -> MemoryModel:
        """Learn from runs: counters of shape (N, 7), traffic of shape (N, 3), and the logarithm to predict."""
        attributes = tuple(int(at) for at in np.flatnonzero(traffic.max(axis=0) > traffic.min(axis=0)))
        features = _features(counters, traffic, attributes)
        models = [
            GradientBoostingRegressor(**BOOSTING, random_state=seed * SEEDS + offset).fit(features, log_throughput)
            for offset in range(SEEDS)
        ]
        return cls(Trees.of(models), attributes)

    def __call__(self, counters: NDArray[np.float64], traffic: NDArray[np.float64]) -> NDArray[np.float64]:
        """The logarithm at each row."""
        return self.trees.predict(_features(counters, traffic, self.attributes))

    def as_arrays(self) -> dict[str, NDArray[np.float64]]:
        """What was learnt, as plain arrays."""
        return {**self.trees.as_arrays(), "attributes": np.array(self.attributes, dtype=np.float64)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[np.float64]]) -> MemoryModel:
        """The model that `as_arrays` gave."""
        return cls(Trees.from_arrays(arrays), tuple(int(at) for at in arrays["attributes"]))


def _features(
    counters: NDArray[np.float64], traffic: NDArray[np.float64], attributes: tuple[int, ...]
) -> NDArray[np.float64]:
    return np.concatenate([counters, traffic[:, list(attributes)]], axis=1)
