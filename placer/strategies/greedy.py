"""Greedy: bin packing by what each NF takes when alone, on the NIC with most left (Tomur, section 7.5.1)."""

from __future__ import annotations

from collections.abc import Iterator

from placer.catalogue import Catalogue
from placer.fleet import Fleet, Nic, NicKind, Tenant
from placer.strategies.strategy import OnlineStrategy, register
from predictor import Demand
from profiles import Workload

FULL = 1.0 + 1e-9
MB = 1e6


@register
class Greedy(OnlineStrategy):
    """Among the NICs in use on which the arrival fits, the one with most left; a new NIC only when none fits.

    It fits when the solo demands add up to no more than the NIC has: cores, last-level cache (by working set), and
    the time of each accelerator. A NIC has as much left as its scarcest resource. What sharing does to throughput is
    not looked at, which is why SLAs break.
    """

    name = "greedy"

    def __init__(self, catalogue: Catalogue, predictor: str | None = None) -> None:
        super().__init__(catalogue, predictor)
        self._demands: dict[tuple[int, Workload], Demand] = {}

    def choose(self, fleet: Fleet, tenant: Tenant) -> Nic | NicKind | None:
        best, most_left = None, (-1.0, -1.0)
        for nic in fleet.nics.values():
            if nic.kind.hosts(tenant.workload) and nic.free_cores >= nic.kind.cores_of[tenant.workload.nf]:
                used = list(self._used(nic.kind, [*nic.company, tenant.workload]))
                left = 1.0 - max(used), -sum(used)
                if max(used) <= FULL and left > most_left:
                    best, most_left = nic, left
        return best or self.cheapest_new(fleet, tenant)

    def _used(self, kind: NicKind, workloads: list[Workload]) -> Iterator[float]:
        """The share of each of the NIC's resources that the workloads ask for when each is alone."""
        demands = [self._demand(kind, workload) for workload in workloads]
        yield sum(demand.cores for demand in demands) / kind.cores
        testbed = self.catalogue.models[kind.index].testbed
        if testbed and testbed.nic.llc_bytes:
            yield sum(demand.wss_mb for demand in demands) * MB / testbed.nic.llc_bytes
        for accelerator in sorted({name for demand in demands for name in demand.accelerators}):
            yield sum(demand.accelerators.get(accelerator, 0.0) for demand in demands)

    def _demand(self, kind: NicKind, workload: Workload) -> Demand:
        key = (kind.index, workload)
        if key not in self._demands:
            self._demands[key] = self.catalogue.demand(kind, workload)
        return self._demands[key]
