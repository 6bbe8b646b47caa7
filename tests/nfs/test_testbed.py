"""Measurements by the host testbed's program; skipped if it is not built."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.testbeds.exec import ExecTestbed
from tests.nfs.testbed_program import (
    ACCEPTS_NOISE,
    DESCRIBE,
    FLOW_STATS,
    QUICK,
    measured_or_skip,
    mem_bench,
    responses_to,
    run_request,
    run_to_end,
)

REJECTS_NOISE = ("--windows", "5,10", "--standard-error", "0.000001")


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """The folder of counts, in an empty user cache."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CACHE_HOME", str(tmp_path))
        yield tmp_path / "nf-placer" / "counts"


def test_describe_lists_functions_and_benches(program: Path) -> None:
    """The description follows the protocol, names the machine, and lists FlowStats and mem-bench."""
    with ExecTestbed(" ".join([str(program), *QUICK])) as testbed:
        description = testbed.describe()
    assert description.name.startswith("host-") and description.nic.model == description.name
    assert not description.simulated
    assert description.nic.cores >= 2 and description.nic.llc_bytes
    assert description.nf("FlowStats").cores == 1
    bench = description.bench("mem-bench")
    assert bench and set(bench.parameters) == {"wss_mb", "access_mops"}


def test_measures_co_located_workloads(program: Path, cache: Path) -> None:
    """The response has throughput, counters and standard error per workload, and the number of windows."""
    request = run_request(FLOW_STATS, mem_bench(wss_mb=1, access_mops=5))
    (answer,) = measured_or_skip(program, *ACCEPTS_NOISE, lines=[request])
    flow_stats, bench = answer["workloads"]
    assert flow_stats["throughput_kpps"] > 100
    assert bench["throughput_kpps"] == pytest.approx(5000, rel=0.1)
    assert flow_stats["counters"]["irt"] > 100e3 * flow_stats["throughput_kpps"]
    assert 0.5 < bench["counters"]["wss"] < 3
    assert 0 <= flow_stats["standard_error_pct"] <= 50
    assert answer["counters_from"] == "cachegrind"
    assert answer["windows"]["kept"] >= 5 and answer["windows"]["rounds"] >= 5
    assert len(list(cache.glob("*.json"))) == 2


def per_packet(program: Path) -> float:
    """Instructions per packet of FlowStats."""
    workload = measured_or_skip(program, *ACCEPTS_NOISE, lines=[run_request(FLOW_STATS)])[0]["workloads"][0]
    return float(workload["counters"]["irt"] / workload["throughput_kpps"])


@pytest.mark.slow
def test_counts_are_cached(program: Path, cache: Path) -> None:
    """Counts per packet are read from the cache, and counted again if the cached file is damaged."""
    counted = per_packet(program)
    (cached,) = cache.glob("*.json")
    first = cached.stat()
    assert per_packet(program) == pytest.approx(counted)
    assert cached.stat().st_mtime_ns == first.st_mtime_ns and cached.stat().st_ino == first.st_ino
    whole = cached.read_text()
    cached.write_text(whole[: len(whole) // 2])
    assert per_packet(program) == pytest.approx(counted, rel=0.05)
    assert json.loads(cached.read_text()).keys() == json.loads(whole).keys()


@pytest.mark.parametrize(
    ("script", "message"), [("echo no idea >&2; exit 3", "no idea"), ("exec sleep 600", "timed out")]
)
def test_a_failed_count_fails_the_run(
    program: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    """If valgrind fails or does not end in time, the run fails and stderr explains why."""
    valgrind = tmp_path / "valgrind"
    valgrind.write_text(f"#!/bin/sh\n{script}\n")
    valgrind.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    done = run_to_end(program, "--counters", "cachegrind", "--timeout", "5", lines=[run_request(FLOW_STATS), DESCRIBE])
    failed, described = (json.loads(line) for line in done.stdout.splitlines())
    assert failed["error"]["code"] == "failed" and "could not be measured" in failed["error"]["message"]
    assert message in done.stderr and described["ok"]
    assert not list(cache.glob("*"))


def test_reports_too_noisy(either: Path) -> None:
    """A standard error that stays too large ends the run after the allowed windows, with its figures in the error."""
    (answer,) = responses_to(either, "--counters", "none", *REJECTS_NOISE, lines=[run_request(FLOW_STATS)])
    assert answer["error"]["code"] == "too-noisy"
    assert "0.00 % is required" in answer["error"]["message"]
    assert answer["error"]["message"].endswith("keep it off these cores: --realtime")
    windows = answer["error"]["windows"]
    assert 0 < windows["kept"] + sum(windows["rejected"].values()) <= 10  # fewer if other processes take the time


def test_only_accelerator_functions_share_a_core(either: Path) -> None:
    """With --share-client-core, functions without an accelerator are omitted, and stderr reports it."""
    done = run_to_end(either, "--counters", "none", "--share-client-core", lines=[DESCRIBE])
    described = json.loads(done.stdout)["testbed"]
    assert described["name"].endswith("-shared-client-core") and described["shared_client_core"] is True
    assert "FlowStats" not in [nf["name"] for nf in described["nfs"]]
    assert "FlowStats is omitted" in done.stderr


def test_clients_of_an_engine_share_a_core(either: Path) -> None:
    """On two cores, the engine has one core and its clients take turns on the other."""
    packet_filter = {"kind": "nf", "name": "PacketFilter", "traffic": {"flows": 100, "packet_size": 512, "mtbr": 600}}
    bench = {"kind": "bench", "name": "regex-bench", "parameters": {"rate_kpps": 5, "mtbr": 600, "packet_size": 512}}
    options = ("--share-client-core", "--counters", "none", "--cores", "0,1", *ACCEPTS_NOISE)
    (answer,) = measured_or_skip(either, *options, lines=[run_request(packet_filter, bench)])
    served = [workload["throughput_kpps"] for workload in answer["workloads"]]
    assert served[0] > 5
    assert served[1] == pytest.approx(5, rel=0.1)


@pytest.fixture
def other_work() -> Iterator[None]:
    """Two processes on each core, which never sleep once the test begins."""
    spin = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nprint(flush=True)\nwhile True: pass"
    cores = [str(core) for core in os.sched_getaffinity(0)] * 2
    busy = [subprocess.Popen([sys.executable, "-c", spin, core], stdout=subprocess.PIPE) for core in cores]
    for process in busy:
        assert process.stdout and process.stdout.readline()
    yield
    for process in busy:
        process.kill()
        process.communicate()


BUSY = ("--counters", "none", "--windows", "5,60")


def test_a_best_effort_answers_on_a_busy_machine(program: Path, other_work: None) -> None:
    """Where a run is too noisy, a best effort answers in time: marked, with the windows and an error."""
    requests = [run_request(FLOW_STATS, best_effort=False), run_request(FLOW_STATS, mem_bench(wss_mb=1, access_mops=5))]
    done = run_to_end(program, *BUSY, "--best-effort", lines=requests)
    refused, answer = (json.loads(line) for line in done.stdout.splitlines())
    assert refused["error"]["code"] == "too-noisy"
    assert answer["ok"] and answer["best_effort"] is True
    assert 50 < answer["disturbed_pct"] <= 100
    rejected = answer["windows"]["rejected"]
    assert answer["disturbed_pct"] == pytest.approx(
        100 * sum(rejected.values()) / (sum(rejected.values()) + answer["windows"]["kept"])
    )
    assert answer["windows"]["rounds"] >= 5
    flow_stats, bench = answer["workloads"]
    assert flow_stats["throughput_kpps"] > 100 and flow_stats["standard_error_pct"] > 0
    assert bench["throughput_kpps"] <= 5000 + 1e-6
    # four errors, which hold the truth in nearly all runs
    assert bench["throughput_kpps"] == pytest.approx(5000, rel=max(0.1, bench["standard_error_pct"] / 25))
    assert "testbed: best effort: " in done.stderr


def test_a_request_may_ask_for_a_best_effort(either: Path, other_work: None) -> None:
    """With `"best_effort": true`; the hint of the error names the option, unless it was given."""
    requests = [run_request(FLOW_STATS), run_request(FLOW_STATS, best_effort=True)]
    refused, answer = responses_to(either, *BUSY, lines=requests)
    assert "accept a larger error: --best-effort" in refused["error"]["message"]
    assert answer["best_effort"] is True


def test_an_accurate_run_is_no_best_effort(program: Path) -> None:
    """With the option, a run whose windows are undisturbed is answered as without it."""
    options = ("--best-effort", "--counters", "none", *ACCEPTS_NOISE)
    (answer,) = measured_or_skip(program, *options, lines=[run_request(FLOW_STATS)])
    assert answer["windows"]["kept"] >= 5 and "disturbed_pct" not in answer
