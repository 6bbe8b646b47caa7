"""Intervals and quantiles of prediction errors."""

from __future__ import annotations

import numpy as np
import pytest

from predictor.contention.calibration import Conditions
from predictor.contention.intervals import ErrorModel, HeldOutErrors, TrafficScale
from predictor.training.calibrate import fit_error_models

SCALE = TrafficScale.of(
    np.array([16000.0, 1500.0, 600.0]), {"flows": (1, 5e5), "packet_size": (64, 1500), "mtbr": (0, 1100)}
)


def _conditions(traffic: tuple[float, float, float], kept: float, count: int = 1) -> Conditions:
    return Conditions(np.array([traffic] * count), np.full(count, kept), np.zeros((count, 0)))


def _drawn(
    rng: np.random.Generator, count: int, truth: ErrorModel, noise: float
) -> tuple[Conditions, np.ndarray, np.ndarray]:
    """Random co-locations: conditions of predictions, their true errors, and errors as measured with noise."""
    at_default = rng.random(count)[:, None] < 1 / 3
    traffic = np.where(at_default, (16000.0, 1500.0, 600.0), rng.uniform((1, 64, 0), (5e5, 1500, 1100), (count, 3)))
    conditions = Conditions(traffic, 1 - rng.uniform(0, 0.3, count), np.zeros((count, 0)))
    error = truth.at(conditions) * rng.standard_t(8, count)
    return conditions, error, error + noise * rng.standard_normal(count)


def test_quantiles_by_hand() -> None:
    """Of 19 errors -0.9 to 0.9, 95 % lie within the largest and 5 % below the smallest; 18 are too few."""
    errors = np.arange(-9, 10) / 10
    anywhere = _conditions((1.0, 64.0, 0.0), 0.5)
    spread, fewer = ErrorModel.even(SCALE, errors), ErrorModel.even(SCALE, errors[:18])
    assert np.concatenate(spread.interval(spread.at(anywhere), 0.95) or ()) == pytest.approx(np.exp([-0.9, 0.9]))
    assert fewer.interval(fewer.at(anywhere), 0.95) is None
    assert spread.lower(spread.at(anywhere), 0.05) == pytest.approx(np.exp(-0.9))
    assert fewer.lower(fewer.at(anywhere), 0.06) == pytest.approx(np.exp(-0.9))
    unknown = ErrorModel.even(SCALE, np.zeros(0))
    assert unknown.interval(unknown.at(anywhere), 0.5) is None


def test_risks_below_the_measured_errors_are_extrapolated() -> None:
    """18 errors support risks from 1/19. Below, factors fall further, but never below a third."""
    conditions = _conditions((1.0, 64.0, 0.0), 0.5)
    model = ErrorModel.even(SCALE, np.arange(-9, 9) / 100)
    assert model.least_risk == pytest.approx(1 / 19)
    risks = (0.2, 0.1, 0.053, 0.03, 0.01, 0.001, 1e-6, 1e-12)
    factors = [float(model.lower(model.at(conditions), risk)[0]) for risk in risks]
    assert factors == sorted(factors, reverse=True)
    assert factors[2] == pytest.approx(np.exp(-0.09))
    assert 0.75 < factors[5] < factors[4] < np.exp(-0.09)
    assert factors[-1] == pytest.approx(1 / 3)


def test_without_measured_errors_a_tenth_is_assumed() -> None:
    """An NF of which no error is known is predicted at a risk as well, with a spread of 10 %."""
    conditions = _conditions((1.0, 64.0, 0.0), 0.5)
    assert ErrorModel.unknown().least_risk == 1.0
    assert 0.8 < ErrorModel.unknown().lower(ErrorModel.unknown().at(conditions), 0.05)[0] < 0.95
    assert ErrorModel.unknown().lower(ErrorModel.unknown().at(conditions), 0.5) == pytest.approx(1.0)


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_coverage_on_fresh_errors(coverage: float) -> None:
    """Over many draws, intervals from 150 errors cover what they promise."""
    rng = np.random.default_rng(0)
    covered, anywhere = [], _conditions((1.0, 64.0, 0.0), 0.5)
    for _ in range(300):
        even = ErrorModel.even(SCALE, rng.standard_t(4, size=150) * 0.03)
        factors = even.interval(even.at(anywhere), coverage)
        assert factors is not None
        fresh = np.exp(rng.standard_t(4, size=100) * 0.03)
        covered.append(np.mean((factors[0] <= fresh) & (fresh <= factors[1])))
    assert np.mean(covered) == pytest.approx(coverage, abs=0.015)


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
@pytest.mark.parametrize("noise", [0.0, 0.007])
def test_noise_is_taken_off(coverage: float, noise: float) -> None:
    """Learnt from 80 runs of each of 10 NFs, intervals hold their share of the true errors within 3 points.

    With noise as large as the errors, the share is that or up to 5 points more; at default traffic, where errors are
    half as large as far away and smaller than the noise, up to 7 points more.
    """
    rng = np.random.default_rng(1)
    held: dict[str, list[float]] = {"all": [], "default": []}
    for _ in range(6):
        truths = {
            f"nf{n}": ErrorModel(
                SCALE, 0.005 * np.exp(0.4 * rng.normal()), np.array([0.7, 0.1, 0.0]), np.zeros(0), np.zeros(0)
            )
            for n in range(10)
        }
        drawn = {name: _drawn(rng, 80, truth, noise) for name, truth in truths.items()}
        errors = {
            name: HeldOutErrors(measured, SCALE.distance(conditions), np.full(80, noise**2))
            for name, (conditions, _, measured) in drawn.items()
        }
        spreads = fit_error_models(errors, dict.fromkeys(errors, SCALE))
        for name, truth in truths.items():
            conditions, error, _ = _drawn(rng, 300, truth, 0.0)
            factors = spreads[name].interval(spreads[name].at(conditions), coverage)
            assert factors is not None
            inside = (np.log(factors[0]) <= error) & (error <= np.log(factors[1]))
            held["all"].append(inside.mean())
            held["default"].append(inside[SCALE.distance(conditions)[:, 0] == 0].mean())
    assert -0.03 <= np.mean(held["all"]) - coverage <= (0.05 if noise else 0.03)
    assert -0.03 <= np.mean(held["default"]) - coverage <= (0.07 if noise else 0.03)


def test_nfs_that_err_differently_get_intervals_of_their_own() -> None:
    """Of two NFs of which one errs four times as much, its interval is more than twice as wide."""
    rng = np.random.default_rng(2)
    conditions = _conditions((16000.0, 1500.0, 600.0), 0.9, 100)
    errors = {
        name: HeldOutErrors(scale * rng.standard_normal(100), SCALE.distance(conditions), np.zeros(100))
        for name, scale in (("steady", 0.005), ("erratic", 0.02))
    }
    spreads = fit_error_models(errors, dict.fromkeys(errors, SCALE))
    low = {name: float(spread.lower(spread.at(conditions), 0.05)[0]) for name, spread in spreads.items()}
    assert 1 - low["erratic"] > 2 * (1 - low["steady"])


def test_an_error_model_survives_as_arrays() -> None:
    """What is saved is what is loaded."""
    errors = {
        "nf": HeldOutErrors(
            np.linspace(-0.02, 0.03, 40), SCALE.distance(_conditions((1.0, 64.0, 0.0), 0.7, 40)), np.full(40, 1e-5)
        )
    }
    spread = fit_error_models(errors, {"nf": SCALE})["nf"]
    again = ErrorModel.from_arrays(spread.as_arrays())
    here = _conditions((1000.0, 500.0, 100.0), 0.8)
    assert spread.interval(spread.at(here), 0.9) == again.interval(again.at(here), 0.9)
    assert spread.lower(spread.at(here), 0.1) == again.lower(again.at(here), 0.1)
