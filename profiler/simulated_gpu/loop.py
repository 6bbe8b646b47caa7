"""The events of a server with a GPU, one after another, compiled.

A worker takes a batch when it is complete (or its time-out ends), prepares it packet by packet and requests the bus,
which serves requests one at a time, by order or as they come. On the card, each part of the batch gets its executors;
parts on an SM share its issue slots and its cache, all share the card's memory (`share`). When the last part is done,
the batch requests the bus back, first come, first served; then the worker takes it again and sends packet by packet."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit

from profiler.simulated_gpu import columns as of

Compiled = Callable[..., Any]

NEVER_US = np.inf
NO_NUMBER: Any = np.int64(-1)
"""A number that is typed: a literal would be a type of its own, for which everything is compiled once more."""
LARGEST_JITTER = 0.05
"""Largest deviation of the worker, a transfer's setup and the latency of reads from their means, as a share."""
SOLVER_ROUNDS = 40
CLOSE_RATE = 1e-5
MOST_USED = 0.97  # of the card's memory; waiting grows without bound towards all of it
SECTOR_BYTES = 32.0  # bytes that a read takes from the card's memory


def compile_kernel(kernel: Compiled, *, called_from_python: bool = False) -> Compiled:
    """The kernel as machine code, cached on disk; where nothing can be written, it is compiled in every process. The
    cache is renewed when this file changes, not when columns.py does."""
    inner = not called_from_python
    options: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": inner, "no_cfunc_wrapper": inner}
    try:
        return cast("Compiled", njit(cache=True, **options)(kernel))
    except RuntimeError:
        return cast("Compiled", njit(**options)(kernel))


@compile_kernel
def ready_time(i, w):  # type: ignore[no-untyped-def]
    """When the worker of NF `i` has the next batch, or its oldest packet has waited too long."""
    first, end, batch = w.nfs[i, of.PACKETS], w.nfs[i + 1, of.PACKETS], w.nfs[i, of.BATCH]
    waiting = w.nfs[i, of.KEPT] - w.nfs[i, of.CONSUMED]
    oldest = first + w.nfs[i, of.CONSUMED] if waiting else w.nfs[i, of.FOLLOWING]
    last = oldest + batch - 1 if waiting >= batch else w.nfs[i, of.FOLLOWING] + batch - waiting - 1
    complete = w.packets[last] if last < end else NEVER_US
    too_long = w.packets[oldest] + w.costs[i, of.FLUSH] if oldest < end else NEVER_US
    return min(complete, too_long)


@compile_kernel
def set_wake(i, w):  # type: ignore[no-untyped-def]
    """Set when the worker of NF `i` has something to do next."""
    first, wake = w.nfs[i, of.BATCHES], NEVER_US
    taken, posted = w.nfs[i, of.N_TAKEN], w.nfs[i, of.N_POSTED]
    if w.nfs[i, of.N_BACK] > posted:
        wake = w.times[first + posted, of.BACK]
    if taken - posted < w.card[of.IN_FLIGHT] and first + taken < w.nfs[i + 1, of.BATCHES]:
        wake = min(wake, ready_time(i, w))
    w.costs[i, of.WAKE] = max(wake, w.costs[i, of.CORE_FREE])


@compile_kernel
def fill_ring(i, now, w):  # type: ignore[no-untyped-def]
    """Let the packets of NF `i` that came by now into its ring, which holds two batches at least; count the lost."""
    first, end = w.nfs[i, of.PACKETS], w.nfs[i + 1, of.PACKETS]
    room = max(w.card[of.RING], 2 * w.nfs[i, of.BATCH])
    following = w.nfs[i, of.FOLLOWING]
    while following < end and w.packets[following] <= now:
        if w.nfs[i, of.KEPT] - w.nfs[i, of.CONSUMED] < room:
            w.packets[first + w.nfs[i, of.KEPT]] = w.packets[following]
            w.nfs[i, of.KEPT] += 1
        else:
            w.nfs[i, of.LOST] += 1
        following += 1
    w.nfs[i, of.FOLLOWING] = following


@compile_kernel
def deviation(batch, step, w):  # type: ignore[no-untyped-def]
    """The factor by which a step of a batch differs from its mean."""
    return 1 + LARGEST_JITTER * (2 * w.draws[batch, step] - 1)


@compile_kernel
def work(i, now, w):  # type: ignore[no-untyped-def]
    """The worker of NF `i` sends packets that came back, if there are any, else takes and prepares a batch."""
    posted = w.nfs[i, of.BATCHES] + w.nfs[i, of.N_POSTED]
    if w.nfs[i, of.N_BACK] > w.nfs[i, of.N_POSTED] and w.times[posted, of.BACK] <= now:
        slower = deviation(posted, of.WORKER, w)
        begins, each = now + w.costs[i, of.POST] * slower, w.costs[i, of.POST_EACH] * slower
        w.times[posted, of.POSTED], w.times[posted, of.POST_PACKET] = begins, each
        w.costs[i, of.CORE_FREE] = begins + w.times[posted, of.COUNT] * each
        w.nfs[i, of.N_POSTED] += 1
    else:
        fill_ring(i, now, w)
        batch = w.nfs[i, of.BATCHES] + w.nfs[i, of.N_TAKEN]
        count = min(w.nfs[i, of.BATCH], w.nfs[i, of.KEPT] - w.nfs[i, of.CONSUMED])
        w.times[batch, of.FIRST], w.times[batch, of.COUNT] = w.nfs[i, of.CONSUMED], count
        needs = (w.costs[i, of.PRE] + count * w.costs[i, of.PRE_PACKET]) * deviation(batch, of.WORKER, w)
        w.times[batch, of.TAKEN], w.times[batch, of.READY] = now, now + needs
        w.costs[i, of.CORE_FREE] = now + needs
        w.nfs[i, of.CONSUMED] += count
        w.nfs[i, of.N_TAKEN] += 1
    set_wake(i, w)


@compile_kernel
def requested(bus, i, w):  # type: ignore[no-untyped-def]
    """When the oldest batch of NF `i` that waits for a bus came to wait."""
    if bus == of.TO_CARD:
        served, prepared, column = w.nfs[i, of.N_SENT], w.nfs[i, of.N_TAKEN], of.READY
    else:
        served, prepared, column = w.nfs[i, of.N_BACK_SENT], w.nfs[i, of.N_DONE], of.DONE
    return w.times[w.nfs[i, of.BATCHES] + served, column] if prepared > served else NEVER_US


@compile_kernel
def next_bus_event(bus, w):  # type: ignore[no-untyped-def]
    """When a bus ends its transfer, or, if it is idle, when a batch requests it."""
    if w.buses[bus, of.SERVES] >= 0:
        return w.buses[bus, of.UNTIL]
    first = NEVER_US
    for i in range(len(w.costs)):
        first = min(first, requested(bus, i, w))
    return max(first, w.buses[bus, of.UNTIL])


@compile_kernel
def transfer_us(bus, packets, total, slower):  # type: ignore[no-untyped-def]
    """Time of a transfer of `total` bytes: the setup, each packet and buffer, and the bytes on the bus."""
    on_bus = total + np.ceil(total / bus[of.PAYLOAD]) * bus[of.HEADER]
    needs = bus[of.SETUP] * slower + packets * bus[of.PER_PACKET] + on_bus / bus[of.SPEED]
    return needs + np.ceil(total / bus[of.BUFFER]) * bus[of.PER_BUFFER]


@compile_kernel
def grant(bus, now, w):  # type: ignore[no-untyped-def]
    """Serve the batch of the smallest order; on the way back, and without orders, the first that came."""
    chosen, best = NO_NUMBER, NEVER_US
    for i in range(len(w.costs)):
        since = requested(bus, i, w)
        key = float(w.nfs[i, of.ORDER]) if bus == of.TO_CARD and w.nfs[i, of.ORDER] >= 0 else since
        if since <= now and key < best:
            chosen, best = i, key
    first = w.nfs[chosen, of.BATCHES]
    if bus == of.TO_CARD:
        batch, each, step = first + w.nfs[chosen, of.N_SENT], w.costs[chosen, of.UP_BYTES], of.TRANSFER
        begins, ends = of.SENT, of.ARRIVED
        w.nfs[chosen, of.N_SENT] += 1
    else:
        batch, each, step = first + w.nfs[chosen, of.N_BACK_SENT], w.costs[chosen, of.BACK_BYTES], of.WAY_BACK
        begins, ends = of.BACK_SENT, of.BACK
        w.nfs[chosen, of.N_BACK_SENT] += 1
    count = w.times[batch, of.COUNT]
    until = now + transfer_us(w.buses[bus], count, count * each, deviation(batch, step, w))
    w.times[batch, begins], w.times[batch, ends] = now, until
    w.buses[bus, of.SERVES], w.buses[bus, of.UNTIL] = chosen, until


@compile_kernel
def change_bus(bus, now, w):  # type: ignore[no-untyped-def]
    """A bus takes a batch, or has brought it: to the card, where it may start, or back to the host."""
    if w.buses[bus, of.SERVES] < 0:
        grant(bus, now, w)
        return
    i = int(w.buses[bus, of.SERVES])
    w.buses[bus, of.SERVES] = NO_NUMBER
    if bus == of.TO_CARD:
        w.nfs[i, of.N_ARRIVED] += 1
        start_waiting(now, w)
    else:
        w.nfs[i, of.N_BACK] += 1
        set_wake(i, w)


@compile_kernel
def most_matches(mean, packets, drawn):  # type: ignore[no-untyped-def]
    """The largest of `packets` Poisson numbers of this mean, at this quantile."""
    if mean <= 0.0:
        return 0
    wanted = drawn ** (1.0 / packets)
    chance = np.exp(-mean)
    below, matches = chance, 0
    while below < wanted and matches < 1000:
        matches += 1
        chance *= mean / matches
        below += chance
    return matches


@compile_kernel
def count_needed_sms(i, w):  # type: ignore[no-untyped-def]
    """SMs that the scheduler of the GPU gives to NF `i` alone: all of them in temporal sharing, else one per part."""
    return w.card[of.SMS] if w.card[of.MODE] == of.TEMPORAL else w.nfs[i + 1, of.PARTS] - w.nfs[i, of.PARTS]


@compile_kernel
def start_kernel(i, now, w):  # type: ignore[no-untyped-def]
    """Give the parts of the oldest batch of NF `i` on the card their executors, or what the scheduler gives them."""
    batch = w.nfs[i, of.BATCHES] + w.nfs[i, of.N_STARTED]
    w.nfs[i, of.N_STARTED] += 1
    w.times[batch, of.STARTED] = now
    assigned = w.card[of.MODE] == of.EXECUTORS
    begins, each = now + w.card[of.DISPATCH_US] * (0.5 + 0.5 * w.draws[batch, of.DISPATCH]), w.card[of.EXECUTOR_US]
    if not assigned:
        begins, each = now + w.card[of.LAUNCH_US], 0.0
        if w.card[of.MODE] == of.TEMPORAL and w.card[of.LAST_NF] >= 0 and w.card[of.LAST_NF] != i:
            begins += w.card[of.SWITCH_US]
        w.card[of.FREE_SMS] -= count_needed_sms(i, w)
        w.card[of.LAST_NF] = i
    left = w.times[batch, of.COUNT]
    for at in range(w.nfs[i, of.PARTS], w.nfs[i + 1, of.PARTS]):
        packets = min(left, w.parts[at, of.PART_PACKETS])
        left -= packets
        if packets > 0:
            part = at - w.nfs[i, of.PARTS]
            matches = most_matches(w.costs[i, of.MATCHES], packets, w.draws[batch, of.DRAWS + part])
            state = w.states[at]
            state[of.WIDTH] = np.ceil(packets / w.card[of.LANES]) / w.card[of.SCHEDULERS]
            state[of.PART_ISSUE] = w.costs[i, of.ISSUE] + matches * w.costs[i, of.MATCH_ISSUE]
            state[of.PART_STALL] = w.costs[i, of.STALL] + matches * w.costs[i, of.MATCH_STALL]
            state[of.PART_READS] = w.costs[i, of.READS] * deviation(batch, of.MEMORY, w)
            state[of.PART_COUNT], state[of.LEFT], state[of.ON] = packets, 1.0, 1
            state[of.AT] = begins + np.ceil(packets / w.card[of.PACKETS_PER_EXECUTOR]) * each
            w.nfs[i, of.RUNNING] += 1


@compile_kernel
def start_waiting(now, w):  # type: ignore[no-untyped-def]
    """Start the kernels that can start: of an NF whose executors are free, or the longest waiting one if SMs are."""
    assigned = w.card[of.MODE] == of.EXECUTORS
    while True:
        chosen, oldest = NO_NUMBER, NEVER_US
        for i in range(len(w.costs)):
            started = w.nfs[i, of.N_STARTED]
            if w.nfs[i, of.N_ARRIVED] > started and not (assigned and w.nfs[i, of.RUNNING] > 0):
                since = w.times[w.nfs[i, of.BATCHES] + started, of.ARRIVED]
                if since < oldest:
                    chosen, oldest = i, since
        if chosen < 0:
            return
        if not assigned and (w.nfs[chosen, of.RUNNING] > 0 or w.card[of.FREE_SMS] < count_needed_sms(chosen, w)):
            return
        start_kernel(chosen, now, w)


@compile_kernel
def advance(now, w):  # type: ignore[no-untyped-def]
    """Take from every executing part what it did since its speed was set."""
    for a in range(int(w.card[of.ACTIVE])):
        at = w.parts[a, of.LIVE]
        w.states[at, of.LEFT] -= (now - w.card[of.SINCE]) * w.states[at, of.RATE]
    w.card[of.SINCE] = now


@compile_kernel
def share(now, w):  # type: ignore[no-untyped-def]
    """Set how fast every executing part goes from now on.

    Per warp, the scheduler needs the issue time, and the warp waits for its own results and for its reads. The warps of
    a scheduler are a closed queueing network of one server and a delay: a warp that comes finds what the others have
    there on average (mean value analysis, as Schweitzer approximates it). Reads miss more where tables of several NFs
    share the cache of an SM, and take longer the more of the memory's bandwidth all SMs together use."""
    number, wait = int(w.card[of.ACTIVE]), w.card[of.MEMORY_WAIT]
    for _ in range(SOLVER_ROUNDS):
        memory_us = w.card[of.MEMORY_US] * (1 + wait * w.card[of.USED] / (1 - w.card[of.USED]))
        bytes_per_us, change = 0.0, 0.0
        for a in range(number):
            at = w.parts[a, of.LIVE]
            w.sms[w.parts[at, of.SM], of.QUEUE] = 0.0
        for a in range(number):
            at = w.parts[a, of.LIVE]
            w.sms[w.parts[at, of.SM], of.QUEUE] += w.states[at, of.WIDTH] * w.states[at, of.WAITING]
        for a in range(number):
            at = w.parts[a, of.LIVE]
            i, sm, state = w.parts[at, of.NF], w.sms[w.parts[at, of.SM]], w.states[at]
            others = sm[of.QUEUE] - state[of.WAITING] * min(state[of.WIDTH], 1.0)
            at_scheduler = state[of.PART_ISSUE] * (1 + others)
            hits = w.costs[i, of.LOCALITY] * np.sqrt(min(1.0, w.card[of.CACHE_KB] / max(sm[of.TABLES], 1.0)))
            reads_us = state[of.PART_READS] * (hits * w.card[of.CACHE_US] + (1 - hits) * memory_us)
            total = at_scheduler + state[of.PART_STALL] + reads_us
            missed = state[of.PART_READS] * (1 - hits) * SECTOR_BYTES
            bytes_per_us += state[of.PART_COUNT] * (w.costs[i, of.CARD_BYTES] + missed) / total
            change = max(change, abs(state[of.RATE] * total - 1))
            state[of.WAITING], state[of.RATE] = at_scheduler / total, 1 / total
        used = min(MOST_USED, bytes_per_us / w.card[of.MEMORY_SPEED])
        change = max(change, abs(used - w.card[of.USED]))
        w.card[of.USED] = 0.5 * (used + w.card[of.USED])
        if change < CLOSE_RATE:
            break
    for a in range(number):
        at = w.parts[a, of.LIVE]
        w.states[at, of.AT] = now + max(0.0, w.states[at, of.LEFT]) / w.states[at, of.RATE]


@compile_kernel
def begin_part(at, now, w):  # type: ignore[no-untyped-def]
    """A part has its executors: it shares the SM from now on."""
    i, sm = w.parts[at, of.NF], w.sms[w.parts[at, of.SM]]
    advance(now, w)
    w.parts[int(w.card[of.ACTIVE]), of.LIVE] = at
    w.card[of.ACTIVE] += 1
    kind = of.PRESENT + w.nfs[i, of.KIND]
    sm[of.TABLES] += w.costs[i, of.TABLE_KB] if sm[kind] == 0 else 0.0
    sm[kind] += 1
    w.states[at, of.ON], w.states[at, of.WAITING] = 2, 0.5
    share(now, w)


@compile_kernel
def end_part(at, now, w):  # type: ignore[no-untyped-def]
    """A part is done, and with the last one its batch."""
    i, sm = w.parts[at, of.NF], w.sms[w.parts[at, of.SM]]
    batch, number = w.nfs[i, of.BATCHES] + w.nfs[i, of.N_DONE], int(w.card[of.ACTIVE]) - 1
    w.times[batch, of.COLUMNS + at - w.nfs[i, of.PARTS]] = now
    advance(now, w)
    for a in range(number):
        if w.parts[a, of.LIVE] == at:
            w.parts[a, of.LIVE] = w.parts[number, of.LIVE]
    w.card[of.ACTIVE] = number
    kind = of.PRESENT + w.nfs[i, of.KIND]
    sm[kind] -= 1
    sm[of.TABLES] -= w.costs[i, of.TABLE_KB] if sm[kind] == 0 else 0.0
    w.states[at, of.ON], w.states[at, of.AT], w.states[at, of.RATE] = 0, NEVER_US, 0.0
    share(now, w)
    w.nfs[i, of.RUNNING] -= 1
    if w.nfs[i, of.RUNNING] == 0:
        w.times[batch, of.DONE] = now
        w.nfs[i, of.N_DONE] += 1
        if w.card[of.MODE] != of.EXECUTORS:
            w.card[of.FREE_SMS] += count_needed_sms(i, w)
        start_waiting(now, w)


@compile_kernel
def change_part(at, now, w):  # type: ignore[no-untyped-def]
    """A part begins or is done."""
    if w.states[at, of.ON] == 1:
        begin_part(at, now, w)
    else:
        end_part(at, now, w)


@compile_kernel
def next_part(w):  # type: ignore[no-untyped-def]
    """The part that changes next, and when."""
    which, now = NO_NUMBER, NEVER_US
    for at in range(len(w.parts)):
        if w.states[at, of.AT] < now:
            which, now = at, w.states[at, of.AT]
    return which, now


@compile_kernel
def next_worker(w):  # type: ignore[no-untyped-def]
    """The NF whose worker has something to do next, and when."""
    which, now = NO_NUMBER, NEVER_US
    for i in range(len(w.costs)):
        if w.costs[i, of.WAKE] < now:
            which, now = i, w.costs[i, of.WAKE]
    return which, now


def _simulate(w):  # type: ignore[no-untyped-def]
    """Run until no packet comes any more and nothing is under way; of events at one time, parts go before buses."""
    for i in range(len(w.costs)):
        set_wake(i, w)
    while True:
        part, part_at = next_part(w)
        nf, nf_at = next_worker(w)
        card_at, host_at = next_bus_event(of.TO_CARD, w), next_bus_event(of.TO_HOST, w)
        now = min(part_at, card_at, host_at, nf_at)
        if now == NEVER_US:
            break
        if part_at == now:
            change_part(part, now, w)
        elif card_at == now:
            change_bus(of.TO_CARD, now, w)
        elif host_at == now:
            change_bus(of.TO_HOST, now, w)
        else:
            work(nf, now, w)
    for i in range(len(w.costs)):
        fill_ring(i, NEVER_US, w)


simulate = compile_kernel(_simulate, called_from_python=True)
