"""A strategy in one file: it fills a NIC only to half of its cores, and ignores contention.

Copy it into `placer/strategies/`; then `placer run arrivals.csv --strategy half-full` knows it.
"""

from __future__ import annotations

from placer.model.constraints import places_for
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind
from placer.strategies.strategy import OnlineStrategy, register


@register
class HalfFull(OnlineStrategy):
    """The first NIC in use on which the arrival leaves half of the cores free; else a new NIC."""

    name = "half-full"

    def choose(self, fleet: Fleet, tenant: Tenant) -> Nic | NicKind | None:
        places = places_for(fleet, tenant)  # where constraints of the trace allow it; None for everywhere
        for nic in fleet.nics.values():
            if nic.kind.hosts(tenant.workload) and (places is None or places.allow(nic)):
                taken = nic.kind.cores_taken([*nic.co_location, tenant.workload])
                if taken <= nic.kind.cores / 2:
                    return nic
        return self.cheapest_new(fleet, tenant)
