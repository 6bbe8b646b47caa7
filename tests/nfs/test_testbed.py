"""Conversations with the real host testbed, in its own protocol; skipped where it is not built."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profiler.exec import ExecTestbed
from profiler.host import BUILD, find_program
from profiler.testbed import RunRefused
from profiles import BenchLoad, InputError, TrafficProfile, Workload

FLOW_STATS = {"kind": "nf", "name": "FlowStats", "traffic": {"flows": 100, "packet_size": 64}}
QUICK = ("--null-control", "0", "--window-ms", "20")
TAKES_ANYTHING = ("--windows", "5,600", "--standard-error", "50", *(["--realtime"] if os.geteuid() == 0 else []))
TAKES_NOTHING = ("--windows", "5,10", "--standard-error", "0.000001")


@pytest.fixture(scope="module")
def program() -> Path:
    """The built program."""
    try:
        return find_program()
    except InputError:
        pytest.skip(f"the host testbed is not built: `{BUILD}` builds it")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache folder for the counts of these tests."""
    with pytest.MonkeyPatch.context() as environment:
        folder = tmp_path_factory.mktemp("cache")
        environment.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


def talk(program: Path, *options: str, lines: list[Any]) -> list[dict[str, Any]]:
    """The answers to `lines`, which are told as JSON unless they are text."""
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    done = subprocess.run([program, *QUICK, *options], input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def run_of(*workloads: Any, **more: object) -> dict[str, object]:
    return {"id": 1, "op": "run", "workloads": list(workloads), **more}


def mem_bench(**parameters: object) -> dict[str, object]:
    return {"kind": "bench", "name": "mem-bench", "parameters": parameters}


def measured_or_skip(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer to a run, unless the machine was too busy for any."""
    if not answer["ok"] and answer["error"]["code"] == "too-noisy":
        pytest.skip(f"this machine has other work: {answer['error']['message']}")
    assert answer["ok"], answer
    return answer


def test_describes_itself(program: Path) -> None:
    """Its description is what the protocol asks for, names the machine, and has FlowStats and mem-bench."""
    with ExecTestbed(" ".join([str(program), *QUICK])) as testbed:
        told = testbed.describe()
    assert told.name.startswith("host-") and told.nic.model == told.name and not told.simulated
    assert told.nic.cores >= 2 and told.nic.llc_bytes
    assert told.nf("FlowStats").cores == 1
    bench = told.bench("mem-bench")
    assert bench and set(bench.parameters) == {"wss_mb", "access_mops"}


def test_measures_a_company(program: Path, cache: Path) -> None:
    """Each workload's throughput comes with its counters and its standard error, and windows are told."""
    request = run_of(FLOW_STATS, mem_bench(wss_mb=1, access_mops=5))
    answer = measured_or_skip(talk(program, *TAKES_ANYTHING, lines=[request])[0])
    flow_stats, bench = answer["workloads"]
    assert flow_stats["throughput_kpps"] > 100
    assert bench["throughput_kpps"] == pytest.approx(5000, rel=0.1)
    assert flow_stats["counters"]["irt"] > 100e3 * flow_stats["throughput_kpps"]
    assert 0.5 < bench["counters"]["wss"] < 3
    assert 0 <= flow_stats["standard_error_pct"] <= 50
    assert answer["counters_from"] == "cachegrind"
    assert answer["windows"]["kept"] >= 5 and answer["windows"]["rounds"] >= 5
    assert len(list(cache.glob("nf-placer/counts/*.json"))) == 2


def test_says_that_it_is_too_noisy(program: Path) -> None:
    """A standard error that cannot be reached is an error with its figures, after no more windows than allowed."""
    (answer,) = talk(program, "--counters", "none", *TAKES_NOTHING, lines=[run_of(FLOW_STATS)])
    assert answer["error"]["code"] == "too-noisy"
    assert "0.00 % is wanted" in answer["error"]["message"]
    windows = answer["error"]["windows"]
    assert 0 < windows["kept"] + sum(windows["rejected"].values()) <= 10  # fewer where others take the time


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
def test_refuses_what_is_wrong(program: Path, line: object, faults: list[str]) -> None:
    """A bad request is refused with every fault named, and the next one is answered."""
    refused, described = talk(
        program, "--counters", "none", "--cores", "0,1", lines=[line, {"id": 2, "op": "describe"}]
    )
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
        (["--cores", "0"], "2 cores are needed"),
        (["--window-ms", "5"], "--window-ms: 5 is not understood"),
        (["--windows", "9"], "--windows: 9 is not understood"),
        (["--standard-error", "0"], "--standard-error: 0 is not understood"),
        (["--counters", "x"], "--counters: x is not understood"),
        (["--frequency", "1"], "frequency"),
        (["serve"], "takes options only"),
    ],
)
def test_refuses_options(program: Path, options: list[str], told: str) -> None:
    """Options that cannot be are refused by name and value."""
    done = subprocess.run([program, *options], input="", capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and told in done.stderr


def test_needs_valgrind_or_to_be_told(program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where nothing can count, it does not start, and names the way out."""
    monkeypatch.setenv("PATH", str(tmp_path))
    done = subprocess.run([program, *QUICK], input="", capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "--counters none" in done.stderr
    assert talk(program, "--counters", "none", lines=[{"id": 1, "op": "describe"}])[0]["ok"]


def test_only_accelerators_share_a_core(program: Path) -> None:
    """With clients on one core, what no accelerator limits is left out, and stderr says so."""
    done = subprocess.run(
        [program, *QUICK, "--counters", "none", "--share-client-core"],
        input='{"id": 1, "op": "describe"}\n',
        capture_output=True,
        text=True,
        timeout=60,
    )
    told = json.loads(done.stdout)["testbed"]
    assert told["name"].endswith("-shared-client-core") and told["shared_client_core"] is True
    assert "FlowStats" not in [nf["name"] for nf in told["nfs"]]
    assert "FlowStats is left out" in done.stderr


@pytest.mark.parametrize("signalled", [signal.SIGINT, signal.SIGTERM])
def test_ends_when_asked(program: Path, signalled: signal.Signals) -> None:
    """A signal ends it in the middle of a run, cleanly and at once."""
    with subprocess.Popen(
        [program, *QUICK, "--counters", "none", "--windows", "100000,1000000"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdin is not None and running.stdout is not None
        running.stdin.write('{"id": 1, "op": "describe"}\n')
        running.stdin.flush()
        assert running.stdout.readline()
        running.stdin.write(json.dumps(run_of(FLOW_STATS)) + "\n")
        running.stdin.flush()
        running.send_signal(signalled)
        assert running.wait(timeout=30) == 0
        assert running.stdout.read() == ""
