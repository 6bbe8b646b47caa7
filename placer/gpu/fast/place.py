"""One SLO after another on a GPU, as `placer.gpu.greedy.gpu` places them."""

from __future__ import annotations

from math import inf

from placer.gpu.compiled import compiled
from placer.gpu.fast.batches import batch_of
from placer.gpu.fast.bus import join_once, joins_once, place_in_queue, trial_in_time
from placer.gpu.fast.sms import add_minibatches, has_room, next_sm, write_later
from placer.gpu.fast.tables import (
    BASE,
    BATCH,
    BEFORE,
    CHOSEN,
    COUNTS,
    EXECUTORS,
    FIXED,
    KERNEL,
    LARGEST,
    NF,
    NOW,
    PACKETS,
    PER_EXECUTOR,
    PRE_POST,
    ROW,
    SLO,
    SLOPE,
    SMS,
    SPORADIC,
    TENANTS,
    WORKERS,
)
from placer.gpu.greedy.gpu import TRIED_SMS
from placer.gpu.greedy.layout import WITHIN

CAUSES = ("", "batching", "pcie", "executors", "kernel", "workers")
"""By number; 0 is admitted."""
ADMITTED, BATCHING, PCIE, NO_EXECUTORS, SLOW_KERNEL, NO_WORKER = range(6)


@compiled
def place(sizes, nfs, whole, times, periods, slo, nf, rate, latency, pinned, allowance, share, first):  # type: ignore[no-untyped-def]
    """Admit an SLO with the first layout that keeps all SLOs: 0, else the cause why none does.

    Parameters
    ----------
    periods
        By tenant.
    slo
        Its number, which the tables keep.
    allowance, share
        As of `placer.gpu.greedy.layout.layouts`.
    first
        Its batch with the allowance on as many executors as an SM has.
    """
    if whole[COUNTS, TENANTS] >= sizes[WORKERS]:
        return NO_WORKER
    cause, executors, last_batch, last_largest = ADMITTED, sizes[EXECUTORS], 0, 0
    ways = 2 if allowance > 0.0 and pinned == 0 else 1
    while executors > 0:
        widest = 0
        for way in range(ways):
            time = allowance if way == 0 and ways == 2 else 0.0
            batch = first
            if way > 0 or executors < sizes[EXECUTORS]:
                batch = batch_of(sizes, nfs, nf, rate, latency, pinned, executors, time, share)
            if batch < 0:
                continue
            largest = min(executors, -(-batch // sizes[PACKETS]))
            widest = max(widest, largest)
            if batch == last_batch and largest == last_largest:
                continue
            last_batch, last_largest = batch, largest
            found = place_batch(sizes, nfs, whole, times, periods, slo, nf, rate, latency, batch, largest)
            if found == ADMITTED:
                return ADMITTED
            if cause == ADMITTED:
                cause = found
            if found == PCIE and sizes[SPORADIC]:
                return cause
        executors = min(executors, widest if widest > 0 else executors) - 1
    return cause if cause != ADMITTED else without_batch(sizes, nfs, nf, rate, pinned)


@compiled
def without_batch(sizes, nfs, nf, rate, pinned):  # type: ignore[no-untyped-def]
    """The cause of an SLO whose rate the GPU cannot carry."""
    if pinned == 0:
        too_slow = nfs[SLOPE, nf] * rate >= 1000.0 and nfs[SLOPE, nf] + nfs[FIXED, nf] > 0.0
        return PCIE if too_slow else NO_EXECUTORS
    if pinned > sizes[SMS] * sizes[EXECUTORS] * sizes[PACKETS]:
        return NO_EXECUTORS
    return NO_WORKER if nfs[PRE_POST, nf] > 1000.0 * pinned / rate * WITHIN else SLOW_KERNEL


@compiled
def place_batch(sizes, nfs, whole, times, periods, slo, nf, rate, latency, batch, largest):  # type: ignore[no-untyped-def]
    """Admit an SLO with this batch, on SMs of the least penalty on which all are in time: 0, else the cause."""
    number = whole[COUNTS, TENANTS]
    batching, transfer, period = times_of(nfs, nf, rate, batch)
    left = latency * WITHIN - batching - nfs[PRE_POST, nf]
    base = nfs[PER_EXECUTOR, nf] * largest + nfs[KERNEL, nf]
    due = left - base
    if not transfer <= due:
        kernel = base + nfs[PRE_POST, nf]
        return BATCHING if batching >= max(transfer, kernel) else PCIE if transfer >= kernel else SLOW_KERNEL
    if sizes[SPORADIC]:
        if not trial_in_time(sizes, whole, times, number, due, transfer, period, 0):
            return PCIE
    elif not joins_once(whole, times, place_in_queue(whole, times, due), due, transfer):
        return PCIE
    # the arrival, before it is one of the tenants
    whole[SLO, number], whole[NF, number], whole[BATCH, number] = slo, nf, batch
    whole[LARGEST, number], times[BEFORE, number], periods[number] = largest, left, period
    minibatches = -(-batch // (largest * sizes[PACKETS]))
    after, known = -1, True
    for _ in range(TRIED_SMS if minibatches == 1 else 1):
        for at in range(minibatches):
            after = next_sm(sizes, whole, times, nf, base, period, largest, after)
            if after < 0:
                break
            whole[CHOSEN, at] = after
        if after < 0:
            break
        if joins(sizes, nfs, whole, times, periods, minibatches, due if known else inf, transfer, period):
            return ADMITTED
        known = False
    return NO_EXECUTORS if minibatches > 1 or not has_room(sizes, whole, largest) else SLOW_KERNEL


@compiled
def times_of(nfs, nf, rate, batch):  # type: ignore[no-untyped-def]
    """Batching, transfer and period of a batch, us."""
    return 1000.0 * (batch - 1) / rate, nfs[SLOPE, nf] * batch + nfs[FIXED, nf], 1000.0 * batch / rate


@compiled
def joins(sizes, nfs, whole, times, periods, minibatches, tried_due, transfer, period):  # type: ignore[no-untyped-def]
    """Let the SLO behind the last tenant join on the chosen SMs if all are in time with it.

    Parameters
    ----------
    tried_due
        When it is due in the trial that was in time, without a delay of a tenant.
    """
    number = whole[COUNTS, TENANTS]
    nf, left, largest = whole[NF, number], whole[BATCH, number], whole[LARGEST, number]
    kernel = 0.0
    for at in range(minibatches):
        executors = min(largest, -(-left // sizes[PACKETS]))
        left -= largest * sizes[PACKETS]
        alone = nfs[PER_EXECUTOR, nf] * executors + nfs[KERNEL, nf]
        kernel = max(kernel, alone + times[BASE + sizes[SMS] + nf, whole[CHOSEN, at]])
    due = times[BEFORE, number] - kernel
    changed = write_later(sizes, nfs, whole, times, nf, minibatches)
    if changed == 0 and not sizes[SPORADIC]:
        place = place_in_queue(whole, times, due)
        if not joins_once(whole, times, place, due, transfer):
            return False
        join_once(whole, times, place, number, due, transfer)
    else:
        tried = changed == 0 and due == tried_due
        if not tried and not trial_in_time(sizes, whole, times, number, due, transfer, period, changed):
            return False
        whole[COUNTS, ROW] = 1 - whole[COUNTS, ROW]
    times[NOW, number] = kernel
    whole[COUNTS, TENANTS] = number + 1
    add_minibatches(sizes, nfs, whole, times, periods, minibatches, changed)
    return True
