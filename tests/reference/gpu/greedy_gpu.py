"""An SLO on a GPU, readable: the SMs of the least penalty, and whether the bus is in time for all.

The reference of `placer.gpu.greedy`, which is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf

import numpy as np

from placer.gpu.batches import MEDIUM_SHARE, layouts
from placer.gpu.bus import longest_wait
from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.greedy import CAUSE_NAMES, list_admitted, place
from placer.gpu.plan import Admitted, LatencySlo, SmShare
from placer.gpu.tables import empty_tables, gpu_numbers, nf_times, numbers_of
from tests.reference.gpu.greedy_layouts import NEAR, WITHIN, BatchLayout

TRIED_SMS = 4  # of each layout; beside the tenants of an SM that is less preferred, kernels take longer


class GreedyGpu:
    """A GPU, its tenants, and their order on the bus.

    `exclusive`: whether an SM serves one SLO only. `in_time`: what decides whether transfers are in time, sorted by
    when they are due.
    """

    def __init__(self, device: GpuDevice, *, exclusive: bool, in_time: InTime) -> None:
        self.device = device
        self.in_time = in_time
        self.table = SmTable(device, exclusive=exclusive)
        self.tenants: list[GpuTenant] = []

    def place(self, slo: LatencySlo, layouts: Iterable[BatchLayout]) -> str | None:
        """Admit an SLO with the first layout that keeps all SLOs, its own too; else the cause why none does."""
        if len(self.tenants) >= self.device.workers:
            return "workers"
        causes = []
        for layout in layouts:
            if (cause := self._place(GpuJob.of(self.device, slo, layout))) is None:
                return None
            causes.append(cause)
            if cause == "pcie" and self.device.arbitration is Arbitration.SPORADIC:
                break  # other layouts take as much of the bus
        return causes[0] if causes else without_layout(self.device, slo)

    def admitted(self) -> tuple[Admitted, ...]:
        """The tenants, in the order of their transfers."""
        by_number = {one.number: one for one in self.tenants}
        ordered = in_order([self._of(one) for one in self.tenants])
        return tuple(by_number[one.number].admitted(order) for order, one in enumerate(ordered))

    def _place(self, job: GpuJob) -> str | None:
        number = len(self.tenants)
        alone = self._transfer(number, job, job.base_us[0])
        if not alone.transfer_us <= alone.due_us:
            # the cause of an SLO that even an empty GPU does not keep: the stage that takes longest
            batching = self.device.batching_us(job.layout.batch, job.slo.rate_kpps)
            kernel = job.base_us[0] + self.device.nfs[job.slo.nf].pre_post_us
            times = {"batching": batching, "pcie": job.transfer_us, "kernel": kernel}
            return max(times, key=lambda cause: times[cause])
        if not self._bus_takes(alone, ()):
            return "pcie"
        largest = self.device.executors(job.layout.minibatches[0])
        for sms in self._choices(job, largest):
            tenant = self.table.joined(number, job, sms)
            if self._bus_takes(self._of(tenant), self._delayed(job, sms)):
                self.table.add(tenant)
                self.tenants.append(tenant)
                return None
        several = len(job.layout.minibatches) > 1
        return "executors" if several or not self.table.has_room(largest) else "kernel"

    def _choices(self, job: GpuJob, largest: int) -> Iterator[tuple[int, ...]]:
        """SMs for all minibatches: some of the preferred for a single minibatch, the most preferred for several."""
        preferred = self.table.preferred(job, largest)
        count = len(job.layout.minibatches)
        if count == 1:
            yield from ((sm,) for sm in islice(preferred, TRIED_SMS))
        elif len(sms := tuple(islice(preferred, count))) == count:
            yield sms

    def _delayed(self, job: GpuJob, sms: tuple[int, ...]) -> list[BusTransfer]:
        """The transfers of the tenants that the job would share SMs with."""
        return [
            self._transfer(one.number, one.job, self.table.kernel_beside(one, job, sms))
            for one in self.table.beside(sms)
        ]

    def _bus_takes(self, own: BusTransfer, changed: Iterable[BusTransfer]) -> bool:
        """Whether all are in time with one more transfer, and some of them due earlier."""
        by_number = {one.number: self._of(one) for one in self.tenants}
        by_number |= {one.number: one for one in (*changed, own)}
        return self.in_time(in_order(list(by_number.values())), self.device.arbitration)

    def _of(self, tenant: GpuTenant) -> BusTransfer:
        return self._transfer(tenant.number, tenant.job, tenant.kernel_us)

    def _transfer(self, number: int, job: GpuJob, kernel_us: float) -> BusTransfer:
        """The transfer of a job whose kernel takes so long."""
        due = job.before_kernel_us - kernel_us
        return BusTransfer(due, number, job.transfer_us, job.period_us, least_kernel(self.device, job))


def least_kernel(device: GpuDevice, job: GpuJob) -> float:
    """The kernel of a batch that has all SMs to itself, us."""
    per_executor, fixed = device.nfs[job.slo.nf].kernel_us
    return per_executor * -(-device.executors(job.layout.batch) // device.sms) + fixed


def without_layout(device: GpuDevice, slo: LatencySlo) -> str:
    """The cause of an SLO whose rate the GPU cannot carry with any batch, or not with the one that is fixed."""
    per_packet, fixed = device.transfer_us[device.nfs[slo.nf].transfer_class]
    if slo.batch is None:
        too_slow = per_packet * slo.rate_kpps >= 1000.0 and per_packet + fixed > 0.0
        return "pcie" if too_slow else "executors"
    if slo.batch > device.sms * device.executors_per_sm * device.packets_per_executor:
        return "executors"
    if device.nfs[slo.nf].pre_post_us > device.period_us(slo.batch, slo.rate_kpps) * WITHIN:
        return "workers"
    return "kernel"


@dataclass(frozen=True)
class GpuJob:
    """An SLO with a batch, and what that fixes."""

    slo: LatencySlo
    layout: BatchLayout
    before_kernel_us: float  # the latency that is left for bus and kernel: without batching, pre- and post-processing
    base_us: tuple[float, ...]  # times of the minibatches on SMs of their own
    transfer_us: float
    period_us: float

    @classmethod
    def of(cls, device: GpuDevice, slo: LatencySlo, layout: BatchLayout) -> GpuJob:
        batching = device.batching_us(layout.batch, slo.rate_kpps)
        left = slo.latency_us * WITHIN - batching - device.nfs[slo.nf].pre_post_us
        base = tuple(device.kernel(slo.nf, packets) for packets in layout.minibatches)
        transfer = device.transfer(slo.nf, layout.batch)
        return cls(slo, layout, left, base, transfer, device.period_us(layout.batch, slo.rate_kpps))


@dataclass
class GpuTenant:
    """A job on its SMs."""

    number: int
    job: GpuJob
    sms: tuple[int, ...]
    kernel_us: float  # of the slowest minibatch, with its sharing penalty

    def admitted(self, order: int) -> Admitted:
        """The same, as part of an answer."""
        shares = tuple(SmShare(sm, packets) for sm, packets in zip(self.sms, self.job.layout.minibatches, strict=True))
        return Admitted(self.job.slo, self.job.layout.batch, order, shares)


class SmTable:
    """The SMs of a GPU."""

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
        return list({one.number: one for sm in sms for one in self.on[sm]}.values())


@dataclass(frozen=True)
class BusTransfer:
    """A transfer that must be over in time."""

    due_us: float  # counted from the end of the batch
    number: int
    transfer_us: float
    period_us: float
    kernel_us: float  # of the kernel that follows, on SMs that nobody shares


InTime = Callable[[Sequence[BusTransfer], Arbitration], bool]
"""Whether each of these transfers, in this order, is over in time."""


def in_order(transfers: Sequence[BusTransfer]) -> list[BusTransfer]:
    """The transfers, the one due first before all others.

    If any order keeps all times of `one-shot`, this one does (Jackson's rule); of `sporadic` it often does.
    """
    return sorted(transfers, key=lambda one: (one.due_us, one.number))


def all_in_time(ordered: Sequence[BusTransfer], arbitration: Arbitration) -> bool:
    """Whether each transfer is over in time, in this order."""
    times, periods = [one.transfer_us for one in ordered], [one.period_us for one in ordered]
    limits = [one.due_us for one in ordered]
    return all(end < inf for end in ends(times, periods, limits, arbitration))


def in_time_unordered(transfers: Sequence[BusTransfer], arbitration: Arbitration) -> bool:
    """Whether each transfer is over in time behind all others, as it may be when nothing orders them."""
    for one in transfers:
        ordered = [*(other for other in transfers if other is not one), one]
        times, periods = [each.transfer_us for each in ordered], [each.period_us for each in ordered]
        limits = [one.due_us] * len(ordered)  # the others end before it
        if ends(times, periods, limits, arbitration)[-1] == inf:
            return False
    return True


def ends(
    times_us: Sequence[float], periods_us: Sequence[float], limits_us: Sequence[float], arbitration: Arbitration
) -> list[float]:
    """When each of these, served in this order, is over, us; infinite where that is above its limit.

    `times_us`, `periods_us`: of the service, and between two batches.
    """
    times, periods = np.array(times_us), np.array(periods_us)
    over, used, found = 0.0, 0.0, []
    for at, limit in enumerate(limits_us):
        over += times_us[at]
        used += times_us[at] / periods_us[at]
        if arbitration is Arbitration.ONE_SHOT:
            found.append(over if over <= limit else inf)
            continue
        blocking = times[at + 1 :].max(initial=0.0)
        wait = longest_wait(times[at], periods[at], times, periods, at, blocking, limit - times[at])
        found.append(float(wait + times[at]) if used < 1.0 - NEAR else inf)
    return found


def in_time_with_kernels(ordered: Sequence[BusTransfer], arbitration: Arbitration) -> bool:
    """Whether each transfer and then each kernel is over in time, both in this order, with a GPU that keeps up."""
    if not sum(one.kernel_us / one.period_us for one in ordered) < 1.0 - NEAR:
        return False
    periods = [one.period_us for one in ordered]
    limits = [one.due_us + one.kernel_us for one in ordered]
    transfers = ends([one.transfer_us for one in ordered], periods, limits, arbitration)
    kernels = ends([one.kernel_us for one in ordered], periods, limits, arbitration)
    return all(
        transfer <= one.due_us and transfer + kernel <= limit * WITHIN
        for one, transfer, kernel, limit in zip(ordered, transfers, kernels, limits, strict=True)
    )


class FastGpu:
    """A GPU whose SLOs are admitted as they arrive; those before keep batch and SMs."""

    def __init__(self, device: GpuDevice, most: int) -> None:
        self.device = device
        self._gpu, self._nfs, self._numbers = gpu_numbers(device), nf_times(device), numbers_of(device)
        self._whole, self._times = empty_tables(self._gpu, most)
        self._most = most
        self._slos: list[LatencySlo] = []
        self._share = 0.0 if device.arbitration is Arbitration.ONE_SHOT else MEDIUM_SHARE
        self._allowances = {nf: device.penalty(nf, device.nfs) for nf in device.nfs}

    def arrive(self, slo: LatencySlo) -> str | None:
        """Admit an SLO if all keep their latency with it, and return None; else the cause.

        Raises ValueError: more arrive than were announced.
        """
        if len(self._slos) >= self._most:
            raise ValueError(f"The GPU was made for {self._most} SLOs.")
        nf, allowance = self._numbers[slo.nf], self._allowances[slo.nf]
        request = (nf, slo.rate_kpps, slo.latency_us, slo.batch or 0, allowance, self._share)
        first = layouts(self._gpu, self._nfs, *request, 1)
        batch, largest = first[0] if len(first) else (0, 0)
        cause = place(self._gpu, self._nfs, self._whole, self._times, len(self._slos), *request, batch, largest)
        self._slos.append(slo)
        return CAUSE_NAMES[cause] or None

    def admitted(self) -> tuple[Admitted, ...]:
        """The SLOs that are admitted, in the order of their transfers."""
        return tuple(list_admitted(self.device, self._slos, self._whole))
