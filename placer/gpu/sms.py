"""SMs for an arrival: those of the least sharing penalty (paper 003, section V-B), and who gets slower beside it."""

from __future__ import annotations

from math import inf

from placer.gpu.compiled import WITHIN, compiled
from placer.gpu.tables import (
    BASE,
    BATCH,
    BETA,
    CHANGED,
    CHOSEN,
    COUNTS,
    FREE,
    KERNEL,
    LARGEST,
    LATER,
    NF,
    NOW,
    ON,
    OWN_PERIOD,
    PER_EXECUTOR,
    SHARERS,
    TENANTS,
)


@compiled
def next_sm(gpu, whole, times, nf, base, period, executors, after):  # type: ignore[no-untyped-def]
    """The most preferred SM behind SM `after` in the order of preference, or of all for -1; -1 where there is none.

    Preferred is the least penalty, then the least delay of a tenant, then the fullest, then the first.
    """
    owns, delays = times[BASE + gpu.sms + nf], times[BASE + gpu.sms + gpu.nfs + nf]
    free, most, room = whole[FREE], period * WITHIN, gpu.executors + 1
    best, best_own, best_delay, best_free = -1, inf, inf, room
    for sm in range(gpu.sms):
        own, delay = owns[sm], delays[sm]
        if free[sm] < executors or own > best_own or delay == inf or not base + own <= most:
            continue
        if gpu.exclusive and whole[SHARERS, sm] > 0:
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
def has_room(gpu, whole, executors):  # type: ignore[no-untyped-def]
    """Whether any SM has so many free executors."""
    for sm in range(gpu.sms):  # noqa: SIM110
        if whole[FREE, sm] >= executors and not (gpu.exclusive and whole[SHARERS, sm] > 0):
            return True
    return False


@compiled
def write_later(gpu, nfs, whole, times, nf, minibatches):  # type: ignore[no-untyped-def]
    """Write which tenants an arrival on the chosen SMs delays, and their kernels beside it; returns how many."""
    changed = 0
    for at in range(minibatches):
        sm = whole[CHOSEN, at]
        if times[BASE + gpu.sms + gpu.nfs + nf, sm] == 0.0:
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
def kernel_on(gpu, nfs, whole, times, nf, batch, largest, minibatches):  # type: ignore[no-untyped-def]
    """The kernel of an arrival on the chosen SMs, us: its slowest minibatch, with its sharing penalty."""
    kernel, left = 0.0, batch
    for at in range(minibatches):
        executors = min(largest, -(-left // gpu.packets))
        left -= largest * gpu.packets
        alone = nfs[PER_EXECUTOR, nf] * executors + nfs[KERNEL, nf]
        kernel = max(kernel, alone + times[BASE + gpu.sms + nf, whole[CHOSEN, at]])
    return kernel


@compiled
def add_minibatches(gpu, nfs, whole, times, minibatches, changed):  # type: ignore[no-untyped-def]
    """Put the minibatches of the newest tenant on the chosen SMs, beside tenants of which some are delayed."""
    number = whole[COUNTS, TENANTS] - 1
    left, largest = whole[BATCH, number], whole[LARGEST, number]
    for at in range(minibatches):
        executors = min(largest, -(-left // gpu.packets))
        left -= largest * gpu.packets
        put(gpu, nfs, whole, times, number, at, whole[CHOSEN, at], executors)
    elsewhere = False
    for k in range(changed):
        one = whole[CHANGED, k]
        times[NOW, one] = times[LATER, one]
        elsewhere = elsewhere or whole[BATCH, one] > whole[LARGEST, one] * gpu.packets
    if elsewhere:
        note_sms(gpu, nfs, whole, times)
    else:
        for at in range(minibatches):
            note_sm(gpu, nfs, whole, times, whole[CHOSEN, at])


@compiled
def put(gpu, nfs, whole, times, number, minibatch, sm, executors):  # type: ignore[no-untyped-def]
    """Put a minibatch of a tenant on an SM."""
    place, nf = whole[SHARERS, sm], whole[NF, number]
    whole[ON + sm, place], whole[ON + gpu.sms + sm, place] = number, minibatch
    times[BASE + sm, place] = nfs[PER_EXECUTOR, nf] * executors + nfs[KERNEL, nf]
    whole[SHARERS, sm] = place + 1
    whole[FREE, sm] -= executors


@compiled
def note_sms(gpu, nfs, whole, times):  # type: ignore[no-untyped-def]
    """Compute anew what arrivals would find on all SMs."""
    for sm in range(gpu.sms):
        note_sm(gpu, nfs, whole, times, sm)


@compiled
def note_sm(gpu, nfs, whole, times, sm):  # type: ignore[no-untyped-def]
    """Compute anew what arrivals would find on an SM."""
    for nf in range(gpu.nfs):
        own, delay = 0.0, 0.0
        for place in range(whole[SHARERS, sm]):
            one = whole[ON + sm, place]
            own = max(own, nfs[BETA + nf, whole[NF, one]])
            later = max(times[NOW, one], times[BASE + sm, place] + nfs[BETA + whole[NF, one], nf])
            delay = max(delay, later - times[NOW, one])
            if not later <= times[OWN_PERIOD, one] * WITHIN:
                delay = inf
        times[BASE + gpu.sms + nf, sm] = own
        times[BASE + gpu.sms + gpu.nfs + nf, sm] = delay
