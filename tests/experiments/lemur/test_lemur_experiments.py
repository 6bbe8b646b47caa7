"""The experiments on racks: each reports completely, has the published numbers, and ours where they are known."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments import Setting, find_experiment, write_result
from experiments.lemur import PAPER, errors, speed
from experiments.lemur.methodology import compared
from tests.experiments.complete import Results, draw, refuse_incomplete, run_with_few

NAMES = [
    "lemur-errors",
    "lemur-figure2",
    "lemur-figure3a",
    "lemur-figure3b",
    "lemur-figure3c",
    "lemur-latency",
    "lemur-speed",
    "lemur-table4",
]


@pytest.fixture(scope="module")
def results() -> Results:
    """Every experiment with its result, on one set of chains where it has several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compared, "CHAIN_SETS", ((1, 2, 3),))
        patch.setattr(errors, "ERROR_PERCENTAGES", (1, 10))
        patch.setattr(speed, "RATE_DELTAS", (0.5,))
        return run_with_few(NAMES)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_complete(name: str, results: Results) -> None:
    refuse_incomplete(*results[name], PAPER)


@pytest.mark.long
def test_figure_2_counts_what_is_placed(results: Results) -> None:
    """Chains 1, 2 and 3 at the two smallest least rates: a core each is enough only by cycles alone."""
    table = results["lemur-figure2"][1].table.set_index("strategy")
    assert list(table.loc[["optimal", "lemur", "greedy", "software-preferred"], "placed"]) == [2, 2, 2, 1]
    assert list(table.loc["no-core-allocation", ["placed", "placed_with_overheads"]]) == [2, 1]
    rates = results["lemur-figure2"][1].data["rates"]
    assert list(rates["optimal_gbps"].round(2)) == [29.19, 25.21]
    assert list(rates["t_min_gbps"].round(3)) == [2.543, 5.087]


@pytest.mark.long
def test_figure_3a_has_half_the_rate_on_one_server(results: Results) -> None:
    table = results["lemur-figure3a"][1].table
    assert list(table.loc[0, ["one_server_gbps", "two_servers_gbps"]]) == [11.3, 22.96]
    assert np.isnan(table["one_server_gbps"][2]) and not table["verdict"].any()


def test_figure_3b_says_where_the_model_contradicts_the_paper(results: Results) -> None:
    result = results["lemur-figure3b"][1]
    assert list(result.table["verdict"]) == ["", "", "differs", "", "", ""]
    assert "contradicts" in result.notes[0] and "delta 7.09" in result.notes[0]


def test_figure_3c_has_the_rates_beside_the_published_ones(results: Results) -> None:
    table = results["lemur-figure3c"][1].table
    assert list(table["rate_mbps"].round()) == [597, 7991, 587, 7991]
    assert list(table["published_mbps"]) == [693, 7710] * 2 and not table["verdict"].any()


def test_a_tighter_bound_on_latency_never_gives_more(results: Results) -> None:
    table = results["lemur-latency"][1].table
    assert table["rate_gbps"].fillna(0).is_monotonic_increasing
    assert list(table["d_max_us"][table["verdict"] == "differs"]) == [25, 45]
    kept = table.dropna(subset=["rate_gbps"])
    assert (kept[["chain1_us", "chain4_us"]].max(axis=1) <= kept["d_max_us"]).all()


def test_small_errors_of_the_cycles_change_no_plan(results: Results) -> None:
    """At 1 % all too low; same and violated plans are never more than those placed."""
    table = results["lemur-errors"][1].table
    low = table[(table["cycles"] == errors.ALL_TOO_LOW) & (table["error_pct"] == 1)]
    assert (low["same"] == low["placed"]).all() and (low["placed"] == 2).all()
    assert (table["same"] + table["violated"] <= table["placed"]).all()


def test_cycles_are_those_of_the_simulated_server(results: Results, tmp_path: Path) -> None:
    """And of a profile where one is given; ACL with 1,024 rules."""
    table = results["lemur-table4"][1].table
    assert list(table["simulated_cycles"]) == pytest.approx([9123, 33186, 4091, 519], rel=0.01)
    assert table["host_cycles"].isna().all()
    nfs = {"ACL": {"server": {"cycles": 985.0, "rules": 200.0, "cycles_per_rule": 2.0}}, "NAT": {"switch": {}}}
    (tmp_path / "cycles.json").write_text(json.dumps({"testbed": "a host", "clock_mhz": 2500.0, "nfs": nfs}))
    found = find_experiment("lemur-table4").run(Setting(chains=tmp_path))
    host = dict(zip(found.table["nf"], found.table["host_cycles"], strict=True))
    assert host["ACL"] == 985 + 824 * 2 and np.isnan(host["NAT"])
    assert "a host, 2,500 MHz" in found.testbeds[1]


def test_speed_says_what_is_measured(results: Results) -> None:
    table = results["lemur-speed"][1].table
    assert list(table["method"]) == ["brute force", "optimal", "lemur"]
    assert list(table["how"]) == ["estimated", "measured", "measured"]
    assert list(table["published_s"]) == [14901.0, "not printed", 3.5] and (table["seconds"] > 0).all()


def test_rates_are_a_row_per_instance(results: Results, tmp_path: Path) -> None:
    assert "lemur-figure2-rates.csv" in {path.name for path in write_result(*results["lemur-figure2"], tmp_path)}
    data = results["lemur-figure2"][1].data
    assert set(data) == {"rates", "rates-overheads"}
    assert all(isinstance(table, pd.DataFrame) and len(table) == 2 for table in data.values())


def test_eleven_nats_are_placed_as_published() -> None:
    """Ten of them fit twelve stages; of the strategies, only the heuristic and the optimum have a plan."""
    result = find_experiment("lemur-nats").run(Setting())
    ours = dict(zip(result.table["quantity"], result.table["ours"], strict=True))
    assert [ours[name] for name in ours if name.startswith("stages")] == [12, 14, 27, 13]
    assert {name for name in ours if name.startswith("plan of") and ours[name]} == {"plan of lemur"}
    assert ours["NATs on the switch, lemur"] == 10 and not result.table["verdict"].any()
    assert draw(result).axes[0].get_xlabel() == "stages"
