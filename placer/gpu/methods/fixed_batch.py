"""Fixed batch: as Grus, but every batch has 256 packets, whatever the rate (paper 003, sections III-A and VII-B)."""

from collections.abc import Sequence
from dataclasses import replace

from placer.gpu.device import GpuDevice
from placer.gpu.greedy import Placed, admit_greedily, time_admission
from placer.gpu.plan import Admission, Admitted, LatencySlo, Rejected
from placer.gpu.registry import MethodSetting, register

BATCH_PACKETS = 256


@register("fixed-batch")
def fixed_batch(device: GpuDevice, slos: Sequence[LatencySlo], setting: MethodSetting) -> Admission:
    """What is admitted with this batch; SLOs that fix another one keep theirs."""
    return time_admission(device, slos, lambda: _admit(device, slos))


def _admit(device: GpuDevice, slos: Sequence[LatencySlo]) -> Placed:
    given = {slo.id: slo for slo in slos}
    admitted, rejected = admit_greedily(device, [replace(slo, batch=slo.batch or BATCH_PACKETS) for slo in slos])
    return (
        tuple(Admitted(given[tenant.slo.id], tenant.batch, tenant.order, tenant.minibatches) for tenant in admitted),
        tuple(Rejected(given[rejection.slo.id], rejection.cause) for rejection in rejected),
    )
