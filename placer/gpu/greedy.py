"""Admission of one SLO after another by Grus's algorithm (paper 003, Algorithm 1), repaired, as machine code.

SLOs as arrays -> batches -> SMs of the least penalty -> queue on the bus -> what is admitted, or a cause

The paper's text, lines 16 to 21, never charges an accepted NF its own transfer and its wait, shifts orders by one, and
never resets `accepted`. Here every SLO is admitted only if all that are admitted keep their latency with it. Figure 13
has this method decide on 100 SLOs within 300 us, so it is compiled."""

import time
from collections.abc import Callable, Sequence
from functools import cache
from math import inf

import numpy as np

from placer.gpu.batches import HEADROOM_SHARES, MANY_LAYOUTS, MEDIUM_SHARE, layouts
from placer.gpu.bound import upper_bound
from placer.gpu.device import Arbitration, GpuDevice, GpuNf
from placer.gpu.plan import Admission, Admitted, LatencySlo, Rejected, SmShare
from placer.gpu.queue import trial_in_time
from placer.gpu.sms import add_minibatches, has_room, kernel_on, next_sm, write_later
from placer.gpu.tables import (
    BATCH_ROW,
    BEFORE_ROW,
    BETA_ROW,
    BY_DUE,
    CHOSEN_ROW,
    COUNTS_ROW,
    FIXED_ROW,
    JOB_ROW,
    KERNEL_ROW,
    LARGEST_ROW,
    NF_ROW,
    NOW_ROW,
    ON_ROW,
    OWN_PERIOD_ROW,
    PER_EXECUTOR_ROW,
    PRE_POST_ROW,
    QUEUE_ROW,
    SERIAL,
    SHARERS_ROW,
    SLO_ROW,
    SLOPE_ROW,
    TENANT_COUNT,
    UNORDERED,
    WITHIN_LIMIT,
    GpuNumbers,
    SloArrays,
    compile_kernel,
    empty_tables,
    gpu_numbers,
    nf_times,
    slo_arrays,
    times_of,
)
from profiles.arrays import Floats, Ints

Placed = tuple[tuple[Admitted, ...], tuple[Rejected, ...]]

CAUSE_NAMES = ("", "batching", "pcie", "executors", "kernel", "workers")  # by number; 0 is admitted
ADMITTED, BATCHING, PCIE, NO_EXECUTORS, SLOW_KERNEL, NO_WORKER = range(6)

TRIED_SMS = 4  # of each layout; beside the tenants of an SM that is less preferred, kernels take longer


def time_admission(device: GpuDevice, slos: Sequence[LatencySlo], admit: Callable[[], Placed]) -> Admission:
    """What `admit` returns, timed, with a bound that holds for every method."""
    _load()
    begun = time.perf_counter()
    admitted, rejected = admit()
    seconds = time.perf_counter() - begun
    bound = upper_bound(device, slos).count
    return Admission(admitted, rejected, bound, bound == len(admitted), seconds)


@cache
def _load() -> None:
    """Load the compiled code, so that the time of no answer has it."""
    device = GpuDevice(1, 1, 1, 1, Arbitration.SPORADIC, {"class": (0.0, 1.0)}, {"nf": GpuNf("class", 0.0, (1.0, 1.0))})
    admit_greedily(device, [LatencySlo("0", "nf", 1.0, 100.0)])


def admit_greedily(
    device: GpuDevice, slos: Sequence[LatencySlo], *, exclusive: bool = False, rule: int = BY_DUE
) -> Placed:
    """What is admitted, in the order of transfers, and what is rejected. Where a transfer comes once, shortest headroom
    first, with the smallest batches. Where transfers recur, smallest use of the bus first, with larger batches:
    shortest headroom first would fill the bus with few SLOs. `exclusive`: whether an SM serves one SLO only. `rule`:
    what must be in time (`tables`)."""
    if not slos:
        return (), ()
    gpu = gpu_numbers(device, exclusive=exclusive, rule=rule)
    whole, causes = admit_arrays(gpu, nf_times(device), slo_arrays(device, slos))
    rejected = tuple(Rejected(slo, CAUSE_NAMES[cause]) for slo, cause in zip(slos, causes, strict=True) if cause)
    return tuple(list_admitted(device, slos, whole)), rejected


def admit_arrays(gpu: GpuNumbers, nfs: Floats, slos: SloArrays) -> tuple[Ints, Ints]:
    """The table `whole` of what is admitted, and causes by SLO; 0 is admitted. Of the shares of the headroom that
    batches may take, that with which most SLOs are admitted. It is large if the bus cannot take the transfers of all
    SLOs otherwise."""
    shares: Sequence[float] = HEADROOM_SHARES
    if gpu.rule != SERIAL:
        shares = (
            HEADROOM_SHARES[:1]
            if not gpu.sporadic
            else HEADROOM_SHARES[1:3]
            if _bus_takes_all(gpu, nfs, *slos)
            else HEADROOM_SHARES[3:]
        )
    count = len(slos.nf)
    allowances = np.zeros(gpu.nfs) if gpu.exclusive else nfs[BETA_ROW:, slos.nf].max(axis=1)
    best: tuple[Ints, Ints] | None = None
    for share in shares:
        whole, times = empty_tables(gpu, min(count, gpu.workers, gpu.sms * gpu.executors))
        causes = _admit_with_share(gpu, nfs, whole, times, *slos, allowances, share)
        if best is None or whole[COUNTS_ROW, TENANT_COUNT] > best[0][COUNTS_ROW, TENANT_COUNT]:
            best = whole, causes
        if best[0][COUNTS_ROW, TENANT_COUNT] == count:
            break
    assert best is not None
    return best


def list_admitted(device: GpuDevice, slos: Sequence[LatencySlo], whole: Ints) -> list[Admitted]:
    """The tenants, in the order of their transfers."""
    count = int(whole[COUNTS_ROW, TENANT_COUNT])
    parts: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for sm, sharers in enumerate(whole[SHARERS_ROW, : device.sms].tolist()):
        for at in range(sharers):
            parts[whole[ON_ROW + sm, at]].append((int(whole[ON_ROW + device.sms + sm, at]), sm))
    found = []
    for order, number in enumerate(whole[JOB_ROW + whole[COUNTS_ROW, QUEUE_ROW], :count].tolist()):
        batch = int(whole[BATCH_ROW, number])
        largest = int(whole[LARGEST_ROW, number]) * device.packets_per_executor
        shares = tuple(SmShare(sm, min(largest, batch - at * largest)) for at, sm in sorted(parts[number]))
        found.append(Admitted(slos[whole[SLO_ROW, number]], batch, order, shares))
    return found


@compile_kernel
def _bus_takes_all(gpu, nfs, nf, rate, latency, pinned):  # type: ignore[no-untyped-def]
    """Whether the transfers of all SLOs take less than the whole bus, with batches that are not large."""
    used = 0.0
    for slo in range(len(nf)):
        first = layouts(gpu, nfs, nf[slo], rate[slo], latency[slo], pinned[slo], 0.0, MEDIUM_SHARE, 1)
        if len(first):
            _, transfer, period = times_of(nfs, nf[slo], rate[slo], first[0, 0])
            used += transfer / period
    return used < 1.0


@compile_kernel
def _admit_with_share(gpu, nfs, whole, times, nf, rate, latency, pinned, allowances, share):  # type: ignore[no-untyped-def]
    """Admit SLOs one by one, the smallest key first, with batches that take a share of the headroom. `nf`, `rate`,
    `latency`, `pinned`: by SLO: number of its NF, kpps, us, and its batch or 0. `allowances`: by NF, sharing penalties
    for which periods leave time, us."""
    count = len(nf)
    keys, causes = np.empty(count), np.empty(count, np.int64)
    batches, largest = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for slo in range(count):
        first = layouts(gpu, nfs, nf[slo], rate[slo], latency[slo], pinned[slo], allowances[nf[slo]], share, 1)
        keys[slo] = inf
        if len(first):
            batches[slo], largest[slo] = first[0, 0], first[0, 1]
            keys[slo] = _key_of(gpu, nfs, nf[slo], rate[slo], latency[slo], batches[slo], largest[slo])
    for slo in order_by(keys):
        allowance = allowances[nf[slo]]
        causes[slo] = place(
            gpu, nfs, whole, times, slo, nf[slo], rate[slo], latency[slo], pinned[slo], allowance, share,
            batches[slo], largest[slo],
        )  # fmt: skip
    return causes


@compile_kernel
def order_by(keys):  # type: ignore[no-untyped-def]
    """The places of the keys, smallest first, equal ones as they stand: merge sort. NumPy's takes as long to compile as
    a fifth of all else here."""
    count, width = len(keys), 1
    order, merged = np.empty(count, np.int64), np.empty(count, np.int64)
    for at in range(count):
        order[at] = at
    while width < count:
        for start in range(0, count, 2 * width):
            left, right = start, min(start + width, count)
            middle, end = right, min(start + 2 * width, count)
            for at in range(start, end):
                if left < middle and (right >= end or keys[order[left]] <= keys[order[right]]):
                    merged[at] = order[left]
                    left += 1
                else:
                    merged[at] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order


@compile_kernel
def _key_of(gpu, nfs, nf, rate, latency, batch, largest):  # type: ignore[no-untyped-def]
    """What SLOs are sorted by: headroom (line 3), or where transfers recur use of the bus; `SERIAL`, of the GPU.
    Without an order, the SLO with the least headroom limits how many there are: those with much of it come first."""
    batching, transfer, period = times_of(nfs, nf, rate, batch)
    if gpu.rule == SERIAL:
        return (nfs[PER_EXECUTOR_ROW, nf] * largest + nfs[KERNEL_ROW, nf]) / period
    if gpu.sporadic:
        return transfer / period
    headroom = latency - batching - nfs[PRE_POST_ROW, nf]
    return -headroom if gpu.rule == UNORDERED else headroom


@compile_kernel
def place(gpu, nfs, whole, times, slo, nf, rate, latency, pinned, allowance, share, batch, largest):  # type: ignore[no-untyped-def]
    """Admit an SLO with the first layout that keeps all SLOs: 0, else the cause why none does. `slo`: its number, which
    the tables keep. `allowance`, `share`: as of `layouts`. `batch`, `largest`: the first layout; 0 where there is
    none."""
    if whole[COUNTS_ROW, TENANT_COUNT] >= gpu.workers:
        return NO_WORKER
    if batch == 0:
        return _without_batch(gpu, nfs, nf, rate, pinned)
    cause = _place_batch(gpu, nfs, whole, times, slo, nf, rate, latency, batch, largest)
    if cause == ADMITTED or (cause == PCIE and gpu.sporadic):
        return cause  # other layouts take as much of the bus
    others = layouts(gpu, nfs, nf, rate, latency, pinned, allowance, share, MANY_LAYOUTS)[1:]
    for k in range(len(others)):
        found = _place_batch(gpu, nfs, whole, times, slo, nf, rate, latency, others[k, 0], others[k, 1])
        if found == ADMITTED:
            return ADMITTED
        if found == PCIE and gpu.sporadic:
            break
    return cause


@compile_kernel
def _without_batch(gpu, nfs, nf, rate, pinned):  # type: ignore[no-untyped-def]
    """The cause of an SLO whose rate the GPU cannot carry with any batch, or not with the one that is fixed."""
    if pinned == 0:
        too_slow = nfs[SLOPE_ROW, nf] * rate >= 1000.0 and nfs[SLOPE_ROW, nf] + nfs[FIXED_ROW, nf] > 0.0
        return PCIE if too_slow else NO_EXECUTORS
    if pinned > gpu.sms * gpu.executors * gpu.packets:
        return NO_EXECUTORS
    return NO_WORKER if nfs[PRE_POST_ROW, nf] > 1000.0 * pinned / rate * WITHIN_LIMIT else SLOW_KERNEL


@compile_kernel
def _place_batch(gpu, nfs, whole, times, slo, nf, rate, latency, batch, largest):  # type: ignore[no-untyped-def]
    """Admit an SLO with this batch, on SMs of the least penalty on which all are in time: 0, else the cause."""
    number = whole[COUNTS_ROW, TENANT_COUNT]
    batching, transfer, period = times_of(nfs, nf, rate, batch)
    left = latency * WITHIN_LIMIT - batching - nfs[PRE_POST_ROW, nf]
    base = nfs[PER_EXECUTOR_ROW, nf] * largest + nfs[KERNEL_ROW, nf]
    due = left - base
    if not transfer <= due:  # an empty GPU does not keep it: the stage that takes longest
        kernel = base + nfs[PRE_POST_ROW, nf]
        return BATCHING if batching >= max(transfer, kernel) else PCIE if transfer >= kernel else SLOW_KERNEL
    # the arrival, before it is one of the tenants
    whole[SLO_ROW, number], whole[NF_ROW, number], whole[BATCH_ROW, number] = slo, nf, batch
    whole[LARGEST_ROW, number], times[BEFORE_ROW, number], times[OWN_PERIOD_ROW, number] = (
        largest,
        left,
        period,
    )
    if not trial_in_time(gpu, nfs, whole, times, number, due, transfer, 0):
        return PCIE
    minibatches = -(-batch // (largest * gpu.packets))
    after, tried_due = -1, due
    for _ in range(TRIED_SMS if minibatches == 1 else 1):
        for at in range(minibatches):
            after = next_sm(gpu, whole, times, nf, base, period, largest, after)
            if after < 0:
                break
            whole[CHOSEN_ROW, at] = after
        if after < 0:
            break
        if _joins(gpu, nfs, whole, times, minibatches, tried_due, transfer):
            return ADMITTED
        tried_due = inf
    return NO_EXECUTORS if minibatches > 1 or not has_room(gpu, whole, largest) else SLOW_KERNEL


@compile_kernel
def _joins(gpu, nfs, whole, times, minibatches, tried_due, transfer):  # type: ignore[no-untyped-def]
    """Let the SLO behind the last tenant join on the chosen SMs if all are in time with it."""
    number = whole[COUNTS_ROW, TENANT_COUNT]
    nf = whole[NF_ROW, number]
    kernel = kernel_on(gpu, nfs, whole, times, nf, whole[BATCH_ROW, number], whole[LARGEST_ROW, number], minibatches)
    due = times[BEFORE_ROW, number] - kernel
    changed = write_later(gpu, nfs, whole, times, nf, minibatches)
    tried = changed == 0 and due == tried_due
    if not tried and not trial_in_time(gpu, nfs, whole, times, number, due, transfer, changed):
        return False
    whole[COUNTS_ROW, QUEUE_ROW] = 1 - whole[COUNTS_ROW, QUEUE_ROW]
    times[NOW_ROW, number] = kernel
    whole[COUNTS_ROW, TENANT_COUNT] = number + 1
    add_minibatches(gpu, nfs, whole, times, minibatches, changed)
    return True
