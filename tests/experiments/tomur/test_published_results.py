"""The results of the paper hold on the simulated card and on BlueField-2 measurements."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments import Setting, find_experiment
from experiments.tomur.table7 import _shift

SETTING = Setting(scale=0.15, measurements=Path("nowhere"))


def _table(name: str, setting: Setting = SETTING) -> pd.DataFrame:
    return find_experiment(name).run(setting).table


@pytest.mark.long
def test_composition_follows_the_execution_pattern() -> None:
    """Table 4: Tomur equals min on pipelines, beats sum there, and beats both on run-to-completion."""
    table = _table("table4").set_index(["nf", "pattern"])
    for (_, pattern), row in table.iterrows():
        assert row["detected"] == pattern
        assert row["tomur_mape_pct"] < row["sum_mape_pct"]
        if pattern == "pipeline":
            assert row["tomur_mape_pct"] == pytest.approx(row["min_mape_pct"])
        else:
            assert row["tomur_mape_pct"] < 0.5 * row["min_mape_pct"]


@pytest.mark.long
def test_tomur_beats_slomo_where_several_resources_are_contended() -> None:
    """Table 2, on both cards: SLOMO's mean error is at least three times Tomur's, which is about the published one."""
    table = _table("table2").set_index(["nf", "testbed", "predictor"])["mape_pct"]["mean"]
    for testbed, most in (("simulated", 3.7), ("simulated:contended", 4.0)):
        means = table[testbed]
        assert means["tomur"] <= most
        assert means["slomo"] >= 3 * means["tomur"]


def test_slomo_is_accurate_with_memory_contention_alone() -> None:
    """Table 11: with memory contention alone at default traffic, its MAPE is below 5 % for every NF."""
    assert _table("table11")["mape_pct"].max() < 5


def test_the_accelerator_follows_the_queue_equations() -> None:
    """Figure 4: the equilibrium is within 2 % of equation 2, and light contention within 2 % of equation 8."""
    table = _table("figure4")
    distances = table[table["quantity"].str.contains("distance")]
    assert len(distances) == 12
    assert distances["ours"].max() < 2


@pytest.mark.long
def test_more_contention_always_slows_run_to_completion() -> None:
    """Figure 5: memory contention does not slow a regex-bound pipeline; either contention slows run-to-completion."""
    findings = _table("figure5").set_index("quantity")["ours"]
    assert findings["p-NF there, drop by memory contention"] < 1
    assert findings["r-NF, steps of more contention that lower the throughput"] == 100


def test_tomur_errs_at_most_as_published_on_bluefield_2_measurements(shared_data: Path) -> None:
    """Table 3 has rows of BlueField-2 when the measurements are present."""
    measured = Setting(scale=0.02, measurements=shared_data / "flowmon-bf2")
    table = _table("table3", measured).set_index(["testbed", "predictor"])
    real = table.loc["BlueField-2", "tomur"]
    assert real["runs"] == 37
    assert real["mape_pct"] <= real["published_mape_pct"]


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
