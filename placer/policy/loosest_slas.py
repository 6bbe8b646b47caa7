"""The loosest SLAs of all arrivals: which co-locations are useful to some of them."""

from __future__ import annotations

import math

from placer.model.fleet import Tenant
from profiles import Workload

DROP_STEPS = 20
"""The loosest SLA is rounded up to steps of 1 / DROP_STEPS of throughput, so that tables are seldom built anew."""


class LoosestSlas:
    """The largest accepted drop, and per workload the least accepted throughput (kpps)."""

    def __init__(self) -> None:
        self._drop = 0.0
        self._least: dict[Workload, float] = {}

    def include(self, tenant: Tenant) -> None:
        """Take the SLA of a tenant into account."""
        if tenant.sla.max_drop is not None:
            self._drop = max(self._drop, tenant.sla.max_drop)
        elif tenant.sla.min_kpps is not None:
            self._least[tenant.workload] = min(tenant.sla.min_kpps, self._least.get(tenant.workload, math.inf))

    def accepted_drop(self, workload: Workload, solo: float) -> float:
        """The largest drop that an instance of the workload accepts, rounded up, where it runs alone at `solo` kpps."""
        drop = max(self._drop, 1.0 - self._least.get(workload, math.inf) / solo) if solo > 0 else 1.0
        return min(math.ceil(drop * DROP_STEPS - 1e-9) / DROP_STEPS, 1.0)
