"""The simulated GPUs as testbeds."""

from __future__ import annotations

import json
import sys
from dataclasses import astuple, replace

import pytest

from placer.testing import check_testbed
from profiler.serve import answer
from profiler.simulated_gpu import GPU_NFS, SIMULATED_GPUS, TITAN, SimulatedGpu
from profiler.testbed import Measurement, RunRefused
from profiler.testbeds import open_testbed
from profiler.testbeds.exec import ExecTestbed
from profiles import TrafficProfile, Workload
from tests.profiler.simulated_gpu.loads import FOUR, TRAFFIC, crowd, on_sms

GPU = SimulatedGpu()
PAIR = [on_sms("ACL"), on_sms("NIDS", [(0, 128), (1, 128)], order=1)]


def p99(one: Measurement) -> float:
    assert one.latency_us is not None
    return one.latency_us.p99


@pytest.mark.parametrize("name", SIMULATED_GPUS)
def test_each_gpu_is_a_testbed(name: str) -> None:
    """By its SPEC; it keeps the protocol."""
    with open_testbed(f"simulated:{name}") as testbed:
        described = testbed.describe()
        assert described.nic.kind == "gpu" and described.workers == described.nic.cores
        assert {nf.name: nf.moves for nf in described.nfs} == dict(
            zip(FOUR, ("header", "header", "payload", "both"), strict=True)
        )
        check_testbed(testbed)


def test_another_process_answers_as_this_one() -> None:
    """Truth and seeded runs, through the protocol."""
    with ExecTestbed(f"{sys.executable} -m placer testbed simulated:gpu") as there:
        assert there.describe() == GPU.describe()
        assert there.run(PAIR, seed=5) == GPU.run(PAIR, seed=5)


def test_the_same_seed_gives_the_same_bytes() -> None:
    """Another seed, and another repeat without one, gives other packets."""
    line = json.dumps({"id": 1, "op": "run", "seed": 3, "workloads": [load.as_request() for load in PAIR]})
    assert answer(GPU, line) == answer(SimulatedGpu(seed=8), line)
    assert answer(GPU, line) != answer(GPU, line.replace('"seed": 3', '"seed": 4'))
    fresh = [SimulatedGpu(seed=1) for _ in range(2)]
    first, second = fresh[0].run(PAIR), fresh[0].run(PAIR)
    assert first != second
    assert fresh[1].run(PAIR) == first


def test_the_truth_depends_on_nothing_but_the_workloads() -> None:
    """Neither on a seed, nor on runs before, nor on the order of the request."""
    truth = GPU.run(PAIR, noise=False).measurements
    assert SimulatedGpu(seed=9).run(PAIR[::-1], noise=False, seed=4).measurements[::-1] == truth


def test_noisy_runs_scatter_about_the_truth() -> None:
    """Of the mean latency by a percent or two, of p99 by a few."""
    truth = GPU.run(PAIR, noise=False).measurements
    for seed in range(4):
        for one, exact in zip(GPU.run(PAIR, seed=seed).measurements, truth, strict=True):
            assert one.latency_us is not None and exact.latency_us is not None
            assert one.latency_us.mean == pytest.approx(exact.latency_us.mean, rel=0.08)
            assert p99(one) == pytest.approx(p99(exact), rel=0.15)


def test_stages_add_up_to_the_latency() -> None:
    """On average; and no packet is faster than the parts that never vanish."""
    for one in GPU.run(crowd(9)).measurements:
        assert one.latency_us is not None and one.stages_us is not None
        assert sum(astuple(one.stages_us)) == pytest.approx(one.latency_us.mean, rel=1e-4)
        assert one.latency_us.mean <= one.latency_us.p99 <= one.latency_us.max


def test_what_is_carried_leaves_and_what_is_not_is_lost() -> None:
    """Throughput is the offered rate until the worker, a bus or the kernel is too slow; then packets wait in rings."""
    carried, overloaded = (
        GPU.run([on_sms("NIDS", rate_kpps=rate)], noise=False).measurements[0] for rate in (900, 9000)
    )
    assert carried.throughput_kpps == 900
    assert 3000 < overloaded.throughput_kpps < 8000
    assert overloaded.stages_us is not None and carried.stages_us is not None
    assert overloaded.stages_us.batching > carried.stages_us.batching


def test_more_to_move_takes_longer() -> None:
    """Of a packet, the header is less than the payload, which is less than both ways of all of it."""
    stages = [GPU.run([on_sms(nf)], seed=1).measurements[0].stages_us for nf in ("ACL", "NIDS", "IPSec")]
    header, payload, both = (one for one in stages if one is not None)
    assert header.transfer < payload.transfer < both.transfer
    assert header.returned == pytest.approx(payload.returned, rel=0.02) and payload.returned < both.returned


def test_matches_cost_the_nids_only() -> None:
    """A warp waits for the thread with the most of them."""
    for nf, grows in (("NIDS", True), ("ACL", False)):
        kernels = []
        for mtbr in (0, 1000):
            stages = GPU.run([on_sms(nf, traffic=replace(TRAFFIC, mtbr=mtbr))], seed=2).measurements[0].stages_us
            assert stages is not None
            kernels.append(stages.kernel)
        assert (kernels[1] > 1.02 * kernels[0]) == grows


@pytest.mark.parametrize(
    ("loads", "message"),
    [
        ([], "nothing to run"),
        ([Workload("ACL", TRAFFIC)], "ACL: simulated-titan-xp runs NFs with rate_kpps and gpu only"),
        ([on_sms("NAT")], "NF NAT is not known"),
        ([on_sms("ACL", traffic=TrafficProfile(1, 9000))], r"packet_size 9000 is outside \[64, 1500\]"),
        ([on_sms("ACL", [(30, 9)])], "minibatch on SM 30: there are 30, numbered from 0"),
        ([on_sms("ACL", [(0, 1921)])], "SM 0 needs 16 executors, it has 15"),
        ([on_sms("ACL"), on_sms("ACL")], "order 0 is given twice"),
        ([on_sms("ACL", [(at, 1)], order=at) for at in range(23)], "needs 23 workers, there are 22"),
        ([on_sms("ACL", rate_kpps=1), on_sms("ACL", order=1, rate_kpps=9000)], "20 batches of the slowest NF are"),
    ],
)
def test_what_cannot_run_is_refused_by_name(loads: list[object], message: str) -> None:
    """As a request that would be refused again."""
    with pytest.raises(RunRefused, match=f"bad-request: .*{message}"):
        GPU.run(loads)  # type: ignore[arg-type]


def test_a_card_can_be_another() -> None:
    """A slower bus is slower for everybody."""
    bus = replace(TITAN.to_card, bytes_per_us=1e3)
    slow = SimulatedGpu(card=replace(TITAN, to_card=bus), nfs=GPU_NFS).run([on_sms("NIDS")], seed=1).measurements[0]
    fast = GPU.run([on_sms("NIDS")], seed=1).measurements[0]
    assert p99(slow) > p99(fast) + 100
