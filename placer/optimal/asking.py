"""Asking an oracle: timed, and whether it lets tenants share a NIC."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import CoLocation, Oracle, co_location_of
from profiles import Workload

Progress = Callable[[int, int], None]
"""Told how much is done, of how much."""

BATCH = 256
"""Companies asked at once when somebody watches the progress."""


class TimedOracle(Oracle):
    """An oracle, and the seconds spent asking it."""

    def __init__(self, oracle: Oracle, progress: Progress | None = None) -> None:
        super().__init__()
        self.oracle = oracle
        self.progress = progress
        self.seconds = 0.0

    def throughput(self, co_locations: Sequence[CoLocation]) -> list[tuple[float, ...]]:
        began = time.monotonic()
        if self.progress is None or len(co_locations) <= BATCH:
            answers = self.oracle.throughput(co_locations)
        else:
            answers = []
            for first in range(0, len(co_locations), BATCH):
                answers += self.oracle.throughput(co_locations[first : first + BATCH])
                self.progress(len(answers), len(co_locations))
        self.seconds += time.monotonic() - began
        return answers

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return self.oracle.throughput(co_locations)


def serves(kind: NicKind, oracle: Oracle, groups: Sequence[Sequence[Tenant]]) -> list[bool]:
    """For each group of tenants, whether a NIC of the kind can host it with every SLA met."""
    hosted = [
        all(kind.hosts(tenant.workload) for tenant in group)
        and kind.cores_taken(tenant.workload for tenant in group) <= kind.cores
        for group in groups
    ]
    asked = [group for group, fits in zip(groups, hosted, strict=True) if fits]
    co_locations = [co_location_of(tenant.workload for tenant in group) for group in asked]
    answers = iter(zip(asked, co_locations, oracle.throughput(co_locations), strict=True))
    return [fits and _all_met(oracle, *next(answers)) for fits in hosted]


def _all_met(oracle: Oracle, tenants: Sequence[Tenant], co_location: CoLocation, throughput: Sequence[float]) -> bool:
    slowest: dict[Workload, float] = {}
    for workload, kpps in zip(co_location, throughput, strict=True):
        slowest[workload] = min(kpps, slowest.get(workload, kpps))
    return all(tenant.sla.is_met(slowest[tenant.workload], oracle.solo(tenant.workload)) for tenant in tenants)
