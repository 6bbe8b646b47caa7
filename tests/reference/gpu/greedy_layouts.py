"""Batches of an SLO and their minibatches, readable: the reference of `placer.gpu.batches`, which is compiled."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor

from placer.gpu.device import GpuDevice
from placer.gpu.plan import LatencySlo

NEAR = 1e-9  # what counts as equal, relative
WITHIN = 1.0 + NEAR / 2
"""Times may exceed their limits by this factor: half of what counts as equal, so that rounding stays within it."""
ROUNDED = 1.0 - 1e-12  # a number of packets this little above a whole number is that whole number


@dataclass(frozen=True)
class BatchLayout:
    """A batch, and its parts."""

    batch: int
    minibatches: tuple[int, ...]


def layouts(device: GpuDevice, slo: LatencySlo, allowance_us: float, share: float = 0.0) -> Iterator[BatchLayout]:
    """Layouts of an SLO, on few SMs first.

    A kernel on one SM takes longest and shares with fewest; on more SMs it is faster. `allowance_us`: sharing penalty
    for which the period leaves time. Layouts without it follow. `share`: share of the headroom that is spent on a
    larger batch, which takes less of the bus.
    """
    allowances = (allowance_us, 0.0) if allowance_us and slo.batch is None else (0.0,)
    found: dict[BatchLayout, None] = {}
    executors = device.executors_per_sm
    while executors:
        widest = 0
        for allowance in allowances:
            batch = slo.batch or smallest_batch(device, slo, executors, allowance)
            if batch is None or (slo.batch is not None and not keeps_up(device, slo, batch, executors)):
                continue
            if share and slo.batch is None:
                batch = larger_batch(device, slo, batch, executors, share)
            layout = split(device, batch, executors)
            widest = max(widest, device.executors(layout.minibatches[0]))
            if layout not in found:
                found[layout] = None
                yield layout
        executors = min(executors, widest or executors) - 1


def smallest_batch(device: GpuDevice, slo: LatencySlo, executors: int, allowance_us: float) -> int | None:
    """The smallest batch whose kernel, on at most so many executors of each SM, CPU and transfer fit the period.

    None where there is none: the bus or all SMs together are too slow for the rate.
    """
    nf = device.nfs[slo.nf]
    least = _for_bus(device, slo)
    if least is None:
        return None
    least = max(least, _packets(nf.pre_post_us, slo.rate_kpps))
    per_executor, fixed = nf.kernel_us
    capacity = device.packets_per_executor
    for used in range(1, executors + 1):
        kernel = per_executor * used + fixed + allowance_us
        batch = max(least, _packets(kernel, slo.rate_kpps), (used - 1) * capacity + 1)
        most = used * capacity * (device.sms if used == executors else 1)
        if batch <= most:
            return batch
    return None


def keeps_up(device: GpuDevice, slo: LatencySlo, batch: int, executors: int) -> bool:
    """Whether kernel and CPU fit the period of this batch, on at most so many executors of each SM."""
    per_executor, fixed = device.nfs[slo.nf].kernel_us
    used = min(executors, device.executors(batch))
    longest = max(per_executor * used + fixed, device.nfs[slo.nf].pre_post_us)
    fits = batch <= device.sms * executors * device.packets_per_executor
    return fits and longest <= device.period_us(batch, slo.rate_kpps) * WITHIN


def larger_batch(device: GpuDevice, slo: LatencySlo, batch: int, executors: int, share: float) -> int:
    """A batch that spends a share of the headroom: of the latency that is left when the SLO has the GPU alone."""
    per_executor, fixed = device.nfs[slo.nf].kernel_us
    per_packet = 1000.0 / slo.rate_kpps + device.transfer_us[device.nfs[slo.nf].transfer_class][0]
    per_packet += per_executor / device.packets_per_executor
    used = min(executors, device.executors(batch))
    latency = device.batching_us(batch, slo.rate_kpps) + device.nfs[slo.nf].pre_post_us
    latency += device.transfer(slo.nf, batch) + per_executor * used + fixed
    headroom = max(slo.latency_us - latency - per_executor, 0.0)
    most = device.sms * executors * device.packets_per_executor
    return min(batch + floor(share * headroom / per_packet), most)


def split(device: GpuDevice, batch: int, executors: int) -> BatchLayout:
    """A batch in minibatches of at most so many executors, as few as possible."""
    largest = min(executors, device.executors(batch)) * device.packets_per_executor
    whole, rest = divmod(batch, largest)
    return BatchLayout(batch, (largest,) * whole + ((rest,) if rest else ()))


def _packets(time_us: float, rate_kpps: float) -> int:
    """Packets that arrive in a time, rounded up."""
    return max(1, ceil(time_us * (rate_kpps / 1000.0) * ROUNDED))


def _for_bus(device: GpuDevice, slo: LatencySlo) -> int | None:
    """The smallest batch whose transfer fits the period; None where the bus is too slow for the rate."""
    per_packet, fixed = device.transfer_us[device.nfs[slo.nf].transfer_class]
    left = 1000.0 / slo.rate_kpps - per_packet
    if left <= 0.0:
        return 1 if left == 0.0 and fixed == 0.0 else None
    return max(1, ceil(fixed / left * ROUNDED))
