"""The latency of admitted SLOs by stage, and what a plan breaks of its limits."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from placer.gpu.bus import one_shot_wait, sporadic_wait
from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.plan import Admitted
from placer.gpu.tables import NEAR_LIMIT
from profiles.arrays import Floats


@dataclass(frozen=True)
class LatencyParts:
    """The worst latency of a packet by stage, us (paper 003, equation 1). `transfer_wait`: infinite where the bus is
    overloaded. `kernel`: of its slowest minibatch, with the sharing penalty."""

    batching: float
    pre_post: float
    transfer_wait: float
    transfer: float
    kernel: float

    @property
    def total(self) -> float:
        """The latency, us."""
        return self.batching + self.pre_post + self.transfer_wait + self.transfer + self.kernel


def latency_of(device: GpuDevice, admitted: Sequence[Admitted]) -> dict[str, LatencyParts]:
    """By id of the SLO, its latency when all of these share the GPU."""
    ordered = sorted(admitted, key=lambda one: one.order)
    transfers = np.array([device.transfer(tenant.slo.nf, tenant.batch) for tenant in ordered], dtype=np.float64)
    periods = np.array([device.period_us(tenant.batch, tenant.slo.rate_kpps) for tenant in ordered], dtype=np.float64)
    kernels = _kernels(device, ordered)
    return {
        one.slo.id: LatencyParts(
            device.batching_us(one.batch, one.slo.rate_kpps),
            device.nfs[one.slo.nf].pre_post_us,
            _wait(device.arbitration, transfers, periods, at),
            float(transfers[at]),
            kernels[at],
        )
        for at, one in enumerate(ordered)
    }


def _wait(arbitration: Arbitration, transfers: Floats, periods: Floats, at: int) -> float:
    if arbitration is Arbitration.ONE_SHOT:
        return one_shot_wait(transfers[:at])
    blocking = float(transfers[at + 1 :].max(initial=0.0))
    return sporadic_wait(float(transfers[at]), float(periods[at]), transfers[:at], periods[:at], blocking)


def _kernels(device: GpuDevice, admitted: Sequence[Admitted]) -> list[float]:
    """Of each, the time of its slowest minibatch."""
    sharers: dict[int, list[int]] = {}
    for at, one in enumerate(admitted):
        for share in one.minibatches:
            sharers.setdefault(share.sm, []).append(at)
    return [
        max(
            (
                device.kernel(one.slo.nf, share.packets)
                + device.penalty(one.slo.nf, (admitted[k].slo.nf for k in sharers[share.sm] if k != at))
                for share in one.minibatches
            ),
            default=inf,
        )
        for at, one in enumerate(admitted)
    ]


def at_most(time_us: float, limit_us: float) -> bool:
    """Whether a time keeps its limit."""
    return time_us <= limit_us * (1.0 + NEAR_LIMIT)


@dataclass(frozen=True)
class GpuViolation:
    """What a plan breaks. `cause`: one of `CAUSES`: the stage or resource to blame."""

    id: str
    cause: str


def violations(device: GpuDevice, admitted: Sequence[Admitted]) -> list[GpuViolation]:
    """What a plan breaks, by SLO; empty where it keeps the model. Everything is derived anew from the plan."""
    found = [GpuViolation(tenant.slo.id, "workers") for tenant in admitted[device.workers :]]
    found += _placement(device, admitted)
    orders = Counter(tenant.order for tenant in admitted)
    found += [GpuViolation(tenant.slo.id, "pcie") for tenant in admitted if orders[tenant.order] > 1]
    parts = latency_of(device, admitted)
    for tenant in admitted:
        cause = _late(device, tenant, parts[tenant.slo.id])
        if cause:
            found.append(GpuViolation(tenant.slo.id, cause))
    return found


def _placement(device: GpuDevice, admitted: Sequence[Admitted]) -> list[GpuViolation]:
    used: Counter[int] = Counter()
    found = []
    for tenant in admitted:
        sms = [share.sm for share in tenant.minibatches]
        for share in tenant.minibatches:
            used[share.sm] += device.executors(share.packets)
        if (
            len(set(sms)) < len(sms)
            or not all(0 <= sm < device.sms for sm in sms)
            or sum(share.packets for share in tenant.minibatches) != tenant.batch
            or min((share.packets for share in tenant.minibatches), default=0) < 1
            or any(used[sm] > device.executors_per_sm for sm in sms)
        ):
            found.append(GpuViolation(tenant.slo.id, "executors"))
    return found


def _late(device: GpuDevice, one: Admitted, parts: LatencyParts) -> str | None:
    """The first stage by which the latency is exceeded, or the one that does not keep up with the rate."""
    period_us = device.period_us(one.batch, one.slo.rate_kpps)
    if one.slo.batch not in (None, one.batch) or not at_most(parts.pre_post, period_us):
        return "batching"
    if not at_most(parts.kernel, period_us):
        return "kernel"
    if at_most(parts.total, one.slo.latency_us):
        return None
    if not at_most(parts.batching + parts.pre_post, one.slo.latency_us):
        return "batching"
    return "pcie" if at_most(parts.total - parts.transfer_wait - parts.transfer, one.slo.latency_us) else "kernel"
