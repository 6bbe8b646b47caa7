"""A GPU that takes one SLO after another, or says why it cannot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.greedy.bus import BusTransfer, InTime, all_in_time, in_order
from placer.gpu.greedy.layout import WITHIN, BatchLayout
from placer.gpu.greedy.tenants import GpuJob, GpuTenant, SmTable
from placer.gpu.plan import Admitted
from placer.gpu.slo import LatencySlo

TRIED_SMS = 4
"""Of each layout; beside the tenants of an SM that is less preferred, kernels take longer."""


class GreedyGpu:
    """A GPU, its tenants, and their order on the bus.

    Parameters
    ----------
    exclusive
        Whether an SM serves one SLO only.
    in_time
        What decides whether transfers are in time, sorted by when they are due.
    """

    def __init__(self, device: GpuDevice, *, exclusive: bool = False, in_time: InTime = all_in_time) -> None:
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
            return longest_stage(self.device, job)
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


def longest_stage(device: GpuDevice, job: GpuJob) -> str:
    """The cause of an SLO that even an empty GPU does not keep: the stage that takes longest."""
    batching = device.batching_us(job.layout.batch, job.slo.rate_kpps)
    kernel = job.base_us[0] + device.nfs[job.slo.nf].pre_post_us
    times = {"batching": batching, "pcie": job.transfer_us, "kernel": kernel}
    return max(times, key=lambda cause: times[cause])


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
