"""Benchmarks by name, with options of their own; production, racks and shards at small size."""

import random
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from benches import bench, chain_prediction, chains, gpu_admission
from benches.production import Play, drift_row, lie_rows, steady_row
from benches.racks import run
from benches.shards import BETTER_OF_TWO, IN_TURN, RANDOM, EnginePool, Pools
from experiments.lemur.methodology.brute_force import BruteForce
from experiments.registry import Setting
from experiments.vnf_chains.methodology import loads, scaling, shares
from placer.fleet.engine import Engine
from placer.fleet.what_if import WhatIf
from placer.gpu.plan import Admitted, LatencySlo, SmShare
from placer.inputs.production import SLA_PROMISED
from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.model.sla import Sla
from placer.rack.strategies.optimal import best_plan
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from predictor.chains.chain_model import ChainPredictions
from profiler.simulated_gpu import SIMULATED_GPUS
from profiles import InputError, Workload
from tests.placer.rack import lemur


@pytest.mark.parametrize(
    ("arguments", "status", "shown"),
    [
        (["counted", "--times", "3"], 0, "counted times 3"),
        (["counted"], 0, "counted times 1"),
        (["counted", "--tims", "3"], 2, "No such option: --tims"),
        (["faulty"], 2, "error: --times: is wrong"),
        (["countd"], 2, "No such command 'countd'"),
    ],
)
def test_a_benchmark_is_a_command_with_its_options(
    arguments: list[str], status: int, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counted(times: int = 1) -> pd.DataFrame:
        return pd.DataFrame({"times": [times]})

    def faulty() -> pd.DataFrame:
        raise InputError.of("--times", "is wrong")

    monkeypatch.setattr(bench, "app", typer.Typer())
    for toy in (counted, faulty):
        bench.register(toy.__name__)(toy)
    ended = CliRunner().invoke(bench.app, arguments)
    assert ended.exit_code == status and shown in " ".join(ended.output.split())


@pytest.fixture(scope="module")
def play() -> Play:
    """Sixty arrivals at a given risk, by the recorded models."""
    return Play("simulated", None, 60, 0, [], risk=0.3)


@pytest.mark.long
def test_a_drifting_nf_is_compared_with_models_corrected_by_hand(play: Play) -> None:
    """NICs in percent of those by hand; every arrival is measured after."""
    row = drift_row(play, "drift", SLA_PROMISED, play.nfs[0])
    assert (row["testbed"], row["case"], row["nf"]) == ("simulated", "drift", play.nfs[0])
    assert isinstance(row["nics"], int) and isinstance(row["nics_by_hand"], int)
    assert row["more_nics_pct"] == pytest.approx(100 * (row["nics"] / row["nics_by_hand"] - 1), abs=0.01)
    assert row["measurements"] == 60


@pytest.mark.long
def test_without_drift_there_is_no_fleet_by_hand(play: Play) -> None:
    """Only feedback and none are compared."""
    row = steady_row(play)
    assert {"without_pct", "pct", "repeated"} <= set(row) and "nics_by_hand" not in row


@pytest.mark.long
def test_every_lie_is_compared_with_honest_readings() -> None:
    """Of the same fleet."""
    rows = list(lie_rows(Play("simulated", None, 20, 0, [], risk=0.3)))
    assert [row["case"] for row in rows] == ["outliers", "unsaturated", "liar, half", "liar, more", "all"]
    assert len({row["honest_pct"] for row in rows}) == len({row["nics_honest"] for row in rows}) == 1


@pytest.mark.parametrize("delta", [0.5, 2])
@pytest.mark.parametrize("numbers", [(1, 3), (2, 3)])
def test_the_brute_force_finds_the_optimum(numbers: tuple[int, ...], delta: float) -> None:
    """Tried over all patterns, it is as good as the search."""
    chains, rack = lemur.chains(numbers, delta), lemur.rack()
    found = BruteForce(chains, rack).fast(60)
    assert (found.tried, found.all_seconds) == (found.patterns, found.seconds)
    assert found.marginal == pytest.approx(best_plan(chains, rack).marginal_mbps, rel=1e-9)


def test_programs_for_each_allocation_give_nothing_else() -> None:
    """Of the patterns that were drawn, the best is at most the optimum, and the time for all is extrapolated."""
    force = BruteForce(lemur.chains((3,), 0.5), lemur.rack())
    found = force.published(0.2)
    assert found.marginal == pytest.approx(force.fast(60).marginal)
    assert found.all_seconds == pytest.approx(found.seconds * 4 / found.tried)


def test_infeasible_chains_have_no_optimum() -> None:
    assert BruteForce(lemur.chains((3,), 20), lemur.rack()).fast(60).marginal is None


@pytest.mark.long
def test_the_table_has_plans_brute_forces_and_replans(monkeypatch: pytest.MonkeyPatch) -> None:
    """With three servers; the gap is 0, and three times the least rate takes one move."""
    monkeypatch.setattr("benches.racks.SERVERS", (3,))
    monkeypatch.setattr("benches.racks.SETS", ("13",))
    table = run(largest=3, brute=2.0)
    assert list(table["method"]) == ["placer", "brute force, vectorised", "brute force", "placer", "replan", "replan"]
    assert list(table["gap_pct"])[3:] == [0, 0, 0] and list(table["moves"])[4:] == [0, 1]
    assert table["same_optimum"][1] == "yes"


def pool(nics: int = 1) -> EnginePool:
    """So many toy NICs, each of which takes two of `d`."""
    engine = Engine(Fleet(catalogue((nics, 1.0)).kinds), [ToyOracle()])
    return EnginePool(engine, WhatIf(engine))


def tenant(number: int) -> Tenant:
    """An instance of `d`."""
    return Tenant(str(number), Workload("d", TOY_TRAFFIC), Sla(max_drop=0.9))


@pytest.mark.parametrize("way", [BETTER_OF_TWO, RANDOM, IN_TURN])
def test_an_arrival_is_rejected_only_where_all_pools_refuse_it(way: str) -> None:
    """Three NICs in three pools take six; with one try each, a pool that is full ends the search."""
    pools = Pools([pool() for _ in range(3)], way, random.Random(0), tries=3)
    assert [pools.place(tenant(number)) is not None for number in range(7)] == [True] * 6 + [False]
    assert pools.in_use == [1, 1, 1]


def test_an_arrival_goes_where_no_nic_has_to_be_opened() -> None:
    """The second of two goes to the NIC of the first, whichever pool that is."""
    for seed in range(10):
        pools = Pools([pool(), pool()], BETTER_OF_TWO, random.Random(seed), tries=2)
        assert pools.place(tenant(1)) is pools.place(tenant(2))


def test_rising_loads_are_measured_into_a_folder_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two runs at least, since one trains and the others judge; experiments read what was written."""
    monkeypatch.setattr(shares, "NF_PAIRS", (("ACL", "Match"),))
    monkeypatch.setattr(chains, "FLOW_STEP", 50_000.0)
    table = chains.run(out=tmp_path, part="loads", rounds=1)
    assert set(table["chain"]) == {"ACL", "Match", "ACL-Match", "Match-ACL"}
    assert (table["loads"] == 2).all() and (table["runs"] == 4).all()
    assert len(loads.load_runs(Setting(chains=tmp_path)).chains) == 6


def test_options_that_chains_would_ignore_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="loads has shares, sizes and flows of its own"):
        chains.run(out=tmp_path, part="loads", size=[512.0])
    with pytest.raises(InputError, match="'NAT' is not two functions"):
        chains.run(out=tmp_path, pair=["NAT"])


@pytest.mark.long
def test_chains_that_cannot_be_predicted_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without their functions, with too few settings, or without the measure."""
    monkeypatch.setattr(chain_prediction, "RUN_COUNTS", (6, 99))
    monkeypatch.setattr(chain_prediction, "plain_methods", dict)
    monkeypatch.setattr(scaling, "TARGET_SHARES", (0.6,))
    monkeypatch.setattr(scaling, "ALLOCATED_SHARES", (0.5, 1.0))
    table = chains.run(out=tmp_path, pair=["NAT,LB"], share=[0.5, 1.0], size=[128.0, 1400.0], rounds=1)
    assert set(table["chain"]) == {"NAT-LB", "LB-NAT"}
    with pytest.raises(InputError, match="no chain has latency_p95_us"):
        list(chain_prediction.measured_rows(tmp_path, "latency_p95_us", range(1)))
    *rows, mean = chain_prediction.measured_rows(tmp_path, "throughput_kpps", range(1))
    assert [(row["chain"], row["runs"]) for row in rows] == [("NAT-LB", 6), ("LB-NAT", 6)] and mean["runs"] == 6
    assert "NAT-LB: 99 of its 10 settings leave fewer than 3 to predict" in capsys.readouterr().err
    monkeypatch.setattr(chain_prediction, "RUN_COUNTS", (10,))
    with pytest.raises(InputError, match="has no chain at 13 settings whose functions ran alone"):
        list(chain_prediction.measured_rows(tmp_path, "throughput_kpps", range(1)))


def test_a_latency_is_paired_with_the_throughput_of_the_same_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one run of a setting has no latency, too."""
    table = pd.read_csv(Path(__file__).parents[2] / "traces" / "netns" / "chains.csv")
    table = table[table["order"].isin(["nginx", "squid", "nginx,squid"])].reset_index(drop=True)
    table["latency_p95_us"] = 1000 * table["throughput_kpps"]
    table.loc[np.flatnonzero(table["order"] == "nginx,squid")[1], "latency_p95_us"] = np.nan
    table.to_csv(tmp_path / "chains.csv", index=False)
    pairs = []
    monkeypatch.setattr(chain_prediction, "mean_errors", lambda chain, *rest: pairs.append((chain, rest[-1][0])) or {})
    list(chain_prediction.measured_rows(tmp_path, "latency_p95_us", range(1)))
    for latency, throughput in pairs:
        assert sorted(map(len, latency.repeats))[:2] == [2, 3]
        np.testing.assert_array_equal(np.concatenate(latency.repeats), 1000 * np.concatenate(throughput.repeats))


def test_the_least_allocation_is_judged_by_a_sweep_of_other_runs() -> None:
    """A chain whose first share counts much, and its second one little: a model that says so is right for all targets;
    one that promises half as much again, or has its NFs swapped, for none. Without a sweep at shares alone, nothing is
    judged."""
    amounts = (0.3, 0.6, 1.0)
    shares = np.array(list(product(amounts, repeat=2)))
    repeats = [np.array([1.0, 1.0, 1.02]) * first * (7 + 3 * second) for first, second in shares]
    chain = chain_prediction.RepeatedChain(["a.cpu", "b.cpu"], shares, repeats)

    class Model:
        runs = None

        def __init__(self, factor: float, first: str = "a.cpu", second: str = "b.cpu") -> None:
            self.factor, self.first, self.second = factor, first, second

        def predict(self, columns: dict[str, np.ndarray]) -> ChainPredictions:
            reached = self.factor * columns[self.first] * (7 + 3 * columns[self.second])
            return ChainPredictions(reached, reached, reached, [], np.zeros(len(reached), dtype=bool))

    def judge(model: Model, of: chain_prediction.RepeatedChain = chain, seen: int = 0) -> dict[str, float]:
        return of.scaled_pct(model, [seen] * len(of.at))  # type: ignore[arg-type]

    assert judge(Model(1.0)) == {"scaled_pct": 100.0, "swept_pct": 100.0}
    assert judge(Model(1.5))["scaled_pct"] == judge(Model(1.0, "b.cpu", "a.cpu"))["scaled_pct"] == 0.0
    wrong = [np.append(values[1:], 2 * values[0]) for values in repeats]
    noisy = chain_prediction.RepeatedChain(chain.names, shares, wrong)
    assert judge(Model(1.0), noisy, 2) == {"scaled_pct": 100.0, "swept_pct": 0.0}
    order = chain_prediction.MeasuredOrder(chain.names, shares, repeats, ["a", "b"])
    assert [list(kind.allocated(np.array([0.3, 0.4]))) for kind in (chain, order)] == [[0.3, 0.35, 0.4], [0.3, 0.4]]
    sizes = chain_prediction.RepeatedChain(["a.cpu", "packet_size"], shares * [1, 512], repeats)
    for other in (chain_prediction.RepeatedChain(chain.names, shares[1:], repeats[1:]), sizes):
        assert judge(Model(1.0), other) == {}


@pytest.mark.long
def test_random_gpus_are_simulated_ones_with_other_times() -> None:
    """Their sizes stay, all else is up to twice as large or small; the same number is the same card. Too high a rate is
    never kept on it."""
    sizes = {(card.executors_per_sm, card.packets_per_executor) for card, _ in SIMULATED_GPUS.values()}
    sms = set()
    for number in range(10):
        nic = gpu_admission.draw_gpu(number).describe().nic
        assert (nic.executors_per_sm, nic.packets_per_executor) in sizes
        assert nic == gpu_admission.draw_gpu(number).describe().nic
        assert nic.sms and 7 <= nic.sms <= 60
        sms.add(nic.sms)
    assert len(sms) > 5
    gpu = gpu_admission.draw_gpu(0)
    plans = gpu_admission.MeasuredPlans(gpu)
    slo = LatencySlo("a", gpu.describe().nfs[0].name, 50.0, 1e6)
    admitted = [
        replace(Admitted(slo, 8, order, (SmShare(order, 8),)), slo=replace(slo, id=str(order))) for order in (0, 1)
    ]
    alone, both = plans.p99_us(admitted[:1]), plans.p99_us(admitted)
    assert 0 < alone[0] < 1e6 and len(both) == 2 and max(both) >= alone[0]
    slow = [replace(tenant, slo=replace(slo, rate_kpps=1e5)) for tenant in admitted[:1]]
    assert plans.p99_us(slow) == [float("inf")]
