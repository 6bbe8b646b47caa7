"""What holds for whatever runs on the simulated GPU."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.protocol.request_checks import refusals
from profiler.simulated_gpu import SimulatedGpu
from profiler.simulated_gpu import columns as of
from profiles import PacedWorkload, TrafficProfile
from tests.profiler.simulated_gpu.loads import FOUR, on_sms

GPU = SimulatedGpu()
NIC = GPU.describe().nic
UNTIL_US = 5_000.0


@st.composite
def loads(draw: st.DrawFn) -> list[PacedWorkload]:
    """Up to six NFs on three SMs, which may be too many for them."""
    found = []
    for order in range(draw(st.integers(1, 6))):
        sms = draw(st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True))
        flush_us = draw(st.none() | st.floats(5, 1000))
        load = on_sms(
            draw(st.sampled_from(FOUR)),
            [(sm, draw(st.integers(1, 700))) for sm in sms],
            order=order,
            rate_kpps=draw(st.floats(20, 6000)),
            flush_us=flush_us,
            traffic=TrafficProfile(
                draw(st.integers(1, 500_000)), draw(st.integers(64, 1500)), draw(st.integers(0, 1100))
            ),
        )
        if not refusals(GPU.describe(), [*found, load]):
            found.append(load)
    return found or [on_sms("ACL")]


@settings(max_examples=20, deadline=None)
@given(loads())
def test_packets_are_kept_buses_carry_one_batch_and_executors_suffice(running: list[PacedWorkload]) -> None:
    """At every moment, whatever the rates, batches, time-outs and SMs."""
    timelines = GPU.timelines(running, until_us=UNTIL_US)
    parts = []
    for load, timeline in zip(running, timelines, strict=True):
        assert timeline.count.sum() + timeline.waiting == len(timeline.arrived)
        assert np.all(np.diff(timeline.times[:, of.TAKEN : of.POSTED + 1], axis=1) >= 0)
        assert load.gpu is not None and NIC.packets_per_executor is not None
        left = timeline.count.copy()
        for at, one in enumerate(load.gpu.minibatches):
            packets = np.minimum(left, one.packets)
            left = left - packets
            used = -(-packets // NIC.packets_per_executor)
            assert np.all((timeline.part_ends[:, at] > 0) == (packets > 0))
            parts += [
                (one.sm, begin, end, number)
                for begin, end, number in zip(
                    timeline.times[:, of.STARTED], timeline.part_ends[:, at], used, strict=True
                )
                if number
            ]
    for begins, ends in ((of.SENT, of.ARRIVED), (of.BACK_SENT, of.BACK)):
        used = np.concatenate([timeline.times[:, [begins, ends]] for timeline in timelines])
        used = used[np.argsort(used[:, 0])]
        assert np.all(used[1:, 0] >= used[:-1, 1])
    for sm in range(3):
        changes = sorted(
            [(begin, 1, number) for at, begin, _, number in parts if at == sm]
            + [(end, 0, -number) for at, _, end, number in parts if at == sm]
        )
        executors = np.cumsum([number for *_, number in changes])
        assert not len(executors) or executors.max() <= (NIC.executors_per_sm or 0)
