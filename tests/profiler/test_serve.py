"""The testbed protocol as its server speaks it."""

from __future__ import annotations

import io
import json
import sys

import pytest

from profiler.exec import ExecTestbed
from profiler.serve import answer, serve
from profiler.simulated import SimulatedTestbed
from profiles import BenchLoad, TrafficProfile, Workload
from tests.profiler.toy_testbed import ToyTestbed

NF = '{"kind": "nf", "name": "counter", "traffic": {"flows": 10, "packet_size": 64}}'
BENCH = '{"kind": "bench", "name": "mem-bench", "parameters": {"wss_mb": 1, "access_mops": 50}}'


def test_what_goes_in_comes_out() -> None:
    """The simulated card behind the protocol answers just as it does in the same process, truth, noise and seed."""
    loads = [
        Workload("FlowMonitor", TrafficProfile(16000, 1500, 600)),
        BenchLoad.of("mem-bench", {"wss_mb": 10, "access_mops": 120}),
    ]
    here = SimulatedTestbed()
    with ExecTestbed(f"{sys.executable} -m profiler.serve simulated") as there:
        assert there.describe() == here.describe()
        assert there.run(loads, noise=False).measurements == here.run(loads, noise=False).measurements
        assert there.run(loads, seed=5).measurements == here.run(loads, seed=5).measurements
        assert there.run(loads, seed=5) != there.run(loads, seed=6)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("flows", "not JSON"),  # not JSON
        ("[]", "not a JSON object"),  # not a request
        ('{"id": 7}', "op null not understood"),  # asks nothing
        ('{"id": 7, "op": "reboot"}', 'op "reboot" not understood'),  # asks for what there is not
        ('{"id": 7, "op": "run"}', "workloads: Field required"),  # runs nothing
        ('{"id": 7, "op": "run", "workloads": []}', "workloads: List should have at least 1"),  # runs nothing
        ('{"id": 7, "op": "run", "workloads": [{"kind": "vm"}]}', "workloads.0"),  # neither NF nor bench
        ('{"id": 7, "op": "run", "workloads": [{"kind": "nf", "name": "x", "traffic": {"flows": 1}}]}', "packet_size"),
        (f'{{"id": 7, "op": "run", "workloads": [{NF.replace("counter", "NAT")}]}}', "NF NAT is not known"),
        (f'{{"id": 7, "op": "run", "workloads": [{BENCH.replace("mem", "gpu")}]}}', "bench gpu-bench is not known"),
        (f'{{"id": 7, "op": "run", "workloads": [{BENCH.replace("wss_mb", "mb")}]}}', "needs parameter wss_mb"),
        (f'{{"id": 7, "op": "run", "workloads": [{BENCH.replace("50", "500")}]}}', "access_mops 500 is outside"),
        (f'{{"id": 7, "op": "run", "workloads": [{NF.replace("64", "NaN")}]}}', "finite"),  # not a number
        (f'{{"id": 7, "op": "run", "workloads": [{NF}, {NF}, {NF}, {NF}]}}', "needs 8 cores, the NIC has 6"),
        (f'{{"id": 7, "op": "run", "seed": "x", "workloads": [{NF}]}}', "seed"),  # a seed is a number
    ],
)
def test_bad_requests_are_answered(line: str, said: str) -> None:
    """What is wrong with a request is its answer, under its id."""
    told = json.loads(answer(ToyTestbed(), line))
    assert told["ok"] is False
    assert told["id"] == (7 if '"id": 7' in line else None)
    assert told["error"]["code"] == "bad-request"
    assert said in told["error"]["message"]


def test_service_goes_on_after_bad_requests_and_failed_runs() -> None:
    """Each line has its answer, in order; neither nonsense nor a failing run ends the service."""
    good = f'{{"id": "a", "op": "run", "workloads": [{NF}], "unknown": "key"}}'
    failing = good.replace('"a"', '"b"')
    out = io.StringIO()
    serve(ToyTestbed(fails_after=1), io.StringIO(f"nonsense\n{good}\n\n{failing}\n{{}}\n"), out)
    told = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [one["ok"] for one in told] == [False, True, False, False]
    assert [one["id"] for one in told] == [None, "a", "b", None]
    assert told[2]["error"] == {"code": "failed", "message": "toy fell off the table"}
