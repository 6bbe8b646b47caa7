"""A toy GPU that can be checked by hand, and a fleet that has it beside toy NICs."""

from collections.abc import Mapping, Sequence

from placer.model.arrival import Arrival
from placer.model.gpu_oracle import GpuOracle, GpuSchedule, Scheduled
from placer.model.latency_oracle import LatencyCurve, LatencyOracle
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.sla import Sla
from placer.testing.strategies import CORES_BY_NF, TOY_TRAFFIC, ToyCatalogue, ToyOracle
from profiles import Workload

KERNEL_US, TRANSFER_US = 20.0, 10.0
WORKERS = 4
GPU_NFS = ("a", "b")


class ToyAdmission:
    """Transfers of 10 us take turns, the most urgent first; kernels of 20 us run side by side, up to 1000 kpps."""

    def __init__(self) -> None:
        self.asked = 0

    def schedule(self, workloads: Sequence[Workload]) -> GpuSchedule:
        self.asked += 1
        turns = sorted(range(len(workloads)), key=lambda at: workloads[at].latency_us)
        found = [Scheduled(None)] * len(workloads)
        kpps = admitted = 0.0
        for at in turns:
            latency = KERNEL_US + TRANSFER_US * (admitted + 1)
            if latency > workloads[at].latency_us:
                found[at] = Scheduled(None, "pcie")
            elif kpps + workloads[at].rate_kpps > 1000:
                found[at] = Scheduled(None, "kernel")
            else:
                found[at] = Scheduled(latency)
                kpps, admitted = kpps + workloads[at].rate_kpps, admitted + 1
        return GpuSchedule(tuple(found))

    def shares(self, workload: Workload) -> dict[str, float]:
        return {"workers": 1 / WORKERS, "kernel": workload.rate_kpps / 1000}

    def check(self, workload: Workload) -> list[tuple[str, str]]:
        return []


class ToyCurve:
    """10 us when idle, 1 us more per percent of utilisation up to 90 %."""

    statistics = ("p99",)

    def latency_us(self, workload: Workload, kpps: float, risk: float | None = None) -> float:
        utilisation = workload.rate_kpps / kpps
        return 10.0 + 100.0 * utilisation if utilisation <= 0.9 else float("inf")

    def least_kpps(self, workload: Workload, risk: float | None = None) -> float:
        utilisation = max(min((workload.latency_us - 10.0) / 100.0, 0.9), 0.0)
        return workload.rate_kpps / utilisation if utilisation > 0 else float("inf")


CURVES: Mapping[str, LatencyCurve] = {"a": ToyCurve(), "c": ToyCurve()}


class MixedCatalogue(ToyCatalogue):
    """Toy NICs whose latency follows curves, and GPUs that admit what `ToyAdmission` does."""

    def oracles(self, predictor: str) -> tuple[Oracle, ...]:
        return tuple(
            self.gpus.get(kind.index) or LatencyOracle(ToyOracle(), self.curves[kind.index]) for kind in self.kinds
        )

    def truth(self) -> tuple[Oracle, ...]:
        return self.oracles("toy")

    def shares(self, kind: NicKind, workload: Workload) -> dict[str, float]:
        return self.gpus[kind.index].shares(workload) if kind.index in self.gpus else super().shares(kind, workload)


def mixed(
    gpus: int | None = None, gpu_cost: float = 1.0, nics: int | None = None, curves: Mapping[str, LatencyCurve] = CURVES
) -> MixedCatalogue:
    """Toy NICs of 8 cores and toy GPUs of 4 workers that run a and b."""
    nic = NicKind(0, "toy", 8, CORES_BY_NF, nics, latency_of={"p99": frozenset(curves)})
    gpu = NicKind(
        1, "toy-gpu", WORKERS, dict.fromkeys(GPU_NFS, 1), gpus, gpu_cost, latency_of={"p99": frozenset(GPU_NFS)},
        paced=True,
    )  # fmt: skip
    return MixedCatalogue((nic, gpu), (), (), curves={0: curves}, gpus={1: GpuOracle(ToyAdmission())})


def promised(identity: str, nf: str, rate_kpps: float, latency_us: float, time: float = 0.0) -> Arrival:
    """An arrival with a rate and a promised latency, which must keep that rate."""
    return Arrival(identity, time, Workload(nf, TOY_TRAFFIC, rate_kpps, latency_us=latency_us), Sla(min_kpps=rate_kpps))
