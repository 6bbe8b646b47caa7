"""Whether a plan keeps the model: every SLO's latency, and every limit of the device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from placer.gpu.device import GpuDevice
from placer.gpu.plan import Admitted
from placer.gpu.rounding import at_most
from placer.gpu.waiting import LatencyParts, latency_of


@dataclass(frozen=True)
class GpuViolation:
    """What a plan breaks.

    Parameters
    ----------
    id
        Of the SLO.
    cause
        One of `CAUSES`: the stage or resource to blame.
    """

    id: str
    cause: str


def violations(device: GpuDevice, admitted: Sequence[Admitted]) -> list[GpuViolation]:
    """What a plan breaks, by SLO; empty where it keeps the model. Everything is derived anew from the plan."""
    found = [GpuViolation(one.slo.id, "workers") for one in admitted[device.workers :]]
    found += _placement(device, admitted)
    orders = Counter(one.order for one in admitted)
    found += [GpuViolation(one.slo.id, "pcie") for one in admitted if orders[one.order] > 1]
    parts = latency_of(device, admitted)
    for one in admitted:
        cause = _late(device, one, parts[one.slo.id])
        if cause:
            found.append(GpuViolation(one.slo.id, cause))
    return found


def _placement(device: GpuDevice, admitted: Sequence[Admitted]) -> list[GpuViolation]:
    used: Counter[int] = Counter()
    found = []
    for one in admitted:
        sms = [share.sm for share in one.minibatches]
        for share in one.minibatches:
            used[share.sm] += device.executors(share.packets)
        if (
            len(set(sms)) < len(sms)
            or not all(0 <= sm < device.sms for sm in sms)
            or sum(share.packets for share in one.minibatches) != one.batch
            or min((share.packets for share in one.minibatches), default=0) < 1
            or any(used[sm] > device.executors_per_sm for sm in sms)
        ):
            found.append(GpuViolation(one.slo.id, "executors"))
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
