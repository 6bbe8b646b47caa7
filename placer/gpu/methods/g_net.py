"""G-NET: whole SMs for each NF, and transfers in no order (paper 003, section VII-C, strategy 2).

Kernels never share an SM and never wait. Since nothing orders the transfers, each is charged those of all others: the
SLO with the least headroom limits how many there are, so those with much of it come first.

References
----------
K. Zhang et al., "G-NET: Effective GPU sharing in NFV systems", NSDI 2018.
"""

from __future__ import annotations

from collections.abc import Sequence

from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.greedy.admit import Placed, answered, best_of_shares, bus_use, headroom_us, shares_of
from placer.gpu.greedy.bus import in_time_unordered
from placer.gpu.greedy.gpu import GreedyGpu
from placer.gpu.greedy.layout import BatchLayout
from placer.gpu.plan import Admission
from placer.gpu.registry import MethodSetting, register
from placer.gpu.slo import LatencySlo


@register("g-net")
def g_net(device: GpuDevice, slos: Sequence[LatencySlo], setting: MethodSetting) -> Admission:
    """What is admitted on whole SMs without an order."""
    return answered(device, slos, lambda: _admit(device, slos))


def largest_headroom_first(device: GpuDevice, slo: LatencySlo, layout: BatchLayout) -> float:
    """The key of an SLO: minus its headroom, us."""
    return -headroom_us(device, slo, layout)


def _admit(device: GpuDevice, slos: Sequence[LatencySlo]) -> Placed:
    once = device.arbitration is Arbitration.ONE_SHOT
    return best_of_shares(
        device,
        slos,
        shares_of(device, slos),
        largest_headroom_first if once else bus_use,
        lambda: GreedyGpu(device, exclusive=True, in_time=in_time_unordered),
    )
