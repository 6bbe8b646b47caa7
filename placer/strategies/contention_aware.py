"""Contention-aware: predict everybody's throughput before anybody moves in (Tomur, section 7.5.1)."""

from __future__ import annotations

from collections.abc import Sequence

from placer.catalogue import Catalogue
from placer.fleet import Fleet, Nic, NicKind, Tenant
from placer.oracle import Company, Oracle, company_of
from placer.outlook import NOWHERE, Outlook, borne, outlook
from placer.strategies.strategy import OnlineStrategy, register

FORESEEN_FROM = 10
"""Fewest tenants present from which the arrivals to come are foreseen; before, the first NIC that fits is taken."""

RENEWED_EVERY = 1.2
"""The outlook is renewed when so many times as many tenants are present as when it was made."""

OPENING_TOLL = 0.05
"""How much more than it is worth a new NIC costs, so that few stay half empty."""


@register
class ContentionAware(OnlineStrategy):
    """A NIC on which every tenant, old and new, is predicted to keep its SLA: the one whose room is least spoilt.

    What room is worth tells the `outlook`, made of the tenants present. While there is none (few tenants, or too many
    different workloads), the first NIC that fits is taken. A new NIC is opened when none fits, or when every one that
    fits would be spoilt for more than a new one costs.

    Parameters
    ----------
    oracles
        Per kind, who tells the throughputs; by default the predictor.
    looks_ahead
        False takes the first NIC that fits, always.
    """

    name = "contention-aware"
    needs_predictor = True

    def __init__(
        self,
        catalogue: Catalogue,
        predictor: str | None = None,
        oracles: Sequence[Oracle] | None = None,
        *,
        looks_ahead: bool = True,
    ) -> None:
        super().__init__(catalogue, predictor)
        if oracles is None:
            if predictor is None:
                raise ValueError("contention-aware needs a predictor or oracles.")
            oracles = catalogue.oracles(predictor)
        self.oracles = oracles
        self.looks_ahead = looks_ahead
        self._outlooks: dict[int, Outlook] = {}
        self._made_of = 0

    def choose(self, fleet: Fleet, tenant: Tenant) -> Nic | NicKind | None:
        new = self.cheapest_new(fleet, tenant, self.oracles)
        fitting = self._fitting(fleet, tenant)
        self._look_ahead(fleet)
        if not fitting or not self._outlooks:
            return next(iter(fitting), new)
        losses = [self._loss(nic.kind, nic.tenants, tenant) for nic in fitting]
        least = min(range(len(fitting)), key=losses.__getitem__)
        if (
            new is not None
            and new.count is None
            and losses[least] > self._loss(new, (), tenant) + OPENING_TOLL * new.cost
        ):
            return new
        return fitting[least]

    def _fitting(self, fleet: Fleet, tenant: Tenant) -> list[Nic]:
        """NICs in use on which everybody is predicted to keep the SLA, in the order in which they were opened."""
        roomy = fleet.roomy(tenant.workload)
        joined = {nic.id: company_of([*nic.company, tenant.workload]) for nic in roomy}
        self._ask_at_once(roomy, joined)
        return [
            nic for nic in roomy if keeps_slas(self.oracles[nic.kind.index], joined[nic.id], [*nic.tenants, tenant])
        ]

    def _ask_at_once(self, roomy: Sequence[Nic], joined: dict[str, Company]) -> None:
        """One batch per kind: predictors answer a thousand companies for the price of one."""
        for kind in {nic.kind.index for nic in roomy}:
            self.oracles[kind].throughput([joined[nic.id] for nic in roomy if nic.kind.index == kind])

    def _look_ahead(self, fleet: Fleet) -> None:
        """Renew the outlooks when the tenants present have become many more, or few."""
        present = fleet.tenants
        grown = self._made_of <= present / RENEWED_EVERY or present <= self._made_of / 2
        if self.looks_ahead and present >= FORESEEN_FROM and grown:
            tenants = [tenant for nic in fleet.nics.values() for tenant in nic.tenants]
            made = {kind.index: outlook(tenants, kind, self.oracles[kind.index]) for kind in fleet.kinds}
            self._outlooks = {index: one for index, one in made.items() if one is not None}
            self._made_of = present

    def _loss(self, kind: NicKind, tenants: Sequence[Tenant], tenant: Tenant) -> float:
        """What the room on a NIC of that kind with these tenants loses in worth when the tenant moves in."""
        seen = self._outlooks.get(kind.index)
        everybody = [*tenants, tenant]
        if seen is None or not seen.knows([each.workload for each in everybody]):
            return 0.0
        oracle = self.oracles[kind.index]
        borne_by = [(each.workload, borne(each, oracle.solo(each.workload))) for each in everybody]
        before = seen.worth(borne_by[:-1])
        return 0.0 if before == NOWHERE else kind.cost * (before - seen.worth(borne_by))


def keeps_slas(oracle: Oracle, company: Company, tenants: Sequence[Tenant]) -> bool:
    """Whether the oracle expects every one of the tenants that make up the company to keep its SLA."""
    expected = oracle.by_workload(company)
    return all(tenant.sla.is_met(expected[tenant.workload], oracle.solo(tenant.workload)) for tenant in tenants)
