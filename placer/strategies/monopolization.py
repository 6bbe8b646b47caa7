"""Monopolization: no NFs share a NIC (Tomur, section 7.5.1)."""

from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.strategies.strategy import OnlineStrategy, register


@register
class Monopolization(OnlineStrategy):
    """Every arrival gets a NIC of its own: no SLA is violated, and most of each NIC is idle."""

    name = "monopolization"

    def choose(self, fleet: Fleet, tenant: Tenant) -> NicKind | None:
        return self.cheapest_new(fleet, tenant)
