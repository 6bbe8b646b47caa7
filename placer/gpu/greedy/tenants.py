"""SLOs on a GPU: who shares which SM, how long their kernels take, and until when each must be over the bus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from placer.gpu.device import GpuDevice
from placer.gpu.greedy.layout import WITHIN, BatchLayout
from placer.gpu.plan import Admitted, SmShare
from placer.gpu.slo import LatencySlo


@dataclass(frozen=True)
class GpuJob:
    """An SLO with a batch, and what that fixes.

    Parameters
    ----------
    before_kernel_us
        The latency that is left for bus and kernel: without batching, pre- and post-processing.
    base_us
        Times of the minibatches on SMs of their own.
    """

    slo: LatencySlo
    layout: BatchLayout
    before_kernel_us: float
    base_us: tuple[float, ...]
    transfer_us: float
    period_us: float

    @classmethod
    def of(cls, device: GpuDevice, slo: LatencySlo, layout: BatchLayout) -> GpuJob:
        """The job of an SLO with this layout."""
        batching = device.batching_us(layout.batch, slo.rate_kpps)
        left = slo.latency_us * WITHIN - batching - device.nfs[slo.nf].pre_post_us
        base = tuple(device.kernel(slo.nf, packets) for packets in layout.minibatches)
        transfer = device.transfer(slo.nf, layout.batch)
        return cls(slo, layout, left, base, transfer, device.period_us(layout.batch, slo.rate_kpps))


@dataclass
class GpuTenant:
    """A job on its SMs.

    Parameters
    ----------
    number
        In the order of arrival.
    kernel_us
        Of the slowest minibatch, with its sharing penalty.
    """

    number: int
    job: GpuJob
    sms: tuple[int, ...]
    kernel_us: float

    def admitted(self, order: int) -> Admitted:
        """The same, as part of an answer."""
        shares = tuple(SmShare(sm, packets) for sm, packets in zip(self.sms, self.job.layout.minibatches, strict=True))
        return Admitted(self.job.slo, self.job.layout.batch, order, shares)


class SmTable:
    """The SMs of a GPU.

    Parameters
    ----------
    exclusive
        Whether an SM serves one SLO only.
    """

    def __init__(self, device: GpuDevice, *, exclusive: bool = False) -> None:
        self.device = device
        self.exclusive = exclusive
        self.free = [device.executors_per_sm] * device.sms
        self.on: list[list[GpuTenant]] = [[] for _ in range(device.sms)]

    def beta(self, nf: str, other: str) -> float:
        """How much longer the kernel of an NF takes beside another, us."""
        return self.device.penalty(nf, (other,))

    def preferred(self, job: GpuJob, executors: int) -> Iterator[int]:
        """SMs that a minibatch can join, the least sharing penalty first (penalty avoidance, section V-B).

        On equal penalties that which delays its tenants least, then the fullest, then the first. On none of them a
        kernel exceeds its period.
        """
        found = []
        for sm in range(self.device.sms):
            tenants = self.on[sm]
            if self.free[sm] < executors or (self.exclusive and tenants):
                continue
            own = max((self.beta(job.slo.nf, one.job.slo.nf) for one in tenants), default=0.0)
            delays = [self.kernel_beside(one, job, (sm,)) - one.kernel_us for one in tenants]
            fits = all(self.kernel_beside(one, job, (sm,)) <= one.job.period_us * WITHIN for one in tenants)
            if fits and job.base_us[0] + own <= job.period_us * WITHIN:
                found.append((own, max(delays, default=0.0), self.free[sm], sm))
        return (sm for *_, sm in sorted(found))

    def has_room(self, executors: int) -> bool:
        """Whether any SM has so many free executors."""
        return any(self.free[sm] >= executors and not (self.exclusive and self.on[sm]) for sm in range(self.device.sms))

    def kernel_beside(self, tenant: GpuTenant, job: GpuJob, sms: Sequence[int]) -> float:
        """The kernel of a tenant if a job joins it on these SMs."""
        beta = self.beta(tenant.job.slo.nf, job.slo.nf)
        joined = [tenant.job.base_us[at] + beta for at, sm in enumerate(tenant.sms) if sm in sms]
        return max([tenant.kernel_us, *joined])

    def joined(self, number: int, job: GpuJob, sms: Sequence[int]) -> GpuTenant:
        """A job as it would run on these SMs."""
        kernel = 0.0
        for base, sm in zip(job.base_us, sms, strict=True):
            own = max((self.beta(job.slo.nf, one.job.slo.nf) for one in self.on[sm]), default=0.0)
            kernel = max(kernel, base + own)
        return GpuTenant(number, job, tuple(sms), kernel)

    def add(self, tenant: GpuTenant) -> None:
        """Let a job run on its SMs; kernels beside it get slower."""
        for one in self.beside(tenant.sms):
            one.kernel_us = self.kernel_beside(one, tenant.job, tenant.sms)
        for sm, packets in zip(tenant.sms, tenant.job.layout.minibatches, strict=True):
            self.free[sm] -= self.device.executors(packets)
            self.on[sm].append(tenant)

    def beside(self, sms: Sequence[int]) -> list[GpuTenant]:
        """The tenants of these SMs, each once."""
        found = {one.number: one for sm in sms for one in self.on[sm]}
        return list(found.values())
