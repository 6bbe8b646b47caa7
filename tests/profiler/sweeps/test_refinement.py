"""Further points go where a curve bends or jumps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from profiler.sweeps.refinement import Axis, further_points, relative_noise

AXIS = Axis(0.0, 100.0)
EVEN = np.linspace(0, 100, 21).tolist()


def test_a_straight_line_is_filled_evenly() -> None:
    """Where nothing bends, the widest gaps are halved."""
    runs = {x: [10 + x] for x in (0.0, 20.0, 40.0, 80.0, 100.0)}
    assert further_points(AXIS, runs, 1, 10) == [60.0]


def test_a_bend_draws_points_to_both_of_its_sides() -> None:
    """By hand: flat up to 42, then falling; only intervals beside the bend are halved."""
    runs = {x: [100.0 if x < 42 else 100 - (x - 42)] for x in EVEN}
    assert sorted(further_points(AXIS, runs, 3, 40)) == [37.5, 42.5, 47.5]


def test_a_jump_is_halved_first() -> None:
    """A step between 60 and 65."""
    runs = {x: [100.0 if x < 62 else 50.0] for x in EVEN}
    assert further_points(AXIS, runs, 1, 40) == [62.5]


def test_a_jump_is_not_halved_for_ever() -> None:
    """Once its interval is narrow, points go elsewhere."""
    runs = {x: [100.0 if x < 62 else 50.0] for x in EVEN}
    for _ in range(20):
        for x in further_points(AXIS, runs, 1, 40):
            runs[x] = [100.0 if x < 62 else 50.0]
    x = sorted(runs)
    assert min(b - a for a, b in pairwise(x)) >= 100 / 40 / 16
    assert len(runs) == 41


def test_noise_draws_no_points() -> None:
    """A flat curve with 2 % noise is filled evenly: nearly all points halve an interval of full width."""
    rng = np.random.default_rng(3)
    runs = {x: (100 + 2 * rng.normal(size=3)).tolist() for x in EVEN}
    chosen = further_points(AXIS, runs, 10, 40)
    assert len(chosen) == 10 and len(set(chosen)) == 10


def test_the_noise_is_that_of_the_repeats() -> None:
    """2 %, from three repeats; from neighbours where there are none; an outlier hardly changes it."""
    rng = np.random.default_rng(4)
    runs = {x: (100 * (1 + 0.02 * rng.normal(size=3))).tolist() for x in np.linspace(0, 1, 200).tolist()}
    assert 0.018 < relative_noise(runs) < 0.022
    assert 0.016 < relative_noise({x: found[:1] for x, found in runs.items()}) < 0.024
    runs[0.0][0] = 1000.0
    assert 0.018 < relative_noise(runs) < 0.022


def test_there_may_be_nothing_left_to_measure() -> None:
    """Every whole number is measured."""
    axis = Axis(1, 4, whole=True)
    assert further_points(axis, {1.0: [1.0], 2.0: [5.0], 3.0: [1.0], 4.0: [1.0]}, 3, 10) == []
