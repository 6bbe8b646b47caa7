"""The noise of a run, by repeats."""

from __future__ import annotations

import numpy as np
import pytest

from predictor.training.recorded import ASSUMED_NOISE, noise_of_a_run


def test_noise_is_assumed_until_it_was_seen() -> None:
    """Without repeats, and hardly less after two runs that happen to agree."""
    once, twice = np.zeros((1, 2)), np.zeros((2, 2))
    assert noise_of_a_run([]) == noise_of_a_run([once, once]) == pytest.approx(ASSUMED_NOISE)
    assert 0.8 * ASSUMED_NOISE < noise_of_a_run([once, twice]) < ASSUMED_NOISE


@pytest.mark.parametrize("scale", [0.002, 0.03])
def test_noise_is_that_of_many_repeats(scale: float) -> None:
    """Whatever the co-locations reach on average, and however many members they have."""
    rng = np.random.default_rng(0)
    runs = [at + scale * rng.standard_normal((5, 1 + at % 3)) for at in range(200)]
    assert noise_of_a_run(runs) == pytest.approx(scale, rel=0.1)
