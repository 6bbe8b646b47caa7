"""The stages of gradient boosting with squared loss: each tree learns what those before it left (Friedman, 2002).

The trees are scikit-learn's. Its `GradientBoostingRegressor` checks parameters and keeps scores around each tree, which
takes several times as long as a tree of a few dozen runs; called tree by tree it gives the same trees, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RATE = 0.1
"""The share of each tree that is added."""
DEPTH = 3


@dataclass(frozen=True)
class Stages:
    """Trees to add up.

    Parameters
    ----------
    base
        The prediction before any tree.
    trees
        scikit-learn's `tree_` of each stage.
    features
        How many features a row has.
    """

    base: float
    trees: Sequence[Any]
    features: int

    def predictions(self, features: Array) -> Iterator[Array]:
        """The prediction for each row, shape (N,), after each stage."""
        rows, predicted = np.asarray(features, dtype=np.float32), np.full(len(features), self.base)
        for tree in self.trees:
            predicted = predicted + _added(tree, rows)
            yield predicted


def fit_stages(
    features: Array, target: Array, stages: int, *, seed: int, subsample: float = 1.0, min_samples_leaf: int = 1
) -> Stages:
    """Learn `target`, shape (N,), from `features`, shape (N, features).

    Parameters
    ----------
    stages
        How many trees.
    seed
        Seeds subsamples, and the order in which features of equal gain are looked at.
    subsample
        The share of the rows that each tree learns from.
    min_samples_leaf
        The fewest rows of a leaf.
    """
    import sklearn
    from sklearn.tree import DecisionTreeRegressor

    random, count = np.random.RandomState(seed), len(target)  # scikit-learn's trees take no newer generator
    rows, base = np.ascontiguousarray(features, dtype=np.float32), float(np.average(target))
    predicted, trees = np.full(count, base), []
    with sklearn.config_context(skip_parameter_validation=True, assume_finite=True):
        for _ in range(stages):
            left, kept = target - predicted, np.arange(count)
            if subsample < 1.0:
                kept = _sample(random.uniform(size=count), max(1, int(subsample * count)))
            model = DecisionTreeRegressor(max_depth=DEPTH, min_samples_leaf=min_samples_leaf, random_state=random)
            tree = model.fit(rows[kept], left[kept], check_input=False).tree_
            predicted += _added(tree, rows)
            trees.append(tree)
    return Stages(base, trees, rows.shape[1])


def _added(tree: Any, rows: NDArray[np.float32]) -> Array:
    added: Array = RATE * tree.value[:, 0, 0].take(tree.apply(rows))
    return added


def _sample(draws: Array, size: int) -> NDArray[np.intp]:
    """`size` of as many rows as there are draws from [0, 1), in their order (Knuth, volume 2, algorithm S)."""
    count = len(draws)
    kept: list[int] = []
    for at, draw in enumerate(draws.tolist()):
        if draw * (count - at) < size - len(kept):
            kept.append(at)
    return np.array(kept, dtype=np.intp)
