"""Offered rates and numbers of cores on the host testbed; skipped if it is not built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from placer.testing import check_testbed
from profiler.testbed import Run, TestbedWrapper
from profiler.testbeds.exec import ExecTestbed
from profiles import Load, TestbedDescription
from tests.nfs.testbed_program import ACCEPTS_NOISE, DESCRIBE, QUICK, measured_or_skip, responses_to, run_request

TWO_CORES = ("--counters", "none", "--cores", "0,1")
BEST_EFFORT = (*ACCEPTS_NOISE, "--windows", "5,30", "--best-effort")
REPEATS = 3  # of runs that are compared, one after the other: the speed of a machine changes from second to second


def nf(name: str = "FlowStats", *, flows: int = 1000, **more: object) -> dict[str, Any]:
    return {"kind": "nf", "name": name, "traffic": {"flows": flows, "packet_size": 64}, **more}


@dataclass(frozen=True)
class Carried:
    """What the NFs of a run carry together (kpps), and by what share of it the truth may differ."""

    kpps: float
    error: float

    def agrees(self, kpps: float, least: float) -> bool:
        """Whether it is within its error of `kpps`, or within the share `least` of it."""
        return self.kpps == pytest.approx(kpps, rel=max(least, self.error))


def carried(program: Path, *runs: list[dict[str, Any]]) -> list[Carried]:
    """Of each run, the median of repeats; the error is four standard errors of the worst one."""
    lines = [run_request(*loads) for loads in runs] * REPEATS
    answers = responses_to(program, *TWO_CORES, *BEST_EFFORT, lines=lines)
    assert all(answer["ok"] for answer in answers), answers
    sums = [sum(workload["throughput_kpps"] for workload in answer["workloads"]) for answer in answers]
    errors = [max(workload["standard_error_pct"] for workload in answer["workloads"]) / 25 for answer in answers]
    return [Carried(median(sums[at :: len(runs)]), max(errors[at :: len(runs)])) for at in range(len(runs))]


def test_describes_rates_and_the_cores_that_there_are(program: Path) -> None:
    """Each NF can be given one or both of two cores, and one where clients share it."""
    for options, counts in ((TWO_CORES, [1, 2]), ((*TWO_CORES, "--share-client-core"), [1])):
        described = responses_to(program, *options, lines=[DESCRIBE])[0]["testbed"]
        assert described["paced"] is True
        assert all(nf["core_counts"] == counts and nf["cores"] == 1 for nf in described["nfs"])


@pytest.mark.parametrize("name", ["FlowStats", "NAT"])
def test_an_nf_carries_its_rate_or_its_capacity(program: Path, name: str) -> None:
    """A third of its capacity; of three times as much, what it carries as fast as it goes."""
    (capacity,) = carried(program, [nf(name)])
    third, above = capacity.kpps / 3, capacity.kpps * 3
    fastest, paced, overloaded = carried(program, [nf(name)], [nf(name, rate_kpps=third)], [nf(name, rate_kpps=above)])
    assert paced.kpps <= third and paced.agrees(third, 0.01)
    assert overloaded.agrees(fastest.kpps, max(0.1, fastest.error))


def test_latency_is_measured_at_a_rate(program: Path) -> None:
    """Without a rate there is none; above the capacity, packets wait as long as they may."""
    requests = [run_request(nf(**more)) for more in ({}, {"rate_kpps": 50}, {"rate_kpps": 1e6})]
    answers = responses_to(program, *TWO_CORES, *BEST_EFFORT, lines=requests)
    closed, slow, overloaded = (answer["workloads"][0] for answer in answers)
    assert "latency_us" not in closed
    latency = slow["latency_us"]
    assert 0 < latency["p50"] <= latency["p99"] <= latency["max"] and 0 < latency["mean"] <= latency["max"]
    assert overloaded["latency_us"]["p50"] > 150


def test_tables_are_filled_before_a_low_rate_counts(program: Path) -> None:
    """At 1,000 packets a second, all flows would have been seen after 100 s."""
    request = run_request(nf(flows=100_000, rate_kpps=1))
    (answer,) = responses_to(program, *TWO_CORES, *BEST_EFFORT, "--timeout", "60", lines=[request])
    assert answer["ok"] and answer["workloads"][0]["throughput_kpps"] == pytest.approx(1, rel=0.2)


def test_two_cores_are_two_copies_with_half_of_the_flows(program: Path) -> None:
    """They carry what two NFs carry beside each other; at a rate, all of it together."""
    on_two, halves = carried(program, [nf("NAT", flows=2000, cores=2)], [nf("NAT"), nf("NAT")])
    assert on_two.agrees(halves.kpps, max(0.1, halves.error))
    third = on_two.kpps / 3
    (paced,) = carried(program, [nf("NAT", flows=2001, cores=2, rate_kpps=third)])
    assert paced.kpps <= third and paced.agrees(third, 0.01)


def test_a_copy_without_flows_carries_nothing(program: Path) -> None:
    """All packets of one flow come to one core."""
    on_two, on_one = carried(program, [nf(flows=1, cores=2)], [nf(flows=1)])
    assert on_two.agrees(on_one.kpps, max(0.1, on_one.error))


@pytest.mark.slow
def test_copies_have_counters_together(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Per packet those of one copy, which is counted once; the working sets of both; `ipc` is of one core."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    requests = [run_request(nf(flows=flows, cores=cores)) for flows, cores in ((8000, 1), (16_000, 2))]
    answers = measured_or_skip(program, "--cores", "0,1", *ACCEPTS_NOISE, lines=requests)
    one, two = (answer["workloads"][0] for answer in answers)
    assert len(list((tmp_path / "nf-placer" / "counts").glob("*.json"))) == 1
    for workload in (one, two):
        workload["per_packet"] = workload["counters"]["irt"] / workload["throughput_kpps"]
        workload["per_cycle"] = workload["counters"]["ipc"] / workload["throughput_kpps"]
    assert two["per_packet"] == pytest.approx(one["per_packet"])
    assert two["per_cycle"] == pytest.approx(one["per_cycle"] / 2)
    assert two["counters"]["wss"] == pytest.approx(2 * one["counters"]["wss"])


class FewNfs(TestbedWrapper):
    """A testbed that describes some of its NFs only."""

    def __init__(self, inner: ExecTestbed, names: set[str]) -> None:
        super().__init__(inner)
        self._names = names

    def run_many(
        self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
    ) -> list[Run]:
        return self._inner.run_many(co_locations, noise=noise, seed=seed)

    def describe(self) -> TestbedDescription:
        described = self._inner.describe()
        return described.model_copy(update={"nfs": tuple(nf for nf in described.nfs if nf.name in self._names)})


def test_the_host_conforms(program: Path) -> None:
    """To what the conformance kit demands of a testbed with rates and cores; a busy machine changes no fact of it."""
    options = (*QUICK, *TWO_CORES, "--best-effort", "--windows", "5,20", "--standard-error", "50")
    with ExecTestbed(" ".join([str(program), *options])) as testbed:
        check_testbed(FewNfs(testbed, {"Encrypt", "NAT"}))
