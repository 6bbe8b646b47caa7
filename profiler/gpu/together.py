"""Which runs of several NFs: sharers of one SM, and co-locations on the whole GPU."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
from numpy.random import Generator

from profiler.gpu.measuring import GpuCoLocation, StageEstimate
from profiler.sampling import EvenPoints, at, neat, traffic_ranges, traffic_with
from profiles import GpuSettings, GpuWorkload, Minibatch, TestbedDescription, TrafficProfile, Workload

BUSY_KERNEL = 0.85  # load of the NFs that share an SM: their kernels run most of the time
BUSIEST_BUS = 0.8
PAIR_SHARES = ((0.5, 0.5), (0.25, 0.75), (0.75, 0.25))  # shares of an SM's executors
MOST_SHARERS = 4
MOST_NFS = 10
SAME_TRAFFIC = 0.5  # share of the NFs in co-locations that have default traffic
BUS_LOADS = (0.1, 0.7)

Estimates = Mapping[str, StageEstimate]


def pairs(description: TestbedDescription, times: Estimates) -> list[GpuCoLocation]:
    """Every two NFs, also of one kind, on one SM with different shares of its executors."""
    names = list(times)
    if _most_sharers(description) < 2:
        return []
    return [
        sharers(description, times, pair, shares, [description.traffic] * 2)
        for shares in PAIR_SHARES
        for pair in combinations_with_replacement(names, 2)
    ]


def several_sharers(
    description: TestbedDescription, times: Estimates, count: int, rng: Generator
) -> list[GpuCoLocation]:
    """Two to four NFs on one SM at random, with random shares of its executors and traffic."""
    found = []
    names = list(times)
    most = min(MOST_SHARERS, _most_sharers(description))
    for number in range(count if most > 1 else 0):
        size = min(3 + number % 3, most) if number % 3 < 2 else 2
        nfs = [names[number] for number in rng.integers(len(names), size=size).tolist()]
        shares = rng.dirichlet(np.full(size, 4.0)).tolist()
        found.append(sharers(description, times, nfs, shares, [_traffic(description, rng) for _ in nfs]))
    return found


def sharers(
    description: TestbedDescription,
    times: Estimates,
    nfs: Sequence[str],
    shares: Sequence[float],
    traffics: Sequence[TrafficProfile],
) -> GpuCoLocation:
    """NFs on SM 0 whose kernels run most of the time, as far as the bus allows."""
    nic = description.nic
    assert nic.executors_per_sm and nic.packets_per_executor
    used = [max(int(share * nic.executors_per_sm), 1) for share in shares]
    packets = [count * nic.packets_per_executor for count in used]
    loads = []
    for order, (nf, count, traffic) in enumerate(zip(nfs, packets, traffics, strict=True)):
        rate = BUSY_KERNEL * times[nf].most_kpps(count, count, traffic)
        loads.append(workload(nf, traffic, rate, [(0, count)], order))
    return within_bus(times, loads, BUSIEST_BUS)


def random_co_locations(
    description: TestbedDescription, times: Estimates, count: int, rng: Generator
) -> list[GpuCoLocation]:
    """Two to ten NFs at random: traffic, batch, rate, SMs and order."""
    most = min(description.workers or description.nic.cores, MOST_NFS)
    return [_random(description, times, int(rng.integers(2, most + 1)), rng) for _ in range(count if most > 1 else 0)]


def within_bus(times: Estimates, loads: Sequence[GpuWorkload], most: float) -> GpuCoLocation:
    """The loads, all of them slower if the bus would otherwise be busier than that, in either direction."""
    busiest = max(sum(_bus_load(times, load, stage) for load in loads) for stage in ("transfer", "return"))
    if busiest <= most:
        return tuple(loads)
    slower = most / busiest
    return tuple(_at_rate(load, slower * load.rate_kpps) for load in loads)


def _most_sharers(description: TestbedDescription) -> int:
    return min(description.workers or description.nic.cores, description.nic.executors_per_sm or 1)


def _random(description: TestbedDescription, times: Estimates, size: int, rng: Generator) -> GpuCoLocation:
    nic = description.nic
    assert nic.sms and nic.executors_per_sm and nic.packets_per_executor
    free = dict.fromkeys(range(min(nic.sms, max(2, size))), nic.executors_per_sm)
    names, loads = list(times), []
    for order in rng.permutation(size).tolist():
        nf = names[int(rng.integers(len(names)))]
        traffic = _traffic(description, rng)
        sms = [sm for sm, left in free.items() if left]
        if not sms:
            break
        parts = rng.choice(sms, size=min(int(rng.integers(1, 3)), len(sms)), replace=False).tolist()
        lower = min(8, sm_packets(description))
        minibatches = []
        for sm in parts:
            room = free[sm] * nic.packets_per_executor
            packets = max(round(min(lower, room) * (room / min(lower, room)) ** rng.random()), 1)
            free[sm] -= -(-packets // nic.packets_per_executor)
            minibatches.append((sm, packets))
        batch, largest = sum(one for _, one in minibatches), max(one for _, one in minibatches)
        rate = rate_at(times[nf], batch, largest, traffic, float(rng.uniform(0.2, 0.95)))
        loads.append(workload(nf, traffic, rate, minibatches, order))
    return within_bus(times, loads, float(rng.uniform(*BUS_LOADS)))


def _traffic(description: TestbedDescription, rng: Generator) -> TrafficProfile:
    if rng.random() < SAME_TRAFFIC:
        return description.traffic
    ranges = traffic_ranges(description)
    return traffic_with(description.traffic, {name: at(one, rng.random()) for name, one in ranges.items()})


def _bus_load(times: Estimates, load: GpuWorkload, stage: str) -> float:
    largest = max(minibatch.packets for minibatch in load.gpu.minibatches)
    taken = times[load.nf].times_us(load.gpu.batch, largest, load.traffic)[stage]
    return taken * load.rate_kpps / (1000.0 * load.gpu.batch)


def _at_rate(load: GpuWorkload, rate_kpps: float) -> GpuWorkload:
    parts = [(minibatch.sm, minibatch.packets) for minibatch in load.gpu.minibatches]
    return workload(load.nf, load.traffic, rate_kpps, parts, load.gpu.order or 0)


# Which runs of one NF alone: batches, rates and traffic over the range in which NFs are used.


FIRST_PERIOD_US = 2000.0  # time from batch to batch of the first runs, before anything is known of the NF
BUSIEST_LOADS = (0.03, 0.85)  # of the busiest stage
LONGEST_PERIOD_US = 20_000.0  # a batch that takes longer to collect is not one that anybody uses
SM_SPLITS = (2, 3, 4, 8, 16)  # over how many SMs a batch is split
SHARE_SPLIT = 0.15  # share of the runs with such a batch


def sm_packets(description: TestbedDescription) -> int:
    """The most packets of a minibatch."""
    nic = description.nic
    assert nic.executors_per_sm and nic.packets_per_executor
    return nic.executors_per_sm * nic.packets_per_executor


def workload(
    nf: str, traffic: TrafficProfile, rate_kpps: float, minibatches: Sequence[tuple[int, int]], order: int = 0
) -> GpuWorkload:
    """An NF with these (SM, packets)."""
    parts = tuple(Minibatch(sm, packets) for sm, packets in minibatches)
    batch = sum(packets for _, packets in minibatches)
    return GpuWorkload(Workload(nf, traffic, neat(rate_kpps)), GpuSettings(batch, order, parts))


def first_runs(description: TestbedDescription, nf: str, count: int) -> list[GpuWorkload]:
    """Batches of one packet to a whole SM at default traffic and a low rate, then the ends of each attribute."""
    most = sm_packets(description)
    ranges = traffic_ranges(description)
    ends = [traffic_with(description.traffic, {name: at(ranges[name], end)}) for name in ranges for end in (0.0, 1.0)]
    batches = sorted({round(most**share) for share in np.linspace(0, 1, max(count - len(ends), 3)).tolist()})
    spots = [(batch, description.traffic) for batch in batches]
    spots += [(max(most // 2, 1), traffic) for traffic in ends if traffic != description.traffic]
    return [workload(nf, traffic, 1000.0 * batch / FIRST_PERIOD_US, [(0, batch)]) for batch, traffic in spots]


def slower(load: GpuWorkload) -> GpuWorkload:
    """The same at a fourth of the rate."""
    return GpuWorkload(replace(load.workload, rate_kpps=neat(load.rate_kpps / 4)), load.gpu)


def spread_runs(
    description: TestbedDescription, nf: str, times: StageEstimate, count: int, rng: Generator
) -> list[GpuWorkload]:
    """Runs evenly over batch, load and traffic; some with batches over several SMs."""
    most, sms = sm_packets(description), description.nic.sms
    assert sms
    ranges = traffic_ranges(description)
    splits = [split for split in SM_SPLITS if split <= sms]
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
    low, high = BUSIEST_LOADS[0] * most, BUSIEST_LOADS[1] * most
    low = min(max(low, 1000.0 * batch / LONGEST_PERIOD_US), high)
    return float(low * (high / low) ** position)
