"""Batches of SLOs, as `placer.gpu.greedy.layout` finds them."""

from __future__ import annotations

import numpy as np

from placer.gpu.compiled import compiled
from placer.gpu.fast.tables import EXECUTORS, FIXED, KERNEL, PACKETS, PER_EXECUTOR, PRE_POST, SLOPE, SMS
from placer.gpu.greedy.layout import ROUNDED, WITHIN


@compiled
def batch_of(sizes, nfs, nf, rate, latency, pinned, executors, allowance, share):  # type: ignore[no-untyped-def]
    """The batch of an SLO on at most so many executors of each SM; -1 where there is none."""
    if pinned > 0:
        return pinned if keeps_up(sizes, nfs, nf, rate, pinned, executors) else -1
    batch = smallest_batch(sizes, nfs, nf, rate, executors, allowance)
    if share > 0.0 and batch > 0:
        return larger_batch(sizes, nfs, nf, rate, latency, batch, executors, share)
    return batch


@compiled
def smallest_batch(sizes, nfs, nf, rate, executors, allowance):  # type: ignore[no-untyped-def]
    """The smallest batch that kernel, CPU and bus keep up with; -1 where there is none."""
    left, fixed = 1000.0 / rate - nfs[SLOPE, nf], nfs[FIXED, nf]
    if left < 0.0 or (left == 0.0 and fixed > 0.0):
        return -1
    least = 1 if left == 0.0 else max(1, int(np.ceil(fixed / left * ROUNDED)))
    per_us, packets = rate / 1000.0, sizes[PACKETS]
    least = max(least, arriving(nfs[PRE_POST, nf], per_us))
    for used in range(1, executors + 1):
        kernel = nfs[PER_EXECUTOR, nf] * used + nfs[KERNEL, nf] + allowance
        batch = max(least, arriving(kernel, per_us), (used - 1) * packets + 1)
        if batch <= used * packets * (sizes[SMS] if used == executors else 1):
            return batch
    return -1


@compiled
def arriving(time, per_us):  # type: ignore[no-untyped-def]
    """Packets that arrive in a time (us), rounded up; `per_us` is their rate."""
    return max(1, int(np.ceil(time * per_us * ROUNDED)))


@compiled
def keeps_up(sizes, nfs, nf, rate, batch, executors):  # type: ignore[no-untyped-def]
    """Whether kernel and CPU fit the period of this batch."""
    used = min(executors, -(-batch // sizes[PACKETS]))
    longest = max(nfs[PER_EXECUTOR, nf] * used + nfs[KERNEL, nf], nfs[PRE_POST, nf])
    return batch <= sizes[SMS] * executors * sizes[PACKETS] and longest <= 1000.0 * batch / rate * WITHIN


@compiled
def larger_batch(sizes, nfs, nf, rate, latency, batch, executors, share):  # type: ignore[no-untyped-def]
    """A batch that spends a share of the headroom."""
    per_executor, packets = nfs[PER_EXECUTOR, nf], sizes[PACKETS]
    per_packet = 1000.0 / rate + nfs[SLOPE, nf]
    per_packet += per_executor / packets
    used = min(executors, -(-batch // packets))
    taken = 1000.0 * (batch - 1) / rate + nfs[PRE_POST, nf]
    taken += nfs[SLOPE, nf] * batch + nfs[FIXED, nf] + per_executor * used + nfs[KERNEL, nf]
    headroom = max(latency - taken - per_executor, 0.0)
    return min(batch + int(np.floor(share * headroom / per_packet)), sizes[SMS] * executors * packets)


@compiled
def batch_on_fewer(sizes, nfs, nf, rate, latency, pinned, allowance, share):  # type: ignore[no-untyped-def]
    """The batch of the first layout of an SLO that has none with the allowance on a whole SM; -1 without any."""
    for executors in range(sizes[EXECUTORS], 0, -1):
        batch = -1
        if executors < sizes[EXECUTORS]:
            batch = batch_of(sizes, nfs, nf, rate, latency, pinned, executors, allowance, share)
        if batch < 0 and allowance > 0.0 and pinned == 0:
            batch = batch_of(sizes, nfs, nf, rate, latency, pinned, executors, 0.0, share)
        if batch > 0:
            return batch
    return -1
