"""Experiments on the machine at hand, judged with a testbed whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from experiments.methodology import host
from experiments.methodology.host import Measured, measure, open_host
from experiments.registry import CannotRun, Setting
from experiments.tomur import figure4_host, figure9_host, table2_host
from profiler.simulated import SimulatedTestbed
from profiler.testbed import Measurement, Run, Testbed, TestbedError
from profiles import BenchLoad, Counters, InputError, Load, NicModel, TestbedDescription

TINY = Setting(scale=0.1)
NOTHING = Counters.from_mapping(dict.fromkeys(("ipc", "irt", "l2crd", "l2cwr", "memrd", "memwr", "wss"), 0.0))


class RoundRobin(Testbed):
    """An engine that serves one request of each user in turn: 1 us for the NF's, 2 us for the bench's."""

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
    """Where the engine is what equations 2 and 8 say, figure 4 on the host finds no distance from them."""
    monkeypatch.setattr(figure4_host, "open_host", lambda setting, *options: RoundRobin())
    table = figure4_host.run(TINY).table.set_index("quantity")["ours"]
    off = [value for name, value in table.items() if " off " in str(name)]
    assert off
    assert off == pytest.approx([0.0] * len(off), abs=0.1)


def test_distances_are_those_of_each_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that slows down from repeat to repeat is as near to the equations as one that does not."""

    class Slowing(RoundRobin):
        runs = 0

        def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
            self.runs += 1
            # one run to find the rates, then six of each repeat
            speed = 0.5 if self.runs > 7 else 1.0
            flat_out = len(loads) == 1 or dict(loads[1].parameters)["rate_kpps"] == 0  # type: ignore[union-attr]
            told = super().run(loads)
            return _run(*(speed * one.throughput_kpps for one in told.measurements)) if flat_out else told

    monkeypatch.setattr(figure4_host, "open_host", lambda setting, *options: Slowing())
    table = figure4_host.run(TINY).table.set_index("quantity")["ours"]
    assert table.filter(like="off equation 2").to_list() == pytest.approx([0.0, 0.0], abs=1e-6)
    assert table.filter(like="equilibrium, spread").iloc[0] > 1


def test_drops_are_told_against_the_throughput_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the throughput left beside the bench is a drop of 66.7 %, for every flow count."""
    monkeypatch.setattr(figure9_host, "open_host", lambda setting, *options: RoundRobin())
    data = figure9_host.run(TINY).data["throughput"]
    assert set(data["flows"]) == set(figure9_host.FLOWS)
    assert data["drop_pct"].to_list() == pytest.approx([200 / 3] * len(data))


def test_spread_is_the_standard_error() -> None:
    """Of 1, 2 and 3 the mean is 2 and its standard error 1/sqrt(3); one measurement tells none."""
    measured = Measured(np.array([[1.0], [2.0], [3.0]]))
    assert measured.mean[0] == 2.0
    assert measured.standard_error[0] == pytest.approx(1 / np.sqrt(3))
    assert Measured(np.array([[1.0]])).standard_error[0] == 0.0


def test_without_a_host_testbed_it_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A testbed that is not built is a reason to skip, with the hint of what to do."""

    def refuse(spec: str) -> Testbed:
        raise InputError.of("--testbed", "host: is not built", hint="make nfs")

    monkeypatch.setattr(host, "open_testbed", refuse)
    with pytest.raises(CannotRun, match=r"is not built \(make nfs\)"):
        open_host(TINY)


def test_a_machine_that_is_too_noisy_cannot_run_it() -> None:
    """What the testbed cannot measure is told, not guessed."""

    class Noisy(RoundRobin):
        def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
            raise TestbedError("too-noisy: standard error 3 %")

    with pytest.raises(CannotRun, match="standard error 3 %"):
        measure(Noisy(), [[]], TINY)


def test_accuracy_is_that_of_fresh_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every model, and taking what was measured alone for it, is scored on the same co-runs with measured truth."""
    monkeypatch.setattr(table2_host, "open_host", lambda setting, *options: SimulatedTestbed())
    monkeypatch.setattr(table2_host, "find_program", lambda: Path(__file__))
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path)
    result = table2_host.run(TINY)
    co_runs = result.data["corun"]
    alone = result.table[result.table["predictor"] == table2_host.ALONE].set_index("nf")["mape_pct"]
    for nf, rows in co_runs.groupby("nf"):
        beside = rows[rows["neighbour"] == "mem-bench"]
        expected = 100 * (beside["alone_kpps"] / beside["throughput_kpps"] - 1).abs().mean()
        assert alone[f"{nf}, {table2_host.BESIDE_BENCH}"] == pytest.approx(expected)
    assert set(result.table["predictor"]) == {"slomo", "tomur", table2_host.ALONE, table2_host.SOLO}
    assert len(list(tmp_path.glob("profile-host-*/testbed.json"))) == 1
