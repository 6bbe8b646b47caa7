"""Corrections of predictions by measured chain runs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictor.chains.chain_model import Correction


def corrected(factor: np.ndarray, features: np.ndarray, *, doubtful: bool = True, noise: float = 0.03) -> Correction:
    """The correction by runs that differ from the prediction by these factors."""
    return Correction.fit(features, np.log(factor), np.full(len(factor), noise**2), np.full(len(factor), doubtful))


def test_a_constant_factor_is_learnt_from_few_runs() -> None:
    draw = np.random.default_rng(0)
    features = draw.uniform(0, 1, (5, 3))
    value, error = corrected(0.7 * np.exp(draw.normal(0, 0.03, 5)), features)(draw.uniform(0, 1, (20, 3)))
    assert np.exp(value) == pytest.approx(np.full(20, 0.7), rel=0.06)
    assert (error < 0.2).all()


def test_without_evidence_it_stays_near_one() -> None:
    """One run off by noise only."""
    value, _ = corrected(np.array([1.02]), np.zeros((1, 1)))(np.array([[0.5]]))
    assert np.exp(value[0]) == pytest.approx(1.02, abs=0.02)


@settings(max_examples=20)
@given(st.sampled_from([7.0, 1 / 7]), st.integers(0, 9), st.integers(0, 100))
def test_an_outlier_of_a_factor_of_seven_is_left_out(outlier: float, which: int, seed: int) -> None:
    """Of ten single runs."""
    draw = np.random.default_rng(seed)
    factor = 0.8 * np.exp(draw.normal(0, 0.05, 10))
    factor[which] *= outlier
    found = corrected(factor, draw.uniform(0, 1, (10, 2)), noise=0.05)
    assert not found.kept[which] and found.kept.sum() == 9
    assert np.exp(found(np.array([[0.5, 0.5]]))[0][0]) == pytest.approx(0.8, rel=0.15)


def test_a_run_that_was_repeated_is_never_left_out() -> None:
    """Its repeats would have shown an outlier: the chain is like that there."""
    factor = np.array([1, 1, 1, 1, 1, 1, 0.2, 1])
    assert corrected(factor, np.arange(8.0)[:, None] / 7, doubtful=False).kept.all()


def test_a_factor_that_depends_on_the_setting_is_followed() -> None:
    draw = np.random.default_rng(1)
    features = draw.uniform(0, 1, (40, 2))
    found = corrected(np.exp(-0.5 * features[:, 0] + draw.normal(0, 0.02, 40)), features)
    value, _ = found(np.array([[0.0, 0.5], [1.0, 0.5]]))
    assert value == pytest.approx([0, -0.5], abs=0.06)
