"""Which tenants may share a NIC, judged as the plan was made."""

from collections.abc import Sequence
from dataclasses import replace

from placer.evaluate.expected_violations import likeliest_violations
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.day import parts_of
from placer.model.feasibility import keeps_slas
from placer.model.fleet import Fleet
from placer.model.groups import Constraints
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.plan import Placement, Plan
from placer.optimal.planned.chances import LIKELIEST_VIOLATION
from placer.spare.takeover import Group, SharingRule
from placer.strategies import OnlineStrategy, Strategy

KEPT: tuple[float, ...] = ()  # chances where throughputs are certain


class ByThroughput(SharingRule):
    """Tenants share a NIC where these throughputs, per kind, meet every SLA in every part of the day."""

    def __init__(self, oracles: Sequence[Oracle]) -> None:
        self.oracles = oracles

    def chances(self, groups: Sequence[Group]) -> list[Sequence[float] | None]:
        return [KEPT if self._keeps(kind, tenants) else None for kind, tenants in groups]

    def _keeps(self, kind: NicKind, tenants: tuple[Tenant, ...]) -> bool:
        return all(keeps_slas(kind, self.oracles[kind.index], part) for part in parts_of(tenants))


class ByExpectation(SharingRule):
    """Tenants share a NIC where so few SLA violations are expected of all that the budget, less its reserve, is kept.

    Where instances leave, each counts with its likeliest violation of all its stay, as in the plan.
    """

    def __init__(self, plan: Plan, catalogue: Catalogue, predictor: str) -> None:
        self._catalogue, self._predictor = catalogue, predictor
        self._most = LIKELIEST_VIOLATION if catalogue.budget_pct is not None else catalogue.risk or LIKELIEST_VIOLATION
        self._on_gpus = ByThroughput(catalogue.oracles(predictor)) if catalogue.gpus else None
        self.worst = {identity: chance for identity, (chance, _) in self._expect(plan).items()}
        if catalogue.budget_pct is not None:
            reserve_pct = 0.0 if plan.within is None else plan.within.reserve_pct
            share = (catalogue.budget_pct - reserve_pct) / 100.0
            self.slack = max(share * len(plan.placed) - sum(self.worst.values()), 0.0)

    def chances(self, groups: Sequence[Group]) -> list[Sequence[float] | None]:
        placements = [
            Placement(Arrival(f"{at}/{tenant.id}", 0.0, tenant.workload, tenant.sla, day=tenant.day), str(at), kind)
            for at, (kind, tenants) in enumerate(groups)
            for tenant in tenants
        ]
        expected = self._expect(Plan("", self._predictor, tuple(placements), 0.0))
        found: list[Sequence[float] | None] = []
        for at, (kind, tenants) in enumerate(groups):
            if self._on_gpus is not None and kind.index in self._catalogue.gpus:
                found += self._on_gpus.chances([(kind, tenants)])
                continue
            chances = [expected[f"{at}/{tenant.id}"][0] for tenant in tenants]
            fits = all(kind.has_port_for(tenant.workload for tenant in part) for part in parts_of(tenants))
            found.append(chances if fits and max(chances) <= self._most else None)
        return found

    def _expect(self, plan: Plan) -> dict[str, tuple[float, object]]:
        return {**likeliest_violations(plan, self._catalogue, self._predictor)} if plan.placements else {}


class ByDecision(SharingRule):
    """Tenants share a NIC where the strategy, which predicts nothing, puts the last of them beside the others."""

    def __init__(self, strategy: Strategy, catalogue: Catalogue) -> None:
        self._strategy, self._catalogue = strategy, catalogue
        self._fleet = Fleet(catalogue.kinds)
        if isinstance(strategy, OnlineStrategy):
            strategy.begin(self._fleet)

    def chances(self, groups: Sequence[Group]) -> list[Sequence[float] | None]:
        return [
            KEPT if self._decides(kind, [_without_groups(tenant) for tenant in tenants]) else None
            for kind, tenants in groups
        ]

    def _decides(self, kind: NicKind, tenants: Sequence[Tenant]) -> bool:
        if len(tenants) == 1:
            return self._catalogue.serves_alone(kind, tenants[0].workload)
        if not isinstance(self._strategy, OnlineStrategy):
            return False
        nic = self._fleet.open(kind)
        for tenant in tenants[:-1]:
            self._fleet.place(tenant, nic)
        chosen = self._strategy.choose(self._fleet, tenants[-1])
        for tenant in tenants[:-1]:
            self._fleet.remove(tenant.id)
        return isinstance(chosen, Nic)


def _without_groups(tenant: Tenant) -> Tenant:
    """The tenant with its pools only: whether groups allow a NIC depends on more than its tenants."""
    pools = tuple(value for value in tenant.constraints.values if value[0] == "pool")
    return replace(tenant, constraints=Constraints(pools))
