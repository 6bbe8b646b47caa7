"""What happens to batches on the simulated GPU: rules that hold at every moment."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from profiler.simulated_gpu import SMALL_CARD, SMALL_CARD_NFS, TITAN, SimulatedGpu
from profiler.simulated_gpu import columns as of
from profiler.simulated_gpu.testbed import Timeline
from profiles import GpuWorkload, TrafficProfile
from tests.profiler.gpu_loads import at_two_gbps, crowd, on_sms

GPU = SimulatedGpu()
OTHER = SimulatedGpu(card=SMALL_CARD, nfs=SMALL_CARD_NFS)
FAST = 3000.0  # a rate at which ten NFs use most of the bus

RUNS = [
    pytest.param(GPU, crowd(10), id="executors"),
    pytest.param(GPU, crowd(10, ordered=False), id="bus as they come"),
    pytest.param(GPU, crowd(10, rate_kpps=FAST), id="busy"),
    pytest.param(GPU, [at_two_gbps(nf, "temporal") for nf in ("ACL", "NIDS", "ACL", "IPSec")], id="temporal"),
    pytest.param(GPU, [at_two_gbps(nf, "spatial") for nf in ("ACL", "NIDS", "ACL", "IPSec", "NIDS")], id="spatial"),
    pytest.param(OTHER, crowd(6, sharers=1), id="the other card"),
    pytest.param(GPU, [on_sms("ACL", rate_kpps=20, flush_us=400), on_sms("NIDS", order=1)], id="time-out"),
    pytest.param(OTHER, [on_sms("IPSec", [(0, 64)], rate_kpps=2500)], id="overloaded"),
]


def intervals(timelines: Sequence[Timeline], begins: int, ends: int) -> np.ndarray:
    """Begin, end and NF of every batch between two columns, by their begin."""
    rows = [np.column_stack([t.times[:, [begins, ends]], np.full(len(t.times), i)]) for i, t in enumerate(timelines)]
    every = np.concatenate(rows)
    return every[np.argsort(every[:, 0])]


def check_steps(loads: Sequence[GpuWorkload], timelines: Sequence[Timeline]) -> None:
    """Packets are in batches in arrival order; no step of a batch begins before the one before it has ended, the first
    not before the last packet came; transfers never overlap on a bus, which never idles while a batch waits for it."""
    for load, timeline in zip(loads, timelines, strict=True):
        assert int(timeline.count.sum()) + timeline.waiting == len(timeline.arrived)
        assert list(timeline.first) == [0, *np.cumsum(timeline.count)[:-1]][: len(timeline.first)]
        assert np.all(np.diff(timeline.arrived) >= 0)
        assert load.gpu is not None and np.all((timeline.count > 0) & (timeline.count <= load.gpu.batch))
        assert np.all(np.diff(timeline.times[:, of.TAKEN : of.POSTED + 1], axis=1) >= 0)
        assert np.all(timeline.times[:, of.TAKEN] >= timeline.arrived[timeline.first + timeline.count - 1])
    for asked, begins, ends in ((of.READY, of.SENT, of.ARRIVED), (of.DONE, of.BACK_SENT, of.BACK)):
        used = intervals(timelines, begins, ends)
        assert np.all(used[1:, 0] >= used[:-1, 1])
        waited = intervals(timelines, begins, asked)
        assert np.allclose(used[:, 0], np.maximum(waited[:, 1], np.concatenate([[0.0], used[:-1, 1]])[: len(used)]))


@pytest.mark.parametrize(("gpu", "loads"), RUNS)
def test_every_packet_goes_through_the_steps_in_order(gpu: SimulatedGpu, loads: list[GpuWorkload]) -> None:
    """It leaves, waits, or is lost, where there are too many."""
    timelines = gpu.timelines(loads, until_us=20_000)
    check_steps(loads, timelines)
    assert all(one.lost == 0 or load.rate_kpps > 2000 for load, one in zip(loads, timelines, strict=True))


def test_the_bus_serves_the_smallest_order_that_waits() -> None:
    """And those of equal right as they come: on the way back, and without orders."""
    for ordered in (True, False):
        loads = crowd(10, ordered=ordered, rate_kpps=FAST)
        timelines = GPU.timelines(loads, until_us=20_000)
        orders = np.array([load.gpu.order if load.gpu and ordered else 0 for load in loads])
        for asked, begins, key in ((of.READY, of.SENT, orders), (of.DONE, of.BACK_SENT, np.zeros(len(loads)))):
            rows = intervals(timelines, begins, asked)
            turn = np.column_stack([key[rows[:, 2].astype(int)], rows[:, 1]])
            for at in range(0, len(rows), 7):
                waiting = (rows[:, 1] <= rows[at, 0]) & (rows[:, 0] > rows[at, 0])
                assert not len(turn[waiting]) or tuple(turn[at]) <= min(map(tuple, turn[waiting]))


def test_an_nf_runs_on_its_own_executors_only() -> None:
    """One batch at a time, so that no SM has more executors at work than were assigned, and nobody waits for others."""
    for timeline in GPU.timelines(crowd(10), until_us=20_000):
        begins, ends = timeline.times[:, of.STARTED], timeline.times[:, of.DONE]
        assert np.all(begins[1:] >= ends[:-1])
        assert np.allclose(begins[1:], np.maximum(timeline.times[1:, of.ARRIVED], ends[:-1]))
        assert np.allclose(timeline.part_ends.max(axis=1), ends)


@pytest.mark.parametrize(("scheduler", "most"), [("temporal", 1), ("spatial", TITAN.sms // 8)])
def test_the_scheduler_of_the_gpu_runs_as_many_kernels_as_there_is_room(scheduler: str, most: int) -> None:
    """One at a time, or as many as have SMs of their own: 256 packets are eight warps."""
    loads = [at_two_gbps(nf, scheduler) for nf in ("NIDS", "IPSec") * 4]
    card = replace(TITAN, switch_us=0.0, clock_ghz=0.4)
    rows = intervals(SimulatedGpu(card=card).timelines(loads, until_us=50_000), of.STARTED, of.DONE)
    running = [int(np.sum((rows[:, 0] <= begin) & (rows[:, 1] > begin))) for begin in rows[:, 0]]
    assert max(running) == most


def test_batching_of_steady_packets_is_as_computed() -> None:
    """The k-th of b packets waits for b - k more: on average (b - 1) / 2 times the time between packets."""
    gpu = SimulatedGpu(card=replace(TITAN, port_gbps=0.5))
    spacing = (850 + 20) * 8e-3 / 0.5
    for batch in (64, 256, 1024):  # of smaller batches, the worker is not always free
        one = gpu.run([on_sms("ACL", [(0, batch)])]).measurements[0]
        assert one.stages_us is not None and one.stages_p99_us is not None
        assert one.stages_us.batching == pytest.approx((batch - 1) / 2 * spacing, rel=1e-5, abs=1e-5)
        assert one.stages_p99_us.batching <= (batch - 1) * spacing * (1 + 1e-5)


def test_batching_of_bursts_is_the_same_on_average() -> None:
    """Time between packets has the same mean, whatever its spread."""
    for flows in (10, 16_000):
        one = GPU.run([on_sms("IPSec", traffic=TrafficProfile(flows, 850, 0))], noise=False).measurements[0]
        assert one.stages_us is not None
        assert one.stages_us.batching == pytest.approx(255 / 2 / 0.294, rel=0.02)


def test_a_time_out_bounds_batching() -> None:
    """A batch leaves when its oldest packet has waited long enough, however few it has."""
    (timeline,) = GPU.timelines([on_sms("ACL", rate_kpps=20, flush_us=400)])
    waited = timeline.times[:, of.TAKEN] - timeline.arrived[timeline.first]
    assert waited.max() < 400 + 30  # the worker may be busy with the batch before
    assert timeline.count.mean() < 50


def test_sharing_an_sm_costs_and_three_are_not_two_pairs() -> None:
    """Beside NFs on other SMs a kernel takes as long as alone; each sharer of its SM adds to it, and not evenly."""
    apart = [on_sms("IPSec", [(at, 384)], order=at, rate_kpps=2000) for at in range(4)]
    shared = [on_sms("IPSec", [(0, 384)], order=at, rate_kpps=2000) for at in range(4)]
    runs = [
        GPU.run(loads, noise=False).measurements[0].stages_us for loads in (apart, *(shared[:n] for n in (1, 2, 3, 4)))
    ]
    away, *times = [one.kernel for one in runs if one is not None]
    assert away == pytest.approx(times[0], rel=0.01)
    added = np.diff(times)
    assert np.all(added > 0.05 * times[0]) and abs(added[1] / added[0] - 1) > 0.05
