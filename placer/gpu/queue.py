"""The queue on the bus, the transfer due first before all others: whether all are in time with an arrival.

If any order keeps all times of transfers that come once each, this one does (Jackson's rule); of recurring ones it
often does. An arrival is tried in a copy of the queue.
"""

from __future__ import annotations

from math import inf

import numpy as np

from placer.gpu.bus import end_of, ends, longest_wait
from placer.gpu.compiled import NEAR, WITHIN, compiled
from placer.gpu.tables import (
    BATCH,
    BEFORE,
    CHANGED,
    COUNTS,
    DUE,
    JOB,
    KERNEL,
    LATER,
    NF,
    OVER,
    OWN_PERIOD,
    PER_EXECUTOR,
    PERIOD,
    ROW,
    SERIAL,
    TENANTS,
    TRANSFER,
    UNORDERED,
    USED,
)

SURE = 1.0 - 1e-6
"""Below this share of a limit, rounding does not matter."""


@compiled
def trial_in_time(gpu, nfs, whole, times, number, due, transfer, changed):  # type: ignore[no-untyped-def]
    """Whether all are in time with an arrival, and some tenants due earlier; it is in the other row then.

    The arrival comes behind all that are due as early. Before place `first`, everything is as it was.
    """
    row, count, first = whole[COUNTS, ROW], whole[COUNTS, TENANTS], whole[COUNTS, TENANTS]
    trial = 1 - row
    while first > 0 and times[DUE + row, first - 1] > due:
        first -= 1
    for at in range(count):
        to = at if at < first else at + 1
        whole[JOB + trial, to], times[DUE + trial, to] = whole[JOB + row, at], times[DUE + row, at]
        times[TRANSFER + trial, to], times[PERIOD + trial, to] = times[TRANSFER + row, at], times[PERIOD + row, at]
        times[OVER + trial, at], times[USED + trial, at] = times[OVER + row, at], times[USED + row, at]
    whole[JOB + trial, first], times[DUE + trial, first] = number, due
    times[TRANSFER + trial, first], times[PERIOD + trial, first] = transfer, times[OWN_PERIOD, number]
    for k in range(changed):
        first = min(first, _move_up(whole, times, trial, count, whole[CHANGED, k]))
    over = times[OVER + trial, first - 1] if first > 0 else 0.0
    used = times[USED + trial, first - 1] if first > 0 else 0.0
    for at in range(first, count + 1):
        over += times[TRANSFER + trial, at]
        used += times[TRANSFER + trial, at] / times[PERIOD + trial, at]
        times[OVER + trial, at], times[USED + trial, at] = over, used
    if gpu.rule == UNORDERED:
        return _unordered_in_time(gpu, whole, times, trial, count + 1)
    if gpu.rule == SERIAL:
        return _serial_in_time(gpu, nfs, whole, times, trial, count + 1)
    if gpu.sporadic:
        return used < 1.0 - NEAR and _recurring_in_time(times, trial, first, count + 1, transfer)
    for at in range(first, count + 1):  # noqa: SIM110
        if not times[OVER + trial, at] <= times[DUE + trial, at]:
            return False
    return True


@compiled
def _move_up(whole, times, row, at, job):  # type: ignore[no-untyped-def]
    """Give a tenant of the trial the due time that it has beside the arrival, and its place: that is returned."""
    while whole[JOB + row, at] != job:
        at -= 1
    due, transfer, period = times[BEFORE, job] - times[LATER, job], times[TRANSFER + row, at], times[PERIOD + row, at]
    while at > 0 and (
        times[DUE + row, at - 1] > due or (times[DUE + row, at - 1] == due and whole[JOB + row, at - 1] > job)
    ):
        whole[JOB + row, at], times[DUE + row, at] = whole[JOB + row, at - 1], times[DUE + row, at - 1]
        times[TRANSFER + row, at], times[PERIOD + row, at] = times[TRANSFER + row, at - 1], times[PERIOD + row, at - 1]
        at -= 1
    whole[JOB + row, at], times[DUE + row, at] = job, due
    times[TRANSFER + row, at], times[PERIOD + row, at] = transfer, period
    return at


@compiled
def _recurring_in_time(times, row, first, count, arrived):  # type: ignore[no-untyped-def]
    """Whether no recurring transfer ever begins after its limit.

    Before place `first`, only the arrival comes later: it changes nothing where a longer transfer does, too. Bounds
    answer nearly always. A transfer waits at least for one of each earlier one. By the linear bound, no batch waits
    longer than burst / (1 - utilisation of the earlier ones).
    """
    transfer, period, blocking = times[TRANSFER + row], times[PERIOD + row], 0.0
    for at in range(count - 1, -1, -1):  # the last is the first to be late
        if at >= first or blocking <= arrived:
            limit = times[DUE + row, at] - transfer[at]
            burst = blocking + times[OVER + row, at] - transfer[at]
            idle = 1.0 - (times[USED + row, at - 1] if at > 0 else 0.0)
            if burst > limit * (1.0 + NEAR) + NEAR:
                return False
            if burst > limit * idle * SURE:
                wait = longest_wait(transfer[at], period[at], transfer, period, at, blocking, limit)
                if wait == inf:
                    return False
        blocking = max(blocking, transfer[at])
    return True


@compiled
def _unordered_in_time(gpu, whole, times, row, count):  # type: ignore[no-untyped-def]
    """Whether each transfer is over in time behind all others, as it may be when nothing orders them."""
    transfer, period = times[TRANSFER + row, :count].copy(), times[PERIOD + row, :count].copy()
    last = count - 1
    for one in range(last, -1, -1):
        # of the others, those behind it have moved up by one place
        own, own_period = times[TRANSFER + row, one], times[PERIOD + row, one]
        for at in range(one, last):
            transfer[at], period[at] = times[TRANSFER + row, at + 1], times[PERIOD + row, at + 1]
        transfer[last], period[last] = own, own_period
        due = times[DUE + row, one]
        if end_of(gpu.sporadic, transfer, period, last, 0.0, due) == inf:
            return False
    return True


@compiled
def _serial_in_time(gpu, nfs, whole, times, row, count):  # type: ignore[no-untyped-def]
    """Whether each transfer and then each kernel is over in time, both in this order, with a GPU that keeps up."""
    kernel, limit, used = np.empty(count), np.empty(count), 0.0
    for at in range(count):
        batch, nf = whole[BATCH, whole[JOB + row, at]], whole[NF, whole[JOB + row, at]]
        executors = -(-batch // gpu.packets)
        kernel[at] = nfs[PER_EXECUTOR, nf] * -(-executors // gpu.sms) + nfs[KERNEL, nf]  # on all SMs
        limit[at] = times[DUE + row, at] + kernel[at]
        used += kernel[at] / times[PERIOD + row, at]
    if not used < 1.0 - NEAR:
        return False
    period = times[PERIOD + row, :count]
    transfers = ends(gpu.sporadic, times[TRANSFER + row, :count], period, limit)
    kernels = ends(gpu.sporadic, kernel, period, limit)
    for at in range(count):
        if not (transfers[at] <= times[DUE + row, at] and transfers[at] + kernels[at] <= limit[at] * WITHIN):
            return False
    return True
