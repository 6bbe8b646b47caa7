"""Baymax: one kernel at a time on the whole GPU, shortest headroom first (paper 003, section VII-C, strategy 1).

Each kernel has all SMs to itself, and waits for those of SLOs that are due earlier, as transfers do. The SLOs in the
answer also keep the model in which kernels run at the same time: their kernels have SMs and executors there.

References
----------
Q. Chen, H. Yang, J. Mars, L. Tang, "Baymax: QoS awareness and increased utilization for non-preemptive accelerators in
warehouse scale computers", ASPLOS 2016.
"""

from __future__ import annotations

from collections.abc import Sequence

from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.greedy.admit import LARGER_BATCHES, LARGEST_BATCHES, SMALLEST_BATCHES, Placed, answered, best_of_shares
from placer.gpu.greedy.bus import BusTransfer, ends
from placer.gpu.greedy.gpu import GreedyGpu
from placer.gpu.greedy.layout import WITHIN, BatchLayout
from placer.gpu.plan import Admission
from placer.gpu.registry import MethodSetting, register
from placer.gpu.rounding import NEAR
from placer.gpu.slo import LatencySlo


@register("baymax")
def baymax(device: GpuDevice, slos: Sequence[LatencySlo], setting: MethodSetting) -> Admission:
    """What is admitted when kernels run one after another."""
    return answered(device, slos, lambda: _admit(device, slos))


def _admit(device: GpuDevice, slos: Sequence[LatencySlo]) -> Placed:
    shares = (*SMALLEST_BATCHES, *LARGER_BATCHES, *LARGEST_BATCHES)
    return best_of_shares(device, slos, shares, gpu_use, lambda: GreedyGpu(device, in_time=in_time_with_kernels))


def gpu_use(device: GpuDevice, slo: LatencySlo, layout: BatchLayout) -> float:
    """The share of the GPU's time that its kernels take."""
    kernel = max(device.kernel(slo.nf, packets) for packets in layout.minibatches)
    return kernel / device.period_us(layout.batch, slo.rate_kpps)


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
