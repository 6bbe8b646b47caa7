"""Boosting that takes only the stages that help."""

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor

from predictor.regression.boosting import CROSS_VALIDATION_FOLDS, Stages, Trees, _folds, boost, fit_stages


def stages_of(model: GradientBoostingRegressor) -> Stages:
    """The stages of a fitted model (squared loss, learning rate 0.1, constant start)."""
    base = float(np.ravel(model.init_.constant_)[0])
    return Stages(base, [tree.tree_ for tree in model.estimators_[:, 0]], model.n_features_in_)


ROWS = 200


def _made_up(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(ROWS, 4)), 0.05 * rng.standard_normal(ROWS), np.arange(ROWS)


def test_a_step_in_the_residuals_is_learnt() -> None:
    """Most of a step is found, and what remained of runs left out is little more than their noise."""
    features, noise, settings = _made_up()
    left = np.where(features[:, 1] > 0, 0.3, -0.3) + noise
    boosted = boost(features, left, settings, seed=0)
    assert boosted.stages > 0 and np.std(left - boosted.unseen) < 0.1
    assert np.std(left - boosted.trees.predict(features)) < 0.07


@pytest.mark.long
def test_noise_is_not_learnt() -> None:
    """Over ten draws of nothing but noise, boosting adds at most a little, and mostly nothing."""
    stages = [boost(*_made_up(seed), seed=0).stages for seed in range(10)]
    assert np.median(stages) <= 1 and max(stages) < 20


def test_memorised_settings_are_not_rewarded() -> None:
    """Forty settings, each with a deviation of its own, do not predict one another."""
    features, noise, _ = _made_up()
    settings = np.repeat(np.arange(40), ROWS // 40)
    left = np.random.default_rng(1).normal(size=40)[settings] + noise
    assert boost(features[settings], left, settings, seed=0).stages <= 5
    assert boost(features[settings], left, np.arange(ROWS), seed=0).stages > 50


def test_too_few_runs_have_no_trees() -> None:
    """Nine runs: nothing is learnt."""
    features, noise, settings = (part[:9] for part in _made_up())
    boosted = boost(features, noise, settings, seed=0)
    assert boosted.stages == 0
    np.testing.assert_array_equal(boosted.unseen, 0.0)


def test_folds_keep_settings_together() -> None:
    """Every row is left out once, with all others of its setting."""
    settings = np.concatenate([np.repeat(np.arange(25), 4), np.full(100, 99)])
    out = [left_out for _, left_out in _folds(settings, 0)]
    assert sorted(np.concatenate(out)) == list(range(200))
    for setting in (*range(25), 99):
        assert sum((settings[rows] == setting).any() for rows in out) == 1
    assert len(out) == CROSS_VALIDATION_FOLDS


# Flattened trees predict as scikit-learn does.


def _data(rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    features = np.random.default_rng(0).normal(size=(rows, 5)) * [1, 1e6, 1e-3, 1e9, 0]
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
    np.testing.assert_array_equal(trees.predict(features), [trees.predict(row[None, :])[0] for row in features])


# Stages are those of scikit-learn's gradient boosting.


ARRAYS = ("children_left", "children_right", "feature", "threshold", "value")


def _made_up_data(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
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
        features, target = _made_up_data(rows, seed)
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
    assert fit_stages(np.zeros((4, 2)), np.array([1.0, 2.0, 3.0, 6.0]), 0, seed=0) == Stages(3.0, [], 2)
