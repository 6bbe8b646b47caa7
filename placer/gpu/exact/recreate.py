"""Good layouts quickly: SLOs are inserted one by one, then a few are removed and others inserted, again and again. Ruin
and recreate (G. Schrimpf et al., Journal of Computational Physics 159, 2000). It proves nothing. Among layouts that
admit as many SLOs, one that loads the bus less is better."""

from math import inf

import numpy as np

from placer.gpu.exact.sm_layout import least_batch, put, settle, sharing, take
from placer.gpu.tables import compile_kernel

REMOVAL_ATTEMPTS = 6  # SLOs that are not admitted, tried after each removal

MOST_REMOVED = 4

RANK_SKEW = 2.0  # of the choice among ranked SLOs: 1 is none
WORSE_LOAD = 0.02  # by how much more load a new layout is accepted at most, relative
PRIORITY_TRIES = 3  # SLOs tried at each priority: few, as nearly always the one with the latest deadline fits or none


@compile_kernel
def improve(p, layout, best, ranked, favoured, rng, rounds, target):  # type: ignore[no-untyped-def]
    """Improve a layout for some rounds, or until it admits `target` SLOs: the most admitted, with `best` such a one.
    SLOs early in `ranked` are tried more often; `favoured` batches (0 for none), too."""
    candidates = np.empty(len(p.nf) + REMOVAL_ATTEMPTS, dtype=np.int64)
    keys = np.empty(len(candidates))
    admitted = settle(p, layout, PRIORITY_TRIES)
    load = bus_load(p, layout, admitted)
    most = admitted
    before = layout.chosen.copy()
    best.chosen[:] = before
    for _ in range(rounds):
        if most >= target:
            break
        if p.sporadic and admitted > 0 and rng.random() < 0.3:
            now = _stretch(p, layout, admitted, rng)
        else:
            removed = _remove(p, layout, admitted, rng, candidates)
            now = _recreate(p, layout, admitted, removed, ranked, favoured, rng, candidates, keys)
        count = settle(p, layout, PRIORITY_TRIES) if now >= admitted else -1
        now_load = bus_load(p, layout, count)
        if count > admitted or (count == admitted and now_load <= load * (1.0 + WORSE_LOAD * rng.random() ** 4)):
            admitted, load = count, now_load
            before[:] = layout.chosen
            if admitted > most:
                most = admitted
                best.chosen[:] = before
        else:
            layout.chosen[:] = before
            settle(p, layout, PRIORITY_TRIES)
    return most


@compile_kernel
def construct(p, layout, sequence, favoured, rng):  # type: ignore[no-untyped-def]
    """Insert SLOs in this sequence, where they fit: the number of admitted ones."""
    settle(p, layout, PRIORITY_TRIES)
    for k in range(len(sequence)):
        if layout.parts[sequence[k]] == 0:
            insert(p, layout, sequence[k], favoured, rng, PRIORITY_TRIES)
    return settle(p, layout, PRIORITY_TRIES)


@compile_kernel
def bus_load(p, layout, count):  # type: ignore[no-untyped-def]
    """How much of the bus the admitted SLOs take: its share of time, or the time itself, us."""
    load = 0.0
    for k in range(count):
        i = layout.order[k]
        load += layout.transfer[i] / layout.period[i] if p.sporadic else layout.transfer[i]
    return load


@compile_kernel
def _stretch(p, layout, admitted, rng):  # type: ignore[no-untyped-def]
    """Try a larger batch, which takes less of the bus; the number of SLOs if all keep their latency, else -1."""
    i = layout.order[rng.integers(0, admitted)]
    largest = int((layout.due[i] - layout.transfer[i]) / (p.gap_us[i] + p.slope_us[i]))
    if largest < 1:
        return -1
    layout.wish[i] = layout.batch[i] + 1 + int(rng.random() ** 2 * largest)
    return admitted


@compile_kernel
def _remove(p, layout, admitted, rng, candidates):  # type: ignore[no-untyped-def]
    """Remove a few SLOs, at random or from one SM: their number, with `candidates` beginning with them."""
    removed = 0
    if admitted == 0:
        return 0
    near = rng.random() < 0.3
    pivot = layout.order[rng.integers(0, admitted)]
    for _ in range(min(rng.integers(1, MOST_REMOVED + 1), admitted)):
        i = layout.order[rng.integers(0, admitted)]
        if near and layout.parts[pivot] > 0:
            sm = layout.part_sm[pivot, rng.integers(0, layout.parts[pivot])]
            i = layout.tenant[sm, rng.integers(0, layout.tenants[sm])]
        if layout.parts[i] > 0:
            take(p, layout, i)
            candidates[removed] = i
            removed += 1
    return removed


@compile_kernel
def _recreate(p, layout, admitted, removed, ranked, favoured, rng, candidates, keys):  # type: ignore[no-untyped-def]
    """Insert removed SLOs and some others, in a random sequence: the number of admitted ones, or fewer than before."""
    found = removed
    for _ in range(2 * REMOVAL_ATTEMPTS):
        i = ranked[int(len(ranked) * rng.random() ** RANK_SKEW)]
        fresh = layout.parts[i] == 0 and found < removed + REMOVAL_ATTEMPTS
        for j in range(found):
            fresh = fresh and candidates[j] != i
        if fresh:
            candidates[found] = i
            found += 1
    _sort(p, candidates, found, keys, rng)
    now = admitted - removed
    settle(p, layout, PRIORITY_TRIES)
    for k in range(found):
        if now + found - k < admitted:
            return -1
        now += insert(p, layout, candidates[k], favoured, rng, PRIORITY_TRIES)
    return now


@compile_kernel
def _sort(p, candidates, count, keys, rng):  # type: ignore[no-untyped-def]
    """Sort candidates by a random one of several keys, with noise."""
    kind = rng.integers(0, 4)
    for k in range(count):
        i = candidates[k]
        key = 1.0
        if kind == 1:
            key = p.latency_us[i]
        elif kind == 2:
            key = p.slope_us[i] * 64.0 + p.fixed_us[i]
        elif kind == 3:
            key = p.slope_us[i] / p.gap_us[i] + 2.0 * p.fixed_us[i] / p.latency_us[i]
        keys[k] = key * (0.5 + rng.random())
    for k in range(1, count):
        one, key = candidates[k], keys[k]
        at = k
        while at > 0 and keys[at - 1] > key:
            keys[at] = keys[at - 1]
            candidates[at] = candidates[at - 1]
            at -= 1
        keys[at] = key
        candidates[at] = one


# Insert an SLO into a layout: its batch, how it is split, and the SMs of its minibatches.


BATCH_SPLITS = 3  # ways to split a batch that are tried


@compile_kernel
def insert(p, layout, i, favoured, rng, tries):  # type: ignore[no-untyped-def]
    """Add an SLO where all keep their latency: 1, or 0 where no tried way does. What a minibatch costs on an SM is its
    own penalty, those of the others there, and opening an empty SM, each with a random weight."""
    own, harm, fresh = rng.random(), rng.random(), rng.random() * 0.1 * p.latency_us[i]
    first = rng.integers(1, min(4, p.slots) + 1) if rng.random() < 0.5 else 1
    tried = 0
    for step in range(p.slots):
        size = (first - 1 + step) % p.slots + 1
        kernel = p.step_us[i] * size + p.base_us[i]
        batch = least_batch(p, i, kernel)
        if batch < 0:
            continue
        if p.sporadic and p.pinned[i] == 0 and rng.random() < 0.75:
            # Deadline and period share what latency is left: the larger the one, the smaller the other.
            shared = p.latency_us[i] - p.pre_post_us[i] - kernel
            wish = int((0.5 + (rng.random() - 0.5) * rng.random()) * shared / p.gap_us[i])
            if favoured[i] > 0 and rng.random() < 0.5:
                wish = favoured[i]
            batch = max(batch, wish)
        needed = -(-batch // p.width)
        if size > needed or needed > size * p.sms or needed > p.sms * p.slots:
            continue
        tried += 1
        if tried > BATCH_SPLITS:
            return 0
        layout.wish[i] = batch
        if _spread(p, layout, i, size, needed, own, harm, fresh) and settle(p, layout, tries) >= 0:
            return 1
        take(p, layout, i)
    return 0


@compile_kernel
def _spread(p, layout, i, size, needed, own, harm, fresh):  # type: ignore[no-untyped-def]
    """Put minibatches of at most `size` executors on the SMs of least cost, where there are enough."""
    left = needed
    while left > 0:
        executors = min(size, left)
        lowest, place = inf, -1
        for sm in range(p.sms):
            if layout.used[sm] + executors <= p.slots and not _is_on(layout, i, sm):
                cost = own * sharing(p, i, sm, layout) + harm * _harm(p, layout, i, sm)
                cost += fresh if layout.used[sm] == 0 else 1e-6 * (p.slots - layout.used[sm])
                if cost < lowest:
                    lowest, place = cost, sm
        if place < 0:
            return False
        put(p, layout, i, place, executors)
        left -= executors
    return True


@compile_kernel
def _harm(p, layout, i, sm):  # type: ignore[no-untyped-def]
    """How much longer the kernels of the others on an SM take beside the SLO, us."""
    harm = 0.0
    for k in range(layout.tenants[sm]):
        other = layout.tenant[sm, k]
        alone = p.step_us[other] * layout.tenant_executors[sm, k] + p.base_us[other]
        harm += max(0.0, alone + p.penalty_us[p.nf[other], p.nf[i]] - layout.kernel[other])
    return harm


@compile_kernel
def _is_on(layout, i, sm):  # type: ignore[no-untyped-def]
    found = False
    for part in range(layout.parts[i]):
        found = found or layout.part_sm[i, part] == sm
    return found
