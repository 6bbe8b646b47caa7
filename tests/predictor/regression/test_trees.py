"""Flattened trees predict as scikit-learn does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

from predictor.regression.stages import fit_stages
from predictor.regression.trees import Trees
from tests.predictor.regression.gradient_boosting import stages_of


def _data(rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(rows, 5)) * [1, 1e6, 1e-3, 1e9, 0]
    return features, np.sin(features[:, 0]) + features[:, 1] / 1e6 + (features[:, 3] > 0)


@pytest.mark.parametrize("settings", [{}, {"max_depth": 1}, {"max_depth": 3, "max_leaf_nodes": 5}])
def test_equal_to_scikit_learn(settings: dict[str, int]) -> None:
    """The mean of two ensembles, on values met in training and others, to 1e-9."""
    features, target = _data()
    models = [GradientBoostingRegressor(**settings, random_state=s).fit(features, target) for s in (0, 1)]
    inputs = np.concatenate([features, np.random.default_rng(1).normal(size=(3000, 5)) * [2, 2e6, 2e-3, 2e9, 1]])
    expected = np.mean([model.predict(inputs) for model in models], axis=0)
    np.testing.assert_allclose(
        Trees.of([stages_of(model) for model in models]).predict(inputs), expected, rtol=0, atol=1e-9
    )


def test_thresholds_are_met_in_single_precision() -> None:
    """Values that single precision rounds onto or across a threshold go where scikit-learn sends them."""
    features, target = _data()
    model = GradientBoostingRegressor(n_estimators=20).fit(features, target)
    thresholds = model.estimators_[0, 0].tree_.threshold
    inputs = np.repeat(thresholds, 5)[:, None] * (1 + np.linspace(-2e-8, 2e-8, 7))[None, :]
    rows = np.repeat(inputs.reshape(-1, 1), 5, axis=1)
    np.testing.assert_allclose(Trees.of([stages_of(model)]).predict(rows), model.predict(rows), rtol=0, atol=1e-9)


def test_larger_trees_are_refused() -> None:
    """A tree of more than three levels does not fit."""
    features, target = _data()
    with pytest.raises(ValueError, match="depth 5, at most 3"):
        Trees.of([stages_of(GradientBoostingRegressor(max_depth=5).fit(features, target))])


def test_round_trip() -> None:
    """Arrays and back: the same predictions, to the bit."""
    features, target = _data()
    trees = Trees.of([fit_stages(features, target, 10, seed=0)])
    np.testing.assert_array_equal(Trees.from_arrays(trees.as_arrays()).predict(features), trees.predict(features))


def test_no_trees_predict_zero() -> None:
    """An ensemble without trees predicts zero."""
    np.testing.assert_array_equal(Trees.none(3).predict(np.ones((4, 3))), np.zeros(4))


@pytest.mark.parametrize(
    ("name", "spoilt"),
    [
        ("tested", lambda array: array + 5),  # a feature that no row has
        ("tested", lambda array: array - 1),  # likewise
        ("leaves", lambda array: array[:, :7]),  # a leaf short
        ("thresholds", lambda array: array[:-1]),  # a tree short
    ],
)
def test_arrays_that_are_no_trees_are_refused(name: str, spoilt: Callable[[np.ndarray], np.ndarray]) -> None:
    """Compiled code checks no bounds, so reading does."""
    features, target = _data()
    arrays = Trees.of([fit_stages(features, target, 5, seed=0)]).as_arrays()
    with pytest.raises(ValueError, match="trees"):
        Trees.from_arrays({**arrays, name: spoilt(arrays[name])})


def test_the_position_of_a_row_does_not_change_its_value() -> None:
    """Blocks and what is left over at their end round alike, to the bit."""
    features, target = _data(700)
    trees = Trees.of([fit_stages(features, target, 10, seed=0)])
    together = trees.predict(features)
    np.testing.assert_array_equal(together, [trees.predict(row[None, :])[0] for row in features])
