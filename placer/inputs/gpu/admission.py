"""The admission test behind a kind of GPU: whether NFs with rates and promises can share one."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import inf
from typing import Any

from placer.gpu.device import Arbitration, GpuDevice, GpuNf
from placer.gpu.latency import latency_of
from placer.gpu.plan import Admission, LatencySlo
from placer.inputs.gpu.slos import admission_certificate, device_of
from placer.model.gpu_oracle import GpuSchedule, Scheduled
from predictor.gpu.device import LONGEST_US, DeviceEntry
from predictor.gpu.models import GpuModels
from profiles import ATTRIBUTES, Workload
from profiles.gpu import GpuSettings

LONGEST_PROMISE_US = 1e6  # the latency of NFs that are promised none: what batches take is bounded by it
TEST_SECONDS = 1.0  # of one test. Nearly all end long before, so that equal tests have equal answers.


class ExactTest(ABC):
    """Exact admission to a GPU, as a test of a whole set; an `AdmissionTest`."""

    @abstractmethod
    def case(self, workloads: Sequence[Workload]) -> tuple[GpuDevice, list[LatencySlo]]:
        """The GPU for these, and an SLO for each, with its position as its id."""

    @abstractmethod
    def check(self, workload: Workload) -> list[tuple[str, str]]:
        """As of `AdmissionTest`."""

    def schedule(self, workloads: Sequence[Workload]) -> GpuSchedule:
        """As of `AdmissionTest`; not proven where the search ends below the bound."""
        device, slos = self.case(workloads)
        admission = _admit(device, slos)
        latencies = latency_of(device, admission.admitted)
        found: dict[int, Scheduled] = {}
        for admitted in admission.admitted:
            parts = sorted((share.sm, share.packets) for share in admitted.minibatches)
            settings = GpuSettings.of(parts, order=admitted.order)
            found[int(admitted.slo.id)] = Scheduled(latencies[admitted.slo.id].total, settings=settings)
        for rejected in admission.rejected:
            found[int(rejected.slo.id)] = Scheduled(None, rejected.cause)
        everybody = len(admission.admitted) == len(found)
        return GpuSchedule(tuple(found[at] for at in sorted(found)), everybody or admission.bound < len(found))

    def shares(self, workload: Workload) -> dict[str, float]:
        """As of `AdmissionTest`: of workers, executors, and the time of the bus."""
        device, slos = self.case([workload])
        return _shares(device, _admit(device, slos))

    def certificate(self, workloads: Sequence[Workload], schedule: GpuSchedule) -> dict[str, Any]:
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
    """Admission to a GPU that a file describes. `device`: the GPU."""

    def __init__(self, device: GpuDevice) -> None:
        self.device = device

    def case(self, workloads: Sequence[Workload]) -> tuple[GpuDevice, list[LatencySlo]]:
        return self.device, [slo_of(at, one, one.nf) for at, one in enumerate(workloads)]

    def check(self, workload: Workload) -> list[tuple[str, str]]:
        """Nothing, as a device says nothing of traffic."""
        return []


def load_admission() -> None:
    """Load the compiled code of admission, so that the first decision does not wait for it."""
    nf = GpuNf("class", 0.0, (1.0, 1.0))
    device = GpuDevice(1, 1, 1, 1, Arbitration.SPORADIC, {"class": (0.0, 1.0)}, {"nf": nf})
    _admit(device, [LatencySlo("0", "nf", 1.0, 100.0)])


def slo_of(position: int, workload: Workload, nf: str) -> LatencySlo:
    """The SLO of the workload, which the device knows as this NF."""
    return LatencySlo(str(position), nf, workload.rate_kpps, min(workload.latency_us, LONGEST_PROMISE_US))


def _admit(device: GpuDevice, slos: Sequence[LatencySlo]) -> Admission:
    from placer.gpu.exact import admit_exactly  # here: solvers load for half a second, and most fleets have no GPU

    return admit_exactly(device, slos, TEST_SECONDS)


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


# The admission test behind a kind of GPU that models describe: a device whose NFs are the workloads at hand.


SELF_SCENARIO, OTHER_SCENARIO = "self", "other"


class ModelsTest(ExactTest):
    """Exact admission by models of a GPU server, conservative at p99 for the rate and promise of each workload. A
    device that is right for few rates is less conservative. So each workload is described alone, as an NF of its own;
    beside each other workload, only its sharing penalty is added. `models`: of the GPU server."""

    def __init__(self, models: GpuModels) -> None:
        self.models = models
        self._alone: dict[Workload, dict[str, Any]] = {}
        self._penalties: dict[tuple[Workload, Workload], float] = {}

    def check(self, workload: Workload) -> list[tuple[str, str]]:
        """As of `AdmissionTest`: traffic outside the profiled range."""
        testbed, values = self.models.testbed, workload.traffic.as_dict()
        ranges = {name: testbed.range_of(name) for name in ATTRIBUTES if name in testbed.attributes}
        return [
            (name, f"{values[name]:g} is outside the profiled range {low:g} to {high:g}")
            for name, (low, high) in ranges.items()
            if not low <= values[name] <= high
        ]

    def case(self, workloads: Sequence[Workload]) -> tuple[GpuDevice, list[LatencySlo]]:
        names = {one: str(at) for at, one in enumerate(dict.fromkeys(workloads))}
        return self.device(workloads), [slo_of(at, one, names[one]) for at, one in enumerate(workloads)]

    def device(self, workloads: Sequence[Workload]) -> GpuDevice:
        """The GPU, with an NF for each different workload, named by its place among them."""
        different = list(dict.fromkeys(workloads))
        described: dict[str, Any] = {**self._described(different[0]), "transfer_us": {}, "nfs": {}, "sharing_us": {}}
        for at, one in enumerate(different):
            alone, name = self._described(one), str(at)
            (line,) = alone["transfer_us"].values()
            described["transfer_us"][name] = line
            described["nfs"][name] = {**alone["nfs"][SELF_SCENARIO], "class": name}
            described["sharing_us"][name] = {
                str(other): self._penalty(one, neighbour) for other, neighbour in enumerate(different)
            }
        return device_of(described, "models")

    def _described(self, workload: Workload) -> dict[str, Any]:
        if workload not in self._alone:
            self._alone[workload] = self.models.device_with({SELF_SCENARIO: _entry(workload)})
        return self._alone[workload]

    def _penalty(self, workload: Workload, neighbour: Workload) -> float:
        if (workload, neighbour) not in self._penalties:
            both = self.models.device_with({SELF_SCENARIO: _entry(workload), OTHER_SCENARIO: _entry(neighbour)})[
                "sharing_us"
            ]
            self._penalties[workload, neighbour] = both[SELF_SCENARIO].get(OTHER_SCENARIO, 0.0)
            self._penalties[neighbour, workload] = both[OTHER_SCENARIO].get(SELF_SCENARIO, 0.0)
        return self._penalties[workload, neighbour]


def _entry(workload: Workload) -> DeviceEntry:
    rates = (workload.rate_kpps, workload.rate_kpps)
    return DeviceEntry(workload.nf, workload.traffic, rates, min(workload.latency_us, LONGEST_US))
