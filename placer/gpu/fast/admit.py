"""Whole sets of SLOs: the compiled part of Grus's repaired algorithm."""

from __future__ import annotations

from math import inf

import numpy as np

from placer.gpu.compiled import compiled
from placer.gpu.fast.batches import batch_of, batch_on_fewer
from placer.gpu.fast.place import place, times_of
from placer.gpu.fast.tables import BETA, COUNTS, EXECUTORS, NFS, PRE_POST, SPORADIC, TENANTS, empty_tables
from placer.gpu.greedy.admit import LARGER_BATCHES, LARGEST_BATCHES

MEDIUM, SMALL = LARGER_BATCHES
LARGE = LARGEST_BATCHES[0]
RUN = 8
"""Length of what is sorted by insertion, and then merged."""


@compiled
def admit_set(sizes, nfs, nf, rate, latency, pinned):  # type: ignore[no-untyped-def]
    """`whole` and `times` of a GPU with all SLOs that are admitted, periods by tenant, causes by SLO (0 is admitted).

    Parameters
    ----------
    sizes, nfs
        Of the GPU, as in `tables`.
    nf, rate, latency, pinned
        By SLO: number of its NF, kpps, us, and its batch or 0.
    """
    allowances = np.zeros(sizes[NFS])
    for one in range(len(nf)):
        for other in range(sizes[NFS]):
            allowances[other] = max(allowances[other], nfs[BETA + other, nf[one]])
    if not sizes[SPORADIC]:
        return admit_with_share(sizes, nfs, nf, rate, latency, pinned, allowances, 0.0)
    used = 0.0
    for one in range(len(nf)):
        batch = batch_of(sizes, nfs, nf[one], rate[one], latency[one], pinned[one], sizes[EXECUTORS], 0.0, MEDIUM)
        if batch < 0:
            batch = batch_on_fewer(sizes, nfs, nf[one], rate[one], latency[one], pinned[one], 0.0, MEDIUM)
        if batch > 0:
            _, transfer, period = times_of(nfs, nf[one], rate[one], batch)
            used += transfer / period
    if not used < 1.0:
        return admit_with_share(sizes, nfs, nf, rate, latency, pinned, allowances, LARGE)
    found = admit_with_share(sizes, nfs, nf, rate, latency, pinned, allowances, MEDIUM)
    if found[0][COUNTS, TENANTS] < len(nf):
        other_found = admit_with_share(sizes, nfs, nf, rate, latency, pinned, allowances, SMALL)
        if other_found[0][COUNTS, TENANTS] > found[0][COUNTS, TENANTS]:
            return other_found
    return found


@compiled
def admit_with_share(sizes, nfs, nf, rate, latency, pinned, allowances, share):  # type: ignore[no-untyped-def]
    """As `admit_set`, with batches that take a share of the headroom."""
    count = len(nf)
    whole, times = empty_tables(sizes, count)
    periods, causes = np.empty(whole.shape[1]), np.empty(count, np.int64)
    batches, keys = np.empty(count, np.int64), np.empty(count)
    for one in range(count):
        kind, most = nf[one], sizes[EXECUTORS]
        batches[one] = batch_of(sizes, nfs, kind, rate[one], latency[one], pinned[one], most, allowances[kind], share)
        batch = batches[one]
        if batch < 0:
            batch = batch_on_fewer(sizes, nfs, kind, rate[one], latency[one], pinned[one], allowances[kind], share)
        keys[one] = key_of(sizes, nfs, kind, rate[one], latency[one], batch)
    for one in in_order(keys):
        kind, batch = nf[one], batches[one]
        causes[one] = place(
            sizes, nfs, whole, times, periods, one, kind, rate[one], latency[one], pinned[one], allowances[kind],
            share, batch,
        )  # fmt: skip
    return whole, times, periods, causes


@compiled
def key_of(sizes, nfs, nf, rate, latency, batch):  # type: ignore[no-untyped-def]
    """What SLOs are sorted by: headroom, or where transfers recur use of the bus; infinite without any batch."""
    if batch < 0:
        return inf
    batching, transfer, period = times_of(nfs, nf, rate, batch)
    return transfer / period if sizes[SPORADIC] else latency - batching - nfs[PRE_POST, nf]


@compiled
def in_order(keys):  # type: ignore[no-untyped-def]
    """The places of the keys, the smallest first; equal ones stay in their order. NumPy's sort is slower for few."""
    count = len(keys)
    found, other = np.arange(count), np.empty(count, np.int64)
    for start in range(0, count, RUN):
        for at in range(start + 1, min(start + RUN, count)):
            one, to = found[at], at
            while to > start and keys[found[to - 1]] > keys[one]:
                found[to] = found[to - 1]
                to -= 1
            found[to] = one
    length = RUN
    while length < count:
        for start in range(0, count, 2 * length):
            middle, end = min(start + length, count), min(start + 2 * length, count)
            left, right = start, middle
            for to in range(start, end):
                if right >= end or (left < middle and keys[found[left]] <= keys[found[right]]):
                    other[to] = found[left]
                    left += 1
                else:
                    other[to] = found[right]
                    right += 1
        found, other = other, found
        length *= 2
    return found
