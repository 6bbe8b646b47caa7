"""Measurements by setting: repeats, noise, outliers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictor.chains.settings import ASSUMED_SPREAD, Settings, settings_of, without_strange


def repeated(values: list[float], repeats: int, *, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Measurements of 100 at each of some inputs."""
    at = np.repeat(np.array(values)[:, None], repeats, axis=0)
    return at, 100 * np.exp(np.random.default_rng(seed).normal(0, noise, len(at)))


def test_repeats_of_a_setting_become_one_value() -> None:
    at, measured = repeated([1, 2, 4], 20, noise=0.03)
    settings = settings_of(("cpu",), at, measured)
    assert settings.inputs[:, 0].tolist() == [1, 2, 4]
    assert settings.value == pytest.approx([100, 100, 100], rel=0.03)
    assert settings.spread == pytest.approx(0.03, rel=0.3)
    assert settings.variance == pytest.approx(settings.spread**2 / settings.count)


@given(st.sampled_from([7.0, 1 / 7.0]), st.integers(0, 4), st.integers(0, 1000))
def test_an_outlier_of_a_factor_of_seven_moves_nothing(factor: float, which: int, seed: int) -> None:
    """Of five repeats, one is off: the value stays within the noise of the other four."""
    at, measured = repeated([1, 2, 3], 5, noise=0.02, seed=seed)
    measured[5 + which] *= factor
    settings = settings_of(("cpu",), at, measured)
    assert settings.value[1] == pytest.approx(100, rel=0.06)
    assert settings.left_out >= 1 and settings.measurements == 15


def test_an_outlier_among_two_repeats_is_found_by_its_neighbours() -> None:
    """Throughput rises with the CPU share; one repeat of two at 0.5 is seven times too low."""
    cpu = np.repeat(np.linspace(0.1, 1, 10), 2)
    measured = 100 * cpu * np.exp(np.random.default_rng(3).normal(0, 0.02, len(cpu)))
    measured[9] /= 7
    settings = without_strange(settings_of(("cpu",), cpu[:, None], measured))
    assert settings.value[4] == pytest.approx(50, rel=0.06)
    assert settings.left_out == 1


def test_a_single_outlier_without_repeats_is_left_out() -> None:
    """Its neighbours predict seven times as much."""
    cpu = np.linspace(0.1, 1, 10)
    measured = 100 * cpu * np.exp(np.random.default_rng(5).normal(0, 0.02, len(cpu)))
    measured[6] *= 7
    settings = without_strange(settings_of(("cpu",), cpu[:, None], measured))
    assert cpu[6] not in settings.inputs[:, 0] and len(settings) == 9


def test_steep_but_smooth_measurements_are_all_kept() -> None:
    """A response time that falls by a factor of fifty is no outlier at its ends."""
    cpu = np.linspace(0.02, 1, 12)
    settings = without_strange(settings_of(("cpu",), cpu[:, None], 5 / cpu))
    assert len(settings) == 12


def test_without_repeats_the_noise_is_assumed() -> None:
    settings = settings_of(("cpu",), np.arange(4.0)[:, None], np.array([1.0, 2, 3, 4]))
    assert settings.spread == ASSUMED_SPREAD


def test_a_profile_without_inputs_is_one_setting() -> None:
    settings = settings_of((), np.empty((5, 0)), np.array([9.9, 10, 10.1, 10, 10]))
    assert (len(settings), settings.value[0]) == (1, pytest.approx(10, rel=0.01))


@given(st.permutations(range(12)))
def test_the_order_of_measurements_does_not_matter(order: list[int]) -> None:
    at, measured = repeated([1, 2, 3], 4, noise=0.05)
    one, other = settings_of(("cpu",), at, measured), settings_of(("cpu",), at[order], measured[order])
    assert one.value == pytest.approx(other.value) and one.spread == pytest.approx(other.spread)


def test_some_settings_keep_their_repeats() -> None:
    at, measured = repeated([1, 2, 3], 4, noise=0.05)
    settings: Settings = settings_of(("cpu",), at, measured).at(np.array([True, False, True]))
    assert len(settings) == 2 and settings.measurements == 8
