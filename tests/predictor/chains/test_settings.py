"""Measurements by setting: repeats, noise, outliers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictor.chains.settings import ASSUMED_SPREAD, InputScale, Settings, settings_of, without_strange


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


@pytest.mark.parametrize("repeats", [2, 3, 5, 10])
@pytest.mark.parametrize("noise", [0.005, 0.04])
def test_noise_is_unbiased_and_good_repeats_count(repeats: int, noise: float) -> None:
    """In the mean of 60 draws of ten settings."""
    made = [repeated([*range(1, 11)], repeats, noise=noise, seed=seed) for seed in range(60)]
    found = [settings_of(("cpu",), *one) for one in made]
    assert np.mean([settings.spread for settings in found]) == pytest.approx(noise, rel=0.1)
    assert sum(settings.left_out for settings in found) <= 0.005 * 600 * repeats


def test_outliers_among_three_repeats_are_left_out_and_do_not_count_as_noise() -> None:
    at, measured = repeated([*range(1, 31)], 3, noise=0.04)
    measured[[4, 22, 61]] *= [7.0, 1 / 7, 1.6]
    settings = settings_of(("cpu",), at, measured)
    assert settings.left_out == 3 and settings.spread == pytest.approx(0.04, rel=0.2)


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
    assert settings.value[4] == pytest.approx(50, rel=0.06) and settings.left_out == 1


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
    assert len(without_strange(settings_of(("cpu",), cpu[:, None], 5 / cpu))) == 12


def test_without_repeats_the_noise_is_assumed() -> None:
    assert settings_of(("cpu",), np.arange(4.0)[:, None], np.array([1.0, 2, 3, 4])).spread == ASSUMED_SPREAD


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


# Inputs as shares of their measured range.


def test_the_measured_range_becomes_zero_to_one() -> None:
    """A narrow range linearly, a wide one by logarithms, one from zero by logarithms after the smallest value."""
    inputs = np.array([[10.0, 64, 0], [15, 320, 10], [20, 1600, 1000]])
    scaled = InputScale.of(inputs)(inputs)
    assert scaled[:, 0].tolist() == [0, 0.5, 1] and scaled[:, 1] == pytest.approx([0, 0.5, 1])
    assert scaled[[0, 2], 2] == pytest.approx([0, 1]) and 0.1 < scaled[1, 2] < 0.2


def test_an_input_that_never_varied_is_zero_everywhere() -> None:
    scale = InputScale.of(np.array([[5.0], [5.0]]))
    assert scale(np.array([[5.0], [70.0]])).tolist() == [[0], [0]]
    assert scale.outside(np.array([[5.0], [70.0]])).tolist() == [False, True]


def test_outside_is_beyond_the_smallest_and_the_largest() -> None:
    scale = InputScale.of(np.array([[0.1], [0.3]]))
    assert scale.outside(np.array([[0.1], [0.2], [0.1 + 0.2], [0.31], [0.0]])).tolist() == [
        False, False, False, True, True,
    ]  # fmt: skip


def test_zero_and_negative_values_outside_a_wide_range_stay_finite() -> None:
    assert np.isfinite(InputScale.of(np.array([[1.0], [1000.0]]))(np.array([[0.0], [-5.0], [1e9]]))).all()
