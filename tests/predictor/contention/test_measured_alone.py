"""Throughput alone where it was measured."""

from __future__ import annotations

import numpy as np
import pytest

from predictor.contention.solo import NEGLIGIBLE_MISFIT, MeasuredAlone

DEFAULT, OTHER = (16_000.0, 1500.0, 600.0), (100.0, 64.0, 0.0)


def test_many_repeats_outweigh_the_model() -> None:
    """A hundred runs that are 2 % above the model, with 0.2 % of noise, are answered as measured within 0.05 %."""
    rng = np.random.default_rng(0)
    errors = 0.02 + 0.002 * rng.standard_normal(100)
    alone = MeasuredAlone.fit(np.array([DEFAULT] * 100), errors)
    assert alone is not None
    assert np.log(alone.factor(np.array([DEFAULT]))[0]) == pytest.approx(errors.mean(), abs=5e-4)
    assert alone.spread_at(np.array([DEFAULT]))[0] == pytest.approx(0.0002, rel=0.3)


def test_one_noisy_run_hardly_counts() -> None:
    """A single run with ten times the noise of the misfit moves the prediction by about a hundredth of its error."""
    rng = np.random.default_rng(1)
    noise = 10 * NEGLIGIBLE_MISFIT
    errors = np.concatenate([noise * rng.standard_normal(2000), [noise]])
    alone = MeasuredAlone.fit(np.array([DEFAULT] * 2000 + [OTHER]), errors)
    assert alone is not None
    assert abs(np.log(alone.factor(np.array([OTHER]))[0])) < 0.05 * noise


def test_traffic_that_was_not_measured_is_left_to_the_model() -> None:
    """The factor is exactly 1 there, and no spread is claimed."""
    alone = MeasuredAlone.fit(np.array([DEFAULT] * 5), np.full(5, 0.02) + np.arange(5) * 1e-4)
    assert alone is not None
    elsewhere = np.array([[16_001.0, 1500.0, 600.0]])
    assert alone.factor(elsewhere).tolist() == [1.0]
    assert alone.spread_at(elsewhere).tolist() == [0.0]


def test_without_repeats_noise_is_not_known() -> None:
    """Then measurements and model cannot be weighed."""
    assert MeasuredAlone.fit(np.array([DEFAULT, OTHER]), np.array([0.01, 0.02])) is None


def test_it_survives_as_arrays() -> None:
    """What was saved answers as before."""
    alone = MeasuredAlone.fit(np.array([DEFAULT] * 5 + [OTHER]), np.array([0.02, 0.021, 0.019, 0.02, 0.022, 0.01]))
    assert alone is not None
    traffic = np.array([DEFAULT, OTHER])
    assert np.array_equal(MeasuredAlone.from_arrays(alone.as_arrays()).factor(traffic), alone.factor(traffic))
