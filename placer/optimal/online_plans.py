"""Plans of online rules with the oracles of the optimum: no tenant moves, and traces may be of any length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from placer.evaluate.checks import slas_kept
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.fleet import Fleet, NicKind, Tenant
from placer.model.oracle import Oracle
from placer.model.plan import Plan
from placer.optimal.bounded_plan import NAME, peak_cost
from placer.policy.rules import FIRST_FIT, LOOK_AHEAD
from placer.progress import Advance
from placer.strategies.contention_aware import ContentionAware


def online_plan(
    arrivals: Sequence[Arrival], catalogue: Catalogue, oracles: Sequence[Oracle], progress: Advance | None
) -> Plan:
    """The better plan of two contention-aware rules; where departures make both violate SLAs, no NIC is shared."""
    shared = [
        ContentionAware(catalogue, oracles=oracles, rule=rule).place(arrivals, progress)
        for rule in (FIRST_FIT, LOOK_AHEAD)
    ]
    plans = [plan for plan in shared if not any(slas_kept(plan, oracles))]
    if not plans:
        plans = [_OneNicEach(catalogue, oracles=oracles).place(arrivals, progress)]
    best = min(plans, key=lambda plan: (plan.rejected, peak_cost(plan, catalogue.kinds)))
    return replace(best, strategy=NAME, predictor=None)


class _OneNicEach(ContentionAware):
    """Every arrival that meets its SLA alone gets a NIC of its own."""

    def choose(self, fleet: Fleet, tenant: Tenant) -> NicKind | None:
        return self.cheapest_new(fleet, tenant, self.oracles)
