"""`--testbed netns`: chains of real programs in network namespaces, where this machine lets one make them."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from profiler.testbed import Measurement, RunRefused, Testbed, TestbedError
from profiler.testbeds import netns, open_testbed
from profiles import ChainLoad, InputError, TrafficProfile, Workload

START = """
import time
from profiler.testbeds import open_testbed
from profiles import Workload
testbed = open_testbed("netns:1")
testbed.run([Workload(testbed.describe().nfs[0].name, testbed.describe().traffic)])
print("runs", flush=True)
time.sleep(60)
"""


@pytest.fixture
def testbed() -> Iterator[Testbed]:
    """With runs of a second."""
    try:
        opened = open_testbed("netns:1")
        with opened:
            opened.run([Workload(opened.describe().nfs[0].name, opened.describe().traffic)])
            yield opened
    except InputError as error:
        pytest.skip(f"{error}")


def left_over(process: int = os.getpid()) -> list[str]:
    """The namespaces and control groups of a process."""
    spaces = Path("/run/netns").glob(f"{netns.NAMES}{process}-*")
    groups = [
        folder
        for parent in ("cpu", "cpuacct", ".")
        for folder in (netns.CGROUPS / parent).glob(f"{netns.NAMES}{process}-*")
    ]
    return sorted(map(str, [*spaces, *groups]))


@pytest.mark.long
def test_a_chain_carries_more_with_more_of_a_cpu(testbed: Testbed) -> None:
    """Two programs with a tenth of the share carry less, and a longer chain no more than its programs alone."""
    names, traffic = [nf.name for nf in testbed.describe().nfs][:2], testbed.describe().traffic

    def runs(count: int) -> tuple[Measurement, Measurement]:
        """The best of three runs with each share, in turn: other work only takes from them."""
        measured = [
            [
                testbed.run(
                    [ChainLoad.of(names[:count], [[at] for at in range(count)], traffic, shares=[share] * count)]
                ).measurements[0]
                for share in (0.1, 1.0)
            ]
            for _ in range(3)
        ]
        little, much = (max(of_share, key=lambda run: run.throughput_kpps) for of_share in zip(*measured, strict=True))
        return little, much

    for count in range(1, len(names) + 1):
        little, longest = runs(count)
        assert 0 < little.throughput_kpps < 0.7 * longest.throughput_kpps
    assert longest.latency_us and longest.latency_us.p50 <= longest.latency_us.p99 <= longest.latency_us.max
    assert longest.latency_us.p95 and longest.latency_us.p50 <= longest.latency_us.p95 <= longest.latency_us.p99
    assert [stage.throughput_kpps for stage in longest.stages] == [longest.throughput_kpps] * len(names)
    assert all(0 < (stage.cpu_pct or 0) < 120 for stage in longest.stages)
    assert left_over()
    testbed.close()
    assert left_over() == []


@pytest.mark.long
def test_what_it_cannot_run_is_refused(testbed: Testbed) -> None:
    """An offered rate, a share that the kernel does not take, and two loads."""
    description = testbed.describe()
    name = description.nfs[0].name
    one = ChainLoad.of([name], [[0]], description.traffic)
    refused = {
        "it offers no rate": [ChainLoad.of([name], [[0]], description.traffic, rate_kpps=1.0)],
        "share 0.001 is below": [ChainLoad.of([name], [[0]], description.traffic, shares=[0.001])],
        "one chain at a time": [one, one],
    }
    for said, loads in refused.items():
        with pytest.raises(RunRefused, match=said):
            testbed.run(loads)


@pytest.mark.long
def test_what_a_killed_process_left_is_removed(testbed: Testbed) -> None:
    """Its namespaces, groups and programs end when the next testbed opens."""
    process = subprocess.Popen([sys.executable, "-c", START], stdout=subprocess.PIPE)
    assert process.stdout and process.stdout.readline() == b"runs\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert left_over(process.pid)
    with open_testbed("netns"):
        assert left_over(process.pid) == []


def test_programs_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, with the packages to install."""
    monkeypatch.setattr(netns, "_path_of", lambda program: None)
    with pytest.raises(
        InputError, match=r"not installed: ip, nsenter, taskset, wrk, nginx[\s\S]*apt-get install haproxy"
    ):
        open_testbed("netns")
    with pytest.raises(InputError, match="a run takes"):
        open_testbed("netns:soon")


def add_missing(latencies: list[int], us: int, flows: int) -> list[list[int]]:
    """The times of answers and their numbers as wrk counts them, with those that it believes were never asked for."""
    interval, counts = us // (len(latencies) // flows), Counter(latencies)
    for latency in latencies:
        if latency >= 2 * interval:
            counts.update(range(latency - interval, interval, -interval))
    return [[latency, counts[latency]] for latency in sorted(counts)]


def test_answers_that_wrk_adds_are_not_measured() -> None:
    """Sixteen connections wait for a program that runs in a quarter of the time: the mean is what they wait for."""
    rng, flows, us = np.random.default_rng(0), 16, 1_000_000
    latencies = [*rng.integers(400, 500, 9_000).tolist(), *rng.integers(37_000, 38_000, 310).tolist()]
    counted = add_missing(latencies, us, flows)
    assert sum(count for _, count in counted) > 1.5 * len(latencies)
    latency = netns.measured_latency(counted, len(latencies), us, flows)
    shortest = sorted(latencies)
    assert latency.mean == pytest.approx(np.mean(latencies))
    assert (latency.p50, latency.p99) == (shortest[len(latencies) // 2 - 1], shortest[int(0.99 * len(latencies))])
    assert latency.p95 == shortest[int(0.95 * len(latencies))] < 500
    assert latency.max == shortest[-1]
    few = [700, 900, 1_100]  # fewer than connections: wrk adds none
    assert netns.measured_latency([[us, 1] for us in few], 3, us, flows).mean == 900


def test_latencies_that_cannot_be_are_refused() -> None:
    """More requests wait than there are connections, or others were counted than answered."""
    with pytest.raises(TestbedError, match="that 32 of them wait on average on 16 connections"):
        netns.measured_latency([[100_000, 320]], 320, 1_000_000, 16)
    with pytest.raises(TestbedError, match="321 latencies of 320 requests"):
        netns.measured_latency([[1_000, 321]], 320, 1_000_000, 16)


def test_a_group_that_is_not_there_is_removed_at_once(tmp_path: Path) -> None:
    """As where version 1 has the times of CPUs in the group of their limits."""
    began = time.monotonic()
    netns._remove_group(tmp_path / "gone")
    assert time.monotonic() - began < 1


def test_connections_that_end_unanswered_are_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless tinyproxy ends them, once after each answer; connections that are never served are reported."""
    report = {"requests": 100, "us": 1_000_000, "failed": 0, "ended": 100, "latency": [[30_000, 100]], "cpu": [0.1]}
    monkeypatch.setattr(netns.RunningChain, "_start", lambda self: None)
    monkeypatch.setattr(netns.RunningChain, "_generate", lambda self, path, flows, seconds: report)

    def measured(*names: str) -> Measurement:
        running = netns.RunningChain(1, names, ((0, 1),), [0, 1], 1.0)
        running._folder, running._groups = tmp_path, [SimpleNamespace(limit=lambda share: None)]  # type: ignore[list-item]
        return running.measure(ChainLoad.of(names, [[0, 1]], TrafficProfile(16, 512)), 0.25, 1)

    assert measured("socat", "tinyproxy").stages[0].cpu_pct == 40
    assert "socat,tinyproxy serves about 3 of 16 connections" in capsys.readouterr().err
    with pytest.raises(TestbedError, match="nginx,tinyproxy: 100 requests failed beside 100 that were answered"):
        measured("nginx", "tinyproxy")
