"""Boosted regression trees as flat arrays, evaluated for many rows at once.

Training is scikit-learn's. Evaluation follows QuickScorer (Lucchese et al., SIGIR 2015, doi:10.1145/2766462.2767733):
every node that sends a row right strikes out the leaves of its left subtree, and the exit leaf is the leftmost one that
is left. A row's strikes depend on each feature's place among that feature's thresholds only, so they are tabulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingRegressor

MAX_LEAVES = 8
ROWS_AT_ONCE = 256
_LEFTMOST = np.array([0, *((mask & -mask).bit_length() - 1 for mask in range(1, 256))], dtype=np.intp)


@dataclass(frozen=True)
class Trees:
    """An ensemble of trees of at most eight leaves.

    Parameters
    ----------
    base
        The prediction before any tree.
    nodes
        Inner nodes, one row each: tree, feature, bits of the leaves that stay when the row goes right. Shape (N, 3).
    thresholds
        Per inner node; a row goes right when its feature is above. Shape (N,).
    leaves
        Value per tree and leaf, from left to right. Shape (trees, 8).
    features
        How many features a row has.
    """

    base: float
    nodes: NDArray[np.int64]
    thresholds: NDArray[np.float64]
    leaves: NDArray[np.float64]
    features: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "_tables", [self._table(feature) for feature in range(self.features)])
        object.__setattr__(self, "_offsets", np.arange(len(self.leaves), dtype=np.intp) * MAX_LEAVES)

    @classmethod
    def of(cls, models: Sequence[GradientBoostingRegressor]) -> Trees:
        """The mean of fitted gradient boosting models (squared loss, constant start)."""
        nodes: list[tuple[int, int, int]] = []
        thresholds: list[float] = []
        leaves: list[list[float]] = []
        for model in models:
            for fitted in model.estimators_[:, 0]:
                weight = model.learning_rate / len(models)
                _flatten(fitted.tree_, len(leaves), weight, nodes, thresholds, leaves)
        base = float(np.mean([np.ravel(model.init_.constant_)[0] for model in models]))
        return cls(
            base,
            np.array(nodes, dtype=np.int64).reshape(-1, 3),
            np.array(thresholds, dtype=np.float64),
            np.array(leaves, dtype=np.float64).reshape(-1, MAX_LEAVES),
            int(models[0].n_features_in_),
        )

    @classmethod
    def none(cls, features: int) -> Trees:
        """No trees: zero everywhere."""
        nothing = np.zeros(0)
        return cls(0.0, np.zeros((0, 3), dtype=np.int64), nothing, np.zeros((0, MAX_LEAVES)), features)

    def predict(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The prediction for each of `rows`, shape (N, features); equal to scikit-learn's to rounding."""
        if not len(self.leaves):
            return np.full(len(rows), self.base)
        # scikit-learn compares single-precision values with double-precision thresholds
        single = rows.astype(np.float32).astype(np.float64)
        places = [
            np.searchsorted(thresholds, single[:, feature], side="left")
            for feature, (thresholds, _) in enumerate(self._tables)
        ]
        predicted = np.empty(len(rows))
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            left = np.full((len(single[part]), len(self.leaves)), 0xFF, dtype=np.uint8)
            for place, (thresholds, strikes) in zip(places, self._tables, strict=True):
                if len(thresholds):
                    left &= strikes[place[part]]
            exits = _LEFTMOST[left]
            exits += self._offsets
            predicted[part] = self.leaves.ravel()[exits].sum(axis=1)
        return predicted + self.base

    def as_arrays(self) -> dict[str, NDArray[np.float64]]:
        """The ensemble as plain arrays."""
        return {
            "base": np.array([self.base]),
            "nodes": self.nodes.astype(np.float64),
            "thresholds": self.thresholds,
            "leaves": self.leaves,
            "features": np.array([float(self.features)]),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[np.float64]]) -> Trees:
        """The ensemble that `as_arrays` gave."""
        return cls(
            float(arrays["base"][0]),
            arrays["nodes"].astype(np.int64),
            arrays["thresholds"],
            arrays["leaves"],
            int(arrays["features"][0]),
        )

    def _table(self, feature: int) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        """The feature's distinct thresholds, and per place among them the leaves that stay, shape (places, trees)."""
        here = self.nodes[:, 1] == feature
        thresholds = np.unique(self.thresholds[here])
        strikes = np.full((len(thresholds) + 1, len(self.leaves)), 0xFF, dtype=np.uint8)
        ranks = np.searchsorted(thresholds, self.thresholds[here])
        for (tree, _, stay), rank in zip(self.nodes[here], ranks, strict=True):
            strikes[rank + 1, tree] &= np.uint8(stay)
        np.bitwise_and.accumulate(strikes, axis=0, out=strikes)
        return thresholds, strikes

    _tables: list[tuple[NDArray[np.float64], NDArray[np.uint8]]] = None  # type: ignore[assignment]
    _offsets: NDArray[np.intp] = None  # type: ignore[assignment]


def _flatten(
    tree: object,
    index: int,
    weight: float,
    nodes: list[tuple[int, int, int]],
    thresholds: list[float],
    leaves: list[list[float]],
) -> None:
    left, right = tree.children_left, tree.children_right  # type: ignore[attr-defined]
    values: list[float] = []

    def visit(node: int) -> int:
        """Number the leaves below `node` from left to right; the bits of those leaves."""
        if left[node] < 0:
            values.append(weight * float(tree.value[node, 0, 0]))  # type: ignore[attr-defined]
            return 1 << (len(values) - 1)
        below_left = visit(left[node])
        nodes.append((index, int(tree.feature[node]), 0xFF & ~below_left))  # type: ignore[attr-defined]
        thresholds.append(float(tree.threshold[node]))  # type: ignore[attr-defined]
        return below_left | visit(right[node])

    visit(0)
    if len(values) > MAX_LEAVES:
        raise ValueError(f"a tree of {len(values)} leaves, at most {MAX_LEAVES} can be evaluated")
    leaves.append(values + [0.0] * (MAX_LEAVES - len(values)))
