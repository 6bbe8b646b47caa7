"""GPUs: whether NFs with rates and promised latencies can share one, as an admission test decides it.

Feasibility on a GPU is a function of the whole set: all workloads of a co-location keep their promises, or some are
rejected. As an oracle it answers what counts: the offered rate, or 0 for a workload that is rejected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from placer.model.oracle import CACHED_ANSWERS, CONTENTION_BOTTLENECK, Oracle
from profiles import CoLocation, Workload
from profiles.gpu import GpuSettings


@dataclass(frozen=True, slots=True)
class Scheduled:
    """How one workload fares on a GPU. `latency_us`: that 99 of 100 packets stay within; None where it is rejected.
    `cause`: why it is rejected: `batching`, `pcie`, `executors`, `kernel` or `workers`; empty where it is admitted.
    `settings`: its batch, order and minibatches, where the test states them."""

    latency_us: float | None
    cause: str = ""
    settings: GpuSettings | None = None


@dataclass(frozen=True, slots=True)
class GpuSchedule:
    """How the workloads of a co-location share a GPU, in its order. `workloads`: one per workload. `proven`: whether it
    is certain that all can be admitted, or that they cannot."""

    workloads: tuple[Scheduled, ...]
    proven: bool = True

    @property
    def keeps_all(self) -> bool:
        """Whether every workload is admitted."""
        return not any(workload.cause for workload in self.workloads)


class AdmissionTest(Protocol):
    """Decides which NFs a GPU serves at once."""

    def schedule(self, workloads: Sequence[Workload]) -> GpuSchedule:
        """How these share one GPU; all are admitted where the test finds a way."""

    def shares(self, workload: Workload) -> dict[str, float]:
        """The share of each of a GPU's resources that the workload takes alone; above 1 where it is rejected."""

    def check(self, workload: Workload) -> list[tuple[str, str]]:
        """Why traffic of a known NF is refused, as (column, message)."""


class GpuOracle(Oracle):
    """What an admission test says of GPUs of one kind. `test`: the test. `optimistic`: whether all of a co-location are
    admitted where that is not refuted, for bounds."""

    def __init__(self, test: AdmissionTest, *, optimistic: bool = False) -> None:
        super().__init__()
        self.test = test
        self.optimistic = optimistic
        self.unproven = 0  # Co-locations for which the test has neither found a way nor refuted that there is one
        self._schedules: dict[CoLocation, GpuSchedule] = {}

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return [self._kpps(co_location) for co_location in co_locations]

    def _kpps(self, co_location: CoLocation) -> list[float]:
        schedule = self.schedule(co_location)
        self.unproven += not schedule.proven
        keeps = self.optimistic and not schedule.proven
        return [
            workload.rate_kpps if keeps or not one.cause else 0.0
            for workload, one in zip(co_location, schedule.workloads, strict=True)
        ]

    def optimistic_twin(self) -> GpuOracle:
        """The optimistic oracle of the same test, which knows the same schedules."""
        twin = GpuOracle(self.test, optimistic=True)
        twin._schedules = self._schedules
        return twin

    def schedule(self, co_location: CoLocation) -> GpuSchedule:
        """How the workloads of the co-location share the GPU."""
        offered = tuple(map(run_on_gpu, co_location))
        if offered not in self._schedules:
            if len(self._schedules) >= CACHED_ANSWERS:
                self._schedules.clear()
            self._schedules[offered] = self.test.schedule(offered)
        return self._schedules[offered]

    def shares(self, workload: Workload) -> dict[str, float]:
        """As `AdmissionTest.shares`."""
        return self.test.shares(run_on_gpu(workload))

    def latency(self, co_location: CoLocation) -> tuple[float | None, ...]:
        return tuple(workload.latency_us for workload in self.schedule(co_location).workloads)

    def bottleneck(self, co_location: CoLocation, workload: Workload) -> str:
        schedule = self.schedule(co_location).workloads
        causes = [one.cause for known, one in zip(co_location, schedule, strict=True) if known == workload]
        return next(filter(None, causes), CONTENTION_BOTTLENECK)


def run_on_gpu(workload: Workload) -> Workload:
    """The workload as a GPU runs it: at a known rate, and without the cores that it would have on a NIC."""
    if workload.is_saturated:
        raise ValueError(f"A GPU runs NFs at a known rate only, got {workload}.")
    return replace(workload, cores=0) if workload.cores else workload
