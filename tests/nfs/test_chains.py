"""Chains on the host testbed; skipped if it is not built."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.nfs.testbed_program import DESCRIBE, responses_to, run_request, run_to_end

TRAFFIC = {"flows": 100, "packet_size": 256}
OPTIONS = ("--counters", "none", "--best-effort", "--windows", "5,20", "--standard-error", "50")


def chain(*stages: str, cores: list[list[int]] | None = None, **more: object) -> dict[str, object]:
    """A request for a chain, by default on one core."""
    named = [{"name": name} for name in stages]
    placed = [list(range(len(stages)))] if cores is None else cores
    return {"kind": "chain", "stages": named, "cores": placed, "traffic": TRAFFIC, **more}


def measured(program: Path, *workloads: object, options: tuple[str, ...] = OPTIONS) -> list[dict[str, Any]]:
    """The measurements of one run."""
    (answer,) = responses_to(program, *options, lines=[run_request(*workloads)])
    assert answer["ok"], answer
    workloads_measured: list[dict[str, Any]] = answer["workloads"]
    return workloads_measured


def test_the_host_runs_chains(program: Path) -> None:
    """It describes so, and offers the NF that measures the source of traffic; not where clients share a core."""
    (described,) = responses_to(program, "--counters", "none", lines=[DESCRIBE])
    assert described["testbed"]["chains"] is True and 500 < described["testbed"]["nic"]["clock_mhz"] < 10_000
    assert "Null" in [nf["name"] for nf in described["testbed"]["nfs"]]
    (described,) = responses_to(program, "--counters", "none", "--share-client-core", lines=[DESCRIBE])
    assert described["testbed"]["chains"] is False


def test_each_stage_is_measured(either: Path) -> None:
    """What an ACL drops does not reach the next stage, and all that leaves one stage enters the next."""
    (one,) = measured(either, chain("ACL", "Monitor", "Tunnel"))
    acl, monitor, tunnel = one["stages"]
    assert 0 < acl["dropped_pct"] < 50 and monitor["dropped_pct"] == tunnel["dropped_pct"] == 0
    assert acl["throughput_kpps"] == pytest.approx(one["throughput_kpps"] * (1 - acl["dropped_pct"] / 100))
    assert monitor["throughput_kpps"] == tunnel["throughput_kpps"] == pytest.approx(acl["throughput_kpps"])
    assert "latency_us" not in one


def test_a_pipeline_uses_several_cores(either: Path) -> None:
    """Two stages on two cores pass packets through a ring; nothing is lost in it."""
    (one,) = measured(either, chain("Monitor", "Tunnel", cores=[[0], [1]]))
    assert one["throughput_kpps"] > 1 and "lost_pct" not in one
    assert [stage["dropped_pct"] for stage in one["stages"]] == [0, 0]


def test_an_open_loop_keeps_its_rate_and_has_latencies(either: Path) -> None:
    """Packets enter at the offered rate; their latencies are in order."""
    (one,) = measured(either, chain("Monitor", rate_kpps=5))
    assert one["throughput_kpps"] == pytest.approx(5, rel=0.3)
    latency = one["latency_us"]
    assert 0 < latency["p50"] <= latency["p99"] <= latency["max"] and 0 < latency["mean"] <= latency["max"]


@pytest.mark.skipif(os.geteuid() != 0, reason="without root, other processes take a part of the core, which varies")
def test_a_core_spends_only_its_share_on_a_chain(program: Path) -> None:
    """With a tenth of the time, throughput is about a tenth; no other process runs on the core meanwhile."""
    alone = (*OPTIONS, "--realtime")
    (whole,) = measured(program, chain("Encrypt"), options=alone)
    (part,) = measured(program, chain("Encrypt", shares=[0.1]), options=alone)
    assert 0.03 < float(part["throughput_kpps"]) / float(whole["throughput_kpps"]) < 0.3


def test_a_chain_runs_beside_a_bench(either: Path) -> None:
    """Contention of chains is measured as that of single NFs."""
    bench = {"kind": "bench", "name": "mem-bench", "parameters": {"wss_mb": 1, "access_mops": 1}}
    one, other = measured(either, chain("Monitor", "Tunnel"), bench)
    assert one["throughput_kpps"] > 1 and len(one["stages"]) == 2
    assert "stages" not in other


@pytest.mark.slow
def test_a_chain_has_counters(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of all stages together: more instructions per packet than either stage alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    options = ("--best-effort", "--windows", "5,20", "--standard-error", "50")

    def per_packet(*stages: str) -> float:
        (one,) = measured(program, chain(*stages), options=options)
        return float(one["counters"]["irt"]) / float(one["throughput_kpps"])

    assert per_packet("Monitor", "Tunnel") > max(per_packet("Monitor"), per_packet("Tunnel"))


@pytest.mark.parametrize(
    ("workload", "options", "faults"),
    [
        (chain("Nil", "Tunnel", cores=[[0], [0, 7]]), (), ["NF Nil is not known", "on two cores", "no such stage"]),
        (chain("NAT", "LB", "ACL", cores=[[0], [1], [2]]), ("--cores", "0,1"), ["the run needs 3 cores"]),
        (chain("Tunnel"), ("--share-client-core",), ["a chain takes cores as a whole"]),
    ],
)
def test_wrong_chains_are_refused(
    either: Path, workload: dict[str, object], options: tuple[str, ...], faults: list[str]
) -> None:
    """With all their faults, and the testbed goes on."""
    done = run_to_end(either, "--counters", "none", *options, lines=[run_request(workload), DESCRIBE])
    refused, described = (json.loads(line) for line in done.stdout.splitlines())
    assert refused["error"]["code"] == "bad-request" and described["ok"]
    for fault in faults:
        assert fault in refused["error"]["message"]
