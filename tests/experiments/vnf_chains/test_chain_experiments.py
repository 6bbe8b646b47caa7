"""Tables 3 and 4 and the scaling example, of a folder of measured chains; chosen chains, measured in rounds."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments import CannotRun, Experiment, Result, Setting, as_text, find_experiment, find_experiments, write_result
from experiments.registry import all_experiments
from experiments.reproduce import command
from experiments.vnf_chains import PAPER, table4
from experiments.vnf_chains.methodology import recorded, scaling, shares
from experiments.vnf_chains.methodology.chain_rounds import ChainRounds
from experiments.vnf_chains.table3 import NOT_PRINTED, PUBLISHED_METHODS
from profiler.simulated import SimulatedServer
from profiler.testbed import TestbedError
from profiles import ChainLoad, InputError
from profiles.table import write_table
from tests.profiler.toy_server import ToyServer

NAMES = ("chains-scaling", "chains-table3", "chains-table4")
AT_LOADS = ("chains-figure13", "chains-figure14")  # these have tests of their own


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One pair in both orders, at three packet sizes, as `python -m benches chains --part shares` writes it."""
    out = tmp_path_factory.mktemp("chains") / "here"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shares, "PACKET_SIZES", (128.0, 512.0, 1400.0))
        patch.setattr(scaling, "TARGET_SHARES", (0.6,))
        patch.setattr(scaling, "ALLOCATED_SHARES", (0.25, 0.5, 0.75, 1.0))
        patch.setattr(table4, "RUN_DRAWS", 2)
        with SimulatedServer() as server, ChainRounds(server, out) as rounds:
            rounds.measure(shares.share_loads(server.describe(), [("NAT", "LB")]), 2)
            reached, found = scaling.reached_by_running(rounds), shares.topologies(rounds.write())
            write_table(scaling.scaling_table(found, reached, 2), out / "scaling.csv")
        yield out


Results = Callable[[str], tuple[Experiment, Result]]


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    """An experiment of this name with its result, which is made once."""

    @cache
    def run(name: str) -> tuple[Experiment, Result]:
        one = find_experiment(name)
        return one, one.run(Setting(chains=folder))

    return run


def test_all_experiments_of_the_paper_have_one_prefix() -> None:
    assert tuple(one.name for one in all_experiments() if one.paper == PAPER) == (*AT_LOADS, *NAMES)
    assert tuple(one.name for one in find_experiments("chains", all_experiments())) == (*AT_LOADS, *NAMES)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_cells_that_the_paper_does_not_print_say_so(name: str, results: Results, tmp_path: Path) -> None:
    """No cell is empty but those of verdicts; the text and the files are complete."""
    one, result = results(name)
    assert result.table.drop(columns="verdict").notna().all(axis=None)
    assert (result.table == NOT_PRINTED).any(axis=None) and NOT_PRINTED in as_text(one, result)
    assert "simulated" in result.testbeds[0] and result.testbeds[0].endswith(".")
    assert f"{name}.csv" in {path.name for path in write_result(one, result, tmp_path)}


@pytest.mark.long
def test_table_3_has_the_printed_averages(results: Results) -> None:
    """A row per topology and regressor; the bottom rows are the paper's, in the paper's order."""
    table = results("chains-table3")[1].table
    bottom = table[table["topology"] == "average"]
    assert list(bottom["regressor"][: len(PUBLISHED_METHODS)]) == list(PUBLISHED_METHODS)
    assert list(bottom["published_rmse_ms"][: len(PUBLISHED_METHODS)]) == [725, 1978, 1911, 1220, 3670, 755]
    assert list(bottom["published_times_interpolation"][:3]) == [1.0, 2.73, 2.64]
    assert set(table["topology"]) == {"NAT-LB", "LB-NAT", "NAT", "LB", "average"}
    assert set(bottom["published_rmse_ms"][len(PUBLISHED_METHODS) :]) == {NOT_PRINTED}


@pytest.mark.long
def test_table_4_has_the_printed_errors(results: Results) -> None:
    """The paper's RMSE of the first chain is 2.05 times that of the trained model."""
    table = results("chains-table4")[1].table
    assert list(table["chain"]) == ["NAT-LB", "LB-NAT"]
    assert list(table["published_rmse_ms"]) == [1242, 1354] and list(table["published_mae_ms"]) == [577, 630]
    assert table["published_times_trained"][0] == 2.05
    assert (table["mape_pct"].astype(float) < 5).all() and (table["corrected_mape_pct"].astype(float) < 5).all()


@pytest.mark.long
def test_scaling_has_our_allocations_and_the_papers(results: Results) -> None:
    """Three methods of each chain; the paper's 11 iterations and one; what is reached is what was run."""
    table = results("chains-scaling")[1].table
    ours, theirs = table.iloc[:-2], table.iloc[-2:]
    assert list(ours["method"]) == ["profiles", "profiles, 10 chain runs", "greedy"] * 2
    assert (ours["reached_pct"].astype(float) > 90).all()
    assert list(theirs["chain_runs"]) == [11, 1] and list(theirs["total_cpu"]) == [7.75, 6.5]
    greedy, shot = (ours[ours["method"] == name] for name in ("greedy", "profiles"))
    assert (greedy["chain_runs"].astype(int) > 1).all() and (shot["chain_runs"] == 0).all()
    assert (shot["total_cpu"].to_numpy(float) <= greedy["total_cpu"].to_numpy(float)).all()


@pytest.mark.long
def test_a_target_that_is_missed_is_marked(folder: Path, tmp_path: Path) -> None:
    """By more than the noise; a target for which there is no allocation, too."""
    table = pd.read_csv(folder / "scaling.csv")
    table.loc[0, ["reached_pct", "noise_pct"]] = 95.0, 2.0
    table.loc[1, ["reached_pct", "noise_pct"]] = 99.0, 2.0
    table.loc[2, ["first_cpu", "second_cpu", "total_cpu", "reached_pct", "noise_pct"]] = float("nan")
    for name in ("chains.csv", "testbed.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    write_table(table, tmp_path / "scaling.csv")
    found = find_experiment("chains-scaling").run(Setting(chains=tmp_path)).table
    assert list(found["verdict"][:3]) == ["worse: the target is missed", "", "worse: the target is missed"]
    assert found["allocation"][2] == "none"


def test_without_scaling_runs_only_the_tables_run(folder: Path, tmp_path: Path) -> None:
    for name in ("chains.csv", "testbed.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(CannotRun, match=r"has no scaling\.csv"):
        find_experiment("chains-scaling").run(Setting(chains=tmp_path))


@pytest.mark.long
def test_allocations_are_found_among_recorded_runs() -> None:
    """Where every combination of shares was recorded, what is allocated has been run: the first run of each setting
    chooses, and what it reaches is the mean of the others."""
    traces = Path(__file__).parents[3] / "traces" / "netns"
    recorded_runs = recorded.share_runs(Setting(chains=traces))
    pair = {name: recorded_runs.topologies[name] for name in ("nginx", "squid", "nginx-squid")}
    table = scaling.recorded_scaling(pair)
    assert table is not None and len(table) == 3 * len(scaling.TARGET_SHARES)
    for row in table.to_dict("records"):
        runs = pair["nginx-squid"]
        kpps = runs.kpps[(runs.at[:, :2] == [row["first_cpu"], row["second_cpu"]]).all(axis=1)]
        assert len(kpps) == 3
        assert row["reached_pct"] == pytest.approx(100 * kpps[1:].mean() / row["target_kpps"], rel=0.07)
    other = np.where(np.arange(len(runs.kpps)) % 3 == 0, 1.0, 0.5)
    again = scaling.recorded_scaling({**pair, runs.name: replace(runs, kpps=runs.kpps * other)})
    assert again is not None and again["total_cpu"].equals(table["total_cpu"])
    np.testing.assert_allclose(again["reached_pct"], table["reached_pct"] / 2, atol=0.1)
    some = ~(runs.at[:, :2] == 0.25).all(axis=1)
    assert scaling.recorded_scaling({**pair, runs.name: replace(runs, at=runs.at[some], kpps=runs.kpps[some])}) is None
    assert scaling.recorded_scaling({**pair, runs.name: replace(runs, at=runs.at * [1, 1, 2])}) is None
    assert scaling.recorded_scaling({**pair, runs.name: replace(runs, at=runs.at[::3], kpps=runs.kpps[::3])}) is None


def test_a_folder_without_shares_cannot_be_used(folder: Path, tmp_path: Path) -> None:
    table = pd.read_csv(folder / "chains.csv")
    write_table(table[table["shares"].isin(["[1.0]", "[1.0, 1.0]"])], tmp_path / "chains.csv")
    (tmp_path / "testbed.json").write_bytes((folder / "testbed.json").read_bytes())
    with pytest.raises(CannotRun, match="no chains at shares of cores"):
        find_experiment("chains-table4").run(Setting(chains=tmp_path))


def test_by_default_chains_run_on_the_simulated_server(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As often as the scale says; the same runs serve all experiments."""
    asked: list[tuple[int, int]] = []

    def simulated(repeats: int, seed: int) -> recorded.ShareRuns:
        asked.append((repeats, seed))
        return recorded.share_runs(Setting(chains=folder))

    monkeypatch.setattr(recorded, "_simulate", simulated)
    recorded.share_runs(Setting(seed=3))
    recorded.share_runs(Setting(scale=0.1))
    assert asked == [(5, 3), (2, 0)]


def test_a_folder_without_chains_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--chains: nowhere has no chains\.csv"):
        command(name="chains", chains=Path("nowhere"), out=tmp_path / "results")


TRAFFIC = ToyServer().describe().traffic
LOADS = [
    ChainLoad.of(nfs, cores, TRAFFIC)
    for nfs, cores in ((["gate"], [[0]]), (["coder"], [[0]]), (["gate", "coder"], [[0, 1]]))
]


def test_each_round_has_every_chain_once(tmp_path: Path) -> None:
    """In one order, which the seed draws; the results are in the order of the request."""
    server = ToyServer()
    with ChainRounds(server, tmp_path / "p") as rounds:
        measured = rounds.measure(LOADS, 3)
    ran = [loads[0] for loads in server.requests]
    assert len(ran) == 9 and ran[:3] == ran[3:6] == ran[6:] and set(ran) == set(LOADS)
    assert list(measured) == LOADS and [len(load.runs) for load in measured.values()] == [3, 3, 3]


def test_a_later_request_runs_only_what_is_new(tmp_path: Path) -> None:
    """A first look at one chain is its first round."""
    server = ToyServer()
    with ChainRounds(server, tmp_path / "p") as rounds:
        rounds.measure(LOADS[:1], 1)
        rounds.measure(LOADS, 2)
    assert len(server.requests) == 6


def test_what_was_measured_before_an_interrupt_is_not_run_again(tmp_path: Path) -> None:
    """Four of six runs, then the testbed breaks; the table afterwards has six rows."""
    broken, server = ToyServer(fails_after=4), ToyServer()
    with pytest.raises(TestbedError), ChainRounds(broken, tmp_path / "p") as rounds:
        rounds.measure(LOADS, 2)
    with ChainRounds(server, tmp_path / "p") as rounds:
        rounds.measure(LOADS, 2)
        table = rounds.write()
    assert len(broken.requests) + len(server.requests) == 6 and sorted(table["repeat"]) == [0, 0, 0, 1, 1, 1]


def test_what_does_not_run_is_left_out(tmp_path: Path) -> None:
    said: list[str] = []
    with ChainRounds(ToyServer(refused=["coder"]), tmp_path / "p", notify=said.append) as rounds:
        assert list(rounds.measure(LOADS, 1)) == LOADS[:1]
    assert said == ["gate,coder, coder do not run here; left out"] or said == [
        "coder, gate,coder do not run here; left out"
    ]


def test_runs_of_another_seed_are_not_mixed_in(tmp_path: Path) -> None:
    with ChainRounds(ToyServer(), tmp_path / "p") as rounds:
        rounds.measure(LOADS, 1)
    with pytest.raises(InputError, match="seed 0, not 1"):
        ChainRounds(ToyServer(), tmp_path / "p", seed=1)
