"""Intervals and quantiles of prediction errors, and errors of runs that were left out."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from predictor import Models, TomurPredictor
from predictor.contention.calibration import Conditions
from predictor.contention.intervals import ErrorModel, HeldOutErrors, TrafficScale
from predictor.contention.neighbours import NeighbourCorrection
from predictor.contention.nf_model import NfModel
from predictor.contention.solo import NEGLIGIBLE_MISFIT, MeasuredAlone
from predictor.training.calibrate import fit_error_models
from profiles import TrafficProfile, Workload
from tests.predictor.made_up import CRYPTO, DEFAULT, PLAIN

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
    assert factors == sorted(factors, reverse=True) and factors[2] == pytest.approx(np.exp(-0.09))
    assert 0.75 < factors[5] < factors[4] < np.exp(-0.09) and factors[-1] == pytest.approx(1 / 3)


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
    """Learnt from 80 runs of each of 10 NFs, intervals hold their share of the true errors within 3 points. With noise
    as large as the errors, the share is that or up to 5 points more; at default traffic, where errors are half as large
    as far away and smaller than the noise, up to 7 points more."""
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


NAMES = (PLAIN.name, CRYPTO.name)
PAIR = tuple(sorted(Workload(name, DEFAULT) for name in NAMES))
TRIPLE = tuple(sorted([*PAIR, Workload(PLAIN.name, DEFAULT)]))
ALONE = (Workload(PLAIN.name, DEFAULT),)
ERROR, NOISE = 0.5, 0.04


def _rows(nf: str, co_locations: list[tuple[Workload, ...]], names: tuple[str, ...]) -> np.ndarray:
    rows = []
    for co_location in co_locations:
        for at, one in enumerate(co_location):
            if one.nf == nf:
                others = Counter(other.nf for place, other in enumerate(co_location) if place != at)
                rows.append([*(float(others[name]) for name in names), *[0.0] * (3 * len(names) + 3)])
    return np.array(rows)


@pytest.fixture(scope="module")
def measured(models: Models) -> dict[str, NfModel]:
    """The made-up NFs, of which a pair and a triple were measured, in each of which all err by half a usual spread."""
    names = tuple(models.models)
    found = {}
    for name, model in models.models.items():
        inputs = _rows(name, [PAIR, TRIPLE], names)
        if not len(inputs):
            found[name] = replace(model, calibration=None, neighbours=None)
            continue
        many = np.full(len(inputs), ERROR)
        lengths = np.full(inputs.shape[1], 2.0)
        neighbours = NeighbourCorrection(names, lengths, 0.7, 0.2, inputs, many, np.full(len(inputs), NOISE))
        errors = ErrorModel.even(model.error_model.scale, np.linspace(-0.05, 0.05, 41))
        found[name] = replace(model, calibration=None, neighbours=neighbours, error_model=errors)
    return found


def test_a_co_location_is_predicted_as_if_it_had_not_been_measured(measured: dict[str, NfModel]) -> None:
    """The prediction for the pair equals that of models which only know the triple; what was measured comes back."""
    left_out = TomurPredictor(measured).left_out(DEFAULT)
    assert set(left_out) == {PAIR, TRIPLE}
    fewer = {}
    for name, model in measured.items():
        inputs = _rows(name, [TRIPLE], tuple(measured))
        if model.neighbours and len(inputs):
            of_triple = replace(model.neighbours, inputs=inputs, errors=np.full(len(inputs), ERROR),
                                noise=np.full(len(inputs), NOISE))  # fmt: skip
            model = replace(model, neighbours=of_triple)
        fewer[name] = model
    (expected,) = TomurPredictor(fewer).throughput([PAIR])
    assert left_out[PAIR].predicted == pytest.approx(expected)
    plain = {name: replace(model, neighbours=None) for name, model in measured.items()}
    (uncorrected,) = TomurPredictor(plain).throughput([PAIR])
    assert np.log(left_out[PAIR].measured / uncorrected) == pytest.approx(
        [ERROR * measured[one.nf].error_model.usual for one in PAIR], rel=1e-6
    )


def test_a_measurement_falls_short_more_often_than_throughput(measured: dict[str, NfModel]) -> None:
    """Below the prediction, noise adds to the probability; and a careful answer is a lower one."""
    pair = TomurPredictor(measured).left_out(DEFAULT)[PAIR]
    truly, measurement = pair.shortfall(0, 0.97 * pair.predicted[0])
    assert 0 < truly <= measurement < 0.5
    assert pair.throughput(0.05)[0] < pair.throughput(0.3)[0] <= pair.predicted[0]


def test_without_measured_co_locations_there_is_nothing_to_leave_out(models: Models) -> None:
    """The made-up profile has none with members by name."""
    plain = {name: replace(model, neighbours=None) for name, model in models.models.items()}
    assert not TomurPredictor(plain).left_out(DEFAULT)


USUAL, OTHER = (16_000.0, 1500.0, 600.0), (100.0, 64.0, 0.0)


def test_many_repeats_outweigh_the_model() -> None:
    """A hundred runs that are 2 % above the model, with 0.2 % of noise, are answered as measured within 0.05 %."""
    errors = 0.02 + 0.002 * np.random.default_rng(0).standard_normal(100)
    alone = MeasuredAlone.fit(np.array([USUAL] * 100), errors)
    assert alone is not None
    assert np.log(alone.factor(np.array([USUAL]))[0]) == pytest.approx(errors.mean(), abs=5e-4)
    assert alone.at(TrafficProfile(*USUAL))[1] == pytest.approx(0.0002, rel=0.3)


def test_one_noisy_run_hardly_counts() -> None:
    """A single run with ten times the noise of the misfit moves the prediction by about a hundredth of its error."""
    rng = np.random.default_rng(1)
    noise = 10 * NEGLIGIBLE_MISFIT
    errors = np.concatenate([noise * rng.standard_normal(2000), [noise]])
    alone = MeasuredAlone.fit(np.array([USUAL] * 2000 + [OTHER]), errors)
    assert alone is not None and abs(np.log(alone.factor(np.array([OTHER]))[0])) < 0.05 * noise


def test_traffic_that_was_not_measured_is_left_to_the_model() -> None:
    """The factor is exactly 1 there, and no spread is claimed."""
    alone = MeasuredAlone.fit(np.array([USUAL] * 5), np.full(5, 0.02) + np.arange(5) * 1e-4)
    assert alone is not None
    elsewhere = np.array([[16_001.0, 1500.0, 600.0]])
    assert alone.factor(elsewhere).tolist() == [1.0] and alone.at(TrafficProfile(*elsewhere[0])) == (1.0, 0.0)


def test_without_repeats_noise_is_not_known() -> None:
    """Then measurements and model cannot be weighed."""
    assert MeasuredAlone.fit(np.array([USUAL, OTHER]), np.array([0.01, 0.02])) is None


def test_it_survives_as_arrays() -> None:
    """What was saved answers as before."""
    alone = MeasuredAlone.fit(np.array([USUAL] * 5 + [OTHER]), np.array([0.02, 0.021, 0.019, 0.02, 0.022, 0.01]))
    assert alone is not None
    traffic = np.array([USUAL, OTHER])
    assert np.array_equal(MeasuredAlone.from_arrays(alone.as_arrays()).factor(traffic), alone.factor(traffic))
