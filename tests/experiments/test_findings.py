"""The paper's findings, checked as facts on the simulated card and on BlueField-2."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from experiments import Setting, find_experiment

SETTING = Setting(scale=0.15, measurements=Path("nowhere"))


def _table(name: str, setting: Setting = SETTING) -> pd.DataFrame:
    return find_experiment(name).run(setting).table


def test_composition_follows_the_execution_pattern() -> None:
    """Table 4: Tomur is as good as min on pipelines, and better than sum there and than both for run-to-completion."""
    table = _table("table4").set_index(["nf", "pattern"])
    for (_, pattern), row in table.iterrows():
        assert row["detected"] == pattern
        assert row["tomur_mape_pct"] < row["sum_mape_pct"]
        if pattern == "pipeline":
            assert row["tomur_mape_pct"] == pytest.approx(row["min_mape_pct"])
        else:
            assert row["tomur_mape_pct"] < 0.5 * row["min_mape_pct"]


def test_tomur_beats_slomo_where_several_resources_are_contended() -> None:
    """Table 2: on average SLOMO errs several times as much, and Tomur no more than published."""
    means = _table("table2").set_index(["nf", "predictor"])["mape_pct"]["mean"]
    assert means["tomur"] <= 3.7
    assert means["slomo"] >= 3 * means["tomur"]


def test_slomo_is_right_where_it_is_at_home() -> None:
    """Table 11: memory contention alone at default traffic is within 5 % for every NF."""
    assert _table("table11")["mape_pct"].max() < 5


def test_accelerator_follows_the_queue_equations() -> None:
    """Figure 4: equilibrium by equation 2, and the line of equation 8 before it, within 2 %."""
    table = _table("figure4")
    distances = table[table["quantity"].str.contains("off")]
    assert len(distances) == 12
    assert distances["ours"].max() < 2


def test_more_contention_never_helps_run_to_completion() -> None:
    """Figure 5: memory costs a regex-bound pipeline nothing, and both always cost run-to-completion."""
    facts = _table("figure5").set_index("quantity")["ours"]
    assert facts["p-NF there: lost to memory"] < 1
    assert facts["r-NF: steps of either contention that cost throughput"] == 100


def test_real_measurements_where_they_are(shared_data: Path) -> None:
    """Table 3 has rows of BlueField-2, on which Tomur is within the published error."""
    measured = Setting(scale=0.02, measurements=shared_data / "flowmon-bf2")
    table = _table("table3", measured).set_index(["testbed", "predictor"])
    real = table.loc["BlueField-2", "tomur"]
    assert real["runs"] == 37
    assert real["mape_pct"] <= real["published_mape_pct"]
