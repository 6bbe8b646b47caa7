"""Curves of four shapes whose truth is known: their families, what fits leave unexplained, and how far they reach."""

import numpy as np
import pytest

from predictor.fitting.fit import fit
from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.model_file import models_of, models_text
from predictor.fitting.points import MeasuredCurve
from profiles.arrays import Floats
from tests.predictor.fitting.known_shapes import KINDS, score_shape

SIZES = np.array([64, 128, 256, 512, 1024, 1280, 1518.0])
"""The packet sizes of RFC 2544."""


def fitted(x: Floats, y: Floats, noise: float = 0.0, seed: int = 0, errors: Floats | None = None) -> FittedModel:
    """The fit of y with relative noise."""
    noisy = y * (1.0 + noise * np.random.default_rng(seed).normal(size=len(y)))
    return fit(MeasuredCurve("x", "y", np.asarray(x, dtype=float), noisy, errors=errors))


def families(model: FittedModel) -> list[str]:
    return [segment.family for segment in model.segments]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.long
def test_shapes_are_found_and_continued_within_ten_percent_or_not_at_all(kind: str) -> None:
    found = score_shape(kind, range(8))
    assert found.right >= 6 and found.reaches >= 7 and found.refused <= 4


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_curves_of_each_shape(kind: str) -> None:
    found = score_shape(kind, range(100))
    assert found.right >= 90 and found.reaches >= 95 and found.refused <= 25


# Few different x, repeated.


@pytest.mark.parametrize("mpps", [2.0, 3.0, 5.0, 8.0, 12.0])
def test_a_plateau_and_a_line_rate_are_found_at_seven_packet_sizes(mpps: float) -> None:
    """As many repeats as RFC 2544 has frames: the noise is far less than what one formula leaves over. From 12 Mpps on,
    one size is all of the plateau."""
    x = np.repeat(SIZES, 10)
    model = fitted(x, np.minimum(mpps, 1250 / (x + 20)), 0.002)
    assert families(model)[0] == "constant" and len(model.segments) == 2
    (point,) = model.breakpoints
    assert point.low <= 1250 / mpps - 20 <= point.high
    assert model.smape_pct < 1.3 * model.noise_pct and model.notes == ()


def test_values_that_vary_from_x_to_x_more_than_repeats_are_no_segments() -> None:
    """The noise of repeats is 0.1 %, that between x 1 %."""
    x = np.linspace(1.0, 100.0, 30)
    y = (100 + x) * (1 + 0.01 * np.random.default_rng(0).normal(size=30))
    model = fitted(np.repeat(x, 5), np.repeat(y, 5), 0.001)
    assert families(model) == ["linear"]
    (note,) = model.notes
    assert "times the noise that repeats show" in note and "measure more x between" in note


@pytest.mark.parametrize("each", [2, 3, 4])
def test_a_staircase_of_eight_levels_is_found(each: int) -> None:
    """With as few points of a level as repeats of a point, or one more or less."""
    level = np.repeat(np.arange(8), each)
    x = np.geomspace(1.0, 4096.0, len(level))
    model = fitted(np.repeat(x, 3), np.repeat(100.0 + 30 * level, 3), 0.005)
    assert families(model) == ["constant"] * 8 and model.notes == ()


def test_what_is_not_explained_is_said_without_repeats() -> None:
    """Twelve levels in one line: neighbours agree far better than the line."""
    x = np.arange(120.0)
    model = fit(MeasuredCurve("x", "y", x, 10 + 5 * (x // 10) + 0.01 * np.sin(x)), breaks=[60.0])
    (note,) = model.notes
    assert "by what neighbouring points differ" in note


# How far a formula may be continued.


@pytest.mark.parametrize("seed", range(4))
def test_a_saturating_curve_saturates(seed: int) -> None:
    x = np.linspace(1.0, 100.0, 50)
    model = fitted(x, 1050 - 1000 * np.exp(-x / 25), 0.01, seed)
    assert families(model) == ["exp"]
    assert model.predict([200.0, 400.0]) == pytest.approx([1050, 1050], rel=0.1)


def test_a_curve_of_unknown_shape_is_not_continued() -> None:
    x = np.linspace(1.0, 10.0, 12)
    model = fitted(x, 100 + 40 * np.sin(x / 1.7), 0.002)
    end = model.reach[1]
    assert end is not None and end < 20
    assert np.isnan(model.predict([40.0])).all() and np.isfinite(model.predict(x)).all()


def test_reach_notes_and_origin_are_written_and_read() -> None:
    x = 1.7e9 + np.repeat(np.arange(1.0, 8.0), 3)
    model = fitted(x, np.sin(x - 1.7e9) + 3, 0.001)
    assert model.notes and model.reach != (None, None)
    (again,) = models_of(models_text([model]), "m.json")
    assert again == model


# Far from 0, weights, and choices.


@pytest.mark.parametrize("shift", [1.6e9, 1.7e9])
def test_unix_times_give_the_model_of_times_since_the_first(shift: float) -> None:
    x = np.arange(0.0, 3600.0, 60.0)
    y = np.where(x < 1800, 200 - 100 * np.exp(-x / 400), 260.0) * (1 + 0.01 * np.random.default_rng(2).normal(size=60))
    near, far = (fit(MeasuredCurve("t", "y", x + moved, y)) for moved in (0.0, shift))
    assert families(far) == families(near)
    assert [point.at - shift for point in far.breakpoints] == pytest.approx([point.at for point in near.breakpoints])
    assert far.predict(x + shift) == pytest.approx(near.predict(x), rel=1e-6)
    assert far.segments[0].formula("t").count(f"(t - {shift:.0f})") == 1


def test_points_of_large_errors_hardly_count() -> None:
    x = np.linspace(1.0, 100.0, 60)
    errors = np.where((x > 30) & (x < 50), 1000.0, 0.5)
    y = 50 + 2 * x + errors / 10 * np.random.default_rng(0).normal(size=60)
    model = fit(MeasuredCurve("x", "y", x, y, errors=errors))
    assert families(model) == ["linear"] and model.segments[0].parameters == pytest.approx((50, 2), rel=0.01)


def test_given_breakpoints_are_kept() -> None:
    x = np.geomspace(1.0, 1000.0, 40)
    y = np.where(x < 30, 10.0, 10 + np.log(x))
    model = fit(MeasuredCurve("x", "y", x, y), breaks=[100.0, 30.0])
    assert [(point.at, point.low, point.high) for point in model.breakpoints] == [(30, 30, 30), (100, 100, 100)]
    assert families(model) == ["constant", "log", "log"]


def test_steps_are_levels() -> None:
    x = np.linspace(1.0, 100.0, 60)
    curve = MeasuredCurve("x", "y", x, np.where(x < 50, 10 + 0.01 * x, 20.0))
    model = fit(curve, shape="steps")
    assert set(families(model)) == {"constant"} and 50 in [round(point.at) for point in model.breakpoints]


@pytest.mark.long
def test_a_continuous_curve_has_no_jumps() -> None:
    x = np.linspace(1.0, 100.0, 60)
    noise = 1 + 0.01 * np.random.default_rng(0).normal(size=60)
    jump = MeasuredCurve("x", "y", x, np.where(x < 50, 10.0, 14.0) * noise)
    assert [point.jump for point in fit(jump, shape="continuous").breakpoints if point.jump] == []
    bend = MeasuredCurve("x", "y", x, np.minimum(x, 40.0) * noise)
    assert families(fit(bend, shape="continuous")) == ["linear", "constant"]


@pytest.mark.parametrize(
    "chosen", [{"shape": "wavy"}, {"shape": "steps", "select": "tum"}, {"shape": "continuous", "breaks": [5.0]}]
)
def test_choices_that_exclude_each_other_are_refused(chosen: dict[str, object]) -> None:
    x = np.arange(10.0)
    with pytest.raises(ValueError, match=r"no such shape|only one is possible"):
        fit(MeasuredCurve("x", "y", x, x), **chosen)  # type: ignore[arg-type]
