"""The benchmark of chains: what it measures, and how it counts errors."""

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benches import chain_accuracy, chains
from benches.chain_accuracy import costs_of_chains
from benches.chain_campaign import FULL, CampaignSize, alone, beside_a_ring, chosen_functions, measure
from benches.chain_campaign import chains as chains_of
from benches.chain_settings import MeasuredSetting, MeasuredSingles
from experiments.registry import Setting
from experiments.vnf_chains.methodology import loads
from predictor.chains.placed_chain import PlacedChain
from profiler.chains.rounds import ChainRounds
from profiler.simulated import SERVER_NFS, SimulatedServer
from profiler.simulated.chain_demand import DENIED_PARAMETER, NfParameter, StageSpec
from profiles import ChainLoad, InputError, TrafficProfile

SMALL = CampaignSize(functions=4, pairs=12, triples=3, pipelines=3, traffics=1, rounds=3)
FUNCTIONS = ("ACL", "NAT", "LB", "Match")


def small_server(*more: StageSpec) -> SimulatedServer:
    kept = {"Null", *FUNCTIONS}
    return SimulatedServer(nfs=[*(spec for spec in SERVER_NFS if spec.name in kept), *more])


def setting(nfs: str, kpps: list[float], cores: list[list[int]]) -> MeasuredSetting:
    load = ChainLoad.of(list(nfs), cores, TrafficProfile(1000, 512))
    return MeasuredSetting(PlacedChain.of(list(nfs), cores=cores), load, np.array(kpps), True)


def test_all_pairs_and_as_many_triples_and_pipelines_are_measured() -> None:
    """72 ordered pairs and 24 triples on one core, 24 pairs on two, each at two traffics; none is there twice."""
    loads = chains_of(tuple("ABCDEFGHI"), small_server().describe(), FULL, 0)
    assert len(set(loads)) == len(loads) == 2 * (72 + 24 + 24)
    assert Counter((len(load.stages), len(load.cores)) for load in loads) == {(2, 1): 144, (3, 1): 48, (2, 2): 48}
    assert all(len({stage.nf for stage in load.stages}) == len(load.stages) for load in loads)


def test_a_function_that_drops_everything_is_in_no_chain(tmp_path: Path) -> None:
    """What would be behind it has no packets; a message says so."""
    wall = StageSpec("Wall", 100, parameters={DENIED_PARAMETER: NfParameter(0, 100, 100)})
    said: list[str] = []
    with small_server(wall) as server, ChainRounds(server, tmp_path / "out") as rounds:
        found = chosen_functions(rounds, ["ACL", "Wall", "NAT", "LB"], 4, said.append)
    assert found == ("ACL", "NAT", "LB") and said == ["Wall drops 100 % of these packets; left out"]


def test_rising_loads_are_measured_into_a_folder_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two runs at least, since one trains and the others judge; experiments read what was written."""
    monkeypatch.setattr(loads, "NF_PAIRS", (("ACL", "Match"),))
    monkeypatch.setattr(chains, "FLOW_STEP", 50_000.0)
    table = chains.run(out=tmp_path, part="loads", rounds=1)
    assert set(table["chain"]) == {"ACL", "Match", "ACL-Match", "Match-ACL"}
    assert (table["loads"] == 2).all() and (table["runs"] == 4).all()
    assert len(loads.load_runs(Setting(chains=tmp_path)).chains) == 6


def test_unknown_functions_are_refused(tmp_path: Path) -> None:
    with (
        small_server() as server,
        ChainRounds(server, tmp_path / "out") as rounds,
        pytest.raises(InputError, match="--nf: simulated-server-16 runs no Frobnicate on one core"),
    ):
        chosen_functions(rounds, ["Frobnicate"], 4, print)


def test_a_repeat_is_compared_with_the_mean_of_the_others() -> None:
    """100 as predicted by 200, and 200 as predicted by 100: 100 % and 50 %."""
    assert chain_accuracy.repeat_error(np.array([100.0, 200.0])) == pytest.approx(75)
    assert np.isnan(chain_accuracy.repeat_error(np.array([100.0])))


def test_ten_runs_are_of_different_chains_and_of_all_functions() -> None:
    """Five functions in twenty pairs: each is in three to five of the ten."""
    pairs = [one + other for one in "abcde" for other in "abcde" if one != other]
    settings = [setting(pair, [1.0, 2.0], [[0, 1]]) for pair in pairs for _ in range(2)]
    drawn = chain_accuracy.drawn_runs(settings, np.random.default_rng(0))
    assert len({settings[at].key for at, _ in drawn}) == 10
    used = Counter(stage.nf for at, _ in drawn for stage in settings[at].load.stages)
    assert sorted(used) == list("abcde") and set(used.values()) <= {3, 4, 5}


def test_costs_of_chains_are_those_that_made_them() -> None:
    """1, 2 and 4 us per packet: what pairs and pipelines show of them predicts a triple, 142.9 kpps."""
    cost = {"a": 1.0, "b": 2.0, "c": 4.0}
    pairs = [(one + other, [[0, 1]]) for one in "abc" for other in "abc" if one != other]
    settings = [setting(pair, [1000 / sum(cost[nf] for nf in pair)], cores) for pair, cores in pairs]
    settings += [setting(nfs, [1000 / max(map(cost.__getitem__, nfs))], [[0], [1]]) for nfs in ("ab", "bc", "ca")]
    settings.append(setting("abc", [1000 / 7], [[0, 1, 2]]))
    learnt = np.arange(len(settings) - 1)
    predicted = costs_of_chains(settings, list("abc"), learnt, np.array([len(settings) - 1]))
    assert predicted[0] == pytest.approx(1000 / 7, rel=0.05)


def test_what_functions_pass_on_alone_reaches_those_behind_them(tmp_path: Path) -> None:
    """ACL denies a tenth of the packets; a chain behind it sees nine tenths."""
    traffic = TrafficProfile(1000, 512, small_server().describe().traffic.mtbr)
    loads = [ChainLoad.of([nf], [[0]], traffic) for nf in ("Null", "ACL", "NAT")]
    with small_server() as server, ChainRounds(server, tmp_path / "out") as rounds:
        measured = list(rounds.measure([*loads, ChainLoad.of(["ACL", "NAT"], [[0, 1]], traffic)], 2).values())
    (one,) = MeasuredSingles.of(measured).settings(measured, {"ACL": 8.0})
    assert one.chain.stages[1].share == pytest.approx(0.9) and one.chain.stages[1].bytes_added == 8
    assert one.drops_as_alone


def test_functions_beside_a_ring_are_profiles(tmp_path: Path) -> None:
    """A pipeline with the function that does nothing shows what sending and receiving cost; it is not predicted."""
    description = small_server().describe()
    with small_server() as server, ChainRounds(server, tmp_path / "out") as rounds:
        loads = [*alone(["Null", "ACL"], description), *beside_a_ring(["ACL"], description)]
        measured = list(rounds.measure(loads, 1).values())
    singles = MeasuredSingles.of(measured)
    family = singles.family()
    assert family.ring == "Null -> Null"
    assert dict(family.senders)["ACL"] == "ACL -> Null" and dict(family.receivers)["ACL"] == "Null -> ACL"
    assert singles.settings(measured, {}) == []


@pytest.mark.long
def test_a_campaign_is_measured_once_and_predicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Chains of the simulated server within 4 %; with and without corrections alike; again, and nothing is run."""
    monkeypatch.setattr(chains, "QUICK", SMALL)
    monkeypatch.setattr(chain_accuracy, "DRAWS", 2)
    monkeypatch.setattr(chains, "open_testbed", lambda spec: small_server())
    table = chains.run(out=tmp_path / "out", nf=list(FUNCTIONS), quick=True)
    errors = dict(zip(table["prediction"], table["all_pct"], strict=True))
    assert errors["from profiles alone"] < 4 and errors["after 10 chain runs"] < 4
    assert errors["control: corrected"] <= errors["control: own profile"] + 0.2
    assert {"chains.csv", "singles.csv", "errors.csv"} <= {path.name for path in (tmp_path / "out").iterdir()}
    assert len(pd.read_csv(tmp_path / "out" / "predictions.csv")) == 12 + 3 + 3
    assert "written:" in capsys.readouterr().err
    monkeypatch.setattr(SimulatedServer, "run_many", None)
    with small_server() as server, ChainRounds(server, tmp_path / "out") as rounds:
        assert len(measure(rounds, FUNCTIONS, SMALL, 0, print)[1]) == 5 * 6 + 9 * 3 + 12 + 3 + 3
