"""Requests that a testbed with or without a GPU cannot run."""

from __future__ import annotations

import pytest

from profiler.protocol.request_checks import refusals
from profiler.simulated import SimulatedTestbed
from profiles import Load, PacedWorkload, Workload
from tests.profiler.gpu_loads import TRAFFIC, gpu_description, paced, scheduled
from tests.profiler.toy_testbed import description

NF = Workload("counter", TRAFFIC)


@pytest.mark.parametrize(
    "loads",
    [
        [paced({0: 128})],  # an SM full
        [paced({0: 33, 1: 97})],  # 2 and 4 executors
        [paced({0: 64}, order=5), paced({0: 64}, order=2)],  # two NFs share an SM; orders need not be dense
        [paced({0: 1}, order=None), paced({1: 1}, order=None)],  # the bus serves batches as they come
        [scheduled(200), scheduled(3)],
        [scheduled(200, "temporal"), scheduled(3, "temporal")],
    ],
)
def test_gpu_workloads_that_fit_are_accepted(loads: list[Load]) -> None:
    assert refusals(gpu_description(), loads) == []


@pytest.mark.parametrize(
    ("loads", "faults"),
    [
        ([NF], ["counter: toy runs NFs with rate_kpps and gpu only"]),
        ([PacedWorkload(NF, 5.0)], ["counter: toy runs NFs with rate_kpps and gpu only"]),
        ([paced({0: 1}, rate_kpps=0)], ["counter: rate_kpps 0 is not above 0"]),
        ([paced({2: 1})], ["counter: minibatch on SM 2: there are 2, numbered from 0"]),
        ([paced({0: 5}, batch=6)], ["counter: minibatches of 5 packets for a batch of 6"]),
        ([paced({0: 129})], ["SM 0 needs 5 executors, it has 4"]),
        ([paced({0: 97}), paced({0: 1}, order=1)], ["SM 0 needs 5 executors, it has 4"]),
        ([paced({0: 1}), paced({1: 1})], ["order 0 is given twice"]),
        ([paced({0: 1}), paced({1: 1}, order=None)], ["order is given for some NFs only"]),
        ([scheduled(257)], ["counter: a batch of 257 packets, the GPU takes 256"]),
        ([scheduled(1), scheduled(1, "temporal")], ["scheduler spatial and scheduler temporal exclude each other"]),
        ([paced({0: 1}, order=None), scheduled(1)], ["minibatches and scheduler spatial exclude each other"]),
        ([paced({0: 1}, order=at) for at in range(3)], ["needs 3 workers, there are 2"]),
    ],
)
def test_each_fault_of_a_gpu_workload_is_named(loads: list[Load], faults: list[str]) -> None:
    """With the NF, the SM or the value that is wrong."""
    assert refusals(gpu_description(), loads) == faults


def test_all_faults_of_a_gpu_request_are_named_at_once() -> None:
    """So that one answer is enough to correct a request."""
    wrong = [paced({5: 200}, batch=300, rate_kpps=0), paced({0: 200}), paced({1: 9})]
    assert len(refusals(gpu_description(), wrong)) == 8


@pytest.mark.parametrize("described", [SimulatedTestbed().describe(), description()])
def test_a_testbed_without_a_gpu_or_a_pace_refuses_rates_and_gpu_settings(described: object) -> None:
    """It would otherwise measure another question than was posed."""
    load = paced({0: 1})
    name = described.name  # type: ignore[attr-defined]
    faults = refusals(described, [load])  # type: ignore[arg-type]
    assert f"counter: rate_kpps of NFs is not known to {name}" in faults
    assert f"counter: {name} has no gpu" in faults


def test_a_paced_testbed_without_a_gpu_takes_rates() -> None:
    """A server that offers packets at a rate knows no GPU settings."""
    server = description(paced=True)
    assert refusals(server, [PacedWorkload(NF, 5.0)]) == []
    assert refusals(server, [paced({0: 1})]) == ["counter: toy has no gpu"]
