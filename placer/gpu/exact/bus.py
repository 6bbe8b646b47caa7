"""The bus: whether transfers are in time, and in which order."""

from __future__ import annotations

import numpy as np

from placer.gpu.compiled import compiled
from placer.gpu.rounding import NEAR
from placer.gpu.waiting import longest_wait


@compiled
def in_time(sporadic, order, count, transfer, period, due, tries):  # type: ignore[no-untyped-def]
    """Whether the bus serves these SLOs in time; `order` is sorted into their priorities.

    For transfers once each, earliest deadlines first is optimal (J. R. Jackson, 1955). For recurring ones, Audsley's
    assignment is, where it tries everybody at each level.
    """
    for k in range(1, count):
        one = order[k]
        at = k
        while at > 0 and due[order[at - 1]] > due[one]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = one
    if not once_in_time(order, count, transfer, due, sporadic):
        return False
    return not sporadic or audsley(order, count, transfer, period, due, tries)


@compiled
def once_in_time(order, count, transfer, due, blocks):  # type: ignore[no-untyped-def]
    """Whether transfers in the order of their deadlines are in time if each comes once, and the largest later one
    blocks where transfers recur: then it is necessary.

    References
    ----------
    K. Jeffay, D. F. Stanat, C. U. Martel, "On non-preemptive scheduling of periodic and sporadic tasks", RTSS 1991.
    """
    finished = 0.0
    for k in range(count):
        finished += transfer[order[k]]
    blocking = 0.0
    for k in range(count - 1, -1, -1):
        one = order[k]
        if finished + blocking > due[one]:
            return False
        finished -= transfer[one]
        if blocks:
            blocking = max(blocking, transfer[one])
    return True


@compiled
def audsley(order, count, transfer, period, due, tries):  # type: ignore[no-untyped-def]
    """Whether fixed priorities without preemption are found under which all are in time; sorts `order` into them.

    From the lowest level up, `tries` SLOs are tried at each level, late deadlines first; with all of them, priorities
    are found wherever there are any.

    References
    ----------
    N. C. Audsley, "On priority assignment in fixed priority scheduling", Information Processing Letters 79, 2001;
    without preemption: L. George, N. Rivierre, M. Spuri, INRIA RR-2966, 1996.
    """
    times, periods = np.empty(count), np.empty(count)
    blocking, utilisation, once = 0.0, 0.0, 0.0
    for k in range(count):
        times[k], periods[k] = transfer[order[k]], period[order[k]]
        utilisation += times[k] / periods[k]
        once += times[k]
    if not utilisation < 1.0 - NEAR:
        return False
    for level in range(count - 1, -1, -1):
        found = -1
        for k in range(level, max(-1, level - tries), -1):
            own, own_period, limit = times[k], periods[k], due[order[k]] - times[k]
            # The wait is at most that of a fluid bus; where this is short enough, it need not be found.
            rest = 1.0 - (utilisation - own / own_period) * (1.0 + NEAR)
            if blocking + once - own <= limit * rest * (1.0 - NEAR):
                found = k
                break
            times[k], periods[k] = times[level], periods[level]
            wait = longest_wait(own, own_period, times, periods, level, blocking, limit)
            times[k], periods[k] = own, own_period
            if wait <= limit:
                found = k
                break
        if found < 0:
            return False
        lowest, own, own_period = order[found], times[found], periods[found]
        for k in range(found, level):
            order[k], times[k], periods[k] = order[k + 1], times[k + 1], periods[k + 1]
        order[level] = lowest
        blocking = max(blocking, own)
        utilisation -= own / own_period
        once -= own
    return True
