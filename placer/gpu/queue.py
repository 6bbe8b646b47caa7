"""The queue on the bus, the transfer due first before all others: whether all are in time with an arrival. If any order
keeps all times of transfers that come once each, this one does (Jackson's rule); of recurring ones it often does. An
arrival is tried in a copy of the queue."""

from math import inf

import numpy as np

from placer.gpu.bus import end_of, ends, longest_wait
from placer.gpu.tables import (
    BATCH_ROW,
    BEFORE_ROW,
    CHANGED_ROW,
    COUNTS_ROW,
    DUE_ROW,
    JOB_ROW,
    KERNEL_ROW,
    LATER_ROW,
    NEAR_LIMIT,
    NF_ROW,
    OVER_ROW,
    OWN_PERIOD_ROW,
    PER_EXECUTOR_ROW,
    PERIOD_ROW,
    QUEUE_ROW,
    SERIAL,
    TENANT_COUNT,
    TRANSFER_ROW,
    UNORDERED,
    USED_ROW,
    WITHIN_LIMIT,
    compile_kernel,
)

SURE_SHARE = 1.0 - 1e-6  # below this share of a limit, rounding does not matter


@compile_kernel
def trial_in_time(gpu, nfs, whole, times, number, due, transfer, changed):  # type: ignore[no-untyped-def]
    """Whether all are in time with an arrival, and some tenants due earlier; it is in the other row then. The arrival
    comes behind all that are due as early. Before place `first`, everything is as it was."""
    row, count, first = whole[COUNTS_ROW, QUEUE_ROW], whole[COUNTS_ROW, TENANT_COUNT], whole[COUNTS_ROW, TENANT_COUNT]
    trial = 1 - row
    while first > 0 and times[DUE_ROW + row, first - 1] > due:
        first -= 1
    for at in range(count):
        to = at if at < first else at + 1
        whole[JOB_ROW + trial, to], times[DUE_ROW + trial, to] = whole[JOB_ROW + row, at], times[DUE_ROW + row, at]
        times[TRANSFER_ROW + trial, to], times[PERIOD_ROW + trial, to] = (
            times[TRANSFER_ROW + row, at],
            times[PERIOD_ROW + row, at],
        )
        times[OVER_ROW + trial, at], times[USED_ROW + trial, at] = times[OVER_ROW + row, at], times[USED_ROW + row, at]
    whole[JOB_ROW + trial, first], times[DUE_ROW + trial, first] = number, due
    times[TRANSFER_ROW + trial, first], times[PERIOD_ROW + trial, first] = transfer, times[OWN_PERIOD_ROW, number]
    for k in range(changed):
        first = min(first, _move_up(whole, times, trial, count, whole[CHANGED_ROW, k]))
    over = times[OVER_ROW + trial, first - 1] if first > 0 else 0.0
    used = times[USED_ROW + trial, first - 1] if first > 0 else 0.0
    for at in range(first, count + 1):
        over += times[TRANSFER_ROW + trial, at]
        used += times[TRANSFER_ROW + trial, at] / times[PERIOD_ROW + trial, at]
        times[OVER_ROW + trial, at], times[USED_ROW + trial, at] = over, used
    if gpu.rule == UNORDERED:
        return _in_time_unordered(gpu, whole, times, trial, count + 1)
    if gpu.rule == SERIAL:
        return _serial_in_time(gpu, nfs, whole, times, trial, count + 1)
    if gpu.sporadic:
        return used < 1.0 - NEAR_LIMIT and _recurring_in_time(times, trial, first, count + 1, transfer)
    for at in range(first, count + 1):  # noqa: SIM110
        if not times[OVER_ROW + trial, at] <= times[DUE_ROW + trial, at]:
            return False
    return True


@compile_kernel
def _move_up(whole, times, row, at, job):  # type: ignore[no-untyped-def]
    """Give a tenant of the trial the due time that it has beside the arrival, and its place: that is returned."""
    while whole[JOB_ROW + row, at] != job:
        at -= 1
    due, transfer, period = (
        times[BEFORE_ROW, job] - times[LATER_ROW, job],
        times[TRANSFER_ROW + row, at],
        times[PERIOD_ROW + row, at],
    )
    while at > 0 and (
        times[DUE_ROW + row, at - 1] > due
        or (times[DUE_ROW + row, at - 1] == due and whole[JOB_ROW + row, at - 1] > job)
    ):
        whole[JOB_ROW + row, at], times[DUE_ROW + row, at] = whole[JOB_ROW + row, at - 1], times[DUE_ROW + row, at - 1]
        times[TRANSFER_ROW + row, at], times[PERIOD_ROW + row, at] = (
            times[TRANSFER_ROW + row, at - 1],
            times[PERIOD_ROW + row, at - 1],
        )
        at -= 1
    whole[JOB_ROW + row, at], times[DUE_ROW + row, at] = job, due
    times[TRANSFER_ROW + row, at], times[PERIOD_ROW + row, at] = transfer, period
    return at


@compile_kernel
def _recurring_in_time(times, row, first, count, arrived):  # type: ignore[no-untyped-def]
    """Whether no recurring transfer ever begins after its limit. Before place `first`, only the arrival comes later: it
    changes nothing where a longer transfer does, too. Bounds answer nearly always. A transfer waits at least for one of
    each earlier one. By the linear bound, no batch waits longer than burst / (1 - utilisation of the earlier ones)."""
    transfer, period, blocking = times[TRANSFER_ROW + row], times[PERIOD_ROW + row], 0.0
    for at in range(count - 1, -1, -1):  # the last is the first to be late
        if at >= first or blocking <= arrived:
            limit = times[DUE_ROW + row, at] - transfer[at]
            burst = blocking + times[OVER_ROW + row, at] - transfer[at]
            idle = 1.0 - (times[USED_ROW + row, at - 1] if at > 0 else 0.0)
            if burst > limit * (1.0 + NEAR_LIMIT) + NEAR_LIMIT:
                return False
            if burst > limit * idle * SURE_SHARE:
                wait = longest_wait(transfer[at], period[at], transfer, period, at, blocking, limit)
                if wait == inf:
                    return False
        blocking = max(blocking, transfer[at])
    return True


@compile_kernel
def _in_time_unordered(gpu, whole, times, row, count):  # type: ignore[no-untyped-def]
    """Whether each transfer is over in time behind all others, as it may be when nothing orders them."""
    transfer, period = times[TRANSFER_ROW + row, :count].copy(), times[PERIOD_ROW + row, :count].copy()
    last = count - 1
    for place in range(last, -1, -1):
        # of the others, those behind it have moved up by one place
        own, own_period = times[TRANSFER_ROW + row, place], times[PERIOD_ROW + row, place]
        for at in range(place, last):
            transfer[at], period[at] = times[TRANSFER_ROW + row, at + 1], times[PERIOD_ROW + row, at + 1]
        transfer[last], period[last] = own, own_period
        due = times[DUE_ROW + row, place]
        if end_of(gpu.sporadic, transfer, period, last, 0.0, due) == inf:
            return False
    return True


@compile_kernel
def _serial_in_time(gpu, nfs, whole, times, row, count):  # type: ignore[no-untyped-def]
    """Whether each transfer and then each kernel is over in time, both in this order, with a GPU that keeps up."""
    kernel, limit, used = np.empty(count), np.empty(count), 0.0
    for at in range(count):
        batch, nf = whole[BATCH_ROW, whole[JOB_ROW + row, at]], whole[NF_ROW, whole[JOB_ROW + row, at]]
        executors = -(-batch // gpu.packets)
        kernel[at] = nfs[PER_EXECUTOR_ROW, nf] * -(-executors // gpu.sms) + nfs[KERNEL_ROW, nf]  # on all SMs
        limit[at] = times[DUE_ROW + row, at] + kernel[at]
        used += kernel[at] / times[PERIOD_ROW + row, at]
    if not used < 1.0 - NEAR_LIMIT:
        return False
    period = times[PERIOD_ROW + row, :count]
    transfers = ends(gpu.sporadic, times[TRANSFER_ROW + row, :count], period, limit)
    kernels = ends(gpu.sporadic, kernel, period, limit)
    for at in range(count):
        if not (transfers[at] <= times[DUE_ROW + row, at] and transfers[at] + kernels[at] <= limit[at] * WITHIN_LIMIT):
            return False
    return True
