"""A layout: which SLOs run, with which minibatches on which SMs, and whether everybody keeps its latency. The compiled
loops change a layout in place. `settle` derives everything else from minibatches: kernels with their penalties, the
batches that these allow, transfers, and whether the bus serves all of them in time."""

from collections.abc import Iterable, Sequence
from math import ceil
from typing import NamedTuple

import numpy as np

from placer.gpu.bus import in_time
from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.latency import violations
from placer.gpu.plan import Admitted, LatencySlo, SmShare
from placer.gpu.tables import NEAR_LIMIT, compile_kernel
from predictor.regression.compiled import share_with_python
from profiles.arrays import Floats, Ints

KEPT_LIMIT = 1.0 + 0.9 * NEAR_LIMIT
"""What a time may be of its limit: less than the model allows, so that another order of additions changes nothing."""


class SmLayout(NamedTuple):
    """Minibatches on SMs, by SLO and by SM, and what follows from them.

    `chosen`: all that was chosen, as one array; those up to `tenant_executors` are views of it. `parts`: by SLO, the
    number of minibatches; 0 is not admitted. `part_sm`, `part_executors`: by SLO and minibatch. `wish`: by SLO, the
    least batch that is wanted. `used`, `tenants`: by SM, occupied executors and the number of minibatches. `tenant`: by
    SM and place, the SLO. `tenant_executors`: by SM and place. `kernel`, `batch`, `transfer`, `period`, `due`: by
    admitted SLO; `due` is the time by which its transfer must be finished, us. `order`: admitted SLOs by priority on
    the bus."""

    chosen: Ints
    parts: Ints
    part_sm: Ints
    part_executors: Ints
    wish: Ints
    used: Ints
    tenants: Ints
    tenant: Ints
    tenant_executors: Ints
    kernel: Floats
    batch: Ints
    transfer: Floats
    period: Floats
    due: Floats
    order: Ints


def empty_layout(problem: "Problem") -> SmLayout:
    """A layout without SLOs."""
    count = len(problem.nf)
    by_slo, by_sm = count * problem.sms, problem.sms * problem.slots
    sizes = [count, by_slo, by_slo, count, problem.sms, problem.sms, by_sm, by_sm]
    chosen = np.zeros(sum(sizes), dtype=np.int64)
    views = [chosen[end - size : end] for size, end in zip(sizes, np.cumsum(sizes), strict=True)]
    for at, columns in ((1, problem.sms), (2, problem.sms), (6, problem.slots), (7, problem.slots)):
        views[at] = views[at].reshape(-1, columns)
    batch, order = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    kernel, transfer, period, due = (np.zeros(count, dtype=np.float64) for _ in range(4))
    parts, part_sm, part_executors, wish, used, tenants, tenant, tenant_executors = views
    return SmLayout(
        chosen, parts, part_sm, part_executors, wish, used, tenants, tenant, tenant_executors,
        kernel, batch, transfer, period, due, order,
    )  # fmt: skip


@share_with_python
@compile_kernel
def least_batch(p, i, kernel):  # type: ignore[no-untyped-def]
    """The smallest batch whose period holds the kernel and pre/post; -1 where the fixed one does not."""
    longest = max(kernel, p.pre_post_us[i])
    if p.pinned[i] > 0:
        return p.pinned[i] if longest <= p.pinned[i] * p.gap_us[i] * KEPT_LIMIT else -1
    if longest > 1e15 * p.gap_us[i]:
        return -1
    return max(1, ceil(longest / (p.gap_us[i] * KEPT_LIMIT)))


@share_with_python
@compile_kernel
def slack(p, i, batch, kernel):  # type: ignore[no-untyped-def]
    """The time by which the transfer must be finished, us."""
    return p.latency_us[i] * KEPT_LIMIT - (batch - 1) * p.gap_us[i] - p.pre_post_us[i] - kernel


@compile_kernel
def sharing(p, i, sm, layout):  # type: ignore[no-untyped-def]
    """The largest penalty of an SLO beside the others on an SM, us."""
    penalty = 0.0
    for k in range(layout.tenants[sm]):
        other = layout.tenant[sm, k]
        if other != i:
            penalty = max(penalty, p.penalty_us[p.nf[i], p.nf[other]])
    return penalty


@share_with_python
@compile_kernel
def put(p, layout, i, sm, executors):  # type: ignore[no-untyped-def]
    """Add a minibatch."""
    layout.part_sm[i, layout.parts[i]] = sm
    layout.part_executors[i, layout.parts[i]] = executors
    layout.parts[i] += 1
    layout.tenant[sm, layout.tenants[sm]] = i
    layout.tenant_executors[sm, layout.tenants[sm]] = executors
    layout.tenants[sm] += 1
    layout.used[sm] += executors


@share_with_python
@compile_kernel
def take(p, layout, i):  # type: ignore[no-untyped-def]
    """Remove an SLO with all its minibatches."""
    for part in range(layout.parts[i]):
        sm = layout.part_sm[i, part]
        last = layout.tenants[sm] - 1
        for k in range(last + 1):
            if layout.tenant[sm, k] == i:
                layout.tenant[sm, k] = layout.tenant[sm, last]
                layout.tenant_executors[sm, k] = layout.tenant_executors[sm, last]
                break
        layout.tenants[sm] = last
        layout.used[sm] -= layout.part_executors[i, part]
    layout.parts[i] = 0


@share_with_python
@compile_kernel
def settle(p, layout, tries):  # type: ignore[no-untyped-def]
    """Derive kernels, batches and transfers of the admitted SLOs, and order them, with as many tries per priority: the
    number of SLOs if all keep their latency, else -1."""
    count = 0
    for i in range(len(p.nf)):
        if layout.parts[i] == 0:
            continue
        kernel = 0.0
        executors = 0
        for part in range(layout.parts[i]):
            executors += layout.part_executors[i, part]
            alone = p.step_us[i] * layout.part_executors[i, part] + p.base_us[i]
            kernel = max(kernel, alone + sharing(p, i, layout.part_sm[i, part], layout))
        batch = least_batch(p, i, kernel)
        if batch < 0 or batch > executors * p.width:
            return -1
        if p.sporadic and p.pinned[i] == 0:
            batch = max(batch, min(layout.wish[i], executors * p.width))
        layout.kernel[i] = kernel
        layout.batch[i] = batch
        layout.transfer[i] = p.slope_us[i] * batch + p.fixed_us[i]
        layout.period[i] = batch * p.gap_us[i]
        layout.due[i] = slack(p, i, batch, kernel)
        if layout.transfer[i] > layout.due[i]:
            return -1
        layout.order[count] = i
        count += 1
    if count > p.workers:
        return -1
    fits = in_time(p.sporadic, layout.order, count, layout.transfer, layout.period, layout.due, tries)
    return count if fits else -1


# The device and its SLOs as arrays, for the compiled loops.


class Problem(NamedTuple):
    """A device and SLOs. `sporadic`: whether batches on the bus recur. `slots`: executors of an SM. `width`: packets
    per executor. `nf`: by SLO, the number of its NF. `gap_us`: by SLO, the time between two packets. `slope_us`,
    `fixed_us`: by SLO, of a transfer: per packet, and fixed. `step_us`, `base_us`: by SLO, of a kernel: per executor of
    a minibatch, and fixed. `pinned`: by SLO, the fixed batch; 0 for none. `penalty_us`: by NF and other NF."""

    sporadic: bool
    sms: int
    slots: int
    width: int
    workers: int
    nf: Ints
    gap_us: Floats
    latency_us: Floats
    pre_post_us: Floats
    slope_us: Floats
    fixed_us: Floats
    step_us: Floats
    base_us: Floats
    pinned: Ints
    penalty_us: Floats


def problem_of(device: GpuDevice, slos: Sequence[LatencySlo]) -> Problem:
    """The arrays of a device and SLOs."""
    names = sorted({slo.nf for slo in slos})
    nfs = [device.nfs[slo.nf] for slo in slos]
    transfers = [device.transfer_us[nf.transfer_class] for nf in nfs]
    return Problem(
        device.arbitration is Arbitration.SPORADIC,
        device.sms,
        device.executors_per_sm,
        device.packets_per_executor,
        device.workers,
        np.array([names.index(slo.nf) for slo in slos], dtype=np.int64),
        _floats(1000.0 / slo.rate_kpps for slo in slos),
        _floats(slo.latency_us for slo in slos),
        _floats(nf.pre_post_us for nf in nfs),
        _floats(slope for slope, _ in transfers),
        _floats(fixed for _, fixed in transfers),
        _floats(nf.kernel_us[0] for nf in nfs),
        _floats(nf.kernel_us[1] for nf in nfs),
        np.array([slo.batch or 0 for slo in slos], dtype=np.int64),
        np.array([[device.penalty(nf, [other]) for other in names] for nf in names], dtype=np.float64).reshape(
            len(names), len(names)
        ),
    )


def _floats(values: Iterable[float]) -> Floats:
    return np.array(list(values), dtype=np.float64)


# A layout as a plan.


def plan_of(device: GpuDevice, slos: Sequence[LatencySlo], problem: Problem, layout: SmLayout) -> tuple[Admitted, ...]:
    """The admitted SLOs of a layout, in the order of their transfers; checked against the model. Raises
    `AssertionError` when: the plan breaks the model: a fault of the search."""
    count = settle(problem, layout, len(slos))
    admitted = tuple(
        Admitted(slos[i], int(layout.batch[i]), order, _minibatches(problem, layout, i))
        for order, i in enumerate(layout.order[: max(count, 0)].tolist())
    )
    broken = violations(device, admitted)
    assert count >= 0 and not broken, f"a plan breaks the model: {broken}"
    return admitted


def _minibatches(p: Problem, layout: SmLayout, i: int) -> tuple[SmShare, ...]:
    """The batch over its executors, each minibatch full before the next; one that stays empty is left out."""
    left = int(layout.batch[i])
    shares = []
    for part in range(int(layout.parts[i])):
        packets = min(left, int(layout.part_executors[i, part]) * p.width)
        if packets > 0:
            shares.append(SmShare(int(layout.part_sm[i, part]), packets))
        left -= packets
    return tuple(shares)
