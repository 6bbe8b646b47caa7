"""Insert an SLO into a layout: its batch, how it is split, and the SMs of its minibatches."""

from __future__ import annotations

from math import inf

from placer.gpu.compiled import compiled
from placer.gpu.exact.sm_layout import least_batch, put, settle, sharing, take

SPLITS = 3
"""Ways to split a batch that are tried."""


@compiled
def insert(p, layout, i, favoured, rng, tries):  # type: ignore[no-untyped-def]
    """Add an SLO where all keep their latency: 1, or 0 where no tried way does.

    What a minibatch costs on an SM is its own penalty, those of the others there, and opening an empty SM, each with a
    random weight.
    """
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
            share = 0.5 + (rng.random() - 0.5) * rng.random()
            wish = int(share * shared / p.gap_us[i])
            if favoured[i] > 0 and rng.random() < 0.5:
                wish = favoured[i]
            batch = max(batch, wish)
        needed = -(-batch // p.width)
        if size > needed or needed > size * p.sms or needed > p.sms * p.slots:
            continue
        tried += 1
        if tried > SPLITS:
            return 0
        layout.wish[i] = batch
        if _spread(p, layout, i, size, needed, own, harm, fresh) and settle(p, layout, tries) >= 0:
            return 1
        take(p, layout, i)
    return 0


@compiled
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


@compiled
def _harm(p, layout, i, sm):  # type: ignore[no-untyped-def]
    """How much longer the kernels of the others on an SM take beside the SLO, us."""
    harm = 0.0
    for k in range(layout.tenants[sm]):
        other = layout.tenant[sm, k]
        alone = p.step_us[other] * layout.tenant_executors[sm, k] + p.base_us[other]
        harm += max(0.0, alone + p.penalty_us[p.nf[other], p.nf[i]] - layout.kernel[other])
    return harm


@compiled
def _is_on(layout, i, sm):  # type: ignore[no-untyped-def]
    found = False
    for part in range(layout.parts[i]):
        found = found or layout.part_sm[i, part] == sm
    return found
