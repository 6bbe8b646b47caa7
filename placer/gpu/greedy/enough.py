"""Why SLOs are rejected: the latency they would have beside those that are admitted, and what would be enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil, floor, inf, log10

from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.greedy.admit import LARGER_BATCHES, LARGEST_BATCHES
from placer.gpu.greedy.bus import ends
from placer.gpu.greedy.layout import WITHIN, BatchLayout, layouts
from placer.gpu.greedy.tenants import GpuJob, GpuTenant, SmTable
from placer.gpu.plan import Admission, Rejected
from placer.gpu.slo import LatencySlo
from placer.gpu.waiting import LatencyParts, latency_of

SM_CHOICES = 3
"""Of each layout, the SMs that are tried."""
LONGER = (1.0, 2.0, 4.0)
"""Factors of the latency for which larger batches are tried."""
STEP, STEPS, HALVINGS = 1.25, 8, 8
"""Rates that are tried: `STEPS` factors up and down, and the nearest one to more digits."""
DIGITS = 4
"""Significant digits of what is enough."""


@dataclass(frozen=True)
class EnoughChange:
    """A change that is enough to admit an SLO beside the others.

    Parameters
    ----------
    kind
        `latency_us` or `rate_kpps` of the SLO, or `workers` of the GPU.
    """

    kind: str
    to: float


@dataclass(frozen=True)
class RejectionReason:
    """Why an SLO is rejected.

    Parameters
    ----------
    parts
        Its least latency beside those that are admitted; None where it has no place.
    enough
        Changes of which each is enough alone.
    """

    rejected: Rejected
    parts: LatencyParts | None
    enough: tuple[EnoughChange, ...]


def reasons_of(device: GpuDevice, admission: Admission) -> tuple[RejectionReason, ...]:
    """The reason of each rejection."""
    if not admission.rejected:
        return ()
    others = _OtherSlos(device, admission)
    return tuple(_reason(device, others, one, len(admission.admitted)) for one in admission.rejected)


def _reason(device: GpuDevice, others: _OtherSlos, rejected: Rejected, admitted: int) -> RejectionReason:
    slo = rejected.slo
    parts = others.least_latency(slo)
    full = admitted >= device.workers
    if parts is None:
        return RejectionReason(rejected, None, () if full else tuple(_rates(others, slo)))
    kept = parts.total <= slo.latency_us
    if full:
        changes = [EnoughChange("workers", admitted + 1)] if kept else []
    else:
        changes = [EnoughChange("latency_us", rounded(parts.total, ceil)), *_rates(others, slo)]
    return RejectionReason(rejected, parts, tuple(changes))


def _rates(others: _OtherSlos, slo: LatencySlo) -> Iterator[EnoughChange]:
    """The nearest rate at which the SLO is kept, if one was found."""

    def kept(factor: float) -> bool:
        parts = others.least_latency(replace(slo, rate_kpps=slo.rate_kpps * factor))
        return parts is not None and parts.total <= slo.latency_us

    for step in range(STEPS):
        for base in (1.0 / STEP, STEP):
            if kept(far := base ** (step + 1)):
                near = base**step
                for _ in range(HALVINGS):
                    middle = (near * far) ** 0.5
                    near, far = (near, middle) if kept(middle) else (middle, far)
                to = rounded(slo.rate_kpps * far, ceil if far > 1.0 else floor)
                yield EnoughChange("rate_kpps", to if kept(to / slo.rate_kpps) else slo.rate_kpps * far)
                return


def rounded(value: float, direction: Callable[[float], int]) -> float:
    """The value to `DIGITS` significant digits, by `ceil` or `floor`."""
    unit = 10.0 ** (floor(log10(value)) + 1 - DIGITS)
    return float(f"{direction(value / unit) * unit:.{DIGITS}g}")


class _OtherSlos:
    """The SLOs that are admitted, as they run; one more may come between any two of their transfers."""

    def __init__(self, device: GpuDevice, admission: Admission) -> None:
        self.device = device
        self.table = SmTable(device)
        self.tenants: list[GpuTenant] = []
        latencies = latency_of(device, admission.admitted)
        for number, one in enumerate(sorted(admission.admitted, key=lambda one: one.order)):
            layout = BatchLayout(one.batch, tuple(share.packets for share in one.minibatches))
            job = GpuJob.of(device, one.slo, layout)
            tenant = GpuTenant(number, job, tuple(share.sm for share in one.minibatches), 0.0)
            self.table.add(tenant)
            self.tenants.append(tenant)
        for tenant in self.tenants:
            tenant.kernel_us = latencies[tenant.job.slo.id].kernel

    def least_latency(self, slo: LatencySlo) -> LatencyParts | None:
        """The least latency that an SLO has beside these without a violation; None where it has no place."""
        found = (self._latency(slo, job, sms) for job in self._jobs(slo) for sms in self._choices(job))
        return min((one for one in found if one is not None), key=lambda one: one.total, default=None)

    def _jobs(self, slo: LatencySlo) -> list[GpuJob]:
        once = self.device.arbitration is Arbitration.ONE_SHOT
        penalty = self.device.penalty(slo.nf, {one.job.slo.nf for one in self.tenants})
        found = dict.fromkeys(layouts(self.device, slo, penalty))
        for share in () if once else (*LARGER_BATCHES, *LARGEST_BATCHES):
            for factor in LONGER:
                longer = replace(slo, latency_us=slo.latency_us * factor)
                found |= dict.fromkeys(layouts(self.device, longer, penalty, share))
        return [GpuJob.of(self.device, slo, layout) for layout in found]

    def _choices(self, job: GpuJob) -> Iterator[tuple[int, ...]]:
        count = len(job.layout.minibatches)
        preferred = self.table.preferred(job, self.device.executors(job.layout.minibatches[0]))
        if count == 1:
            yield from ((sm,) for sm in islice(preferred, SM_CHOICES))
        elif len(sms := tuple(islice(preferred, count))) == count:
            yield sms

    def _latency(self, slo: LatencySlo, job: GpuJob, sms: Sequence[int]) -> LatencyParts | None:
        """The latency on these SMs, at the first place on the bus at which no other SLO is violated."""
        kernel = self.table.joined(len(self.tenants), job, sms).kernel_us
        dues = [one.job.before_kernel_us - self.table.kernel_beside(one, job, sms) for one in self.tenants]
        first, last = 0, len(self.tenants)
        if self._end(job, dues, last) is None:
            return None
        while first < last:  # a later place never harms the others more
            middle = (first + last) // 2
            first, last = (middle + 1, last) if self._end(job, dues, middle) is None else (first, middle)
        end = self._end(job, dues, first)
        assert end is not None
        batching = self.device.batching_us(job.layout.batch, slo.rate_kpps)
        pre_post, wait = self.device.nfs[slo.nf].pre_post_us, max(end - job.transfer_us, 0.0)
        return LatencyParts(batching, pre_post, wait, job.transfer_us, kernel)

    def _end(self, job: GpuJob, dues: Sequence[float], place: int) -> float | None:
        """When the transfer is over at this place, us; None where another one would be too late, or itself never."""
        jobs = [one.job for one in self.tenants]
        jobs.insert(place, job)
        limits = [*dues[:place], inf, *dues[place:]]
        times, periods = [one.transfer_us for one in jobs], [one.period_us for one in jobs]
        if self.device.arbitration is Arbitration.SPORADIC and self._overloaded(times, periods):
            return None
        over = ends(times, periods, limits, self.device.arbitration)
        return None if inf in over else over[place]

    @staticmethod
    def _overloaded(times: Sequence[float], periods: Sequence[float]) -> bool:
        """Whether the bus is so near to overload that waits have no useful bound."""
        return sum(time / period for time, period in zip(times, periods, strict=True)) * WITHIN > 0.999
