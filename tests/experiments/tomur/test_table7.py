"""Table 7: predicted bottlenecks compared with those of the simulated card."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments import Setting, find_experiment
from experiments.tomur.table7 import _shift


@pytest.mark.parametrize(
    ("bottlenecks", "at"),
    [("mmmm", math.nan), ("mmrr", 1.5), ("mrrm", 0.5)],
    ids=["no shift", "one shift", "the first of two shifts"],
)
def test_a_shift_is_halfway_between_two_match_rates(bottlenecks: str, at: float) -> None:
    """The shift is in the middle between the last rate with one bottleneck and the first with another."""
    assert _shift(list(bottlenecks), np.arange(4.0)) == pytest.approx(at, nan_ok=True)


@pytest.mark.long
def test_tomur_identifies_the_bottleneck_and_slomo_only_memory() -> None:
    """Tomur is correct in at least 90 % for every NF; SLOMO only for the NF whose bottleneck is always memory."""
    table = find_experiment("table7").run(Setting(scale=0.1)).table.set_index(["nf", "predictor"])["correct_pct"]
    tomur, slomo = table.xs("tomur", level=1), table.xs("slomo", level=1)
    assert (tomur >= 90).all()
    assert slomo["FlowStats"] == 100
    assert (slomo.drop("FlowStats") < 60).all()
