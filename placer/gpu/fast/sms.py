"""SMs of the least sharing penalty, as `placer.gpu.greedy.tenants` chooses them."""

from __future__ import annotations

from math import inf

from placer.gpu.compiled import compiled
from placer.gpu.fast.tables import (
    BASE,
    BATCH,
    BETA,
    CHANGED,
    CHOSEN,
    COUNTS,
    EXECUTORS,
    FIRST_SM,
    FREE,
    KERNEL,
    LARGEST,
    LATER,
    NF,
    NFS,
    NOW,
    ON,
    PACKETS,
    PER_EXECUTOR,
    SHARERS,
    SMS,
    TENANTS,
)
from placer.gpu.greedy.layout import WITHIN


@compiled
def next_sm(sizes, whole, times, nf, base, period, executors, after):  # type: ignore[no-untyped-def]
    """The most preferred SM behind SM `after` in the order of preference, or of all for -1; -1 where there is none.

    Preferred is the least penalty, then the least delay of a tenant, then the fullest, then the first.
    """
    sms = sizes[SMS]
    owns, delays = times[BASE + sms + nf], times[BASE + sms + sizes[NFS] + nf]
    free, most, room = whole[FREE], period * WITHIN, sizes[EXECUTORS] + 1
    best, best_own, best_delay, best_free = -1, inf, inf, room
    for sm in range(sms):
        own, delay = owns[sm], delays[sm]
        if free[sm] < executors or own > best_own or delay == inf or not base + own <= most:
            continue
        if own == best_own and (delay > best_delay or (delay == best_delay and free[sm] >= best_free)):
            continue
        if after >= 0:
            if own < owns[after]:
                continue
            if own == owns[after]:
                if delay < delays[after]:
                    continue
                if delay == delays[after] and (free[sm] < free[after] or (free[sm] == free[after] and sm <= after)):
                    continue
        best, best_own, best_delay, best_free = sm, own, delay, free[sm]
    return best


@compiled
def has_room(sizes, whole, executors):  # type: ignore[no-untyped-def]
    """Whether any SM has so many free executors."""
    for sm in range(sizes[SMS]):  # noqa: SIM110
        if whole[FREE, sm] >= executors:
            return True
    return False


@compiled
def write_later(sizes, nfs, whole, times, nf, minibatches):  # type: ignore[no-untyped-def]
    """Write which tenants an arrival on the chosen SMs delays, and their kernels beside it; returns how many."""
    changed = 0
    for at in range(minibatches):
        sm = whole[CHOSEN, at]
        if times[BASE + sizes[SMS] + sizes[NFS] + nf, sm] == 0.0:
            continue
        for place in range(whole[SHARERS, sm]):
            one = whole[ON + sm, place]
            kernel = times[BASE + sm, place] + nfs[BETA + whole[NF, one], nf]
            if not kernel > times[NOW, one]:
                continue
            known = False
            for k in range(changed):
                known = known or whole[CHANGED, k] == one
            if not known:
                whole[CHANGED, changed] = one
                times[LATER, one] = kernel
                changed += 1
            elif kernel > times[LATER, one]:
                times[LATER, one] = kernel
    return changed


@compiled
def add_minibatches(sizes, nfs, whole, times, periods, minibatches, changed):  # type: ignore[no-untyped-def]
    """Put the minibatches of the newest tenant on the chosen SMs, beside tenants of which some are delayed."""
    number, sms = whole[COUNTS, TENANTS] - 1, sizes[SMS]
    nf, left, largest = whole[NF, number], whole[BATCH, number], whole[LARGEST, number]
    whole[FIRST_SM, number] = whole[CHOSEN, 0]
    for at in range(minibatches):
        sm = whole[CHOSEN, at]
        executors = min(largest, -(-left // sizes[PACKETS]))
        left -= largest * sizes[PACKETS]
        place = whole[SHARERS, sm]
        whole[ON + sm, place], whole[ON + sms + sm, place] = number, at
        times[BASE + sm, place] = nfs[PER_EXECUTOR, nf] * executors + nfs[KERNEL, nf]
        whole[SHARERS, sm] = place + 1
        whole[FREE, sm] -= executors
    elsewhere = False
    for k in range(changed):
        one = whole[CHANGED, k]
        times[NOW, one] = times[LATER, one]
        elsewhere = elsewhere or whole[BATCH, one] > whole[LARGEST, one] * sizes[PACKETS]
    if elsewhere:
        for sm in range(sms):
            note_sm(sizes, nfs, whole, times, periods, sm)
    else:
        for at in range(minibatches):
            note_sm(sizes, nfs, whole, times, periods, whole[CHOSEN, at])


@compiled
def note_sm(sizes, nfs, whole, times, periods, sm):  # type: ignore[no-untyped-def]
    """Compute anew what arrivals would find on an SM; `periods` is by tenant."""
    owns = BASE + sizes[SMS]
    delays = owns + sizes[NFS]
    for nf in range(sizes[NFS]):
        own, delay = 0.0, 0.0
        for place in range(whole[SHARERS, sm]):
            one = whole[ON + sm, place]
            own = max(own, nfs[BETA + nf, whole[NF, one]])
            later = times[BASE + sm, place] + nfs[BETA + whole[NF, one], nf]
            if later > times[NOW, one]:
                delay = max(delay, later - times[NOW, one])
                if not later <= periods[one] * WITHIN:
                    delay = inf
        times[owns + nf, sm] = own
        times[delays + nf, sm] = delay
