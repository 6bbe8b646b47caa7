"""The admission test behind a kind of GPU: whether NFs with rates and promises can share one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import inf
from typing import Any

from placer.gpu.device import Arbitration, GpuDevice, GpuNf
from placer.gpu.plan import Admission
from placer.gpu.slo import LatencySlo
from placer.gpu.waiting import latency_of
from placer.inputs.written_slos import admission_certificate
from placer.model.gpu_oracle import GpuSchedule, Scheduled
from placer.model.offered import OfferedWorkload
from profiles import Workload
from profiles.gpu import GpuSettings

LONGEST_US = 1e6
"""The latency of NFs that are promised none: what batches take is bounded by it."""

SECONDS = 1.0
"""Of one test. Nearly all end long before, so that equal tests have equal answers."""


class ExactTest(ABC):
    """Exact admission to a GPU, as a test of a whole set; an `AdmissionTest`."""

    @abstractmethod
    def case(self, workloads: Sequence[OfferedWorkload]) -> tuple[GpuDevice, list[LatencySlo]]:
        """The GPU for these, and an SLO for each, with its position as its id."""

    @abstractmethod
    def check(self, workload: Workload) -> list[tuple[str, str]]:
        """As of `AdmissionTest`."""

    def schedule(self, workloads: Sequence[OfferedWorkload]) -> GpuSchedule:
        """As of `AdmissionTest`; not proven where the search ends below the bound."""
        device, slos = self.case(workloads)
        admission = _admit(device, slos)
        latencies = latency_of(device, admission.admitted)
        found: dict[int, Scheduled] = {}
        for one in admission.admitted:
            parts = sorted((share.sm, share.packets) for share in one.minibatches)
            settings = GpuSettings.of(parts, order=one.order)
            found[int(one.slo.id)] = Scheduled(latencies[one.slo.id].total, settings=settings)
        for rejected in admission.rejected:
            found[int(rejected.slo.id)] = Scheduled(None, rejected.cause)
        everybody = len(admission.admitted) == len(found)
        return GpuSchedule(tuple(found[at] for at in sorted(found)), everybody or admission.bound < len(found))

    def shares(self, workload: OfferedWorkload) -> dict[str, float]:
        """As of `AdmissionTest`: of workers, executors, and the time of the bus."""
        device, slos = self.case([workload])
        return _shares(device, _admit(device, slos))

    def certificate(self, workloads: Sequence[OfferedWorkload], schedule: GpuSchedule) -> dict[str, Any]:
        """A schedule that keeps all, as `placer verify` reads it."""
        device, slos = self.case(workloads)
        admitted = [
            {"id": slo.id, **one.settings.as_request()}
            for slo, one in zip(slos, schedule.workloads, strict=True)
            if one.settings is not None
        ]
        answer = {"admitted": admitted, "rejected": [], "bound": len(slos), "proven": True, "seconds": 0}
        return admission_certificate(device, slos, answer)


class DeviceTest(ExactTest):
    """Admission to a GPU that a file describes.

    Parameters
    ----------
    device
        The GPU.
    """

    def __init__(self, device: GpuDevice) -> None:
        self.device = device

    def case(self, workloads: Sequence[OfferedWorkload]) -> tuple[GpuDevice, list[LatencySlo]]:
        return self.device, [slo_of(at, one, one.nf) for at, one in enumerate(workloads)]

    def check(self, workload: Workload) -> list[tuple[str, str]]:
        """Nothing, as a device says nothing of traffic."""
        return []


def load_admission() -> None:
    """Load the compiled code of admission, so that the first decision does not wait for it."""
    nf = GpuNf("class", 0.0, (1.0, 1.0))
    device = GpuDevice(1, 1, 1, 1, Arbitration.SPORADIC, {"class": (0.0, 1.0)}, {"nf": nf})
    _admit(device, [LatencySlo("0", "nf", 1.0, 100.0)])


def slo_of(position: int, workload: OfferedWorkload, nf: str) -> LatencySlo:
    """The SLO of the workload, which the device knows as this NF."""
    return LatencySlo(str(position), nf, workload.rate_kpps, min(workload.latency_us, LONGEST_US))


def _admit(device: GpuDevice, slos: Sequence[LatencySlo]) -> Admission:
    from placer.gpu.exact import admit_exactly  # here: solvers load for half a second, and most fleets have no GPU

    return admit_exactly(device, slos, SECONDS)


def _shares(device: GpuDevice, alone: Admission) -> dict[str, float]:
    """The share of each resource that an SLO takes alone; infinite where it is rejected."""
    if not alone.admitted:
        return {"workers": inf}
    admitted = alone.admitted[0]
    executors = sum(device.executors(share.packets) for share in admitted.minibatches)
    period_us = device.period_us(admitted.batch, admitted.slo.rate_kpps)
    return {
        "workers": 1.0 / device.workers,
        "executors": executors / (device.sms * device.executors_per_sm),
        "bus": device.transfer(admitted.slo.nf, admitted.batch) / period_us,
    }
