"""Fitted curves in solo models: when they are fitted, when they serve, and what is saved of them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from predictor import Models, load_models
from predictor.contention.execution import Execution
from predictor.contention.solo import SoloFit, SoloThroughput
from predictor.fitting.fitted_model import CurveBreak
from predictor.training.measurements import NfMeasurements, Runs
from predictor.training.solo_fits import OWN_RUNS, fit_solo, is_above_zero, longest_line, with_fit_of_runs
from profiles.arrays import Floats
from tests.predictor.fitting.made_up_models import made_up
from tests.predictor.made_up import PLAIN, measure

KNEE = made_up(
    (1.0, 20000.0, 200000.0), ("constant", (1000.0,)), ("inverse", (400.0, 6e6)),
    x="flows", y="throughput_kpps", breaks=[CurveBreak(20000, 19000, 21000, -300.0)],
)  # fmt: skip
"""1000 kpps up to 20,000 flows, then a cliff of 300 kpps and a slow fall."""


def truth(traffic: Floats) -> Floats:
    """The knee, times what the packet size costs."""
    return np.asarray(KNEE.predict(traffic[:, 0]) * (1 - traffic[:, 1] / 5000))


def runs(count: int, noise: float = 0.01, seed: int = 0) -> NfMeasurements:
    """An NF that was measured alone at random traffic."""
    rng = np.random.default_rng(seed)
    flows = np.exp(rng.uniform(0, np.log(200000), count))
    traffic = np.column_stack([flows, rng.uniform(64, 1500, count), rng.uniform(0, 1000, count)])
    kpps = truth(traffic) * np.exp(noise * rng.standard_normal(count))
    none = np.zeros((count, 0))
    alone = Runs(traffic, np.ones((count, 7)), none, none, kpps)
    return replace(NfMeasurements.of(measure(PLAIN), 1), solo=alone, alone=alone)


def solo_error(throughput: SoloThroughput) -> float:
    """Mean error (%) at traffic that was not measured."""
    rng = np.random.default_rng(9)
    flows = np.exp(rng.uniform(np.log(1000), np.log(200000), 200))
    traffic = np.column_stack([flows, rng.uniform(64, 1500, 200), rng.uniform(0, 1000, 200)])
    return float(100 * np.abs(throughput.kpps(traffic) / truth(traffic) - 1).mean())


def test_a_curve_with_the_true_breakpoint_serves_and_halves_the_error() -> None:
    """The solo model with the curve is closer to the noise-free truth, and both errors are kept."""
    nf = runs(60)
    solo = fit_solo(nf, Execution("pipeline"))
    assert solo is not None
    fitted = with_fit_of_runs(solo, nf, Execution("pipeline"), KNEE)
    found = fitted.fit_of_runs
    assert found is not None and found.serves
    assert found.error_pct < found.error_without_pct and fitted.throughput.curve is KNEE
    assert solo_error(fitted.throughput) < 0.5 * solo_error(solo.throughput)


def test_a_wrong_curve_is_kept_aside() -> None:
    """A curve with its cliff elsewhere does not serve: the throughput of the solo model is the same as without."""
    nf = runs(60)
    solo = fit_solo(nf, Execution("pipeline"))
    assert solo is not None
    first, last = KNEE.segments
    wrong = replace(
        KNEE,
        segments=(replace(first, end=300.0), replace(last, start=300.0, parameters=(400.0, 1e5))),
        breakpoints=(CurveBreak(300, 290, 310, -300.0),),
    )
    fitted = with_fit_of_runs(solo, nf, Execution("pipeline"), wrong)
    assert fitted.fit_of_runs is not None and not fitted.fit_of_runs.serves
    assert fitted.throughput is solo.throughput


def test_without_a_line_of_runs_no_curve_is_fitted() -> None:
    """Runs at random traffic vary all attributes at once."""
    nf = runs(30)
    solo = fit_solo(nf, Execution("pipeline"))
    assert solo is not None and with_fit_of_runs(solo, nf, Execution("pipeline"), OWN_RUNS) is solo


def test_the_longest_line_has_twelve_values_of_one_attribute() -> None:
    """Eleven are too few; twelve with the same rest of the traffic are a line, other runs are not of it."""
    line = np.column_stack([np.geomspace(1, 1000, 12), np.full(12, 64.0), np.zeros(12)])
    other = np.array([[5.0, 1500.0, 0.0]])
    assert longest_line((0, 1, 2), np.concatenate([line[1:], other])) is None
    found = longest_line((0, 1, 2), np.concatenate([line, other]))
    assert found is not None and (found.attribute, found.rows.tolist()) == (0, [True] * 12 + [False])


def test_a_curve_that_falls_below_zero_is_no_throughput() -> None:
    """400 + 6e6 / flows is above zero, 400 - flows is not."""
    assert is_above_zero(KNEE) and not is_above_zero(made_up((1.0, 1000.0), ("linear", (400.0, -1.0))))


@pytest.mark.parametrize("serves", [True, False])
def test_a_fit_of_runs_is_saved_with_the_models(models: Models, tmp_path: Path, serves: bool) -> None:
    """Loaded models have the curve and the comparison, and predict the same; the same models are the same bytes."""
    (name, nf), *_ = models.models.items()
    assert nf.solo is not None
    throughput = replace(nf.solo.throughput, curve=None)
    if serves:
        traffic = np.random.default_rng(0).uniform(1, 1000, (20, 3))
        throughput = SoloThroughput.fit(throughput.attributes, traffic, KNEE.predict(traffic[:, 0]), KNEE)
    solo = replace(nf.solo, throughput=throughput, fit_of_runs=SoloFit(KNEE, 20, 1.25, 1.5, serves))
    replace(models, models={**models.models, name: replace(nf, solo=solo)}).save(tmp_path / "models")
    loaded = load_models(tmp_path / "models").models[name].solo
    assert loaded is not None and loaded.fit_of_runs == solo.fit_of_runs
    at = np.array([[20000.0, 500.0, 300.0], [150000.0, 64.0, 0.0]])
    np.testing.assert_array_equal(loaded.kpps(at), solo.kpps(at))
