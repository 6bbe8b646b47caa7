"""Gradient boosting with as many stages as improve predictions of unseen runs (Friedman, 2002). The number of stages is
chosen by cross-validation in which the runs of one setting are left out together, so that trees which merely memorise a
setting are not rewarded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictor.regression.compiled import compile_kernel, fill, pad
from profiles.arrays import Floats
from profiles.shown import Shown

Rows = NDArray[np.intp]

BOOSTING_STAGES = 80
SUBSAMPLE_SHARE, LEAST_IN_LEAF = 0.7, 2
ENSEMBLE_SEEDS = 3
CROSS_VALIDATION_FOLDS = 4
ENOUGH_RUNS = 10  # runs below which there are no trees


@dataclass(frozen=True)
class Boosted:
    """Trees that correct another model."""

    trees: Trees  # the mean of ensembles that differ in their random subsamples
    stages: int  # trees per ensemble; 0 where boosting did not help
    unseen: Floats  # their contribution to each row when its setting is left out of training, shape (N,)


def boost(
    features: Floats, left: Floats, settings: Rows, seed: int, *, left_by: Callable[[Rows], Floats] | None = None
) -> Boosted:
    """Learn the residuals of another model. `features` and `left`: shapes (N, features) and (N,). `settings`: equal
    numbers for runs of one setting, shape (N,). `seed`: seeds folds and subsamples. `left_by`: residuals of every row
    when the other model learns from some rows only, shape (N,); None where it does not learn from these rows at all."""
    missed, added = np.empty((len(left), BOOSTING_STAGES + 1)), np.zeros((len(left), BOOSTING_STAGES + 1))
    folds = list(_folds(settings, seed)) if len(left) >= ENOUGH_RUNS else []
    for kept, out in folds:
        target = left if left_by is None else left_by(kept)
        fitted = _fit(features[kept], target[kept], BOOSTING_STAGES, seed)
        added[out, 1:] = np.column_stack(list(fitted.predictions(features[out])))
        missed[out] = target[out, None] - added[out]
    stages = _best(missed**2, settings) if folds else 0
    if not stages:
        return Boosted(Trees.none(features.shape[1]), 0, added[:, 0])
    models = [_fit(features, left, stages, seed * ENSEMBLE_SEEDS + offset) for offset in range(ENSEMBLE_SEEDS)]
    return Boosted(Trees.of(models), stages, added[:, stages])


def _best(squared: Floats, settings: Rows) -> int:
    """The number of stages, one per column, with the least error; 0 unless it gains more than its standard error. The
    standard error is over settings: a gain from a single setting is never above it."""
    stages = int(squared.mean(axis=0).argmin())
    _, setting = np.unique(settings, return_inverse=True)
    gains = np.bincount(setting, squared[:, 0] - squared[:, stages])
    return stages if gains.sum() > np.sqrt((gains**2).sum()) else 0


def _fit(features: Floats, target: Floats, stages: int, seed: int) -> Stages:
    return fit_stages(features, target, stages, seed=seed, subsample=SUBSAMPLE_SHARE, min_samples_leaf=LEAST_IN_LEAF)


def _folds(settings: Rows, seed: int) -> Iterator[tuple[Rows, Rows]]:
    """Rows to learn from and rows left out, each setting as a whole."""
    _, setting = np.unique(settings, return_inverse=True)
    fold = np.random.default_rng(seed).permutation(np.arange(setting.max() + 1) % CROSS_VALIDATION_FOLDS)[setting]
    for at in np.unique(fold):
        if (fold != at).any():
            yield np.flatnonzero(fold != at), np.flatnonzero(fold == at)


# The stages of gradient boosting with squared loss: each tree learns what those before it left (Friedman, 2002).
#
# The trees are scikit-learn's. Its `GradientBoostingRegressor` checks parameters and keeps scores around each tree,
# which takes several times as long as a tree of a few dozen runs; called tree by tree it gives the same trees, to the
# bit.


LEARNING_RATE = 0.1  # the share of each tree that is added
TREE_DEPTH = 3


@dataclass(frozen=True)
class Stages:
    """Trees to add up."""

    base: float  # the prediction before any tree
    trees: Sequence[Any]  # scikit-learn's `tree_` of each stage
    features: int  # how many features a row has

    def predictions(self, features: Floats) -> Iterator[Floats]:
        """The prediction for each row, shape (N,), after each stage."""
        rows, predicted = np.asarray(features, dtype=np.float32), np.full(len(features), self.base)
        for tree in self.trees:
            predicted = predicted + _sum_leaves(tree, rows)
            yield predicted


def fit_stages(
    features: Floats, target: Floats, stages: int, *, seed: int, subsample: float = 1.0, min_samples_leaf: int = 1
) -> Stages:
    """Learn `target`, shape (N,), from `features`, shape (N, features). `stages`: how many trees. `seed`: seeds
    subsamples, and the order in which features of equal gain are looked at. `subsample`: the share of the rows that
    each tree learns from. `min_samples_leaf`: the fewest rows of a leaf."""
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
            model = DecisionTreeRegressor(max_depth=TREE_DEPTH, min_samples_leaf=min_samples_leaf, random_state=random)
            tree = model.fit(rows[kept], left[kept], check_input=False).tree_
            predicted += _sum_leaves(tree, rows)
            trees.append(tree)
    return Stages(base, trees, rows.shape[1])


def _sum_leaves(tree: Any, rows: NDArray[np.float32]) -> Floats:
    added: Floats = LEARNING_RATE * tree.value[:, 0, 0].take(tree.apply(rows))
    return added


def _sample(draws: Floats, size: int) -> NDArray[np.intp]:
    """`size` of as many rows as there are draws from [0, 1), in their order (Knuth, volume 2, algorithm S)."""
    count = len(draws)
    kept: list[int] = []
    for at, draw in enumerate(draws.tolist()):
        if draw * (count - at) < size - len(kept):
            kept.append(at)
    return np.array(kept, dtype=np.intp)


# Boosted regression trees as flat arrays, evaluated for many rows at once.
#
# Training is scikit-learn's. Every tree is laid out as a full binary tree, so that evaluating one is the same sequence
# of comparisons for every row, which the compiler turns into vector instructions over blocks of rows.


TREE_NODES, TREE_LEAVES = 2**TREE_DEPTH - 1, 2**TREE_DEPTH
ROWS_AT_ONCE = 256


@dataclass(frozen=True, repr=False)
class Trees(Shown):
    """An ensemble of trees no deeper than three. The children of node k are 2k + 1, taken when the node's feature is at
    most its threshold, and 2k + 2."""

    base: float  # the prediction before any tree
    tested: NDArray[np.int64]  # feature per tree and inner node. Shape (trees, 7).
    thresholds: Floats  # likewise; inf where the tree is shallower. Shape (trees, 7).
    leaves: Floats  # value per tree and leaf, from left to right. Shape (trees, 8).
    features: int  # how many features a row has

    @classmethod
    def of(cls, models: Sequence[Stages]) -> Trees:
        """The mean of models of as many features."""
        fitted = [tree for model in models for tree in model.trees]
        trees = cls(
            float(np.mean([model.base for model in models])),
            np.zeros((len(fitted), TREE_NODES), dtype=np.int64),
            np.full((len(fitted), TREE_NODES), np.inf),
            np.zeros((len(fitted), TREE_LEAVES)),
            models[0].features,
        )
        for index, tree in enumerate(fitted):
            trees._lay_out(index, tree, LEARNING_RATE / len(models))
        return trees

    @classmethod
    def none(cls, features: int) -> Trees:
        """No trees: zero everywhere."""
        tested = np.zeros((0, TREE_NODES), dtype=np.int64)
        return cls(0.0, tested, np.zeros((0, TREE_NODES)), np.zeros((0, TREE_LEAVES)), features)

    def predict(self, rows: Floats) -> Floats:
        """The prediction for each of `rows`, shape (N, features); equal to scikit-learn's to rounding."""
        predicted = np.full(len(rows), self.base)
        if len(self.leaves) and len(rows):
            # scikit-learn compares single-precision values with double-precision thresholds
            columns = np.ascontiguousarray(rows.T.astype(np.float32).astype(np.float64))
            add_leaves(columns, self.tested, self.thresholds, self.leaves, predicted)
        return predicted

    def as_arrays(self) -> dict[str, Floats]:
        """The ensemble as plain arrays."""
        return {
            "base": np.array([self.base]),
            "tested": self.tested.astype(np.float64),
            "thresholds": self.thresholds,
            "leaves": self.leaves,
            "features": np.array([float(self.features)]),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, Floats]) -> Trees:
        """The ensemble that `as_arrays` returned. Raises `ValueError` when the arrays do not make trees over that many
        features."""
        tested, features = arrays["tested"].astype(np.int64), int(arrays["features"][0])
        thresholds, leaves = (np.ascontiguousarray(arrays[name], dtype=np.float64) for name in ("thresholds", "leaves"))
        shapes = (tested.shape[1:], thresholds.shape, leaves.shape)
        if shapes != ((TREE_NODES,), tested.shape, (len(tested), TREE_LEAVES)):
            raise ValueError(f"arrays of shape {tested.shape}, {thresholds.shape} and {leaves.shape} do not form trees")
        # compiled code checks no bounds
        if ((tested < 0) | (tested >= features)).any():
            raise ValueError(f"trees test a feature beyond the {features} of a row")
        return cls(float(arrays["base"][0]), tested, thresholds, leaves, features)

    def _lay_out(self, index: int, tree: Any, weight: float) -> None:
        """Write a fitted tree into row `index`; a leaf above the lowest level fills all places below it."""
        if tree.max_depth > TREE_DEPTH:
            raise ValueError(f"a tree of depth {tree.max_depth}, at most {TREE_DEPTH} can be evaluated")
        below = [(0, 0)]
        while below:
            node, place = below.pop()
            inner = tree.children_left[node] >= 0
            if place >= TREE_NODES:
                self.leaves[index, place - TREE_NODES] = weight * tree.value[node, 0, 0]
                continue
            if inner:
                self.tested[index, place] = tree.feature[node]
                self.thresholds[index, place] = tree.threshold[node]
            children = (tree.children_left[node], tree.children_right[node]) if inner else (node, node)
            below += [(children[0], 2 * place + 1), (children[1], 2 * place + 2)]


class Forests(NamedTuple):
    """Ensembles side by side, as compiled code reads them: the attributes of `Trees` along a further first axis. `size`
    is how many trees each has, shape (ensembles,)."""

    base: Floats
    tested: NDArray[np.int64]
    thresholds: Floats
    leaves: Floats
    size: NDArray[np.int64]


def forests_of(ensembles: Sequence[Trees]) -> Forests:
    """The ensembles as compiled code reads them."""
    return Forests(
        base=np.array([ensemble.base for ensemble in ensembles]),
        tested=pad([ensemble.tested for ensemble in ensembles]),
        thresholds=pad([ensemble.thresholds for ensemble in ensembles]),
        leaves=pad([ensemble.leaves for ensemble in ensembles]),
        size=np.array([len(ensemble.leaves) for ensemble in ensembles], dtype=np.int64),
    )


@compile_kernel
def add_leaves(columns, tested, thresholds, leaves, total):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Add to `total`, shape (N,), the leaf of every tree that each of `columns`, shape (features, N), falls into."""
    for start in range(0, len(total), ROWS_AT_ONCE):
        end = min(start + ROWS_AT_ONCE, len(total))
        block = total[start:end]
        for tree in range(len(leaves)):
            x0, x1, x2, x3, x4, x5, x6 = (
                columns[tested[tree, 0], start:end], columns[tested[tree, 1], start:end],
                columns[tested[tree, 2], start:end], columns[tested[tree, 3], start:end],
                columns[tested[tree, 4], start:end], columns[tested[tree, 5], start:end],
                columns[tested[tree, 6], start:end],
            )  # fmt: skip
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


@compile_kernel
def write_sums(forests, which, columns, total):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write into `total` the prediction of one ensemble for each of `columns`, shape (features, N)."""
    fill(total, forests.base[which])
    size = forests.size[which]
    add_leaves(
        columns, forests.tested[which, :size], forests.thresholds[which, :size], forests.leaves[which, :size], total
    )
