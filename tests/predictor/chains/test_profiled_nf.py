"""NFs measured alone: regressors, processes, and which of them follows the measurements."""

import numpy as np
import pytest

from predictor.chains import process, profiled_nf
from predictor.chains.process import Assumptions, SmoothProcess, Typical
from predictor.chains.profiled_nf import COMPARED_REGRESSORS, DEFAULT_REGRESSOR, ProfiledNf, best_of, compare_regressors
from predictor.chains.regressor import REGRESSORS
from predictor.chains.regressors.monotone import Monotone
from predictor.chains.settings import Settings, settings_of
from profiles import InputError

CPU = np.repeat(np.linspace(0.1, 1.0, 10), 6)


def saturating(*, regressor: str | None = "smooth", noise: float = 0.04) -> ProfiledNf:
    """A throughput that saturates at 60 from a CPU share of 0.6, six repeats, one outlier."""
    measured = 100 * np.minimum(CPU, 0.6) * np.exp(np.random.default_rng(2).normal(0, noise, len(CPU)))
    measured[20] *= 7
    return ProfiledNf.fit("nx", ("cpu",), CPU[:, None], measured, regressor=regressor)


def test_at_a_measured_point_it_is_near_the_median_of_the_repeats() -> None:
    assert saturating().predict(np.array([[0.2], [0.4], [0.9]])) == pytest.approx([20, 40, 60], rel=0.04)


def test_the_regressor_with_the_smallest_error_is_chosen() -> None:
    """Of the three that are compared for every profile."""
    profile = saturating(regressor=None)
    assert [one.regressor for one in profile.compared] == list(COMPARED_REGRESSORS)
    assert profile.regressor == best_of(profile.compared).regressor


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
    assert np.isfinite(fitted.predict(np.array([[5.0, 64], [0.01, 1500], [0.5, 9000]]))).all()


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
        assert (np.diff(fitted.predict(np.column_stack([np.linspace(0.1, 1, 60), np.full(60, size)]))) >= -1e-9).all()


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


ASSUMED = Assumptions(Typical(10, 0), Typical(2, 0), Typical(0.5, 1), Typical(0.7, 1), Typical(0.01, 1))


def wave(points: np.ndarray) -> np.ndarray:
    """A trend and a wave of the first input; the second has no effect."""
    return np.asarray(2 * points[:, 0] + 0.3 * np.sin(5 * points[:, 0]))


def fitted(count: int, noise: float, seed: int = 0) -> tuple[SmoothProcess, np.ndarray]:
    """A process that knows the wave at random points, and the points."""
    draw = np.random.default_rng(seed)
    points = draw.uniform(0, 1, (count, 2))
    outputs = wave(points) + draw.normal(0, noise, count)
    return SmoothProcess.fit(points, outputs, np.full(count, noise**2), ASSUMED), points


def test_between_its_points_it_follows_the_function() -> None:
    learnt, _ = fitted(60, 0.01)
    asked = np.random.default_rng(1).uniform(0.05, 0.95, (200, 2))
    assert np.abs(learnt(asked)[0] - wave(asked)).mean() < 0.01


def test_its_error_is_what_it_says() -> None:
    """About 95 % of errors are within two standard deviations."""
    learnt, _ = fitted(60, 0.05)
    asked = np.random.default_rng(1).uniform(0, 1, (500, 2))
    value, deviation = learnt(asked)
    assert (np.abs(value - wave(asked)) < 2 * deviation).mean() > 0.85


def test_left_out_is_what_the_others_predict() -> None:
    """The formula agrees with leaving out one point after the other."""
    learnt, points = fitted(12, 0.05)
    errors, deviations = learnt.left_out()
    for at in range(3):
        others = np.delete(np.arange(12), at)
        value, deviation = learnt.with_measurements(points[others], learnt.outputs[others], learnt.variance[others])(
            points[at : at + 1]
        )
        assert errors[at] == pytest.approx(learnt.outputs[at] - value[0], rel=1e-5, abs=1e-8)
        assert deviations[at] == pytest.approx(np.sqrt(deviation[0] ** 2 + learnt.variance[at]), rel=1e-4)


def test_beyond_its_points_it_continues_the_trend_and_is_less_sure() -> None:
    learnt, _ = fitted(60, 0.01)
    inside, outside = learnt(np.array([[0.5, 0.5], [1.6, 0.5]]))[1]
    assert outside > 3 * inside and learnt(np.array([[1.3, 0.5]]))[0][0] > wave(np.array([[1.0, 0.5]]))[0]


def test_many_points_are_predicted_by_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same result, nearly."""
    learnt, _ = fitted(200, 0.01)
    asked = np.random.default_rng(1).uniform(0.05, 0.95, (20, 2))
    whole, errors = learnt(asked), np.abs(learnt.left_out()[0])
    monkeypatch.setattr(process, "SOLVED_AT_ONCE", 100)
    assert learnt(asked)[0] == pytest.approx(whole[0], abs=0.01)
    assert np.abs(learnt.left_out()[0]).mean() == pytest.approx(errors.mean(), rel=0.3)


def test_without_inputs_it_is_a_mean() -> None:
    learnt = SmoothProcess.fit(np.empty((5, 0)), np.array([1.0, 1.1, 0.9, 1.0, 1.0]), np.full(5, 0.01), ASSUMED)
    assert learnt(np.empty((1, 0)))[0][0] == pytest.approx(1.0, abs=0.02)


def test_what_a_point_has_of_its_own_is_predicted_there_and_only_there() -> None:
    """One of twenty points is 20 % higher each time that it is measured."""
    points = np.linspace(0, 1, 20)[:, None]
    outputs = 2 * points[:, 0] + np.random.default_rng(0).normal(0, 0.05, 20)
    outputs[8] += 0.2
    learnt = SmoothProcess.fit(points, outputs, np.full(20, 0.002**2), ASSUMED)
    assert learnt(points[8:9])[0][0] == pytest.approx(outputs[8], abs=0.03)
    assert learnt(points[8:9] + 0.01)[0][0] < outputs[8] - 0.1
    assert learnt(points[8:9])[1][0] < learnt(points[8:9] + 0.01)[1][0] / 3
