"""GaussianProcess interpolation: between, beyond, and where measurements of one setting share a deviation."""

from __future__ import annotations

import numpy as np

from predictor.regression.gaussian_process import GaussianProcess


def test_interpolates_a_smooth_function() -> None:
    """Sixty noisy points of a sine are followed within the noise."""
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0, 6, size=(60, 1))
    smooth = GaussianProcess.fit(inputs, np.sin(inputs) + 0.01 * rng.standard_normal((60, 1)))
    between = np.linspace(0.5, 5.5, 50)[:, None]
    assert np.abs(smooth(between) - np.sin(between)).max() < 0.03


def test_keeps_the_edge_value_beyond() -> None:
    """Beyond the measured range the value is that of the edge."""
    inputs = np.linspace(0, 1, 20)[:, None]
    smooth = GaussianProcess.fit(inputs, inputs**2)
    np.testing.assert_allclose(smooth(np.array([[5.0]])), smooth(np.array([[1.0]])))


def test_anchored_fades_to_zero_beyond() -> None:
    """An anchored function is nothing far from what was measured, and not near there either."""
    inputs = np.linspace(0, 1, 20)[:, None]
    smooth = GaussianProcess.fit(inputs, np.ones((20, 1)), anchored=True)
    assert abs(smooth(np.array([[1000.0]]))[0, 0]) < 1e-3
    assert smooth(np.array([[0.5]]))[0, 0] > 0.9
    assert smooth.nearness(np.array([[0.5], [1000.0]]))[1] < 0.01


def test_one_setting_measured_often_does_not_outvote_the_trend() -> None:
    """Fifty runs of one setting that deviates pull the trend there less than fifty runs of many settings would."""
    rng = np.random.default_rng(0)
    line = np.linspace(0, 1, 40)
    inputs = np.concatenate([line, np.full(50, 0.5)])[:, None]
    outputs = np.concatenate([line + 0.02 * rng.standard_normal(40), 0.7 + 0.002 * rng.standard_normal(50)])[:, None]
    settings = np.concatenate([np.arange(40), np.full(50, 99)])
    middle = np.array([[0.5]])
    grouped, ungrouped = GaussianProcess.fit(inputs, outputs, settings), GaussianProcess.fit(inputs, outputs)
    assert abs(grouped(middle)[0, 0] - 0.5) < 0.5 * abs(ungrouped(middle)[0, 0] - 0.5)


def test_left_out_is_what_a_fit_without_the_setting_would_miss() -> None:
    """The closed form equals leaving each setting out and solving again with the same lengths, to the digits kept."""
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0, 6, size=(30, 1))
    outputs = np.sin(inputs) + 0.1 * rng.standard_normal((30, 1))
    settings = np.arange(30) // 3
    smooth = GaussianProcess.fit(inputs, outputs, settings, anchored=True)
    rows = settings == 4
    near = (inputs - smooth.low) * smooth.scale
    squared = (near - near.T) ** 2
    distance = np.sqrt(5 * squared)
    covariance = (1 + distance + distance**2 / 3) * np.exp(-distance)
    noisy = covariance + smooth.noise[0] * np.eye(30) + smooth.noise[1] * (settings[:, None] == settings)
    expected = covariance[rows][:, ~rows] @ np.linalg.solve(noisy[~rows][:, ~rows], outputs[~rows])
    np.testing.assert_allclose(smooth.left_out(outputs, settings)[rows], outputs[rows] - expected, atol=1e-7)


def test_constants_need_no_points() -> None:
    """What does not change is its mean, and a constant among changing outputs does no harm."""
    inputs = np.linspace(0, 1, 10)[:, None]
    assert not len(GaussianProcess.fit(inputs, np.full((10, 1), 3.0)).points)
    both = GaussianProcess.fit(inputs, np.column_stack([inputs, np.full(10, 3.0)]))
    np.testing.assert_allclose(both(inputs)[:, 1], 3.0)
