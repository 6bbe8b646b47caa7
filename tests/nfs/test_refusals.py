"""What the program of the host testbed refuses, and how it says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.exec import ExecTestbed
from profiler.testbed import RunRefused
from profiles import BenchLoad, TrafficProfile, Workload
from tests.nfs.talking import DESCRIBE, FLOW_STATS, QUICK, mem_bench, run_of, said, talk


@pytest.mark.parametrize(
    ("line", "faults"),
    [
        ("[1", ["not a JSON object"]),  # no JSON
        ("[1]", ["not a JSON object"]),  # JSON, but no object
        ({"id": 1, "op": "stop"}, ["op is not understood"]),  # an unknown operation
        (run_of(), ["workloads"]),  # nothing to run
        (run_of({"kind": "vm", "name": "x"}), ["nf or bench"]),  # an unknown kind
        (run_of(FLOW_STATS | {"name": "Teapot"}), ["NF Teapot is not known"]),
        (run_of(FLOW_STATS | {"traffic": {"flows": 100}}), ["needs packet_size"]),
        (run_of(FLOW_STATS | {"execution": "pipeline"}), ["cannot execute as pipeline"]),
        (run_of(mem_bench(wss_mb=1)), ["needs access_mops"]),
        (  # every fault at once
            run_of(
                FLOW_STATS | {"traffic": {"flows": -1, "packet_size": "big"}},
                mem_bench(wss_mb=1e9, access_mops=1, colour=3),
            ),
            ["flows -1 is outside", "packet_size is not a number", "wss_mb 1e+09 is outside", "no parameter colour"],
        ),
        (run_of(*[FLOW_STATS] * 16), ["needs 16 cores"]),  # more than any machine that runs these tests
    ],
)
def test_refuses_what_is_wrong(either: Path, line: object, faults: list[str]) -> None:
    """A bad request is refused with every fault named, and the next one is answered."""
    refused, described = talk(either, "--counters", "none", "--cores", "0,1", lines=[line, DESCRIBE])
    assert refused["ok"] is False and refused["error"]["code"] == "bad-request"
    for fault in faults:
        assert fault in refused["error"]["message"]
    assert described["id"] == 2 and described["ok"] is True


def test_a_refusal_is_not_retried(program: Path) -> None:
    """The client takes a bad request for what it is."""
    with ExecTestbed(" ".join([str(program), *QUICK, "--cores 0,1"])) as testbed, pytest.raises(RunRefused):
        testbed.run([Workload("FlowStats", TrafficProfile(100, 64))] * 3 + [BenchLoad.of("mem-bench", {})])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--cores", "x"], "not a list"),
        (["--cores", ""], "not a list"),
        (["--cores", "0,,1"], "not a list"),
        (["--cores", "0-"], "not a list"),
        (["--cores", "1-0"], "not a list"),
        (["--cores", "-1"], "not a list"),
        (["--cores", "0-99999999999999999999"], "not a list"),
        (["--cores", "0,1,1000"], "core 1000 is not to be had"),
        (["--cores", "0"], "2 cores are needed"),
        (["--cores", "0,0"], "2 cores are needed"),
        (["--window-ms", "5"], "--window-ms: 5 is not understood"),
        (["--windows", "9"], "--windows: 9 is not understood"),
        (["--standard-error", "0"], "--standard-error: 0 is not understood"),
        (["--counters", "x"], "--counters: x is not understood"),
        (["--frequency", "1"], "frequency"),
        (["serve"], "takes options only"),
    ],
)
def test_refuses_options(either: Path, options: list[str], told: str) -> None:
    """Options that cannot be are refused by name and value."""
    done = said(either, *options)
    assert done.returncode != 0 and told in done.stderr


@pytest.mark.parametrize("cores", ["0-1", "1,0", "0,0-1", "0,1,"])
def test_reads_lists_of_cores(either: Path, cores: str) -> None:
    """A list may hold ranges, in any order, and tell a core twice."""
    (told,) = talk(either, "--counters", "none", "--cores", cores, lines=[DESCRIBE])
    assert told["testbed"]["nic"]["cores"] == 2


def test_needs_valgrind_or_to_be_told(either: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where nothing can count, it does not start, and names the way out."""
    monkeypatch.setenv("PATH", str(tmp_path))
    done = said(either)
    assert done.returncode == 1 and "--counters none" in done.stderr
    assert talk(either, "--counters", "none", lines=[DESCRIBE])[0]["ok"]
