"""Grus: shortest headroom first, on the SMs of the least penalty (paper 003, Algorithm 1), repaired."""

from collections.abc import Sequence

from placer.gpu.device import GpuDevice
from placer.gpu.greedy import admit_greedily, time_admission
from placer.gpu.plan import Admission, LatencySlo
from placer.gpu.registry import MethodSetting, register


@register("grus")
def grus(device: GpuDevice, slos: Sequence[LatencySlo], setting: MethodSetting) -> Admission:
    """What the repaired algorithm admits."""
    return time_admission(device, slos, lambda: admit_greedily(device, slos))
