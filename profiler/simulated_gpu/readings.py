"""From what happened to what a testbed reports: throughput, latency of packets, and time in each stage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.simulated_gpu import columns as of
from profiler.simulated_gpu.columns import Floats, Ints
from profiler.simulated_gpu.server import Timeline
from profiler.testbed import GpuStages, Measurement, PacketLatency
from profiles import Counters

SETTLING, ENDING = 0.1, 0.03
"""Shares of the time, first and last, whose batches are left out: queues fill, and packets stop coming."""
DIGITS = 6
LEAST_LOSS = 2e-3
"""Fewer packets missing than that are under way, not lost."""
NO_COUNTERS = Counters()


@dataclass(frozen=True, slots=True)
class SettledBatches:
    """The batches that were taken while the server was settled, and the place of each of their packets.

    Parameters
    ----------
    times, count
        As in `Timeline`.
    arrived, place
        Of each packet: when it came (us), and its place in its batch, from 0.
    """

    times: Floats
    count: Ints
    arrived: Floats
    place: Ints


def settled(timeline: Timeline, until_us: float) -> SettledBatches:
    """The batches from which a run on packets until `until_us` is measured."""
    taken = timeline.times[:, of.TAKEN]
    kept = (taken >= SETTLING * until_us) & (taken <= (1 - ENDING) * until_us)
    count = timeline.count[kept]
    place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return SettledBatches(
        timeline.times[kept], count, timeline.arrived[np.repeat(timeline.first[kept], count) + place], place
    )


def measured(timeline: Timeline, rate_kpps: float, until_us: float, *, exact: bool) -> Measurement | None:
    """The measurement of one NF; None where no batch came back in time.

    `exact` reports the offered rate as throughput where no packets are lost, instead of the packets that were counted.
    """
    batches = settled(timeline, until_us)
    if not len(batches.count):
        return None
    times, count = batches.times, batches.count
    batching = np.repeat(times[:, of.TAKEN], count) - batches.arrived
    sending = (batches.place + 1) * np.repeat(times[:, of.POST_PACKET], count)
    worker = sending + np.repeat(
        times[:, of.READY] - times[:, of.TAKEN] + times[:, of.POSTED] - times[:, of.BACK], count
    )
    latency = np.repeat(times[:, of.POSTED], count) - batches.arrived + sending
    p50, p99 = np.percentile(latency, (50, 99)).tolist()
    of_batch = np.diff(times[:, of.READY : of.DONE + 1], axis=1).T
    stages = [*of_batch, times[:, of.BACK] - times[:, of.DONE]]
    means = [batching.mean(), worker.mean(), *(np.average(one, weights=count) for one in stages)]
    tails = [*(np.percentile(one, 99) for one in (batching, worker)), *(_tail(one, count) for one in stages)]
    return Measurement(
        rounded(_throughput_kpps(timeline, rate_kpps, until_us, exact)),
        NO_COUNTERS,
        (),
        PacketLatency(*map(rounded, (latency.mean(), p50, p99, latency.max()))),
        GpuStages(*map(rounded, means)),
        GpuStages(*map(rounded, tails)),
    )


def _tail(values: Floats, count: Ints) -> float:
    """The time that 99 % of the packets do not exceed, of batches with so many packets."""
    order = np.argsort(values)
    packets = np.cumsum(count[order])
    return float(values[order][np.searchsorted(packets, 0.99 * packets[-1])])


def _throughput_kpps(timeline: Timeline, rate_kpps: float, until_us: float, exact: bool) -> float:
    """Packets that leave while the server is settled, of those that are offered meanwhile."""
    begin, end = SETTLING * until_us, until_us
    times, count = timeline.times, timeline.count
    done = times[:, of.POSTED] + count * times[:, of.POST_PACKET]
    left = float(count[(done >= begin) & (done <= end)].sum())
    if not exact:
        return max(left, 1.0) * 1e3 / (end - begin)
    came = float(np.sum((timeline.arrived >= begin) & (timeline.arrived <= end)))
    came += timeline.lost * (end - begin) / until_us
    missing = 1 - left / max(came, 1.0)
    overloaded = missing > max(LEAST_LOSS, 4 * float(count.max()) / max(came, 1.0))
    return rate_kpps * max(left, 1.0) / max(came, 1.0) if overloaded else rate_kpps


def rounded(value: float) -> float:
    """The value with the digits that a testbed reports; no time is negative."""
    return float(f"{max(value, 0.0):.{DIGITS}g}")
