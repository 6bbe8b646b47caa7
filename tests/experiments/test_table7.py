"""Table 7: bottlenecks named by predictors, held to the card's own account."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments import Setting, find_experiment
from experiments.tomur.table7 import _shift


@pytest.mark.parametrize(
    ("told", "at"), [("mmmm", math.nan), ("mmrr", 1.5), ("mrrm", 0.5)], ids=["never", "once", "twice: the first"]
)
def test_a_shift_lies_between_two_match_rates(told: str, at: float) -> None:
    """It is in the middle of the two rates that are told apart."""
    assert _shift(list(told), np.arange(4.0)) == pytest.approx(at, nan_ok=True)


def test_tomur_names_the_bottleneck_where_slomo_cannot() -> None:
    """Tomur is right nine times of ten for every NF; SLOMO, which sees memory alone, only where memory it always is."""
    table = find_experiment("table7").run(Setting(scale=0.1)).table.set_index(["nf", "predictor"])["correct_pct"]
    tomur, slomo = table.xs("tomur", level=1), table.xs("slomo", level=1)
    assert (tomur >= 90).all()
    assert slomo["FlowStats"] == 100
    assert (slomo.drop("FlowStats") < 60).all()
