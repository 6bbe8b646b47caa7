"""Which runs of one NF alone: batches, rates and traffic over the range in which NFs are used."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from profiler.gpu.capacity import StageEstimate
from profiler.sampling import EvenPoints, at, neat, traffic_ranges, traffic_with
from profiles import GpuSettings, Minibatch, PacedWorkload, TestbedDescription, TrafficProfile, Workload

FIRST_PERIOD_US = 2000.0
"""Time from batch to batch of the first runs, before anything is known of the NF."""
LOADS = (0.03, 0.85)
"""Of the busiest stage."""
LONGEST_PERIOD_US = 20_000.0
"""A batch that takes longer to collect is not one that anybody uses."""
SPLITS = (2, 3, 4, 8, 16)
"""Over how many SMs a batch is split."""
SHARE_SPLIT = 0.15
"""Share of the runs with such a batch."""


def sm_packets(description: TestbedDescription) -> int:
    """The most packets of a minibatch."""
    nic = description.nic
    assert nic.executors_per_sm and nic.packets_per_executor
    return nic.executors_per_sm * nic.packets_per_executor


def workload(
    nf: str, traffic: TrafficProfile, rate_kpps: float, minibatches: Sequence[tuple[int, int]], order: int = 0
) -> PacedWorkload:
    """An NF with these (SM, packets)."""
    parts = tuple(Minibatch(sm, packets) for sm, packets in minibatches)
    batch = sum(packets for _, packets in minibatches)
    return PacedWorkload(Workload(nf, traffic), neat(rate_kpps), GpuSettings(batch, order, parts))


def first_runs(description: TestbedDescription, nf: str, count: int) -> list[PacedWorkload]:
    """Batches of one packet to a whole SM at default traffic and a low rate, then the ends of each attribute."""
    most = sm_packets(description)
    ranges = traffic_ranges(description)
    ends = [traffic_with(description.traffic, {name: at(ranges[name], end)}) for name in ranges for end in (0.0, 1.0)]
    batches = sorted({round(most**share) for share in np.linspace(0, 1, max(count - len(ends), 3)).tolist()})
    spots = [(batch, description.traffic) for batch in batches]
    spots += [(max(most // 2, 1), traffic) for traffic in ends if traffic != description.traffic]
    return [workload(nf, traffic, 1000.0 * batch / FIRST_PERIOD_US, [(0, batch)]) for batch, traffic in spots]


def slower(load: PacedWorkload) -> PacedWorkload:
    """The same at a fourth of the rate."""
    return PacedWorkload(load.workload, neat(load.rate_kpps / 4), load.gpu)


def spread_runs(
    description: TestbedDescription, nf: str, times: StageEstimate, count: int, rng: Generator
) -> list[PacedWorkload]:
    """Runs evenly over batch, load and traffic; some with batches over several SMs."""
    most, sms = sm_packets(description), description.nic.sms
    assert sms
    ranges = traffic_ranges(description)
    splits = [one for one in SPLITS if one <= sms]
    of_several = round(SHARE_SPLIT * count) if splits else 0
    loads = []
    points = EvenPoints(2 + len(ranges), rng).take(count).tolist()
    for number, (size, load, *spot) in enumerate(points):
        positions = dict(zip(ranges, spot, strict=True))
        traffic = traffic_with(description.traffic, {name: at(ranges[name], one) for name, one in positions.items()})
        parts = splits[number % len(splits)] if number < of_several else 1
        packets = max(round(most**size), 1)
        rate = rate_at(times, packets * parts, packets, traffic, load)
        loads.append(workload(nf, traffic, rate, [(sm, packets) for sm in range(parts)]))
    return loads


def rate_at(times: StageEstimate, batch: int, packets: int, traffic: TrafficProfile, position: float) -> float:
    """The rate (kpps) at a position in [0, 1] between a low and a high load of the busiest stage."""
    most = times.most_kpps(batch, packets, traffic)
    low, high = LOADS[0] * most, LOADS[1] * most
    low = min(max(low, 1000.0 * batch / LONGEST_PERIOD_US), high)
    return float(low * (high / low) ** position)
