"""Boosted regression trees as flat arrays, evaluated for many rows at once.

Training is scikit-learn's. Every tree is laid out as a full binary tree, so that evaluating one is the same sequence of
comparisons for every row, which the compiler turns into vector instructions over blocks of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictor.regression.compiled import compiled, fill, padded
from predictor.regression.stages import DEPTH, RATE, Stages

Array = NDArray[np.float64]

NODES, LEAVES = 2**DEPTH - 1, 2**DEPTH
ROWS_AT_ONCE = 256


@dataclass(frozen=True)
class Trees:
    """An ensemble of trees no deeper than three.

    The children of node k are 2k + 1, taken when the node's feature is at most its threshold, and 2k + 2.

    Parameters
    ----------
    base
        The prediction before any tree.
    tested
        Feature per tree and inner node. Shape (trees, 7).
    thresholds
        Likewise; inf where the tree is shallower. Shape (trees, 7).
    leaves
        Value per tree and leaf, from left to right. Shape (trees, 8).
    features
        How many features a row has.
    """

    base: float
    tested: NDArray[np.int64]
    thresholds: Array
    leaves: Array
    features: int

    @classmethod
    def of(cls, models: Sequence[Stages]) -> Trees:
        """The mean of models of as many features."""
        fitted = [tree for model in models for tree in model.trees]
        trees = cls(
            float(np.mean([model.base for model in models])),
            np.zeros((len(fitted), NODES), dtype=np.int64),
            np.full((len(fitted), NODES), np.inf),
            np.zeros((len(fitted), LEAVES)),
            models[0].features,
        )
        for index, tree in enumerate(fitted):
            trees._lay_out(index, tree, RATE / len(models))
        return trees

    @classmethod
    def none(cls, features: int) -> Trees:
        """No trees: zero everywhere."""
        tested = np.zeros((0, NODES), dtype=np.int64)
        return cls(0.0, tested, np.zeros((0, NODES)), np.zeros((0, LEAVES)), features)

    def predict(self, rows: Array) -> Array:
        """The prediction for each of `rows`, shape (N, features); equal to scikit-learn's to rounding."""
        predicted = np.full(len(rows), self.base)
        if len(self.leaves) and len(rows):
            # scikit-learn compares single-precision values with double-precision thresholds
            columns = np.ascontiguousarray(rows.T.astype(np.float32).astype(np.float64))
            add_leaves(columns, self.tested, self.thresholds, self.leaves, predicted)
        return predicted

    def as_arrays(self) -> dict[str, Array]:
        """The ensemble as plain arrays."""
        return {
            "base": np.array([self.base]),
            "tested": self.tested.astype(np.float64),
            "thresholds": self.thresholds,
            "leaves": self.leaves,
            "features": np.array([float(self.features)]),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array]) -> Trees:
        """The ensemble that `as_arrays` returned.

        Raises
        ------
        ValueError
            When the arrays do not make trees over that many features.
        """
        tested, features = arrays["tested"].astype(np.int64), int(arrays["features"][0])
        thresholds, leaves = (np.ascontiguousarray(arrays[name], dtype=np.float64) for name in ("thresholds", "leaves"))
        shapes = (tested.shape[1:], thresholds.shape, leaves.shape)
        if shapes != ((NODES,), tested.shape, (len(tested), LEAVES)):
            raise ValueError(f"arrays of shape {tested.shape}, {thresholds.shape} and {leaves.shape} do not form trees")
        # compiled code checks no bounds
        if ((tested < 0) | (tested >= features)).any():
            raise ValueError(f"trees test a feature beyond the {features} of a row")
        return cls(float(arrays["base"][0]), tested, thresholds, leaves, features)

    def _lay_out(self, index: int, tree: Any, weight: float) -> None:
        """Write a fitted tree into row `index`; a leaf above the lowest level fills all places below it."""
        if tree.max_depth > DEPTH:
            raise ValueError(f"a tree of depth {tree.max_depth}, at most {DEPTH} can be evaluated")
        below = [(0, 0)]
        while below:
            node, place = below.pop()
            inner = tree.children_left[node] >= 0
            if place >= NODES:
                self.leaves[index, place - NODES] = weight * tree.value[node, 0, 0]
                continue
            if inner:
                self.tested[index, place] = tree.feature[node]
                self.thresholds[index, place] = tree.threshold[node]
            children = (tree.children_left[node], tree.children_right[node]) if inner else (node, node)
            below += [(children[0], 2 * place + 1), (children[1], 2 * place + 2)]


class Forests(NamedTuple):
    """Ensembles side by side, as compiled code reads them: the attributes of `Trees` along a further first axis.

    `size` is how many trees each has, shape (ensembles,).
    """

    base: Array
    tested: NDArray[np.int64]
    thresholds: Array
    leaves: Array
    size: NDArray[np.int64]


def forests_of(ensembles: Sequence[Trees]) -> Forests:
    """The ensembles as compiled code reads them."""
    return Forests(
        base=np.array([one.base for one in ensembles]),
        tested=padded([one.tested for one in ensembles]),
        thresholds=padded([one.thresholds for one in ensembles]),
        leaves=padded([one.leaves for one in ensembles]),
        size=np.array([len(one.leaves) for one in ensembles], dtype=np.int64),
    )


@compiled
def add_leaves(columns, tested, thresholds, leaves, total):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Add to `total`, shape (N,), the leaf of every tree that each of `columns`, shape (features, N), falls into."""
    for start in range(0, len(total), ROWS_AT_ONCE):
        end = min(start + ROWS_AT_ONCE, len(total))
        block = total[start:end]
        for tree in range(len(leaves)):
            x0, x1, x2, x3, x4, x5, x6 = (
                columns[tested[tree, 0], start:end],
                columns[tested[tree, 1], start:end],
                columns[tested[tree, 2], start:end],
                columns[tested[tree, 3], start:end],
                columns[tested[tree, 4], start:end],
                columns[tested[tree, 5], start:end],
                columns[tested[tree, 6], start:end],
            )
            t, v = thresholds[tree], leaves[tree]
            t0, t1, t2, t3, t4, t5, t6 = t[0], t[1], t[2], t[3], t[4], t[5], t[6]
            v0, v1, v2, v3, v4, v5, v6, v7 = v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]
            for row in range(end - start):
                # both sides are always computed: a branch would prevent vector instructions
                left_left = v1 if x3[row] > t3 else v0
                left_right = v3 if x4[row] > t4 else v2
                right_left = v5 if x5[row] > t5 else v4
                right_right = v7 if x6[row] > t6 else v6
                left = left_right if x1[row] > t1 else left_left
                right = right_right if x2[row] > t2 else right_left
                block[row] += right if x0[row] > t0 else left


@compiled
def write_sums(forests, which, columns, total):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write into `total` the prediction of one ensemble for each of `columns`, shape (features, N)."""
    fill(total, forests.base[which])
    size = forests.size[which]
    add_leaves(
        columns, forests.tested[which, :size], forests.thresholds[which, :size], forests.leaves[which, :size], total
    )
