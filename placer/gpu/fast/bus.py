"""The queue on the bus, as `placer.gpu.greedy.bus` checks it: the transfer due first before all others."""

from __future__ import annotations

from math import inf

import numpy as np

from placer.gpu.compiled import compiled
from placer.gpu.fast.tables import (
    BEFORE,
    BLOCKING,
    CHANGED,
    COUNTS,
    DEMAND,
    DUE,
    JOB,
    LATER,
    OVER,
    PERIOD,
    ROW,
    SPORADIC,
    TENANTS,
    TRANSFER,
    USED,
    WAIT,
)
from placer.gpu.rounding import NEAR
from placer.gpu.waiting import longest_wait

SURE = 1.0 - 1e-6
"""Below this share of a limit, rounding does not matter."""


@compiled
def place_in_queue(whole, times, due):  # type: ignore[no-untyped-def]
    """Where an arrival that is due then comes in the queue: behind all that are due as early."""
    row, place = whole[COUNTS, ROW], whole[COUNTS, TENANTS]
    while place > 0 and times[DUE + row, place - 1] > due:
        place -= 1
    return place


@compiled
def joins_once(whole, times, place, due, transfer):  # type: ignore[no-untyped-def]
    """Whether all transfers are in time with one more at this place, where each comes once."""
    row = whole[COUNTS, ROW]
    over = (times[OVER + row, place - 1] if place > 0 else 0.0) + transfer
    if not over <= due:
        return False
    for at in range(place, whole[COUNTS, TENANTS]):
        over += times[TRANSFER + row, at]
        if not over <= times[DUE + row, at]:
            return False
    return True


@compiled
def join_once(whole, times, place, number, due, transfer):  # type: ignore[no-untyped-def]
    """Put a transfer at this place of the queue, where each comes once."""
    row = whole[COUNTS, ROW]
    for at in range(whole[COUNTS, TENANTS], place, -1):
        whole[JOB + row, at] = whole[JOB + row, at - 1]
        times[DUE + row, at] = times[DUE + row, at - 1]
        times[TRANSFER + row, at] = times[TRANSFER + row, at - 1]
    whole[JOB + row, place], times[DUE + row, place], times[TRANSFER + row, place] = number, due, transfer
    write_over(times, row, place, whole[COUNTS, TENANTS] + 1)


@compiled
def write_over(times, row, first, count):  # type: ignore[no-untyped-def]
    """Write from place `first` on when each transfer is over if each comes once."""
    over = times[OVER + row, first - 1] if first > 0 else 0.0
    for at in range(first, count):
        over += times[TRANSFER + row, at]
        times[OVER + row, at] = over


@compiled
def trial_in_time(sizes, whole, times, number, due, transfer, period, changed):  # type: ignore[no-untyped-def]
    """Whether all transfers are in time with an arrival, and some tenants due earlier; it is in the other row then."""
    row, count = whole[COUNTS, ROW], whole[COUNTS, TENANTS]
    if sizes[SPORADIC] and count > 0 and not times[USED + row, count - 1] + transfer / period < 1.0 - NEAR:
        return False
    first = place_in_queue(whole, times, due)
    if sizes[SPORADIC] and delays_too_long(times, row, first, count, transfer):
        return False
    write_trial(sizes, whole, times, first, number, due, transfer, period)
    trial = 1 - row
    for k in range(changed):
        one = whole[CHANGED, k]
        at = count
        while whole[JOB + trial, at] != one:
            at -= 1
        first = min(first, move_up(sizes, whole, times, trial, at, times[BEFORE, one] - times[LATER, one]))
    write_over(times, trial, first, count + 1)
    if sizes[SPORADIC]:
        return recurring_in_time(times, trial, first, count + 1, transfer)
    for at in range(first, count + 1):  # noqa: SIM110
        if not times[OVER + trial, at] <= times[DUE + trial, at]:
            return False
    return True


@compiled
def delays_too_long(times, row, first, count, transfer):  # type: ignore[no-untyped-def]
    """Whether a later transfer surely is not in time, behind one more that is served at least once."""
    for at in range(first, count):
        limit = times[DUE + row, at] - times[TRANSFER + row, at]
        if times[WAIT + row, at] + transfer > limit * (1.0 + NEAR) + NEAR:
            return True
    return False


@compiled
def write_trial(sizes, whole, times, place, number, due, transfer, period):  # type: ignore[no-untyped-def]
    """Write the queue with an arrival at this place into the other row."""
    row, count = whole[COUNTS, ROW], whole[COUNTS, TENANTS]
    trial = 1 - row
    for at in range(place):
        copy_place(sizes, whole, times, row, at, trial, at)
        times[OVER + trial, at] = times[OVER + row, at]
    for at in range(place, count):
        copy_place(sizes, whole, times, row, at, trial, at + 1)
    whole[JOB + trial, place] = number
    times[DUE + trial, place], times[TRANSFER + trial, place] = due, transfer
    times[PERIOD + trial, place] = period
    if sizes[SPORADIC]:
        for at in range(place + 1, count + 1):
            limit = times[DUE + trial, at] - times[TRANSFER + trial, at]
            times[DEMAND + trial, at] += (np.floor(limit / period) + 1.0) * transfer
            times[WAIT + trial, at] += transfer
        write_demand(times, trial, place)


@compiled
def copy_place(sizes, whole, times, row, at, trial, to):  # type: ignore[no-untyped-def]
    """Copy a place of the queue to one of the trial."""
    whole[JOB + trial, to] = whole[JOB + row, at]
    times[DUE + trial, to], times[TRANSFER + trial, to] = times[DUE + row, at], times[TRANSFER + row, at]
    if sizes[SPORADIC]:
        times[PERIOD + trial, to], times[USED + trial, to] = times[PERIOD + row, at], times[USED + row, at]
        times[DEMAND + trial, to], times[WAIT + trial, to] = times[DEMAND + row, at], times[WAIT + row, at]


@compiled
def write_demand(times, row, at):  # type: ignore[no-untyped-def]
    """Write how long earlier transfers take that come until the one at this place must begin."""
    limit, demand = times[DUE + row, at] - times[TRANSFER + row, at], 0.0
    for k in range(at):
        demand += (np.floor(limit / times[PERIOD + row, k]) + 1.0) * times[TRANSFER + row, k]
    times[DEMAND + row, at], times[WAIT + row, at] = demand, 0.0


@compiled
def move_up(sizes, whole, times, row, at, due):  # type: ignore[no-untyped-def]
    """Give the transfer at a place of the trial an earlier due time, and its place in the queue: that is returned."""
    job, transfer, period = whole[JOB + row, at], times[TRANSFER + row, at], times[PERIOD + row, at]
    while at > 0 and (
        times[DUE + row, at - 1] > due or (times[DUE + row, at - 1] == due and whole[JOB + row, at - 1] > job)
    ):
        copy_place(sizes, whole, times, row, at - 1, row, at)
        if sizes[SPORADIC]:
            limit = times[DUE + row, at] - times[TRANSFER + row, at]
            times[DEMAND + row, at] += (np.floor(limit / period) + 1.0) * transfer
        at -= 1
    whole[JOB + row, at], times[DUE + row, at], times[TRANSFER + row, at] = job, due, transfer
    times[PERIOD + row, at] = period
    if sizes[SPORADIC]:
        write_demand(times, row, at)
    return at


@compiled
def recurring_in_time(times, row, first, count, transfer):  # type: ignore[no-untyped-def]
    """Whether all recurring transfers are in time.

    Before place `first`, only one more transfer comes later: it changes nothing where a longer one does, too.
    """
    longest = 0.0
    for at in range(count - 1, -1, -1):
        times[BLOCKING, at] = longest
        longest = max(longest, times[TRANSFER + row, at])
    used = times[USED + row, first - 1] if first > 0 else 0.0
    for at in range(first, count):
        used += times[TRANSFER + row, at] / times[PERIOD + row, at]
        times[USED + row, at] = used
    if not used < 1.0 - NEAR:
        return False
    for at in range(count):
        if (at >= first or times[BLOCKING, at] <= transfer) and not begins_in_time(times, row, at):
            return False
    return True


@compiled
def begins_in_time(times, row, at):  # type: ignore[no-untyped-def]
    """Whether the recurring transfer at a place never begins after its limit.

    Bounds answer nearly always. By the linear one, no batch waits longer than burst / (1 - utilisation of the earlier
    ones), and each batch a period less a transfer time less than the one before it. The first batch begins in time if
    what comes until its limit is done then.
    """
    transfer, period, blocking = times[TRANSFER + row, at], times[PERIOD + row, at], times[BLOCKING, at]
    limit = times[DUE + row, at] - transfer
    burst = blocking + times[OVER + row, at] - transfer
    if burst > limit * (1.0 + NEAR) + NEAR:
        return False
    idle = 1.0 - (times[USED + row, at - 1] if at > 0 else 0.0)
    if burst <= limit * idle * SURE:
        return True
    later_do = burst <= ((limit + period) * idle - transfer) * SURE
    if later_do and blocking + times[DEMAND + row, at] <= limit * SURE:
        return True
    wait = first_wait(times, row, at, max(burst, times[WAIT + row, at]), limit)
    if wait == inf:
        return False
    times[WAIT + row, at] = wait
    transfers, periods = times[TRANSFER + row], times[PERIOD + row]
    return later_do or longest_wait(transfer, period, transfers, periods, at, blocking, limit) < inf


@compiled
def first_wait(times, row, at, least, limit):  # type: ignore[no-untyped-def]
    """The wait of the first of the batches that meet one busy bus, at least `least`; infinite above the limit.

    It is the wait of `longest_wait`, found from further on.
    """
    before, waited, blocking = -1.0, least, times[BLOCKING, at]
    while waited > before:
        before, waited = waited, blocking
        for k in range(at):
            waited += (np.floor(before / times[PERIOD + row, k] * (1.0 + NEAR)) + 1.0) * times[TRANSFER + row, k]
        if waited > limit:
            return inf
    return before
