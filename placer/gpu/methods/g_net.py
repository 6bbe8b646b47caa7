"""G-NET: whole SMs for each NF, and transfers in no order (paper 003, section VII-C, strategy 2).

Kernels never share an SM and never wait. Since nothing orders the transfers, each is charged those of all others: the
SLO with the least headroom limits how many there are, so those with much of it come first.

References
----------
K. Zhang et al., "G-NET: Effective GPU sharing in NFV systems", NSDI 2018."""

from collections.abc import Sequence

from placer.gpu.device import GpuDevice
from placer.gpu.greedy import admit_greedily, time_admission
from placer.gpu.plan import Admission, LatencySlo
from placer.gpu.registry import MethodSetting, register
from placer.gpu.tables import UNORDERED


@register("g-net")
def g_net(device: GpuDevice, slos: Sequence[LatencySlo], setting: MethodSetting) -> Admission:
    """What is admitted on whole SMs without an order."""
    return time_admission(device, slos, lambda: admit_greedily(device, slos, exclusive=True, rule=UNORDERED))
