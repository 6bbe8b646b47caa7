"""Grus without slicing: as Grus, but an SM serves one SLO (paper 003, section VII-C, Grus-NS)."""

from collections.abc import Sequence

from placer.gpu.device import GpuDevice
from placer.gpu.greedy import admit_greedily, time_admission
from placer.gpu.plan import Admission, LatencySlo
from placer.gpu.registry import MethodSetting, register


@register("grus-ns")
def grus_ns(device: GpuDevice, slos: Sequence[LatencySlo], setting: MethodSetting) -> Admission:
    """What the repaired algorithm admits when SMs are not shared."""
    return time_admission(device, slos, lambda: admit_greedily(device, slos, exclusive=True))
