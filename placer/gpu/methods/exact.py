"""Exact: as many SLOs as any plan admits, with a bound that is proven where time allows."""

from collections.abc import Sequence

from placer.gpu.device import GpuDevice
from placer.gpu.exact import admit_exactly
from placer.gpu.plan import Admission, LatencySlo
from placer.gpu.registry import MethodSetting, register


@register("exact")
def exact(device: GpuDevice, slos: Sequence[LatencySlo], setting: MethodSetting) -> Admission:
    """The best that is found within the time limit."""
    return admit_exactly(device, slos, setting.time_limit_s)
