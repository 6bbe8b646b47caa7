"""Why SLOs are rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from placer.gpu.device import GpuDevice
from placer.gpu.exact.best_case import BestCases
from placer.gpu.plan import Admitted, Rejected, SmShare
from placer.gpu.rounding import at_most
from placer.gpu.slo import LatencySlo
from placer.gpu.waiting import latency_of


def rejections(
    device: GpuDevice, slos: Sequence[LatencySlo], admitted: Sequence[Admitted], cases: BestCases
) -> tuple[Rejected, ...]:
    """The SLOs that are not admitted, each with its cause.

    Where the GPU cannot serve an SLO even alone, the cause is the stage that takes too long there. Otherwise it is the
    first in the way beside the admitted ones: no worker, no free executors, kernels that get too slow on shared SMs, or
    else the bus.
    """
    served = {one.slo.id for one in admitted}
    return tuple(
        Rejected(slo, cases.cause[at] or _beside(device, slo, int(cases.batch[at]), int(cases.size[at]), admitted))
        for at, slo in enumerate(slos)
        if slo.id not in served
    )


def _beside(device: GpuDevice, slo: LatencySlo, batch: int, size: int, admitted: Sequence[Admitted]) -> str:
    if len(admitted) >= device.workers:
        return "workers"
    free = Counter(dict.fromkeys(range(device.sms), device.executors_per_sm))
    for one in admitted:
        for share in one.minibatches:
            free[share.sm] -= device.executors(share.packets)
    needed = device.executors(batch)
    if sum(free.values()) < needed:
        return "executors"
    cause = "executors"
    for largest in range(size, device.executors_per_sm + 1):
        shares = _spread(device, slo, batch, largest, free, admitted)
        if shares:
            joined = [*admitted, Admitted(slo, batch, len(admitted), shares)]
            if _without_bus(device, joined):
                return "pcie"
            cause = "kernel"
        if largest >= needed:
            break
    return cause


def _spread(
    device: GpuDevice, slo: LatencySlo, batch: int, largest: int, free: Counter[int], admitted: Sequence[Admitted]
) -> tuple[SmShare, ...]:
    """Minibatches on the SMs with the least penalties; none where executors lack."""
    tenants: dict[int, list[str]] = {sm: [] for sm in free}
    for one in admitted:
        for share in one.minibatches:
            tenants[share.sm].append(one.slo.nf)

    def cost(sm: int) -> tuple[float, int]:
        there = tenants[sm]
        return device.penalty(slo.nf, there) + sum(device.penalty(other, [slo.nf]) for other in there), sm

    left, shares = batch, []
    for sm in sorted(free, key=cost):
        packets = min(left, min(largest, free[sm]) * device.packets_per_executor)
        if packets > 0:
            shares.append(SmShare(sm, packets))
            left -= packets
    return tuple(shares) if left == 0 else ()


def _without_bus(device: GpuDevice, joined: Sequence[Admitted]) -> bool:
    """Whether all would keep their latency if nobody waited for the bus; each with the smallest batch that keeps up."""
    parts = latency_of(device, joined)
    for one in joined:
        part = replace(parts[one.slo.id], transfer_wait=0.0)
        period_us = device.period_us(one.batch, one.slo.rate_kpps)
        if not at_most(part.kernel, period_us) or not at_most(part.total, one.slo.latency_us):
            return False
    return True
