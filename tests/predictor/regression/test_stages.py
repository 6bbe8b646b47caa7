"""Stages are those of scikit-learn's gradient boosting."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

from predictor.regression.stages import Stages, fit_stages
from tests.predictor.regression.gradient_boosting import stages_of

ARRAYS = ("children_left", "children_right", "feature", "threshold", "value")


def _data(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Few values, and two equal features: many splits gain the same, and chance decides between them."""
    rng = np.random.default_rng(seed)
    features = rng.integers(0, 6, (rows, 5)) * rng.random(5)
    features[:, 3] = 2 * features[:, 2]
    return features, np.round(rng.random(rows), 1)


@pytest.mark.parametrize("settings", [{}, {"subsample": 0.7, "min_samples_leaf": 2}])
@pytest.mark.parametrize("rows", [3, 20, 150])
def test_stages_are_those_of_scikit_learn_to_the_bit(rows: int, settings: dict[str, float]) -> None:
    """Start, splits, leaves, and predictions of unseen rows after each stage."""
    for seed in range(3):
        features, target = _data(rows, seed)
        theirs = GradientBoostingRegressor(n_estimators=20, random_state=seed, **settings).fit(features, target)
        ours, expected = fit_stages(features, target, 20, seed=seed, **settings), stages_of(theirs)
        assert ours.base == expected.base
        for tree, other in zip(ours.trees, expected.trees, strict=True):
            for array in ARRAYS:
                np.testing.assert_array_equal(getattr(tree, array), getattr(other, array))
        unseen = np.random.default_rng(seed).random((30, 5))
        np.testing.assert_array_equal(list(ours.predictions(unseen)), list(theirs.staged_predict(unseen)))


def test_a_step_is_learnt_by_a_tenth_per_stage() -> None:
    """By hand: the mean is 1, each stage adds a tenth of what is left of the two values, 0 and 2."""
    features, target = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0.0, 0.0, 2.0, 2.0])
    first, second = fit_stages(features, target, 2, seed=0).predictions(features)
    np.testing.assert_allclose(first, [0.9, 0.9, 1.1, 1.1])
    np.testing.assert_allclose(second, [0.81, 0.81, 1.19, 1.19])


def test_without_stages_nothing_is_predicted_but_the_mean() -> None:
    """No tree."""
    stages = fit_stages(np.zeros((4, 2)), np.array([1.0, 2.0, 3.0, 6.0]), 0, seed=0)
    assert stages == Stages(3.0, [], 2)
