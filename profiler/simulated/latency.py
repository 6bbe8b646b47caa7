"""Latency of packets that enter a chain at a given rate, by following each of them.

Packets arrive at random times and wait in the ring of the first core. A core takes what waits, at most a batch, and
passes all of it on when the last packet of the batch is done; then it takes the next. A packet that finds a ring full
is lost, and has no latency. A core that packets reach twice is passed once, for the time of both.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from profiler.simulated.cache import Array
from profiler.testbed import PacketLatency

SETTLING = 0.1
"""The share of the packets, the first ones, that find rings emptier than later ones do."""


@dataclass(frozen=True, slots=True)
class CoreTime:
    """Time of one core per packet (us): certain, stalled on memory, and per batch."""

    compute_us: float
    stall_us: float
    batch_us: float


def packet_latency(
    cores: Sequence[CoreTime], rate_mpps: float, packets: int, batch: int, ring: int, rng: Generator
) -> PacketLatency:
    """Latency of `packets` packets that arrive at `rate_mpps`, at random times (a Poisson process).

    Stalls differ from packet to packet: their time is drawn from an exponential distribution.
    """
    waiting = entered = np.cumsum(rng.exponential(1 / rate_mpps, packets))
    for core in cores:
        times = core.compute_us + core.stall_us * rng.exponential(size=len(waiting))
        kept, waiting = _pass(waiting, times, core.batch_us, batch, ring)
        entered = entered[kept]
    latencies = (waiting - entered)[int(SETTLING * len(waiting)) :]
    p50, p99 = np.percentile(latencies, [50, 99]).tolist()
    return PacketLatency(float(latencies.mean()), p50, p99, float(latencies.max()))


def _pass(arrived: Array, times: Array, batch_us: float, batch: int, ring: int) -> tuple[list[int], Array]:
    """The packets that one core does not lose, and when they leave it; the k-th of them takes the k-th time."""
    arrivals: list[float] = arrived.tolist()
    until = [0.0, *np.cumsum(times).tolist()]
    kept: list[int] = []
    ends: list[float] = []
    sizes: list[int] = []
    free, following, taken = 0.0, 0, 0
    while taken < len(kept) or following < len(arrivals):
        start = free if taken < len(kept) else max(free, arrivals[following])
        here = bisect_right(arrivals, start, following)
        kept.extend(range(following, min(here, following + ring - (len(kept) - taken))))
        following = here
        size = min(batch, len(kept) - taken)
        free = start + batch_us + until[taken + size] - until[taken]
        taken += size
        ends.append(free)
        sizes.append(size)
    return kept, np.repeat(ends, sizes)
