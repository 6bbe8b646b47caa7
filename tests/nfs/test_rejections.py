"""Requests and options that the host testbed's program rejects, and its messages."""

from pathlib import Path

import pytest

from profiler.testbed import RunRefused
from profiler.testbeds.exec import ExecTestbed
from profiles import BenchLoad, TrafficProfile, Workload
from tests.nfs.testbed_program import DESCRIBE, FLOW_STATS, QUICK, mem_bench, responses_to, run_request, run_to_end


@pytest.mark.parametrize(
    ("line", "faults"),
    [
        ("[1", ["not a JSON object"]),  # no JSON
        ("[1]", ["not a JSON object"]),  # JSON, but no object
        ({"id": 1, "op": "stop"}, ["unknown op"]),  # an unknown operation
        (run_request(), ["workloads"]),  # no workloads
        (run_request({"kind": "vm", "name": "x"}), ["nf or bench"]),  # an unknown kind
        (run_request(FLOW_STATS | {"name": "Teapot"}), ["NF Teapot is not known"]),
        (run_request(FLOW_STATS | {"traffic": {"flows": 100}}), ["needs packet_size"]),
        (run_request(FLOW_STATS | {"execution": "pipeline"}), ["cannot execute as pipeline"]),
        (run_request(FLOW_STATS | {"rate_kpps": -1}), ["rate_kpps -1 is outside [0, 1e+06]"]),
        (run_request(FLOW_STATS | {"cores": 3}), ["FlowStats cannot be given 3 cores, possible: [1, 2]"]),
        (run_request(FLOW_STATS | {"cores": 0}), ["cores is no whole number from 1 to 64"]),
        (run_request(FLOW_STATS | {"cores": 2}, mem_bench(wss_mb=1, access_mops=1)), ["needs 3 cores"]),
        (run_request(mem_bench(wss_mb=1)), ["needs access_mops"]),
        (  # all faults in one message
            run_request(
                FLOW_STATS | {"traffic": {"flows": -1, "packet_size": "big"}},
                mem_bench(wss_mb=1e9, access_mops=1, colour=3),
            ),
            ["flows -1 is outside", "packet_size is not a number", "wss_mb 1e+09 is outside", "no parameter colour"],
        ),
        (run_request(*[FLOW_STATS] * 16), ["needs 16 cores"]),  # more cores than any test machine has
    ],
)
def test_rejects_bad_requests(either: Path, line: object, faults: list[str]) -> None:
    """The error of a bad request names every fault, and the next request is answered."""
    rejected, described = responses_to(either, "--counters", "none", "--cores", "0,1", lines=[line, DESCRIBE])
    assert rejected["ok"] is False and rejected["error"]["code"] == "bad-request"
    for fault in faults:
        assert fault in rejected["error"]["message"]
    assert described["id"] == 2 and described["ok"] is True


def test_the_client_does_not_retry_a_bad_request(program: Path) -> None:
    """The client raises RunRefused for a bad request instead of restarting the testbed."""
    with ExecTestbed(" ".join([str(program), *QUICK, "--cores 0,1"])) as testbed, pytest.raises(RunRefused):
        testbed.run([Workload("FlowStats", TrafficProfile(100, 64))] * 3 + [BenchLoad.of("mem-bench", {})])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cores", "x"], "not a list"),
        (["--cores", ""], "not a list"),
        (["--cores", "0,,1"], "not a list"),
        (["--cores", "0-"], "not a list"),
        (["--cores", "1-0"], "not a list"),
        (["--cores", "-1"], "not a list"),
        (["--cores", "0-99999999999999999999"], "not a list"),
        (["--cores", "0,1,1000"], "core 1000 is not available"),
        (["--cores", "0"], "2 cores are needed"),
        (["--cores", "0,0"], "2 cores are needed"),
        (["--window-ms", "5"], '--window-ms: "5" is not a whole number from 20 to 60000'),
        (["--windows", "9"], '--windows: "9" is not LEAST,MOST'),
        (["--standard-error", "0"], '--standard-error: "0" is not a percentage above 0, up to 100'),
        (["--standard-error", "101"], '--standard-error: "101" is not a percentage above 0, up to 100'),
        (["--fastest-probe", "1056"], "--fastest-probe: it is for --shared-machine only"),
        (["--counters", "x"], '--counters: "x" is not perf, cachegrind or none'),
        (["--frequency", "1"], "frequency"),
        (["--accelerators", "regex,x"], '--accelerators: "regex,x" is not a list of accelerators'),
        (["serve"], "serve: arguments are options"),
    ],
)
def test_rejects_bad_options(either: Path, options: list[str], message: str) -> None:
    """A bad option ends the program with an error that names the option and its value."""
    done = run_to_end(either, *options)
    assert done.returncode != 0 and message in done.stderr


@pytest.mark.parametrize("cores", ["0-1", "1,0", "0,0-1", "0,1,"])
def test_accepts_lists_of_cores(either: Path, cores: str) -> None:
    """A list of cores may hold ranges and duplicates, in any order."""
    (response,) = responses_to(either, "--counters", "none", "--cores", cores, lines=[DESCRIBE])
    assert response["testbed"]["nic"]["cores"] == 2


def test_requires_valgrind_unless_counters_are_none(
    either: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a source of counters the program exits and names the option to run without them."""
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run_to_end(either)
    assert done.returncode == 1 and "--counters none" in done.stderr
    assert responses_to(either, "--counters", "none", lines=[DESCRIBE])[0]["ok"]
