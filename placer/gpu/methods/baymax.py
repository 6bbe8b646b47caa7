"""Baymax: one kernel at a time on the whole GPU, shortest headroom first (paper 003, section VII-C, strategy 1).

Each kernel has all SMs to itself, and waits for those of SLOs that are due earlier, as transfers do. The SLOs in the
answer also keep the model in which kernels run at the same time: their kernels have SMs and executors there.

References
----------
Q. Chen, H. Yang, J. Mars, L. Tang, "Baymax: QoS awareness and increased utilization for non-preemptive accelerators in
warehouse scale computers", ASPLOS 2016."""

from collections.abc import Sequence

from placer.gpu.device import GpuDevice
from placer.gpu.greedy import admit_greedily, time_admission
from placer.gpu.plan import Admission, LatencySlo
from placer.gpu.registry import MethodSetting, register
from placer.gpu.tables import SERIAL


@register("baymax")
def baymax(device: GpuDevice, slos: Sequence[LatencySlo], setting: MethodSetting) -> Admission:
    """What is admitted when kernels run one after another."""
    return time_admission(device, slos, lambda: admit_greedily(device, slos, rule=SERIAL))
