"""One NF's profile as a function."""

from __future__ import annotations

import numpy as np
import pytest

from predictor.chains import profiled_nf
from predictor.chains.profiled_nf import DEFAULT_REGRESSOR, ProfiledNf, best_of, compare_regressors
from predictor.chains.regressor import REGRESSORS
from predictor.chains.settings import settings_of
from profiles import InputError

CPU = np.repeat(np.linspace(0.1, 1.0, 10), 6)


def saturating(*, regressor: str | None = "smooth", noise: float = 0.04) -> ProfiledNf:
    """A throughput that saturates at 60 from a CPU share of 0.6, six repeats, one outlier."""
    measured = 100 * np.minimum(CPU, 0.6) * np.exp(np.random.default_rng(2).normal(0, noise, len(CPU)))
    measured[20] *= 7
    return ProfiledNf.fit("nx", ("cpu",), CPU[:, None], measured, regressor=regressor)


def test_at_a_measured_point_it_is_near_the_median_of_the_repeats() -> None:
    profile = saturating()
    assert profile.predict(np.array([[0.2], [0.4], [0.9]])) == pytest.approx([20, 40, 60], rel=0.04)


def test_the_regressor_with_the_smallest_error_is_chosen() -> None:
    """All are compared, and the polynomial of degree 1 is not it."""
    profile = saturating(regressor=None)
    assert profile.regressor in {"smooth", "monotone", "interpolation", "gaussian-process", "multi-lasso"}
    assert "lasso-1" in {one.regressor for one in profile.compared}


def test_a_given_regressor_is_used() -> None:
    assert saturating(regressor="lasso-2").regressor == "lasso-2"


def test_errors_are_smaller_where_it_was_measured_and_larger_outside() -> None:
    at, between, beyond = saturating().error(np.array([[0.5], [0.55], [1.4]]))
    assert at <= between < beyond
    assert saturating().extrapolated(np.array([[0.5], [1.4], [0.05]])).tolist() == [False, True, True]


def test_errors_are_what_they_say() -> None:
    """The profile is off by about as much as it says, between its points."""
    profile = saturating()
    asked = np.linspace(0.1, 1, 91)[:, None]
    off = np.log(profile.predict(asked) / (100 * np.minimum(asked[:, 0], 0.6)))
    assert np.sqrt((off**2).mean()) < 2 * profile.error(asked).mean()


def test_few_settings_are_not_compared() -> None:
    profile = ProfiledNf.fit("nx", ("cpu",), np.array([[0.5], [1.0]]), np.array([50.0, 100.0]))
    assert profile.regressor == DEFAULT_REGRESSOR and profile.compared == ()
    assert profile.predict(np.array([[1.0]]))[0] == pytest.approx(100, rel=0.05)


def test_values_that_are_categories_keep_their_own_level() -> None:
    """Modes 0, 1 and 2 reach 100, 20 and 60."""
    mode = np.repeat(np.array([0.0, 1, 2]), 12)
    cpu = np.tile(np.repeat(np.array([0.25, 0.5, 0.75, 1.0]), 3), 3)
    level = np.array([100.0, 20, 60])[mode.astype(int)]
    measured = level * cpu * np.exp(np.random.default_rng(0).normal(0, 0.02, len(cpu)))
    profile = ProfiledNf.fit("nx", ("cpu", "mode"), np.column_stack([cpu, mode]), measured, regressor="smooth")
    assert profile.predict(np.array([[1.0, 0], [1.0, 1], [1.0, 2]])) == pytest.approx([100, 20, 60], rel=0.06)


# The choice of a regressor.


KINK = settings_of(("cpu",), np.linspace(0.1, 1, 10)[:, None], np.minimum(np.linspace(10, 100, 10), 55.0))


def test_every_regressor_is_compared_in_the_order_of_the_registry() -> None:
    assert [one.regressor for one in compare_regressors(KINK)] == list(REGRESSORS)


def test_the_best_is_within_two_percent_of_the_smallest_error() -> None:
    errors = compare_regressors(KINK, ["lasso-1", "interpolation", "smooth"])
    assert best_of(errors).size <= 1.02 * min(one.size for one in errors)
    assert best_of(errors).regressor != "lasso-1"


def test_a_race_ends_early_for_those_far_behind() -> None:
    """A straight line is tried on one of five folds."""
    raced = {one.regressor: one for one in compare_regressors(KINK, ["lasso-1", "smooth"], race=True)}
    assert raced["smooth"].complete and not raced["lasso-1"].complete
    assert np.isfinite(raced["lasso-1"].errors).sum() == 2


def test_errors_are_of_settings_that_were_left_out() -> None:
    """Noise without any trend cannot be learnt: its error stays."""
    draw = np.random.default_rng(0)
    noise = settings_of(("cpu",), np.linspace(0, 1, 30)[:, None], np.exp(draw.normal(0, 0.1, 30)))
    (error,) = compare_regressors(noise, ["interpolation"])
    assert error.mape_pct > 6


def test_a_comparison_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many settings some are drawn."""
    monkeypatch.setattr(profiled_nf, "LEARNT_FROM", 6)
    (error,) = compare_regressors(KINK, ["interpolation"])
    assert np.isfinite(error.errors).sum() == 6 and error.complete


def test_an_unknown_regressor_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="'lasso' is not a regressor"):
        compare_regressors(KINK, ["lasso"])
