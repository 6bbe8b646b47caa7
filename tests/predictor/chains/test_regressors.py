"""Every regressor: what each must do, and what the monotone one does beyond that."""

from __future__ import annotations

import numpy as np
import pytest

from predictor.chains.regressor import REGRESSORS
from predictor.chains.regressors.monotone import Monotone
from predictor.chains.settings import Settings, settings_of

PAPER = {
    "interpolation", "gaussian-process", "neural-network", "lasso-1", "lasso-2", "lasso-3", "elastic-net-3",
    "multi-lasso",
}  # fmt: skip


def grid(*, noise: float = 0.0, seed: int = 0) -> Settings:
    """A saturating throughput on a grid of CPU shares and packet sizes."""
    cpu, size = (one.ravel() for one in np.meshgrid(np.linspace(0.1, 1, 8), [64.0, 256, 1500]))
    true = 100 * cpu / (cpu + 0.5) * (size / 256) ** -0.2
    measured = true * np.exp(np.random.default_rng(seed).normal(0, noise, len(cpu)))
    return settings_of(("cpu", "size"), np.column_stack([cpu, size]), measured)


def test_the_regressors_of_the_paper_and_ours_are_registered() -> None:
    assert set(REGRESSORS) >= PAPER | {"smooth", "monotone"}


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_regressor_predicts_finite_values_near_what_it_learnt(name: str) -> None:
    """Inside the grid within the fit of its family, outside at least finite."""
    settings = grid()
    fitted = REGRESSORS[name]().fit(settings)
    error = np.abs(fitted.predict(settings.inputs) - np.log(settings.value)).mean()
    assert error < (0.3 if name.startswith(("lasso", "elastic")) else 0.06)
    outside = np.array([[5.0, 64], [0.01, 1500], [0.5, 9000]])
    assert np.isfinite(fitted.predict(outside)).all()


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_regressor_learns_from_one_setting_and_from_one_input(name: str) -> None:
    """Few users measure much: one setting is a constant."""
    one = settings_of(("cpu",), np.array([[1.0]]), np.array([50.0]))
    assert np.exp(REGRESSORS[name]().fit(one).predict(np.array([[1.0]]))[0]) == pytest.approx(50, rel=0.01)
    line = settings_of(("cpu",), np.linspace(0.2, 1, 6)[:, None], np.linspace(20, 100, 6))
    assert np.exp(REGRESSORS[name]().fit(line).predict(np.array([[0.6]]))[0]) == pytest.approx(60, rel=0.2)


@pytest.mark.parametrize("name", ["smooth", "monotone", "interpolation"])
def test_between_settings_the_function_is_met(name: str) -> None:
    fitted = REGRESSORS[name]().fit(grid())
    asked = np.array([[0.3, 256], [0.55, 256], [0.85, 64]])
    true = 100 * asked[:, 0] / (asked[:, 0] + 0.5) * (asked[:, 1] / 256) ** -0.2
    assert np.exp(fitted.predict(asked)) == pytest.approx(true, rel=0.03)


def test_monotone_rises_where_noise_falls() -> None:
    """Between any two CPU shares at one packet size, the larger reaches no less."""
    fitted = Monotone().fit(grid(noise=0.08, seed=4))
    for size in (64.0, 300.0, 1500.0):
        line = fitted.predict(np.column_stack([np.linspace(0.1, 1, 60), np.full(60, size)]))
        assert (np.diff(line) >= -1e-9).all()


def test_monotone_keeps_a_maximum_that_the_data_show() -> None:
    """Too many clients lower the throughput: that is no noise."""
    clients = np.repeat(np.array([1.0, 4, 16, 64, 256]), 5)
    true = np.repeat(np.array([10.0, 40, 90, 60, 30]), 5)
    measured = true * np.exp(np.random.default_rng(0).normal(0, 0.02, len(true)))
    fitted = Monotone().fit(settings_of(("clients",), clients[:, None], measured))
    assert np.exp(fitted.predict(np.array([[16.0], [256.0]]))) == pytest.approx([90, 30], rel=0.05)


def test_monotone_fills_what_a_grid_lacks() -> None:
    """Two points of a grid of 24 were not measured."""
    whole = grid()
    kept = np.ones(len(whole), dtype=bool)
    kept[[7, 12]] = False
    fitted = Monotone().fit(whole.at(kept))
    assert np.exp(fitted.predict(whole.inputs[~kept])) == pytest.approx(whole.value[~kept], rel=0.05)


def test_monotone_without_a_grid_is_smooth() -> None:
    """Settings at random."""
    draw = np.random.default_rng(1)
    at = np.column_stack([draw.uniform(0.1, 1, 40), draw.uniform(64, 1500, 40)])
    settings = settings_of(("cpu", "size"), at, 100 * at[:, 0])
    fitted = Monotone().fit(settings)
    assert fitted.grid_ is None
    assert np.exp(fitted.predict(np.array([[0.5, 500.0]])))[0] == pytest.approx(50, rel=0.03)
