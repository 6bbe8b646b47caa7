"""The simulated testbeds against published measurements and recorded profiles."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from placer.inputs.catalogue import Cards, open_catalogue
from placer.inputs.models import find_recorded
from predictor import Models, train
from profiler.chains.plan import ChainRequest
from profiler.chains.profiling import profile_chains
from profiler.latency import profile_latency
from profiler.profiling import profile
from profiler.simulated import BLUEFIELD_2_CONTENDED, CONTENDED_NFS, SimulatedServer, SimulatedTestbed
from profiler.testbeds import open_testbed
from profiles import BenchLoad, InputError, Load, TrafficProfile, Workload
from profiles.chain_table import ORDER_COLUMN, read_chains
from profiles.profile import read_profile

TABLE_2 = ("ACL", "NIDS", "IPTunnel", "IPRouter", "FlowClassifier", "FlowTracker", "FlowStats", "FlowMonitor", "NAT")
TESTBED = SimulatedTestbed()
CONTENDED = SimulatedTestbed(card=BLUEFIELD_2_CONTENDED, nfs=CONTENDED_NFS)


def first(co_locations: Sequence[Sequence[Load]], testbed: SimulatedTestbed = TESTBED) -> np.ndarray:
    """Noise-free throughput (kpps) of the first load of each co-location."""
    return np.array([run.measurements[0].throughput_kpps for run in testbed.run_many(co_locations, noise=False)])


def nf(name: str, flows: float = 16000, packet_size: float = 1500, mtbr: float = 600) -> Workload:
    return Workload(name, TrafficProfile(flows, packet_size, mtbr))


def mem_bench(wss_mb: float, access_mops: float) -> BenchLoad:
    return BenchLoad.of("mem-bench", {"wss_mb": wss_mb, "access_mops": access_mops})


def regex_bench(mtbr: float, rate_kpps: float) -> BenchLoad:
    return BenchLoad.of("regex-bench", {"mtbr": mtbr, "rate_kpps": rate_kpps, "packet_size": 1500})


def drops(name: str, testbed: SimulatedTestbed = TESTBED) -> list[float]:
    """Median and 95th percentile of the drop (%) with one, two or three others, each number as likely."""
    others = [nf(other) for other in TABLE_2 if other != name]
    groups = [[[nf(name), *chosen] for chosen in combinations(others, count)] for count in (1, 2, 3)]
    dropped = np.concatenate([100 * (1 - first(group, testbed) / first([[nf(name)]], testbed)) for group in groups])
    weights = np.concatenate([np.full(len(group), 1 / len(group) / 3) for group in groups])
    order = np.argsort(dropped)
    reached = np.cumsum(weights[order])
    return [float(dropped[order][np.searchsorted(reached, share)]) for share in (0.5, 0.95)]


@pytest.fixture(scope="module")
def figure_1() -> pd.DataFrame:
    """Of each NF."""
    return pd.DataFrame.from_dict({name: drops(name) for name in TABLE_2}, orient="index", columns=["median", "p95"])


def test_drops_lie_in_the_bands_of_figure_1(figure_1: pd.DataFrame) -> None:
    """Medians lie between 1.9 and 10.6 %, 95th percentiles between 4.2 and 62.2 %, with a point of tolerance."""
    assert figure_1["median"].between(0.9, 11.6).all() and figure_1["p95"].between(3.2, 63.2).all()


def test_header_only_nfs_lose_least_and_regex_users_most(figure_1: pd.DataFrame) -> None:
    """The engine that two NFs share costs more than memory contention, if less than the paper's worst (62 %)."""
    assert set(figure_1["p95"].nsmallest(2).index) == {"ACL", "IPTunnel"}
    assert set(figure_1["p95"].nlargest(2).index) == {"FlowMonitor", "NIDS"} and figure_1["p95"].max() > 25


def test_two_regex_users_violate_a_usual_sla() -> None:
    """FlowMonitor, which saturates the engine, loses more than 20 % with any other user, and NIDS 15 % with it."""
    monitor, nids = nf("FlowMonitor"), nf("NIDS")
    alone, twice, mixed = first([[monitor], [monitor, monitor], [monitor, nids]])
    assert max(twice, mixed) < 0.8 * alone
    together, alone = first([[nids, monitor], [nids]])
    assert together < 0.85 * alone


def test_regex_drop_is_linear_then_flat() -> None:
    """Figure 4: each request of the bench takes one of FlowMonitor until both are served equally often."""
    measured = first([[nf("FlowMonitor"), regex_bench(600, rate)] for rate in [100, 200, 300, 1000, 2000, 0]])
    assert np.diff(measured[:3]) == pytest.approx([-100, -100], rel=0.02)
    assert measured[3:] == pytest.approx(measured[3], rel=0.001)
    both = TESTBED.run([nf("FlowMonitor"), regex_bench(600, 0)], noise=False).measurements
    assert both[0].throughput_kpps == pytest.approx(both[1].throughput_kpps, rel=0.001)


def test_pipeline_ignores_memory_while_the_engine_is_slower() -> None:
    """Figure 5: regex-bound FlowMonitor keeps its throughput with mem-bench, run-to-completion NIDS loses more."""
    for name, low, high in (("FlowMonitor", 0.995, 1.0001), ("NIDS", 0.5, 0.98)):
        calm, busy = first([[nf(name), regex_bench(600, 0)], [nf(name), regex_bench(600, 0), mem_bench(10, 180)]])
        assert low < busy / calm < high


def test_flowstats_loses_throughput_with_flows_until_it_misses_the_cache() -> None:
    """Figure 6: with a 10 MB competitor about 30 % down between 1 and 20K flows, nearly flat from 40K."""
    one, twenty, forty, sixty = first([[nf("FlowStats", flows), mem_bench(10, 100)] for flows in (1, 2e4, 4e4, 6e4)])
    assert 0.25 < 1 - twenty / one < 0.35 and 1 - sixty / forty < 0.03


def test_competitor_matters_by_size_below_the_cache_and_by_rate_above() -> None:
    """Figure 9: FlowStats loses more to a larger array, and above 6 MB more to a faster one."""
    assert (np.diff(first([[nf("FlowStats"), mem_bench(wss, 100)] for wss in (0.5, 2, 4, 8, 12)])) < 0).all()
    slow, fast = first([[nf("FlowStats"), mem_bench(10, rate)] for rate in (5, 100)])
    assert fast < 0.95 * slow


@pytest.mark.parametrize("name", ["FlowStats", "IPRouter", "NAT", "ACL", "FlowClassifier", "FlowTracker"])
def test_header_only_nfs_ignore_packet_size_and_matches(name: str) -> None:
    """An NF that reads headers runs as fast with large packets and matching payloads as with small ones."""
    measured = first([[nf(name, packet_size=size, mtbr=mtbr)] for size, mtbr in ((64, 0), (1500, 0), (1500, 1100))])
    assert measured == pytest.approx(measured[0], rel=0.01)


@pytest.mark.parametrize("name", ["IPRouter", "ACL"])
def test_nfs_without_flow_state_ignore_flows(name: str) -> None:
    """Table 1 marks IPRouter and ACL as insensitive to traffic."""
    measured = first([[nf(name, flows)] for flows in (1, 500000)])
    assert measured[0] == measured[1]


def test_iptunnel_halves_with_large_packets() -> None:
    """Fragmentation makes IPTunnel depend on packet size."""
    small, large = first([[nf("IPTunnel", packet_size=size)] for size in (64, 1500)])
    assert large < 0.5 * small


def test_flowmonitor_alone_follows_the_measured_curve() -> None:
    """Over flows, FlowMonitor without regex work is within 8 % of a BlueField-2 with little contention."""
    measured = {200: 1080, 900: 1000, 3000: 970, 8000: 870, 16000: 735, 30000: 650, 184000: 610}
    simulated = first([[nf("FlowMonitor", flows, mtbr=0)] for flows in measured])
    assert simulated == pytest.approx(list(measured.values()), rel=0.08)


@pytest.mark.parametrize(
    ("file", "mean", "most"), [("memory-default-traffic.csv", 0.04, 0.08), ("memory.csv", 0.09, 0.2)]
)
def test_flowmonitor_with_mem_bench_agrees_with_measurements(
    shared_data: Path, file: str, mean: float, most: float
) -> None:
    """With mem-bench set to the measured access rate and array, throughput agrees; the two files differ by
    20 % from each other at one configuration, and rows beyond the simulated flows are left out."""
    rows = pd.read_csv(shared_data / "flowmon-bf2" / "FlowMonitor" / file)
    rows = rows[rows["flows"] <= 500000]
    benches = [
        mem_bench(max(wss - 0.14, 0.1), min(reads / 1e6, 180))
        for wss, reads in zip(rows["wss"], rows["l2crd"], strict=True)
    ]
    simulated = first([[nf("FlowMonitor", f, mtbr=0), b] for f, b in zip(rows["flows"], benches, strict=True)])
    errors = abs(simulated / rows["throughput_kpps"].to_numpy() - 1)
    assert errors.mean() < mean and np.quantile(errors, 0.95) < most


@pytest.mark.parametrize("testbed", [TESTBED, CONTENDED], ids=lambda testbed: testbed.describe().name)
def test_mem_benches_span_the_contention_of_three_nfs(testbed: SimulatedTestbed) -> None:
    """Three benches at their maximum slow every NF more, and one at its minimum slows it less, than any three NFs."""
    for name in TABLE_2:
        users = ("FlowMonitor", "NIDS")
        co_location = [[nf(name), *map(nf, c)] for c in combinations([n for n in TABLE_2 if n not in users], 3)]
        hardest, lightest = first([[nf(name), *[mem_bench(24, 180)] * 3], [nf(name), mem_bench(0.1, 1)]], testbed)
        together = first(co_location, testbed)
        assert hardest < together.min() and lightest >= together.max()


def test_account_names_the_bottleneck_as_it_shifts_with_matches() -> None:
    """With mem-bench, FlowMonitor is bound by memory with few matches and by the regex engine with many."""
    benches = [mem_bench(10, 100), regex_bench(300, 200)]
    few, many = TESTBED.account([[nf("FlowMonitor", mtbr=80), *benches], [nf("FlowMonitor", mtbr=1000), *benches]])
    assert (few[0].bottleneck, many[0].bottleneck) == ("memory", "regex")
    assert few[0].lost_kpps["memory"] > few[0].lost_kpps["regex"]
    assert many[0].lost_kpps["regex"] > many[0].lost_kpps["memory"]
    (stats,) = TESTBED.account([[nf("FlowStats")]])[0]
    assert stats.bottleneck == "cpu" and stats.throughput_kpps == pytest.approx(stats.solo_kpps)
    assert 2e6 / sum(stats.core_ns.values()) == pytest.approx(stats.throughput_kpps, rel=0.001)


RECORDED = Path(__file__).parents[3] / "traces" / "server-simulated"


@pytest.mark.long
def test_recorded_runs_are_those_of_the_server(tmp_path: Path) -> None:
    """Profiling one NF with the seed and quota of the recorded profile measures the recorded bytes again."""
    recorded = profile(open_testbed("simulated:server"), tmp_path / "p", nfs=["Limiter"], quota=150)
    for file in ("testbed.json", "benches.csv", "Limiter/solo.csv", "Limiter/memory.csv"):
        assert (recorded / file).read_bytes() == (RECORDED / file).read_bytes()
    cycles, again = (json.loads((folder / "cycles.json").read_text()) for folder in (RECORDED, recorded))
    assert again["nfs"]["Limiter"] == cycles["nfs"]["Limiter"]
    assert {name: cycles[name] for name in cycles if name != "nfs"} == {
        name: again[name] for name in again if name != "nfs"
    }


def test_recorded_chains_are_those_of_the_server(tmp_path: Path) -> None:
    """A chain that is measured again with the seed of the recorded profile has the recorded rows."""
    here = read_chains(profile_chains(SimulatedServer(), tmp_path / "p", ChainRequest(["Limiter"])) / "chains.csv")
    there = read_chains(RECORDED / "chains.csv")
    there = there[there[ORDER_COLUMN] == "Limiter"].reset_index(drop=True)
    pd.testing.assert_frame_equal(here, there[here.columns], check_exact=True)


@pytest.mark.long
def test_recorded_latencies_are_those_of_the_server(tmp_path: Path) -> None:
    """Measured again with the seed of the recorded profile, byte by byte."""
    again = profile_latency(SimulatedServer(), tmp_path / "p", nfs=["LB"])
    assert (again / "LB" / "latency.csv").read_bytes() == (RECORDED / "LB" / "latency.csv").read_bytes()
    assert all(len(nf.latency) > 40 for nf in read_profile(RECORDED).nfs.values())


def test_recorded_chains_are_pairs_and_triples_with_their_nfs() -> None:
    """Thirty pairs and twelve triples, and each of the fourteen functions alone."""
    orders = read_chains(RECORDED / "chains.csv")[ORDER_COLUMN].unique()
    assert np.bincount([1 + order.count(",") for order in orders]).tolist() == [0, 14, 30, 12]
    assert not any("Null" in order for order in orders)


@pytest.fixture(scope="module")
def models() -> Models:
    """Of two functions of the recorded profile."""
    recorded = read_profile(RECORDED)
    return train(replace(recorded, nfs={name: recorded.nfs[name] for name in ("NAT", "UrlFilter")}), ["tomur"])


@pytest.mark.long
def test_models_are_trained_from_the_recorded_profile(models: Models) -> None:
    """On co-locations at default traffic, Tomur's mean error is below 3 %."""
    server, traffic = SimulatedServer(), SimulatedServer().describe().traffic
    names = [["NAT", "UrlFilter"], ["UrlFilter"] * 3, ["NAT"] * 4, ["NAT", "UrlFilter"] * 3]
    co_locations = [[Workload(name, traffic) for name in members] for members in names]
    predicted = models.predictors["tomur"].throughput(co_locations)
    for co_location, run, kpps in zip(co_locations, server.run_many(co_locations, noise=False), predicted, strict=True):
        truth = [one.throughput_kpps for one in run.measurements]
        assert np.mean(np.abs(np.array(kpps) / truth - 1)) < 0.03, co_location


@pytest.mark.long
def test_models_of_the_server_are_evaluated_on_it_alone(models: Models, tmp_path: Path) -> None:
    """It is their ground truth unless another is named, and a card is refused; the profile is found by its testbed."""
    models.save(tmp_path / "models")
    with ExitStack() as stack:
        own = open_catalogue(Cards(models=tmp_path / "models"), stack, lambda message: None)
        assert own.specs == ("simulated:server",)
        with pytest.raises(InputError, match="is a bluefield-2, the models were trained on a server-16"):
            open_catalogue(Cards(models=tmp_path / "models", testbed="simulated"), stack, lambda message: None)
    assert find_recorded("simulated:server") == RECORDED.name
