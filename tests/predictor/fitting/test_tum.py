"""The choice of segments by Scholz et al.: margins, small parameters, splits that are all tried or only some."""

import numpy as np
import pytest

from predictor.fitting.family import FAMILIES
from predictor.fitting.fit import fit
from predictor.fitting.fitted_model import smape_pct
from predictor.fitting.points import FitPoints, MeasuredCurve
from predictor.fitting.residuals import fit_alone, residual_tables
from predictor.fitting.splits import best_splits
from predictor.fitting.structure import Structured
from predictor.fitting.tum import at_least, choose_families, run_errors, split_candidates, tum_structure
from tests.effort import examples
from tests.predictor.fitting.random_curves import FAMILIES as TRUE_FAMILIES
from tests.predictor.fitting.random_curves import random_curve

POLYNOMIALS = ("constant", "linear", "quadratic")
LINEAR_PCT, QUADRATIC_PCT = 1.418, 1.196  # errors of the paper's example


def points_of(x: np.ndarray, y: np.ndarray) -> FitPoints:
    return FitPoints.of(MeasuredCurve("x", "y", x, y))


def structure_of(points: FitPoints, *families: str, kappa: float | None = None) -> Structured:
    tables = residual_tables(points, families or tuple(FAMILIES))
    return tum_structure(points, tables, best_splits(points, tables).prior, kappa=kappa)


def levels(*values: float, each: int = 15) -> np.ndarray:
    return np.repeat(np.array(values), each)


def nearly_linear() -> tuple[np.ndarray, np.ndarray]:
    """Points of the paper's line with a little curvature and noise."""
    x = np.arange(1.0, 21.0)
    return x, 659.44034 + 14.77241 * x + 18.0 * np.where(np.arange(20) % 2, 1.0, -1.0) - 0.15 * (x - 10.5) ** 2


def test_the_papers_example() -> None:
    """A line of 1.418 % is chosen, not a quadratic of 1.196 %; the margin decides that."""
    errors, sizes = np.array([LINEAR_PCT, QUADRATIC_PCT]), np.array([2, 3])
    assert choose_families(errors, sizes, 0.25)[1] == 0 and choose_families(errors, sizes, 0.2)[1] == 1


def test_a_line_is_chosen_where_the_quadratic_is_hardly_better() -> None:
    points = points_of(*nearly_linear())
    errors = run_errors(points, POLYNOMIALS, 0.0)
    line, quadratic = (float(errors[name][0, -1]) for name in ("linear", "quadratic"))
    assert quadratic < line < quadratic + 0.25
    assert structure_of(points, *POLYNOMIALS).split.families == ("linear",)


def test_without_a_margin_the_smaller_error_is_chosen() -> None:
    """The nine points of this curve are too few for two segments of a quadratic."""
    x, y = nearly_linear()
    errors = {name: table[0, -1] for name, table in run_errors(points_of(x[:9], y[:9]), POLYNOMIALS, 0.0).items()}
    assert min(errors, key=lambda name: errors[name]) == "quadratic"
    names, sizes = list(errors), np.array([1, 2, 3])
    assert names[int(choose_families(np.array(list(errors.values())), sizes, 0.0)[1])] == "quadratic"


def test_of_equally_simple_families_the_smaller_error_counts() -> None:
    error, best = choose_families(np.array([1.0, 1.2, 1.1]), np.array([3, 2, 2]), 0.3)
    assert (float(error), int(best)) == (1.1, 2)


def test_small_parameters_have_the_size_of_gamma() -> None:
    """y is up to 200, x ranges over 50: a slope is at least 0.01 * 200 / 50, a start at least 0.01 * 200."""
    numbers = np.array([[-1.5, 0.03], [5.0, -0.03], [0.0, 0.05], [1e-15, -0.5]])
    enlarged = at_least(numbers, np.broadcast_to([1.0, 50.0], numbers.shape), np.full(4, 200.0), 0.01)
    assert enlarged == pytest.approx(np.array([[-2.0, 0.04], [5.0, -0.04], [0.0, 0.05], [1e-15, -0.5]]), rel=1e-12)


def test_gamma_holds_in_any_unit() -> None:
    """x in thousandths and y in millions: the same errors."""
    x, y = nearly_linear()
    one = run_errors(points_of(x, y), FAMILIES, 0.1)
    other = run_errors(points_of(x * 1e3, y * 1e-6), FAMILIES, 0.1)
    plain = run_errors(points_of(x, y), FAMILIES, 0.0)
    for name in set(FAMILIES) - {"log", "inverse-log"}:  # their first parameter is the value at x = 1
        assert np.allclose(one[name], other[name], rtol=1e-5)
    assert one["quadratic"][0, -1] > plain["quadratic"][0, -1] + 0.1


@pytest.mark.parametrize("seed", [27, 34])
def test_errors_of_runs_are_those_of_single_fits(seed: int) -> None:
    """Of every family; rates are on a coarser grid, so that they need not be the same."""
    curve = random_curve(seed)
    points = points_of(curve.x, curve.y)
    tables = residual_tables(points, FAMILIES)
    errors = run_errors(points, tables, 0.0)
    rng = np.random.default_rng(seed)
    for _ in range(10):
        first, last = np.sort(rng.choice(len(points), 2, replace=False))
        for name in (one for one in tables if not FAMILIES[one].has_rate and last - first > FAMILIES[one].size):
            alone = fit_alone(points, name, first, last + 1)
            expected = smape_pct(alone(points.x[first : last + 1]), points.y[first : last + 1])
            if np.isfinite(tables[name][first, last]) and last - first >= 4:
                assert errors[name][first, last] == pytest.approx(expected, abs=1e-6)


def test_repeats_weigh() -> None:
    """Nine runs of ten at one level: the error of a constant is that of all rows."""
    x, y = np.r_[np.full(9, 1.0), 2.0, 3.0, 4.0], np.r_[np.full(9, 10.0), 12.0, 12.0, 12.0]
    error = run_errors(points_of(x, y), ["constant"], 0.0)["constant"][0, -1]
    fitted = np.full(12, float(fit_alone(points_of(x, y), "constant", 0, 4)(np.array([1.0]))[0]))
    assert error == pytest.approx(smape_pct(fitted, y))


def test_three_levels_are_found_exactly() -> None:
    model = fit(MeasuredCurve("x", "y", np.arange(45.0), levels(100, 140, 120)), select="tum")
    assert [point.at for point in model.breakpoints] == [14.5, 29.5]
    assert [point.jump for point in model.breakpoints] == pytest.approx([40, -20])
    assert [one.family for one in model.segments] == ["constant"] * 3
    assert [one.parameters[0] for one in model.segments] == pytest.approx([100, 140, 120])
    assert model.smape_pct == pytest.approx(0, abs=1e-9)


def test_more_levels_are_found_where_the_data_look_like_a_split() -> None:
    """Five levels, with and without noise; every jump is among the candidates."""
    y = levels(100, 140, 120, 180, 90)
    for noise in (0.0, 0.005):
        noisy = y * (1 + noise * np.random.default_rng(0).normal(size=len(y)))
        points = points_of(np.arange(75.0), noisy)
        assert {15, 30, 45, 60} <= set(split_candidates(points))
        assert structure_of(points).split.starts == (0, 15, 30, 45, 60)


def test_candidates_are_slope_reversals_and_extrema_of_the_second_derivative() -> None:
    """A roof of two lines turns at its ridge; a line that becomes steeper bends, but does not turn."""
    x = np.arange(60.0)
    for y in (100 - np.abs(x - 30), np.maximum(x, 3 * x - 60) + 10):
        assert 31 in split_candidates(points_of(x, y))
    assert split_candidates(points_of(x, np.exp(x / 30))) != list(range(60))


def test_few_points_are_one_segment() -> None:
    """Three points, and numbers that are all zero."""
    for y in ([1.0, 2.0, 3.5], [0.0, 0.0, 0.0]):
        model = fit(MeasuredCurve("x", "y", np.array([1.0, 2.0, 4.0]), np.array(y)), select="tum")
        assert len(model.segments) == 1 and model.smape_pct < 5


def test_an_unknown_choice_is_refused() -> None:
    x = np.arange(10.0)
    with pytest.raises(ValueError, match="no such selection: 'aic', one of bic, tum"):
        fit(MeasuredCurve("x", "y", x, x), select="aic")


def test_errors_of_random_curves_are_sane() -> None:
    """20 curves of fewer than 100 points, among the families they are of."""
    errors, hits, true = [], 0, 0
    for curve in [one for one in map(random_curve, range(100)) if len(one.x) < 100][: examples(20)]:
        points = points_of(curve.x, curve.y)
        fitted = structure_of(points, *TRUE_FAMILIES).fit
        found = [float(points.off_axis(joint.place)) for joint in fitted.joints]
        hits += len(curve.matched(found)) if found else 0
        true += len(curve.breakpoints)
        errors.append(smape_pct(fitted.predict(points, curve.fresh()), curve.truth(curve.fresh())))
    assert np.median(errors) < 0.3 and max(errors) < 3.0 and hits >= 0.6 * true
