"""The smooth process: what it follows, and how sure it is."""

from __future__ import annotations

import numpy as np
import pytest

from predictor.chains import process
from predictor.chains.process import Assumptions, SmoothProcess, Typical

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
        known = np.sqrt(deviation[0] ** 2 + learnt.variance[at])
        assert deviations[at] == pytest.approx(known, rel=1e-4)


def test_beyond_its_points_it_continues_the_trend_and_is_less_sure() -> None:
    learnt, _ = fitted(60, 0.01)
    inside, outside = learnt(np.array([[0.5, 0.5], [1.6, 0.5]]))[1]
    assert outside > 3 * inside
    assert learnt(np.array([[1.3, 0.5]]))[0][0] > wave(np.array([[1.0, 0.5]]))[0]


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
