"""SMs for an arrival: those of the least sharing penalty (paper 003, section V-B), and who gets slower beside it."""

from math import inf

from placer.gpu import tables


@tables.compile_kernel
def next_sm(gpu, whole, times, nf, base, period, executors, after):  # type: ignore[no-untyped-def]
    """The most preferred SM behind SM `after` in the order of preference, or of all for -1; -1 where there is none.
    Preferred is the least penalty, then the least delay of a tenant, then the fullest, then the first."""
    owns, delays = times[tables.BASE_ROW + gpu.sms + nf], times[tables.BASE_ROW + gpu.sms + gpu.nfs + nf]
    free, most, room = whole[tables.FREE_ROW], period * tables.WITHIN_LIMIT, gpu.executors + 1
    best, best_own, best_delay, best_free = -1, inf, inf, room
    for sm in range(gpu.sms):
        own, delay = owns[sm], delays[sm]
        if free[sm] < executors or own > best_own or delay == inf or not base + own <= most:
            continue
        if gpu.exclusive and whole[tables.SHARERS_ROW, sm] > 0:
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


@tables.compile_kernel
def has_room(gpu, whole, executors):  # type: ignore[no-untyped-def]
    """Whether any SM has so many free executors."""
    for sm in range(gpu.sms):
        if whole[tables.FREE_ROW, sm] >= executors and not (gpu.exclusive and whole[tables.SHARERS_ROW, sm] > 0):
            return True
    return False


@tables.compile_kernel
def write_later(gpu, nfs, whole, times, nf, minibatches):  # type: ignore[no-untyped-def]
    """Write which tenants an arrival on the chosen SMs delays, and their kernels beside it; returns how many."""
    changed = 0
    for at in range(minibatches):
        sm = whole[tables.CHOSEN_ROW, at]
        if times[tables.BASE_ROW + gpu.sms + gpu.nfs + nf, sm] == 0.0:
            continue
        for place in range(whole[tables.SHARERS_ROW, sm]):
            one = whole[tables.ON_ROW + sm, place]
            kernel = times[tables.BASE_ROW + sm, place] + nfs[tables.BETA_ROW + whole[tables.NF_ROW, one], nf]
            if not kernel > times[tables.NOW_ROW, one]:
                continue
            known = False
            for k in range(changed):
                known = known or whole[tables.CHANGED_ROW, k] == one
            if not known:
                whole[tables.CHANGED_ROW, changed] = one
                times[tables.LATER_ROW, one] = kernel
                changed += 1
            elif kernel > times[tables.LATER_ROW, one]:
                times[tables.LATER_ROW, one] = kernel
    return changed


@tables.compile_kernel
def kernel_on(gpu, nfs, whole, times, nf, batch, largest, minibatches):  # type: ignore[no-untyped-def]
    """The kernel of an arrival on the chosen SMs, us: its slowest minibatch, with its sharing penalty."""
    kernel, left = 0.0, batch
    for at in range(minibatches):
        executors = min(largest, -(-left // gpu.packets))
        left -= largest * gpu.packets
        alone = nfs[tables.PER_EXECUTOR_ROW, nf] * executors + nfs[tables.KERNEL_ROW, nf]
        kernel = max(kernel, alone + times[tables.BASE_ROW + gpu.sms + nf, whole[tables.CHOSEN_ROW, at]])
    return kernel


@tables.compile_kernel
def add_minibatches(gpu, nfs, whole, times, minibatches, changed):  # type: ignore[no-untyped-def]
    """Put the minibatches of the newest tenant on the chosen SMs, beside tenants of which some are delayed."""
    number = whole[tables.COUNTS_ROW, tables.TENANT_COUNT] - 1
    left, largest = whole[tables.BATCH_ROW, number], whole[tables.LARGEST_ROW, number]
    for at in range(minibatches):
        executors = min(largest, -(-left // gpu.packets))
        left -= largest * gpu.packets
        put(gpu, nfs, whole, times, number, at, whole[tables.CHOSEN_ROW, at], executors)
    elsewhere = False
    for k in range(changed):
        one = whole[tables.CHANGED_ROW, k]
        times[tables.NOW_ROW, one] = times[tables.LATER_ROW, one]
        elsewhere = elsewhere or whole[tables.BATCH_ROW, one] > whole[tables.LARGEST_ROW, one] * gpu.packets
    if elsewhere:
        note_sms(gpu, nfs, whole, times)
    else:
        for at in range(minibatches):
            note_sm(gpu, nfs, whole, times, whole[tables.CHOSEN_ROW, at])


@tables.compile_kernel
def put(gpu, nfs, whole, times, number, minibatch, sm, executors):  # type: ignore[no-untyped-def]
    """Put a minibatch of a tenant on an SM."""
    place, nf = whole[tables.SHARERS_ROW, sm], whole[tables.NF_ROW, number]
    whole[tables.ON_ROW + sm, place], whole[tables.ON_ROW + gpu.sms + sm, place] = number, minibatch
    times[tables.BASE_ROW + sm, place] = nfs[tables.PER_EXECUTOR_ROW, nf] * executors + nfs[tables.KERNEL_ROW, nf]
    whole[tables.SHARERS_ROW, sm] = place + 1
    whole[tables.FREE_ROW, sm] -= executors


@tables.compile_kernel
def note_sms(gpu, nfs, whole, times):  # type: ignore[no-untyped-def]
    """Compute anew what arrivals would find on all SMs."""
    for sm in range(gpu.sms):
        note_sm(gpu, nfs, whole, times, sm)


@tables.compile_kernel
def note_sm(gpu, nfs, whole, times, sm):  # type: ignore[no-untyped-def]
    """Compute anew what arrivals would find on an SM."""
    for nf in range(gpu.nfs):
        own, delay = 0.0, 0.0
        for place in range(whole[tables.SHARERS_ROW, sm]):
            one = whole[tables.ON_ROW + sm, place]
            own = max(own, nfs[tables.BETA_ROW + nf, whole[tables.NF_ROW, one]])
            later = max(
                times[tables.NOW_ROW, one],
                times[tables.BASE_ROW + sm, place] + nfs[tables.BETA_ROW + whole[tables.NF_ROW, one], nf],
            )
            delay = max(delay, later - times[tables.NOW_ROW, one])
            if not later <= times[tables.OWN_PERIOD_ROW, one] * tables.WITHIN_LIMIT:
                delay = inf
        times[tables.BASE_ROW + gpu.sms + nf, sm] = own
        times[tables.BASE_ROW + gpu.sms + gpu.nfs + nf, sm] = delay
