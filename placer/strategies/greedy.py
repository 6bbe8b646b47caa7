"""Greedy: bin packing by what each NF takes when alone, on the NIC with most left (Tomur, section 7.5.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from placer.catalogue import Catalogue
from placer.fleet import Fleet, Nic, NicKind, Tenant
from placer.strategies.strategy import OnlineStrategy, register
from profiles import Workload

FULL = 1.0 + 1e-9


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
        self._shares: dict[tuple[int, Workload], dict[str, float]] = {}

    def choose(self, fleet: Fleet, tenant: Tenant) -> Nic | NicKind | None:
        best, most_left = None, (0.0, 0.0)
        for nic in fleet.roomy(tenant.workload):
            used = self._used(nic.kind, (*nic.company, tenant.workload))
            left = FULL - max(used.values()), -sum(used.values())
            if left[0] >= 0 and (best is None or left > most_left):
                best, most_left = nic, left
        return best or self.cheapest_new(fleet, tenant)

    def _used(self, kind: NicKind, workloads: Iterable[Workload]) -> Counter[str]:
        """The share of each of the NIC's resources that the workloads ask for, each as if alone."""
        used: Counter[str] = Counter()
        for workload in workloads:
            key = (kind.index, workload)
            if key not in self._shares:
                self._shares[key] = self.catalogue.shares(kind, workload)
            used.update(self._shares[key])
        return used
