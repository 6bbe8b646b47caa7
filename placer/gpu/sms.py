"""SMs for an arrival: those of the least sharing penalty (paper 003, section V-B), and who gets slower beside it."""

from math import inf

from placer.gpu.tables import (
    BASE_ROW,
    BATCH_ROW,
    BETA_ROW,
    CHANGED_ROW,
    CHOSEN_ROW,
    COUNTS_ROW,
    FREE_ROW,
    KERNEL_ROW,
    LARGEST_ROW,
    LATER_ROW,
    NF_ROW,
    NOW_ROW,
    ON_ROW,
    OWN_PERIOD_ROW,
    PER_EXECUTOR_ROW,
    SHARERS_ROW,
    TENANT_COUNT,
    WITHIN_LIMIT,
    compile_kernel,
)
from predictor.regression.compiled import share_with_python


@share_with_python
@compile_kernel
def next_sm(gpu, whole, times, nf, base, period, executors, after):  # type: ignore[no-untyped-def]
    """The most preferred SM behind SM `after` in the order of preference, or of all for -1; -1 where there is none.
    Preferred is the least penalty, then the least delay of a tenant, then the fullest, then the first."""
    owns, delays = times[BASE_ROW + gpu.sms + nf], times[BASE_ROW + gpu.sms + gpu.nfs + nf]
    free, most, room = whole[FREE_ROW], period * WITHIN_LIMIT, gpu.executors + 1
    best, best_own, best_delay, best_free = -1, inf, inf, room
    for sm in range(gpu.sms):
        own, delay = owns[sm], delays[sm]
        if free[sm] < executors or own > best_own or delay == inf or not base + own <= most:
            continue
        if gpu.exclusive and whole[SHARERS_ROW, sm] > 0:
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


@compile_kernel
def has_room(gpu, whole, executors):  # type: ignore[no-untyped-def]
    """Whether any SM has so many free executors."""
    for sm in range(gpu.sms):
        if whole[FREE_ROW, sm] >= executors and not (gpu.exclusive and whole[SHARERS_ROW, sm] > 0):
            return True
    return False


@share_with_python
@compile_kernel
def write_later(gpu, nfs, whole, times, nf, minibatches):  # type: ignore[no-untyped-def]
    """Write which tenants an arrival on the chosen SMs delays, and their kernels beside it; returns how many."""
    changed = 0
    for at in range(minibatches):
        sm = whole[CHOSEN_ROW, at]
        if times[BASE_ROW + gpu.sms + gpu.nfs + nf, sm] == 0.0:
            continue
        for place in range(whole[SHARERS_ROW, sm]):
            one = whole[ON_ROW + sm, place]
            kernel = times[BASE_ROW + sm, place] + nfs[BETA_ROW + whole[NF_ROW, one], nf]
            if not kernel > times[NOW_ROW, one]:
                continue
            known = False
            for k in range(changed):
                known = known or whole[CHANGED_ROW, k] == one
            if not known:
                whole[CHANGED_ROW, changed] = one
                times[LATER_ROW, one] = kernel
                changed += 1
            elif kernel > times[LATER_ROW, one]:
                times[LATER_ROW, one] = kernel
    return changed


@share_with_python
@compile_kernel
def kernel_on(gpu, nfs, whole, times, nf, batch, largest, minibatches):  # type: ignore[no-untyped-def]
    """The kernel of an arrival on the chosen SMs, us: its slowest minibatch, with its sharing penalty."""
    kernel, left = 0.0, batch
    for at in range(minibatches):
        executors = min(largest, -(-left // gpu.packets))
        left -= largest * gpu.packets
        alone = nfs[PER_EXECUTOR_ROW, nf] * executors + nfs[KERNEL_ROW, nf]
        kernel = max(kernel, alone + times[BASE_ROW + gpu.sms + nf, whole[CHOSEN_ROW, at]])
    return kernel


@compile_kernel
def add_minibatches(gpu, nfs, whole, times, minibatches, changed):  # type: ignore[no-untyped-def]
    """Put the minibatches of the newest tenant on the chosen SMs, beside tenants of which some are delayed."""
    number = whole[COUNTS_ROW, TENANT_COUNT] - 1
    left, largest = whole[BATCH_ROW, number], whole[LARGEST_ROW, number]
    for at in range(minibatches):
        executors = min(largest, -(-left // gpu.packets))
        left -= largest * gpu.packets
        put(gpu, nfs, whole, times, number, at, whole[CHOSEN_ROW, at], executors)
    elsewhere = False
    for k in range(changed):
        one = whole[CHANGED_ROW, k]
        times[NOW_ROW, one] = times[LATER_ROW, one]
        elsewhere = elsewhere or whole[BATCH_ROW, one] > whole[LARGEST_ROW, one] * gpu.packets
    if elsewhere:
        note_sms(gpu, nfs, whole, times)
    else:
        for at in range(minibatches):
            note_sm(gpu, nfs, whole, times, whole[CHOSEN_ROW, at])


@share_with_python
@compile_kernel
def put(gpu, nfs, whole, times, number, minibatch, sm, executors):  # type: ignore[no-untyped-def]
    """Put a minibatch of a tenant on an SM."""
    place, nf = whole[SHARERS_ROW, sm], whole[NF_ROW, number]
    whole[ON_ROW + sm, place], whole[ON_ROW + gpu.sms + sm, place] = number, minibatch
    times[BASE_ROW + sm, place] = nfs[PER_EXECUTOR_ROW, nf] * executors + nfs[KERNEL_ROW, nf]
    whole[SHARERS_ROW, sm] = place + 1
    whole[FREE_ROW, sm] -= executors


@share_with_python
@compile_kernel
def note_sms(gpu, nfs, whole, times):  # type: ignore[no-untyped-def]
    """Compute anew what arrivals would find on all SMs."""
    for sm in range(gpu.sms):
        note_sm(gpu, nfs, whole, times, sm)


@compile_kernel
def note_sm(gpu, nfs, whole, times, sm):  # type: ignore[no-untyped-def]
    """Compute anew what arrivals would find on an SM."""
    for nf in range(gpu.nfs):
        own, delay = 0.0, 0.0
        for place in range(whole[SHARERS_ROW, sm]):
            one = whole[ON_ROW + sm, place]
            own = max(own, nfs[BETA_ROW + nf, whole[NF_ROW, one]])
            later = max(
                times[NOW_ROW, one],
                times[BASE_ROW + sm, place] + nfs[BETA_ROW + whole[NF_ROW, one], nf],
            )
            delay = max(delay, later - times[NOW_ROW, one])
            if not later <= times[OWN_PERIOD_ROW, one] * WITHIN_LIMIT:
                delay = inf
        times[BASE_ROW + gpu.sms + nf, sm] = own
        times[BASE_ROW + gpu.sms + gpu.nfs + nf, sm] = delay
