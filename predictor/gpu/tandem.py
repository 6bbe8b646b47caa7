"""Batches of co-located NFs on their way through workers, bus, SMs and the bus back, sampled.

Each resource is a queue: a worker serves the batches of its NF before and after the GPU, the bus to the GPU serves
whole batches by their order and never interrupts one (non-preemptive fixed priorities), kernels of an NF run one after
the other, the bus back serves batches as they come. A worker takes a batch only while fewer than a window of them are
on their way. What a batch takes at each is drawn around what was learnt of it; how long it waits follows. The draws are
the same each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from predictor.gpu.bursts import Bursts
from predictor.gpu.queues import (
    DONE,
    KERNEL,
    KERNEL_END,
    ON_BUS,
    ON_CARD,
    ON_WORKER,
    RETURNED,
    TAKEN,
    serve,
)
from predictor.gpu.shared_kernels import KernelShare, as_arrays

Array = NDArray[np.float64]

BATCHES = 1500
"""Batches of the slowest NF that are drawn."""
MOST_BATCHES = 60_000
"""Of all NFs together; then fewer of each."""
FEWEST_BATCHES = 200
WARM_UP = 0.05
"""Share of the batches that fill the queues first and are not counted."""
PACKETS, FEWEST_PACKETS, MOST_PACKETS = 12, 3, 24_000
"""Packets that are drawn of each batch: at most, at least, and about at most in all."""
TAIL_Z = 2.3263478740408408
"""The 99th percentile of the normal distribution."""
PRE = 0.5
"""The share of pre- and post-processing that is before the GPU."""


@dataclass(frozen=True)
class BatchDemand:
    """What the batches of one NF take, us.

    Parameters
    ----------
    batch, rate_kpps, bursts
        How its batches come: packets, offered rate, bursts of packets.
    order
        Its turn on the bus; smaller first.
    pre_post, transfer, returned
        Mean time of each.
    kernel
        Its minibatches.
    tails
        p99 over mean of pre/post, transfer, kernel and return.
    receive
        What the worker does besides for each batch, such as taking packets from the NIC.
    """

    batch: int
    rate_kpps: float
    bursts: Bursts
    order: float
    pre_post: float
    transfer: float
    returned: float
    kernel: KernelShare
    tails: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    receive: float = 0.0

    @property
    def period_us(self) -> float:
        """Mean time from batch to batch."""
        return 1000.0 * self.batch / self.rate_kpps


@dataclass(frozen=True)
class SampledLatency:
    """Latency of the packets of one NF, us: mean, median and p99, p99 of batching, and means of each of `STAGES`."""

    mean: float
    p50: float
    p99: float
    batching_p99: float
    stages: tuple[float, ...]


def sample(demands: Sequence[BatchDemand], *, window: int, batches: int = BATCHES) -> list[SampledLatency]:
    """The latency of each NF of a co-location; no resource may be overloaded.

    Parameters
    ----------
    window
        The most batches of an NF on their way.
    batches
        That are drawn of the slowest NF.
    """
    counts = _counts(demands, batches)
    rng = [np.random.default_rng([17, at]) for at in range(len(demands))]
    gaps = [
        one.bursts.batches(one.batch, one.rate_kpps, count, draw)
        for one, count, draw in zip(demands, counts, rng, strict=True)
    ]
    ends = [np.cumsum(one.periods_us) for one in gaps]
    taken = [_times(one, count, draw) for one, count, draw in zip(demands, counts, rng, strict=True)]
    first = np.cumsum([0, *counts])
    at = np.zeros((8, first[-1]))
    orders, rest = (
        np.array([getattr(one, name) for one in demands], dtype=np.float64) for name in ("order", "receive")
    )
    serve(
        first,
        orders,
        window,
        np.concatenate(ends),
        np.concatenate(taken, axis=1),
        rest,
        *as_arrays([one.kernel for one in demands]),
        at,
    )
    result = []
    for nf in range(len(demands)):
        skip = int(WARM_UP * counts[nf])
        mine = at[:, first[nf] + skip : first[nf + 1]]
        end = ends[nf][skip:]
        packets_each = max(FEWEST_PACKETS, min(PACKETS, MOST_PACKETS // counts[nf]))
        waits = gaps[nf].waits_us(skip, packets_each, rng[nf])
        stages = (
            float(waits.mean() + (mine[TAKEN] - end).mean()),
            float((mine[ON_WORKER] - mine[TAKEN] + mine[DONE] - mine[RETURNED]).mean()),
            float((mine[ON_BUS] - mine[ON_WORKER]).mean()),
            float((mine[ON_CARD] - mine[ON_BUS]).mean()),
            float((mine[KERNEL] - mine[ON_CARD]).mean()),
            float((mine[KERNEL_END] - mine[KERNEL]).mean()),
            float((mine[RETURNED] - mine[KERNEL_END]).mean()),
        )
        packets = waits + (mine[DONE] - end)[:, None]
        p50, p99 = np.quantile(packets, [0.5, 0.99]).tolist()
        batching = float(np.quantile(waits + (mine[TAKEN] - end)[:, None], 0.99))
        result.append(SampledLatency(float(packets.mean()), p50, p99, batching, stages))
    return result


def _counts(demands: Sequence[BatchDemand], batches: int) -> list[int]:
    """Batches of each NF in the same time."""
    periods = np.array([one.period_us for one in demands])
    horizon = batches * periods.max()
    horizon *= min(1.0, MOST_BATCHES / (horizon / periods).sum())
    return [max(FEWEST_BATCHES, int(count)) for count in horizon / periods]


def _times(demand: BatchDemand, count: int, rng: Generator) -> Array:
    """What each batch takes, shape (5, count): log-normal, of the learnt mean and p99."""
    means = (demand.pre_post, demand.transfer, 1.0, demand.returned)
    drawn = []
    for mean, tail in zip(means, demand.tails, strict=True):
        # p99 / mean of a log-normal is exp(z s - s^2 / 2)
        spread = TAIL_Z - np.sqrt(max(TAIL_Z**2 - 2 * np.log(max(tail, 1.0)), 0.0))
        drawn.append(mean * np.exp(spread * rng.standard_normal(count) - spread**2 / 2))
    whole, transfer, kernel, returned = drawn
    return np.array([PRE * whole, transfer, kernel, returned, (1 - PRE) * whole])
