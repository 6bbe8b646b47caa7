"""Contention-aware: predict everybody's throughput before anybody moves in (Tomur, section 7.5.1)."""

from __future__ import annotations

from collections.abc import Sequence

from placer.catalogue import Catalogue
from placer.fleet import Fleet, Nic, NicKind, Tenant
from placer.oracle import Company, Oracle, company_of
from placer.strategies.strategy import OnlineStrategy, register


@register
class ContentionAware(OnlineStrategy):
    """The first NIC in use on which every tenant, old and new, is predicted to keep its SLA; else a new NIC.

    Parameters
    ----------
    oracles
        Per kind, who tells the throughputs; by default the predictor.
    """

    name = "contention-aware"
    needs_predictor = True

    def __init__(
        self, catalogue: Catalogue, predictor: str | None = None, oracles: Sequence[Oracle] | None = None
    ) -> None:
        super().__init__(catalogue, predictor)
        if oracles is None:
            if predictor is None:
                raise ValueError("contention-aware needs a predictor or oracles.")
            oracles = catalogue.oracles(predictor)
        self.oracles = oracles

    def choose(self, fleet: Fleet, tenant: Tenant) -> Nic | NicKind | None:
        roomy = list(fleet.roomy(tenant.workload))
        joined = {nic.id: company_of([*nic.company, tenant.workload]) for nic in roomy}
        self._ask_at_once(roomy, joined)
        for nic in roomy:
            if keeps_slas(self.oracles[nic.kind.index], joined[nic.id], [*nic.tenants, tenant]):
                return nic
        return self.cheapest_new(fleet, tenant, self.oracles)

    def _ask_at_once(self, roomy: Sequence[Nic], joined: dict[str, Company]) -> None:
        """One batch per kind: predictors answer a thousand companies for the price of one."""
        for kind in {nic.kind.index for nic in roomy}:
            self.oracles[kind].throughput([joined[nic.id] for nic in roomy if nic.kind.index == kind])


def keeps_slas(oracle: Oracle, company: Company, tenants: Sequence[Tenant]) -> bool:
    """Whether the oracle expects every one of the tenants that make up the company to keep its SLA."""
    expected = oracle.by_workload(company)
    return all(tenant.sla.is_met(expected[tenant.workload], oracle.solo(tenant.workload)) for tenant in tenants)
