"""The admission test behind a kind of GPU that models describe: a device whose NFs are the workloads at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from placer.gpu.device import GpuDevice
from placer.gpu.slo import LatencySlo
from placer.inputs.gpu_admission import ExactTest, slo_of
from placer.inputs.slos import device_of
from placer.model.offered import OfferedWorkload
from predictor.gpu.device import LONGEST_US, DeviceEntry
from predictor.gpu.models import GpuModels
from profiles import ATTRIBUTES, Workload

SELF, OTHER = "self", "other"


class ModelsTest(ExactTest):
    """Exact admission by models of a GPU server, conservative at p99 for the rate and promise of each workload.

    A device that is right for few rates is less conservative. So each workload is described alone, as an NF of its own;
    beside each other workload, only its sharing penalty is added.

    Parameters
    ----------
    models
        Of the GPU server.
    """

    def __init__(self, models: GpuModels) -> None:
        self.models = models
        self._alone: dict[OfferedWorkload, dict[str, Any]] = {}
        self._penalties: dict[tuple[OfferedWorkload, OfferedWorkload], float] = {}

    def check(self, workload: Workload) -> list[tuple[str, str]]:
        """As of `AdmissionTest`: traffic outside the profiled range."""
        testbed, values = self.models.testbed, workload.traffic.as_dict()
        ranges = {name: testbed.range_of(name) for name in ATTRIBUTES if name in testbed.attributes}
        return [
            (name, f"{values[name]:g} is outside the profiled range {low:g} to {high:g}")
            for name, (low, high) in ranges.items()
            if not low <= values[name] <= high
        ]

    def case(self, workloads: Sequence[OfferedWorkload]) -> tuple[GpuDevice, list[LatencySlo]]:
        names = {one: str(at) for at, one in enumerate(dict.fromkeys(workloads))}
        return self.device(workloads), [slo_of(at, one, names[one]) for at, one in enumerate(workloads)]

    def device(self, workloads: Sequence[OfferedWorkload]) -> GpuDevice:
        """The GPU, with an NF for each different workload, named by its place among them."""
        different = list(dict.fromkeys(workloads))
        described: dict[str, Any] = {**self._described(different[0]), "transfer_us": {}, "nfs": {}, "sharing_us": {}}
        for at, one in enumerate(different):
            alone, name = self._described(one), str(at)
            (line,) = alone["transfer_us"].values()
            described["transfer_us"][name] = line
            described["nfs"][name] = {**alone["nfs"][SELF], "class": name}
            described["sharing_us"][name] = {
                str(other): self._penalty(one, neighbour) for other, neighbour in enumerate(different)
            }
        return device_of(described, "models")

    def _described(self, workload: OfferedWorkload) -> dict[str, Any]:
        if workload not in self._alone:
            self._alone[workload] = self.models.device_with({SELF: _entry(workload)})
        return self._alone[workload]

    def _penalty(self, workload: OfferedWorkload, neighbour: OfferedWorkload) -> float:
        if (workload, neighbour) not in self._penalties:
            both = self.models.device_with({SELF: _entry(workload), OTHER: _entry(neighbour)})["sharing_us"]
            self._penalties[workload, neighbour] = both[SELF].get(OTHER, 0.0)
            self._penalties[neighbour, workload] = both[OTHER].get(SELF, 0.0)
        return self._penalties[workload, neighbour]


def _entry(workload: OfferedWorkload) -> DeviceEntry:
    rates = (workload.rate_kpps, workload.rate_kpps)
    return DeviceEntry(workload.nf, workload.traffic, rates, min(workload.latency_us, LONGEST_US))
