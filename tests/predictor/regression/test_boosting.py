"""Boosting that takes only the stages that help."""

from __future__ import annotations

import numpy as np

from predictor.regression.boosting import FOLDS, _folds, boost

ROWS = 200


def _made_up(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(ROWS, 4)), 0.05 * rng.standard_normal(ROWS), np.arange(ROWS)


def test_a_step_in_the_residuals_is_learnt() -> None:
    """Most of a step is found, and what remained of runs left out is little more than their noise."""
    features, noise, settings = _made_up()
    left = np.where(features[:, 1] > 0, 0.3, -0.3) + noise
    boosted = boost(features, left, settings, seed=0)
    assert boosted.stages > 0
    assert np.std(left - boosted.unseen) < 0.1
    assert np.std(left - boosted.trees.predict(features)) < 0.07


def test_noise_is_not_learnt() -> None:
    """Over ten draws of nothing but noise, boosting adds at most a little, and mostly nothing."""
    stages = [boost(*_made_up(seed), seed=0).stages for seed in range(10)]
    assert np.median(stages) <= 1
    assert max(stages) < 20


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
    assert len(out) == FOLDS
