"""Latency of packets that enter a chain at a given rate, by following each of them.

Packets arrive and wait in the ring of the first core. A core takes what waits, at most a batch, and
passes all of it on when the last packet of the batch is done; then it takes the next. A packet that finds a ring full
is lost, and has no latency. A core that packets reach twice is passed once, for the time of both.
"""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class FollowedPackets:
    """The latency of the packets that were not lost, and their share of all."""

    latency: PacketLatency
    kept: float


def follow(cores: Sequence[CoreTime], arrived: Array, batch: int, ring: int, rng: Generator) -> FollowedPackets:
    """What becomes of packets that arrive at these times (us), in order.

    Stalls differ from packet to packet: their time is drawn from an exponential distribution.
    """
    from profiler.simulated.core_queue import pass_packets  # the compiler takes half a second to load

    waiting = entered = arrived
    for core in cores:
        times = core.compute_us + core.stall_us * rng.exponential(size=len(waiting))
        kept, waiting = pass_packets(waiting, times, core.batch_us, batch, ring)
        entered = entered[kept]
    latencies = (waiting - entered)[int(SETTLING * len(waiting)) :]
    p50, p99 = np.percentile(latencies, [50, 99]).tolist()
    latency = PacketLatency(float(latencies.mean()), p50, p99, float(latencies.max()))
    return FollowedPackets(latency, len(entered) / len(arrived))


def random_times(rate_mpps: float, packets: int, rng: Generator) -> Array:
    """When packets arrive (us) that know nothing of each other: a Poisson process."""
    return np.asarray(np.cumsum(rng.exponential(1 / rate_mpps, packets)))
