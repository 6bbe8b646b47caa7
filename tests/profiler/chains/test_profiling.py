"""Profiling of chains, from describe to chains.csv and cycles.json."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from profiler.chains.plan import OPEN_LOOP_LOADS, TRAFFICS_PER_CHAIN, ChainRequest
from profiler.chains.profiling import profile_chains
from profiler.journal.status import as_text, read_status
from profiler.profiling import journal_of, profile
from profiler.simulated import SERVER_NFS, SimulatedServer, SimulatedTestbed
from profiler.testbed import BestEffort, Run, TestbedError
from profiles import ChainLoad, InputError, Load
from profiles.best_effort import read_best_effort
from profiles.chain_table import read_chains
from tests.profiler.foreign import bytes_of
from tests.profiler.toy_server import SOURCE, ToyServer, server_description
from tests.profiler.toy_testbed import ToyTestbed

PLAN = ChainRequest(["gate,coder"])


def measured(testbed: ToyServer, out: Path, plan: ChainRequest = PLAN) -> pd.DataFrame:
    return read_chains(profile_chains(testbed, out, plan) / "chains.csv")


def small_server(*nfs: str) -> SimulatedServer:
    """The simulated server with these NFs only."""
    return SimulatedServer(nfs=[spec for spec in SERVER_NFS if spec.name in nfs])


def test_chains_are_measured_as_the_server_runs_them(tmp_path: Path) -> None:
    """The NFs alone, run to completion, and a pipeline: cycles as in the formula of the toy."""
    table = measured(ToyServer(), tmp_path / "p")
    closed = table[(table.rate_kpps == 0) & (table.packet_size == 500)]
    cycles = {(row.order, row.cores): 1e6 / row.throughput_kpps - SOURCE for row in closed.itertuples()}
    assert cycles == {
        ("gate", "[[0]]"): pytest.approx(150),
        ("coder", "[[0]]"): pytest.approx(500),
        ("gate,coder", "[[0, 1]]"): pytest.approx(650),
        ("gate,coder", "[[0], [1]]"): pytest.approx(500),
    }


def test_each_placement_has_its_traffic_loads_and_repeats(tmp_path: Path) -> None:
    """A closed loop at every traffic, an open one at default traffic, each run twice; the rows of a chain together."""
    table = measured(ToyServer(), tmp_path / "p")
    placed = table.groupby(["order", "cores"], sort=False)
    assert (placed.size() == 2 * (TRAFFICS_PER_CHAIN + len(OPEN_LOOP_LOADS))).all()
    assert (table.groupby((table.order + table.cores).ne((table.order + table.cores).shift()).cumsum()).ngroups) == 4
    for _, rows in placed:
        opened = rows[rows.rate_kpps > 0]
        reached = rows[(rows.rate_kpps == 0) & (rows.packet_size == 500)].throughput_kpps.mean()
        assert opened.rate_kpps.unique() / reached == pytest.approx(OPEN_LOOP_LOADS, rel=1e-3)
        assert opened.latency_p99_us.eq(2).all() and rows[rows.rate_kpps == 0].latency_p99_us.isna().all()
        assert rows.repeat.unique().tolist() == [0, 1]


def test_stages_have_their_columns(tmp_path: Path) -> None:
    """What leaves each stage and what it drops; empty for stages that a chain does not have."""
    table = measured(ToyServer(), tmp_path / "p")
    chains = table[table.order == "gate,coder"]
    assert chains.stage0_dropped_pct.eq(10).all() and chains.stage1_dropped_pct.eq(0).all()
    assert chains.stage1_kpps.to_numpy() == pytest.approx(0.9 * chains.throughput_kpps.to_numpy())
    assert table[table.order == "gate"].stage1_kpps.isna().all()


def test_cycles_of_the_nfs_are_measured_with_them(tmp_path: Path) -> None:
    """Of those in the chains, not of others; what was measured before stays."""
    profile_chains(ToyServer(), tmp_path / "p", ChainRequest(["gate"]))
    profile_chains(ToyServer(), tmp_path / "p", ChainRequest(["coder"]))
    written = json.loads((tmp_path / "p" / "cycles.json").read_text())
    assert {name: nf["server"]["cycles"] for name, nf in written["nfs"].items()} == {"coder": 550, "gate": 150}
    assert set(read_chains(tmp_path / "p" / "chains.csv").order) == {"gate", "coder"}


def test_a_chain_that_is_measured_again_stays_at_its_place(tmp_path: Path) -> None:
    """The same commands in any order end in the same rows; the bytes of the first do not change by running it again."""
    for plan in (ChainRequest(["gate,coder"]), ChainRequest(["coder,gate"])):
        profile_chains(ToyServer(), tmp_path / "p", plan)
    before = bytes_of(tmp_path / "p")
    profile_chains(ToyServer(fails_after=0), tmp_path / "p", ChainRequest(["gate,coder"]))
    assert bytes_of(tmp_path / "p") == before


@pytest.mark.parametrize("after", [3, 60, 150])
def test_a_profiling_of_chains_is_resumed(tmp_path: Path, after: int) -> None:
    """Its measurements are kept, and the same call ends in the same bytes as an undisturbed one."""
    whole = ToyServer()
    profile_chains(whole, tmp_path / "whole", PLAN)
    with pytest.raises(TestbedError):
        profile_chains(ToyServer(fails_after=after), tmp_path / "broken", PLAN)
    assert not (tmp_path / "broken").exists()
    second = ToyServer()
    profile_chains(second, tmp_path / "broken", PLAN)
    assert len(second.requests) == len(whole.requests) - after
    assert bytes_of(tmp_path / "broken") == bytes_of(tmp_path / "whole")


def test_a_second_call_measures_nothing(tmp_path: Path) -> None:
    """A message says so, and status has chains and cycles as done."""
    messages: list[str] = []
    profile_chains(ToyServer(), tmp_path / "p", PLAN)
    profile_chains(ToyServer(fails_after=0), tmp_path / "p", PLAN, notify=messages.append)
    assert len(messages) == 1 and messages[0].startswith("nothing to measure: ")
    text = as_text(read_status(journal_of(tmp_path / "p")))
    assert "cycles" in text and "chains" in text and "benches" not in text
    assert text.endswith("left: nothing\n")


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    """Two profilings of drawn chains with one seed agree in every byte; another seed draws others."""
    plan = ChainRequest(drawn=["pairs"], count=1)
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        profile_chains(small_server("NAT", "LB", "ACL", "Tunnel"), tmp_path / name, plan, repeats=1, seed=seed)
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b")
    assert bytes_of(tmp_path / "a")["chains.csv"] != bytes_of(tmp_path / "c")["chains.csv"]


def test_an_nf_that_runs_in_no_chain_is_left_out(tmp_path: Path) -> None:
    """Its chains are named in a message; the others are measured."""
    messages: list[str] = []
    profile_chains(ToyServer(refused=["coder"]), tmp_path / "p", PLAN, notify=messages.append)
    assert messages == ["3 placements of coder, gate,coder do not run here; left out"]
    assert set(read_chains(tmp_path / "p" / "chains.csv").order) == {"gate"}


def test_a_testbed_without_chains_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """With its own words; another testbed can then be profiled into the same folder."""
    plan = ChainRequest(["NAT,ACL"])
    with pytest.raises(
        InputError, match="--testbed: simulated-bluefield-2 does not run chains: bad-request: chains of"
    ):
        profile_chains(SimulatedTestbed(), tmp_path / "p", plan)
    assert list(tmp_path.iterdir()) == []


def test_a_testbed_without_a_null_nf_has_chains_but_no_cycles(tmp_path: Path) -> None:
    """A message says so."""
    messages: list[str] = []
    nfs = [nf.model_dump() for nf in server_description().nfs if nf.name != "Null"]
    profile_chains(ToyServer(server_description(nfs=nfs)), tmp_path / "p", PLAN, notify=messages.append)
    assert messages == ["toy-server has no NF named Null: cycles per packet are not measured"]
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == ["chains.csv", "testbed.json"]


def test_a_repeat_that_disagrees_is_decided_by_a_further_run(tmp_path: Path) -> None:
    """The outlier is not written, and reported."""
    messages: list[str] = []
    nfs = [nf.model_dump() for nf in server_description().nfs if nf.name != "Null"]
    factors = [1.0] * 10 + [0.5]  # after the readings of the reference, the first run
    testbed = ToyServer(server_description(nfs=nfs), factors=factors)
    profile_chains(testbed, tmp_path / "p", ChainRequest(["coder"]), notify=messages.append)
    assert any("1 runs were outliers" in message for message in messages)
    closed = read_chains(tmp_path / "p" / "chains.csv").query("rate_kpps == 0 and packet_size == 500")
    assert closed.throughput_kpps.to_numpy() == pytest.approx([1e6 / 550] * 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"seed": -1}, "--seed: -1 is negative"), ({"repeats": 0}, "--repeats: 0 is not between 1 and 1,000")],
)
def test_bad_options_are_refused(tmp_path: Path, options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        profile_chains(ToyServer(), tmp_path / "p", PLAN, **options)  # type: ignore[arg-type]


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    """Unless a journal is next to it."""
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "notes.txt").touch()
    with pytest.raises(InputError, match=r"exists, without p.journal.sqlite next to it"):
        profile_chains(ToyServer(), tmp_path / "p", PLAN)


def test_contention_and_chains_go_into_one_profile(tmp_path: Path) -> None:
    """On a server, profiling NFs writes their cycles; chains are added, and nothing else changes."""
    profile(ToyServer(), tmp_path / "p", nfs=["gate"], quota=40)
    before = bytes_of(tmp_path / "p")
    assert list(json.loads(before["cycles.json"])["nfs"]) == ["gate"]
    assert "gate/solo.csv" in before and not any(name.startswith("Null") for name in before)
    profile_chains(ToyServer(), tmp_path / "p", PLAN, repeats=1)
    after = bytes_of(tmp_path / "p")
    assert {name for name in after if after[name] != before.get(name)} == {"cycles.json", "chains.csv"}
    profiled = json.loads(before["cycles.json"])["nfs"]["gate"]
    assert json.loads(after["cycles.json"])["nfs"]["gate"] == profiled


def test_a_testbed_without_a_null_nf_is_profiled_as_before(tmp_path: Path) -> None:
    """No cycles."""
    assert "cycles.json" not in bytes_of(profile(ToyTestbed(), tmp_path / "p", quota=60))


def test_best_effort_runs_of_chains_are_listed(tmp_path: Path) -> None:
    """By their NFs, with cores and offered load; repeats that differ by their errors alone are no outliers."""

    class Hurried(ToyServer):
        def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
            run = super().run(loads)
            if not isinstance(loads[0], ChainLoad):
                return run
            (one,) = run.measurements
            kpps = one.throughput_kpps * (1.0 if len(self.requests) % 2 else 0.85)
            return Run((replace(one, throughput_kpps=kpps),), best_effort=BestEffort((10.0,), 50.0))

    messages: list[str] = []
    profile_chains(Hurried(), tmp_path / "p", ChainRequest(["coder"]), notify=messages.append)
    assert [message for message in messages if "outliers" in message] == []
    listed = read_best_effort(tmp_path / "p")
    assert set(listed["kind"]) == {"chain"} and set(listed["name"]) == {"coder"}
    assert listed["settings"].str.contains("cores=[[0]]", regex=False).all()
    assert len(listed) == 2 * (TRAFFICS_PER_CHAIN + len(OPEN_LOOP_LOADS))
