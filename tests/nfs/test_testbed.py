"""Measurements by the real host testbed, asked for in its own protocol; skipped where it is not built."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profiler.exec import ExecTestbed
from tests.nfs.talking import DESCRIBE, FLOW_STATS, QUICK, mem_bench, run_of, said, talk

TAKES_ANYTHING = ("--windows", "5,600", "--standard-error", "50", *(["--realtime"] if os.geteuid() == 0 else []))
TAKES_NOTHING = ("--windows", "5,10", "--standard-error", "0.000001")


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """A cache folder for the counts of a test."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CACHE_HOME", str(tmp_path))
        yield tmp_path / "nf-placer" / "counts"


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
    assert len(list(cache.glob("*.json"))) == 2


def per_packet(answer: dict[str, Any]) -> float:
    """The instructions that a packet of the first workload takes."""
    told = measured_or_skip(answer)["workloads"][0]
    return float(told["counters"]["irt"] / told["throughput_kpps"])


def test_counts_a_load_once(program: Path, cache: Path) -> None:
    """What a packet costs is recalled as it was counted, and counted again where what was kept is spoilt."""
    counted = per_packet(talk(program, *TAKES_ANYTHING, lines=[run_of(FLOW_STATS)])[0])
    (kept,) = cache.glob("*.json")
    first = kept.stat()
    assert per_packet(talk(program, *TAKES_ANYTHING, lines=[run_of(FLOW_STATS)])[0]) == pytest.approx(counted)
    assert kept.stat().st_mtime_ns == first.st_mtime_ns and kept.stat().st_ino == first.st_ino
    whole = kept.read_text()
    kept.write_text(whole[: len(whole) // 2])
    assert per_packet(talk(program, *TAKES_ANYTHING, lines=[run_of(FLOW_STATS)])[0]) == pytest.approx(counted, rel=0.05)
    assert json.loads(kept.read_text()).keys() == json.loads(whole).keys()


@pytest.mark.parametrize(
    ("script", "told"),
    [("echo no idea >&2; exit 3", "no idea"), ("exec sleep 600", "timed out")],
)
def test_says_when_it_cannot_count(
    program: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, told: str
) -> None:
    """A program that counts and fails, or does not end in time, is a failure of the run, which stderr explains."""
    valgrind = tmp_path / "valgrind"
    valgrind.write_text(f"#!/bin/sh\n{script}\n")
    valgrind.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    begin = time.monotonic()
    done = said(program, "--counters", "cachegrind", "--timeout", "5", lines=[run_of(FLOW_STATS), DESCRIBE])
    failed, described = (json.loads(line) for line in done.stdout.splitlines())
    assert failed["error"]["code"] == "failed" and "could not be counted" in failed["error"]["message"]
    assert told in done.stderr and described["ok"]
    assert time.monotonic() - begin < 30
    assert not list(cache.glob("*"))


def test_says_that_it_is_too_noisy(either: Path) -> None:
    """A standard error that cannot be reached is an error with its figures, after no more windows than allowed."""
    (answer,) = talk(either, "--counters", "none", *TAKES_NOTHING, lines=[run_of(FLOW_STATS)])
    assert answer["error"]["code"] == "too-noisy"
    assert "0.00 % is wanted" in answer["error"]["message"]
    windows = answer["error"]["windows"]
    assert 0 < windows["kept"] + sum(windows["rejected"].values()) <= 10  # fewer where others take the time


def test_only_accelerators_share_a_core(either: Path) -> None:
    """With clients on one core, what no accelerator limits is left out, and stderr says so."""
    done = said(either, "--counters", "none", "--share-client-core", lines=[DESCRIBE])
    told = json.loads(done.stdout)["testbed"]
    assert told["name"].endswith("-shared-client-core") and told["shared_client_core"] is True
    assert "FlowStats" not in [nf["name"] for nf in told["nfs"]]
    assert "FlowStats is left out" in done.stderr


def test_clients_of_an_engine_share_a_core(either: Path) -> None:
    """On two cores, an engine has one, and all its clients get their turns on the other."""
    packet_filter = {
        "kind": "nf",
        "name": "PacketFilter",
        "traffic": {"flows": 100, "packet_size": 512, "mtbr": 600},
    }
    bench = {"kind": "bench", "name": "regex-bench", "parameters": {"rate_kpps": 5, "mtbr": 600, "packet_size": 512}}
    options = ("--share-client-core", "--counters", "none", "--cores", "0,1", *TAKES_ANYTHING)
    answer = measured_or_skip(talk(either, *options, lines=[run_of(packet_filter, bench)])[0])
    served = [workload["throughput_kpps"] for workload in answer["workloads"]]
    assert served[0] > 5
    assert served[1] == pytest.approx(5, rel=0.1)
