"""The bus: how long transfers wait for it, and in which order each is over in time. A transfer is not interrupted.
Transfers come once each, or they recur under fixed priorities (`Arbitration`)."""

from collections.abc import Sequence
from math import ceil, floor, inf

import numpy as np

from placer.gpu.tables import NEAR_LIMIT, compile_kernel
from predictor.regression.compiled import share_with_python
from profiles.arrays import Floats


def one_shot_wait(earlier_us: Sequence[float] | Floats) -> float:
    """The wait behind all earlier transfers, each once, us (paper 003, section V-B)."""
    return float(sum(earlier_us))


def sporadic_wait(
    transfer_us: float,
    period_us: float,
    earlier_us: Sequence[float] | Floats,
    earlier_periods_us: Sequence[float] | Floats,
    blocking_us: float,
) -> float:
    """The longest wait of a transfer that recurs beside others, under fixed priorities without preemption, us.

    Infinite where it and the earlier ones overload the bus.

    Parameters
    ----------
    earlier_us, earlier_periods_us
        Of the transfers with higher priority.
    blocking_us
        The largest transfer with lower priority; 0 for none.

    References
    ----------
    R. I. Davis, A. Burns, R. J. Bril, J. J. Lukkien, "Controller Area Network (CAN) schedulability analysis: Refuted,
    revisited and revised", Real-Time Systems 35, 2007. https://doi.org/10.1007/s11241-007-9012-7, section 3.1."""
    times = np.asarray(earlier_us, dtype=np.float64)
    periods = np.asarray(earlier_periods_us, dtype=np.float64)
    return float(longest_wait(transfer_us, period_us, times, periods, len(times), blocking_us, inf))


@share_with_python
@compile_kernel
def longest_wait(transfer, period, earlier, earlier_periods, count, blocking, limit):  # type: ignore[no-untyped-def]
    """The wait of `sporadic_wait` behind the first `count` of the earlier transfers; infinite if above `limit`.
    Instance q starts at most (blocking + q * transfer + earlier) / (1 - utilisation of the earlier) after the first
    arrives. This bound on its wait falls with q, so that the search ends when a longer wait is ruled out, which is
    before the busy period does."""
    before_it, once = 0.0, 0.0
    for k in range(count):
        before_it += earlier[k] / earlier_periods[k]
        once += earlier[k]
    if not before_it + transfer / period < 1.0 - NEAR_LIMIT or blocking > limit:
        return inf
    idle = 1.0 - before_it * (1.0 + NEAR_LIMIT)
    busy = blocking + transfer + once
    longest, started, instance = 0.0, blocking, 0
    while True:
        if instance > 0:
            if (blocking + instance * transfer + once) / idle - instance * period <= longest:
                break
            busy = _busy_beyond(instance * period, busy, transfer, period, earlier, earlier_periods, count, blocking)
            if busy <= instance * period:
                break
        # Earlier transfers that arrive until it starts go first.
        started = max(started, (blocking + instance * transfer) / idle * (1.0 - 4.0 * NEAR_LIMIT))
        before = -1.0
        while started > before:
            before = started
            started = blocking + instance * transfer
            for k in range(count):
                started += (floor(before / earlier_periods[k] * (1.0 + NEAR_LIMIT)) + 1) * earlier[k]
            if started - instance * period > limit:
                return inf
        longest = max(longest, started - instance * period)
        instance += 1
        started += transfer
    return longest


@compile_kernel
def _busy_beyond(end, busy, transfer, period, earlier, earlier_periods, count, blocking):  # type: ignore[no-untyped-def]
    """Extend `busy`, a part of the busy period of it and the earlier ones, beyond `end` or to the whole period, us."""
    before = -1.0
    while before < busy <= end:
        before = busy
        busy = blocking + ceil(before / period) * transfer
        for k in range(count):
            busy += ceil(before / earlier_periods[k]) * earlier[k]
    return busy


@compile_kernel
def end_of(sporadic, transfer, period, at, blocking, limit):  # type: ignore[no-untyped-def]
    """When the transfer at a place of this order is over, us; infinite if above its limit."""
    over, used = 0.0, 0.0
    for k in range(at + 1):
        over += transfer[k]
        used += transfer[k] / period[k]
    if not sporadic:
        return over if over <= limit else inf
    if not used < 1.0 - NEAR_LIMIT:
        return inf
    return longest_wait(transfer[at], period[at], transfer, period, at, blocking, limit - transfer[at]) + transfer[at]


@share_with_python
@compile_kernel
def ends(sporadic, transfer, period, limit):  # type: ignore[no-untyped-def]
    """`end_of` each transfer in this order; where transfers recur, the largest later one blocks."""
    over, blocking = np.empty(len(transfer)), 0.0
    for at in range(len(transfer) - 1, -1, -1):
        over[at] = end_of(sporadic, transfer, period, at, blocking, limit[at])
        blocking = max(blocking, transfer[at])
    return over


@compile_kernel
def in_time(sporadic, order, count, transfer, period, due, tries):  # type: ignore[no-untyped-def]
    """Whether the bus serves these SLOs in time; `order` is sorted into their priorities. For transfers once each,
    earliest deadlines first is optimal (J. R. Jackson, 1955). For recurring ones, Audsley's assignment is, where it
    tries everybody at each level."""
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


@compile_kernel
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


@compile_kernel
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
    if not utilisation < 1.0 - NEAR_LIMIT:
        return False
    for level in range(count - 1, -1, -1):
        found = -1
        for k in range(level, max(-1, level - tries), -1):
            own, own_period, limit = times[k], periods[k], due[order[k]] - times[k]
            # The wait is at most that of a fluid bus; where this is short enough, it need not be found.
            rest = 1.0 - (utilisation - own / own_period) * (1.0 + NEAR_LIMIT)
            if blocking + once - own <= limit * rest * (1.0 - NEAR_LIMIT):
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
