"""The choice of a regressor."""

from __future__ import annotations

import numpy as np
import pytest

from predictor.chains import selection
from predictor.chains.regressor import REGRESSORS
from predictor.chains.selection import best_of, compared
from predictor.chains.settings import settings_of
from profiles import InputError

KINK = settings_of(("cpu",), np.linspace(0.1, 1, 10)[:, None], np.minimum(np.linspace(10, 100, 10), 55.0))


def test_every_regressor_is_compared_in_the_order_of_the_registry() -> None:
    assert [one.regressor for one in compared(KINK)] == list(REGRESSORS)


def test_the_best_is_within_two_percent_of_the_smallest_error() -> None:
    errors = compared(KINK, ["lasso-1", "interpolation", "smooth"])
    assert best_of(errors).size <= 1.02 * min(one.size for one in errors)
    assert best_of(errors).regressor != "lasso-1"


def test_a_race_ends_early_for_those_far_behind() -> None:
    """A straight line is tried on one of five folds."""
    raced = {one.regressor: one for one in compared(KINK, ["lasso-1", "smooth"], race=True)}
    assert raced["smooth"].complete and not raced["lasso-1"].complete
    assert np.isfinite(raced["lasso-1"].errors).sum() == 2


def test_errors_are_of_settings_that_were_left_out() -> None:
    """Noise without any trend cannot be learnt: its error stays."""
    draw = np.random.default_rng(0)
    noise = settings_of(("cpu",), np.linspace(0, 1, 30)[:, None], np.exp(draw.normal(0, 0.1, 30)))
    (error,) = compared(noise, ["interpolation"])
    assert error.mape_pct > 6


def test_a_comparison_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many settings some are drawn."""
    monkeypatch.setattr(selection, "LEARNT_FROM", 6)
    (error,) = compared(KINK, ["interpolation"])
    assert np.isfinite(error.errors).sum() == 6 and error.complete


def test_an_unknown_regressor_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="'lasso' is not a regressor"):
        compared(KINK, ["lasso"])
