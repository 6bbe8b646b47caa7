"""Experiments on this machine, run with testbeds whose throughputs are known."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from experiments.registry import Setting
from experiments.tomur import figure4_host, figure9_host, table2_host
from profiler.simulated import SimulatedTestbed
from profiler.testbed import Measurement, Run, Testbed
from profiles import BenchLoad, Counters, Load, NicModel, TestbedDescription

TINY = Setting(scale=0.1)
NOTHING = Counters.from_mapping(dict.fromkeys(("ipc", "irt", "l2crd", "l2cwr", "memrd", "memwr", "wss"), 0.0))


class RoundRobin(Testbed):
    """An engine that serves one request of each user in turn: 1 us for one of the NF, 2 us for one of the bench."""

    def describe(self) -> TestbedDescription:
        usual = {"flows": 1000.0, "packet_size": 1500.0, "mtbr": 0.0}
        nic = NicModel(model="toy", cores=2)
        return TestbedDescription(name="toy", nic=nic, attributes={}, default_traffic=usual, nfs=())

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        if len(loads) == 1:
            return _run(1000.0 if not isinstance(loads[0], BenchLoad) else 500.0)
        assert isinstance(loads[1], BenchLoad)
        if loads[1].name == "mem-bench":
            return _run(1000 / 3, 1.0)
        rate = dict(loads[1].parameters)["rate_kpps"]
        equal = 1 / (1 / 1000 + 1 / 500)
        if rate == 0 or rate > equal:
            return _run(equal, equal)
        return _run(1000 * (1 - rate / 500), rate)


def _run(*kpps: float) -> Run:
    return Run(tuple(Measurement(one, NOTHING) for one in kpps))


def test_a_round_robin_engine_follows_the_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    """On an engine that obeys equations 2 and 8, figure 4 finds no distance from them."""
    monkeypatch.setattr(figure4_host, "open_host_testbed", lambda setting, *options: RoundRobin())
    table = figure4_host.run(TINY).table.set_index("quantity")["ours"]
    distances = [value for name, value in table.items() if " distance " in str(name)]
    assert distances and distances == pytest.approx([0.0] * len(distances), abs=0.1)


def test_distances_are_computed_within_each_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that slows down between repeats is as close to the equations as one that does not."""

    class Slowing(RoundRobin):
        runs = 0

        def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
            self.runs += 1
            # one run to find the rates, then six of each repeat
            speed = 0.5 if self.runs > 7 else 1.0
            unlimited = len(loads) == 1 or dict(loads[1].parameters)["rate_kpps"] == 0  # type: ignore[union-attr]
            run = super().run(loads)
            return _run(*(speed * one.throughput_kpps for one in run.measurements)) if unlimited else run

    monkeypatch.setattr(figure4_host, "open_host_testbed", lambda setting, *options: Slowing())
    table = figure4_host.run(TINY).table.set_index("quantity")["ours"]
    assert table.filter(like="distance from equation 2").to_list() == pytest.approx([0.0, 0.0], abs=1e-6)
    assert table.filter(like="equilibrium, standard error").iloc[0] > 1


def test_drops_are_relative_to_the_throughput_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the throughput with the bench is a drop of 66.7 %, for every flow count."""
    monkeypatch.setattr(figure9_host, "open_host_testbed", lambda setting, *options: RoundRobin())
    data = figure9_host.run(TINY).data["throughput"]
    assert set(data["flows"]) == set(figure9_host.FLOW_COUNTS)
    assert data["drop_pct"].to_list() == pytest.approx([200 / 3] * len(data))


@pytest.mark.long
def test_every_predictor_is_scored_on_the_same_test_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """So is the throughput measured alone; the scores use measured throughputs."""
    monkeypatch.setattr(table2_host, "open_host_testbed", lambda setting, *options: SimulatedTestbed())
    monkeypatch.setattr(table2_host, "find_program", lambda: Path(__file__))
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path)
    result = table2_host.run(TINY)
    co_runs = result.data["corun"]
    alone = result.table[result.table["predictor"] == table2_host.MEASURED_ALONE].set_index("nf")["mape_pct"]
    for nf, rows in co_runs.groupby("nf"):
        with_bench = rows[rows["neighbour"] == "mem-bench"]
        expected = 100 * (with_bench["alone_kpps"] / with_bench["throughput_kpps"] - 1).abs().mean()
        assert alone[f"{nf}, {table2_host.WITH_BENCH}"] == pytest.approx(expected)
    assert set(result.table["predictor"]) == {"slomo", "tomur", table2_host.MEASURED_ALONE, table2_host.PREDICTED_ALONE}
    assert len(list(tmp_path.glob("profile-host-*/testbed.json"))) == 1
