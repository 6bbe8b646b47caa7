"""Batches of an SLO: the smallest that kernel, CPU and bus keep up with, and larger ones; and how many SMs they take.
The paper takes b = T * L (Algorithm 1, line 2): then batching takes the whole latency. A smaller batch is enough, as
long as each batch is done before the next one comes. Where transfers recur, a larger batch takes less of the bus."""

import numpy as np

from placer.gpu.tables import (
    FIXED_ROW,
    KERNEL_ROW,
    PER_EXECUTOR_ROW,
    PRE_POST_ROW,
    SLOPE_ROW,
    WITHIN_LIMIT,
    compile_kernel,
)
from predictor.regression.compiled import share_with_python

HEADROOM_SHARES = (0.0, 0.5, 0.25, 0.625)
"""Shares of the headroom that batches take: of the latency that is left when the SLO has the GPU alone. None where each
transfer comes once, the others where they recur: the last where the bus would not take all transfers with the first."""
MEDIUM_SHARE = HEADROOM_SHARES[1]
WHOLE_PACKETS = 1.0 - 1e-12  # a number of packets this little above a whole number is that whole number
MANY_LAYOUTS = 1 << 20  # more than there are
MOST_PACKETS = 4e18  # more than any GPU processes at once, and few enough to be counted


@share_with_python
@compile_kernel
def layouts(gpu, nfs, nf, rate, latency, pinned, allowance, share, most):  # type: ignore[no-untyped-def]
    """Batches of an SLO and executors of their largest minibatches, on few SMs first: at most so many rows. A kernel on
    one SM takes longest and shares with fewest; on more SMs it is faster. `pinned`: the batch where it is fixed; else
    0. `allowance`: sharing penalty for which the period leaves time, us. Each layout without it follows that with it.
    `share`: one of `HEADROOM_SHARES`."""
    found = np.empty((min(most, 2 * gpu.executors), 2), np.int64)
    count, executors = 0, gpu.executors
    ways = 2 if allowance > 0.0 and pinned == 0 else 1
    while executors > 0:
        widest = 0
        for way in range(ways):
            time = allowance if way + 1 < ways else 0.0
            batch = batch_of(gpu, nfs, nf, rate, latency, pinned, executors, time, share)
            if batch < 0:
                continue
            largest = min(executors, -(-batch // gpu.packets))
            widest = max(widest, largest)
            known = False
            for k in range(count):
                known = known or (found[k, 0] == batch and found[k, 1] == largest)
            if not known:
                found[count, 0], found[count, 1] = batch, largest
                count += 1
                if count == most:
                    return found
        executors = min(executors, widest if widest > 0 else executors) - 1
    return found[:count]


@compile_kernel
def batch_of(gpu, nfs, nf, rate, latency, pinned, executors, allowance, share):  # type: ignore[no-untyped-def]
    """The batch of an SLO on at most so many executors of each SM; -1 where there is none."""
    if pinned > 0:
        return pinned if _keeps_up(gpu, nfs, nf, rate, pinned, executors) else -1
    batch = _smallest_batch(gpu, nfs, nf, rate, executors, allowance)
    if share > 0.0 and batch > 0:
        return _larger_batch(gpu, nfs, nf, rate, latency, batch, executors, share)
    return batch


@compile_kernel
def _smallest_batch(gpu, nfs, nf, rate, executors, allowance):  # type: ignore[no-untyped-def]
    """The smallest batch whose kernel, CPU and transfer fit the period; -1 where bus or SMs are too slow."""
    left, fixed = 1000.0 / rate - nfs[SLOPE_ROW, nf], nfs[FIXED_ROW, nf]
    if left < 0.0 or (left == 0.0 and fixed > 0.0):
        return -1
    least = 1 if left == 0.0 else _whole(fixed / left)
    least = max(least, _whole(nfs[PRE_POST_ROW, nf] * (rate / 1000.0)))
    packets = gpu.packets
    for used in range(1, executors + 1):
        kernel = nfs[PER_EXECUTOR_ROW, nf] * used + nfs[KERNEL_ROW, nf] + allowance
        batch = max(least, _whole(kernel * (rate / 1000.0)), (used - 1) * packets + 1)
        if batch <= used * packets * (gpu.sms if used == executors else 1):
            return batch
    return -1


@compile_kernel
def _whole(packets):  # type: ignore[no-untyped-def]
    """A number of packets, rounded up."""
    return max(1, int(np.ceil(min(packets * WHOLE_PACKETS, MOST_PACKETS))))


@compile_kernel
def _keeps_up(gpu, nfs, nf, rate, batch, executors):  # type: ignore[no-untyped-def]
    """Whether kernel and CPU fit the period of this batch, on at most so many executors of each SM."""
    used = min(executors, -(-batch // gpu.packets))
    longest = max(nfs[PER_EXECUTOR_ROW, nf] * used + nfs[KERNEL_ROW, nf], nfs[PRE_POST_ROW, nf])
    return batch <= gpu.sms * executors * gpu.packets and longest <= 1000.0 * batch / rate * WITHIN_LIMIT


@compile_kernel
def _larger_batch(gpu, nfs, nf, rate, latency, batch, executors, share):  # type: ignore[no-untyped-def]
    """A batch that spends a share of the headroom."""
    per_executor, packets = nfs[PER_EXECUTOR_ROW, nf], gpu.packets
    per_packet = 1000.0 / rate + nfs[SLOPE_ROW, nf]
    per_packet += per_executor / packets
    used = min(executors, -(-batch // packets))
    taken = 1000.0 * (batch - 1) / rate + nfs[PRE_POST_ROW, nf]
    taken += nfs[SLOPE_ROW, nf] * batch + nfs[FIXED_ROW, nf] + per_executor * used + nfs[KERNEL_ROW, nf]
    headroom = max(latency - taken - per_executor, 0.0)
    more = int(np.floor(min(share * headroom / per_packet, MOST_PACKETS)))
    return min(batch + more, gpu.sms * executors * packets)
