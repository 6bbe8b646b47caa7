"""Why SLOs are rejected: the latency they would have beside those that are admitted, and what would be enough."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, inf, log10

import numpy as np

from placer.gpu.batches import HEADROOM_SHARES, MANY_LAYOUTS, layouts
from placer.gpu.bus import ends
from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.latency import LatencyParts, latency_of
from placer.gpu.plan import Admission, Admitted, LatencySlo, Rejected
from placer.gpu.sms import kernel_on, next_sm, note_sms, put, write_later
from placer.gpu.tables import (
    BEFORE_ROW,
    CHANGED_ROW,
    CHOSEN_ROW,
    LATER_ROW,
    NF_ROW,
    NOW_ROW,
    OWN_PERIOD_ROW,
    TRANSFER_ROW,
    WITHIN_LIMIT,
    empty_tables,
    gpu_numbers,
    nf_times,
    numbers_of,
)
from profiles.arrays import Floats

SM_CHOICES = 3  # of each layout, the SMs that are tried
LONGER_LATENCIES = (1.0, 2.0, 4.0)  # factors of the latency for which larger batches are tried
RATE_STEP, RATE_STEPS, RATE_HALVINGS = 1.25, 8, 8
"""Rates that are tried: `RATE_STEPS` factors up and down, and the nearest one to more digits."""
ENOUGH_DIGITS = 4  # significant digits of what is enough


@dataclass(frozen=True)
class EnoughChange:
    """A change that is enough to admit an SLO beside the others. `kind`: `latency_us` or `rate_kpps` of the SLO, or
    `workers` of the GPU."""

    kind: str
    to: float


@dataclass(frozen=True)
class RejectionReason:
    """Why an SLO is rejected. `parts`: its least latency beside those that are admitted; None where it has no place.
    `enough`: changes of which each is enough alone."""

    rejected: Rejected
    parts: LatencyParts | None
    enough: tuple[EnoughChange, ...]


def reasons_of(device: GpuDevice, admission: Admission) -> tuple[RejectionReason, ...]:
    if not admission.rejected:
        return ()
    others = _OtherSlos(device, admission)
    return tuple(_reason(device, others, rejected, len(admission.admitted)) for rejected in admission.rejected)


def _reason(device: GpuDevice, others: "_OtherSlos", rejected: Rejected, admitted: int) -> RejectionReason:
    slo = rejected.slo
    parts = others.least_latency(slo)
    full = admitted >= device.workers
    if parts is None:
        return RejectionReason(rejected, None, () if full else tuple(_rates(others, slo)))
    kept = parts.total <= slo.latency_us
    if full:
        changes = [EnoughChange("workers", admitted + 1)] if kept else []
    else:
        changes = [EnoughChange("latency_us", round_digits(parts.total, ceil)), *_rates(others, slo)]
    return RejectionReason(rejected, parts, tuple(changes))


def _rates(others: "_OtherSlos", slo: LatencySlo) -> Iterator[EnoughChange]:
    """The nearest rate at which the SLO is kept, if one was found."""

    def kept(factor: float) -> bool:
        parts = others.least_latency(replace(slo, rate_kpps=slo.rate_kpps * factor))
        return parts is not None and parts.total <= slo.latency_us

    for step in range(RATE_STEPS):
        for base in (1.0 / RATE_STEP, RATE_STEP):
            if kept(far := base ** (step + 1)):
                near = base**step
                for _ in range(RATE_HALVINGS):
                    middle = (near * far) ** 0.5
                    near, far = (near, middle) if kept(middle) else (middle, far)
                to = round_digits(slo.rate_kpps * far, ceil if far > 1.0 else floor)
                yield EnoughChange("rate_kpps", to if kept(to / slo.rate_kpps) else slo.rate_kpps * far)
                return


def round_digits(value: float, direction: Callable[[float], int]) -> float:
    """The value to `ENOUGH_DIGITS` significant digits, by `ceil` or `floor`."""
    unit = 10.0 ** (floor(log10(value)) + 1 - ENOUGH_DIGITS)
    return float(f"{direction(value / unit) * unit:.{ENOUGH_DIGITS}g}")


class _OtherSlos:
    """The SLOs that are admitted, as they run; one more may come between any two of their transfers."""

    def __init__(self, device: GpuDevice, admission: Admission) -> None:
        self.device = device
        self.gpu, self.nfs, self.numbers = (
            gpu_numbers(device),
            nf_times(device),
            numbers_of(device),
        )
        self.names = {admitted.slo.nf for admitted in admission.admitted}
        ordered = sorted(admission.admitted, key=lambda one: one.order)
        self.count = len(ordered)
        self.whole, self.times = empty_tables(self.gpu, self.count)
        latencies = latency_of(device, ordered)
        for number, one in enumerate(ordered):
            self._add(number, one, latencies[one.slo.id].kernel)
        note_sms(self.gpu, self.nfs, self.whole, self.times)

    def _add(self, number: int, one: Admitted, kernel_us: float) -> None:
        device, whole, times, slo = self.device, self.whole, self.times, one.slo
        whole[NF_ROW, number] = self.numbers[slo.nf]
        times[TRANSFER_ROW, number] = device.transfer(slo.nf, one.batch)
        times[OWN_PERIOD_ROW, number] = device.period_us(one.batch, slo.rate_kpps)
        batching_us = device.batching_us(one.batch, slo.rate_kpps)
        times[BEFORE_ROW, number] = slo.latency_us * WITHIN_LIMIT - batching_us - device.nfs[slo.nf].pre_post_us
        times[NOW_ROW, number] = kernel_us
        for part, share in enumerate(one.minibatches):
            put(self.gpu, self.nfs, whole, times, number, part, share.sm, device.executors(share.packets))

    def least_latency(self, slo: LatencySlo) -> LatencyParts | None:
        """The least latency that an SLO has beside these without a violation; None where it has no place."""
        found = (
            self._latency(slo, *layout, sms) for layout in self._layouts(slo) for sms in self._choices(slo, *layout)
        )
        return min((least for least in found if least is not None), key=lambda one: one.total, default=None)

    def _layouts(self, slo: LatencySlo) -> list[tuple[int, int]]:
        """Batches and executors of their largest minibatches."""
        penalty = self.device.penalty(slo.nf, self.names)
        choices = [(HEADROOM_SHARES[0], 1.0)]
        if self.device.arbitration is Arbitration.SPORADIC:
            choices += [(share, factor) for share in HEADROOM_SHARES[1:] for factor in LONGER_LATENCIES]
        gpu, nf, pinned = self.gpu, self.numbers[slo.nf], slo.batch or 0
        found: dict[tuple[int, int], None] = {}
        for share, factor in choices:
            latency_us = slo.latency_us * factor
            rows = layouts(gpu, self.nfs, nf, slo.rate_kpps, latency_us, pinned, penalty, share, MANY_LAYOUTS)
            found |= dict.fromkeys((batch, largest) for batch, largest in rows.tolist())
        return list(found)

    def _choices(self, slo: LatencySlo, batch: int, largest: int) -> Iterator[tuple[int, ...]]:
        """SMs for all minibatches: some of the preferred for a single one, the most preferred for several."""
        gpu, nf = self.gpu, self.numbers[slo.nf]
        period_us = self.device.period_us(batch, slo.rate_kpps)
        base_us = self.device.kernel(slo.nf, largest * self.device.packets_per_executor)
        count = -(-batch // (largest * self.device.packets_per_executor))
        sms: list[int] = []
        while len(sms) < (SM_CHOICES if count == 1 else count):
            after = sms[-1] if sms else -1
            after = next_sm(gpu, self.whole, self.times, nf, base_us, period_us, largest, after)
            if after < 0:
                break
            sms.append(after)
        if count == 1:
            yield from ((sm,) for sm in sms)
        elif len(sms) == count:
            yield tuple(sms)

    def _latency(self, slo: LatencySlo, batch: int, largest: int, sms: Sequence[int]) -> LatencyParts | None:
        """The latency on these SMs, at the first place on the bus at which no other SLO is violated."""
        gpu, nf, whole, times, device = self.gpu, self.numbers[slo.nf], self.whole, self.times, self.device
        batching = device.batching_us(batch, slo.rate_kpps)
        transfer, period = device.transfer(slo.nf, batch), device.period_us(batch, slo.rate_kpps)
        whole[CHOSEN_ROW, : len(sms)] = sms
        kernel = kernel_on(gpu, self.nfs, whole, times, nf, batch, largest, len(sms))
        changed = whole[CHANGED_ROW, : write_later(gpu, self.nfs, whole, times, nf, len(sms))]
        dues = times[BEFORE_ROW, : self.count] - times[NOW_ROW, : self.count]
        dues[changed] = times[BEFORE_ROW, changed] - times[LATER_ROW, changed]
        first, last = 0, self.count
        if self._end(transfer, period, dues, last) is None:
            return None
        while first < last:  # a later place never harms the others more
            middle = (first + last) // 2
            harms = self._end(transfer, period, dues, middle) is None
            first, last = (middle + 1, last) if harms else (first, middle)
        end = self._end(transfer, period, dues, first)
        assert end is not None
        wait = max(end - transfer, 0.0)
        return LatencyParts(batching, device.nfs[slo.nf].pre_post_us, wait, transfer, kernel)

    def _end(self, transfer: float, period: float, dues: Floats, place: int) -> float | None:
        """When the transfer is over at this place, us; None where another one would be too late, or itself never."""
        transfers = np.insert(self.times[TRANSFER_ROW, : self.count], place, transfer)
        periods = np.insert(self.times[OWN_PERIOD_ROW, : self.count], place, period)
        # so near to overload, waits have no useful bound
        if self.gpu.sporadic and sum((transfers / periods).tolist()) * WITHIN_LIMIT > 0.999:
            return None
        over = ends(self.gpu.sporadic, transfers, periods, np.insert(dues, place, inf)).tolist()
        return None if inf in over else over[place]
