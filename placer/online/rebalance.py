"""Rebalancing: from a running fleet to one with fewer risks and fewer NICs, in few moves.

A move takes one tenant to another NIC on which everybody keeps the SLA, and leaves nobody behind who would miss it;
every step stands on its own. First come moves that end a risk, a tenant that is expected to miss its SLA; then moves
that empty a NIC, all of them or none. A move is only made when what is gained is worth more than it costs, and what is
gained cannot be gained again: risks and the cost of the NICs in use only ever fall, so that no second run moves back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placer.model.feasibility import below_sla
from placer.model.fleet import Fleet, Nic, NicKind, Service, Tenant
from placer.model.oracle import Oracle
from placer.online.events import Rebalance, Step
from placer.policy.selector import Selector

EMPTIES, RISK = "empties a NIC", "ends a risk"


class Rebalancer:
    """Moves tenants of a fleet.

    Parameters
    ----------
    fleet
        Is changed as the steps say.
    oracles
        Per kind, who tells the throughputs.
    chooser
        Which of several NICs takes somebody who moves.
    """

    def __init__(self, fleet: Fleet, oracles: Sequence[Oracle], selector: Selector) -> None:
        self.fleet = fleet
        self.oracles = oracles
        self.selector = selector

    def steps(self, asked: Rebalance) -> list[Step]:
        """The moves that are worth it, in order; the fleet is as it is after them."""
        steps: list[Step] = []
        for nic in self._in_service():
            steps += self._end_risks(nic, asked, asked.budget - len(steps))
        before = -1
        while len(steps) > before:
            before = len(steps)
            for nic in self._easiest_first():
                steps += self._empty(nic, asked, asked.budget - len(steps))
        return steps

    def _in_service(self) -> list[Nic]:
        return [nic for nic in self.fleet.nics.values() if nic.service is Service.UP]

    def _easiest_first(self) -> Iterator[Nic]:
        """NICs by what emptying saves per move; those that emptied or filled meanwhile are left out."""
        tenants = {nic.id: len(nic.tenants_by_id) for nic in self._in_service()}
        for nic in sorted(self._in_service(), key=lambda nic: (-nic.kind.cost / len(nic.tenants_by_id), nic.number)):
            if len(nic.tenants_by_id) <= tenants[nic.id] and self.fleet.nics.get(nic.id) is nic:
                yield nic

    def _end_risks(self, nic: Nic, asked: Rebalance, budget: int) -> Iterator[Step]:
        """Move away whoever's leaving helps most, until nobody misses the SLA."""
        while budget > 0 and (risks := self._risks(nic, nic.tenants)):
            found = self._relief(nic, risks, asked)
            if found is None:
                return
            yield found
            budget -= 1

    def _relief(self, nic: Nic, risks: int, asked: Rebalance) -> Step | None:
        """The move that ends most risks on a NIC; None where none is worth it."""
        by_rest = sorted(
            nic.tenants, key=lambda one: self._risks(nic, [tenant for tenant in nic.tenants if tenant is not one])
        )
        for tenant in by_rest:
            ended = risks - self._risks(nic, [other for other in nic.tenants if other is not tenant])
            choice = self._elsewhere(tenant, nic)
            opens = choice.cost if isinstance(choice, NicKind) else 0.0
            gain = ended * asked.risk_worth - opens
            if ended > 0 and choice is not None and gain > asked.move_cost:
                return Step(tenant.id, nic.id, self._move(tenant, choice).id, RISK, gain, asked.move_cost)
        return None

    def _empty(self, nic: Nic, asked: Rebalance, budget: int) -> list[Step]:
        """Moves that empty the NIC, or none: where somebody has no other place, all are taken back."""
        tenants = nic.tenants
        if len(tenants) > budget or nic.kind.cost <= asked.move_cost * len(tenants):
            return []
        gone: list[tuple[Tenant, Nic]] = []
        self.fleet.withdraw(nic, Service.DRAINING)
        for tenant in self._hardest_first(nic):
            choice = self.selector.choose(tenant, opens=False)
            rest = [other for other in nic.tenants if other is not tenant]
            if not isinstance(choice, Nic) or self._risks(nic, rest):
                break
            self.fleet.remove(tenant.id)
            self.fleet.place(tenant, choice)
            gone.append((tenant, choice))
        emptied = len(gone) == len(tenants)
        if not emptied:
            self._take_back(nic, gone)
        self.fleet.restore(nic)
        gain = nic.kind.cost / len(tenants)
        return [Step(t.id, nic.id, target.id, EMPTIES, gain, asked.move_cost) for t, target in gone] if emptied else []

    def _hardest_first(self, nic: Nic) -> list[Tenant]:
        """Tenants by how little they bear: those are the first to find no place."""
        oracle = self.oracles[nic.kind.index]
        alone = {
            one.id: one.sla.required_kpps(oracle.solo(one.workload)) / oracle.solo(one.workload) for one in nic.tenants
        }
        return sorted(nic.tenants, key=lambda one: -alone[one.id])

    def _take_back(self, nic: Nic, gone: Sequence[tuple[Tenant, Nic]]) -> None:
        for tenant, _ in reversed(gone):
            self.fleet.remove(tenant.id)
            self.fleet.place(tenant, nic)

    def _elsewhere(self, tenant: Tenant, home: Nic) -> Nic | NicKind | None:
        choice = self.selector.choose(tenant)
        return None if choice is home else choice

    def _move(self, tenant: Tenant, choice: Nic | NicKind) -> Nic:
        nic = self.fleet.open(choice) if isinstance(choice, NicKind) else choice
        self.fleet.remove(tenant.id)
        self.fleet.place(tenant, nic)
        return nic

    def _risks(self, nic: Nic, tenants: Sequence[Tenant]) -> int:
        """How many of these would miss the SLA if they were all on the NIC."""
        if not tenants:
            return 0
        oracle = self.oracles[nic.kind.index]
        return len(below_sla(oracle, tenants))
