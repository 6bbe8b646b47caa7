"""The engine: arrivals, departures, changes and failures in any order, each decided at once.

It is a fleet, a chooser that picks NICs, and those who wait. Nobody is moved but who has to: whose NIC fails or is
drained, or who changed so that somebody on the NIC would miss the SLA.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from placer.model.feasibility import below_sla, smallest_margin
from placer.model.fleet import Fleet, Nic, NicKind, Service, Tenant
from placer.model.oracle import Oracle
from placer.online.events import Answer, Arrive, Change, Depart, Drain, Event, Fail, Move, Rebalance, Refused, Return
from placer.online.rebalance import Rebalancer
from placer.policy.pattern_table import MOST_PATTERNS
from placer.policy.rules import LOOK_AHEAD, Rule
from placer.policy.selector import Selector
from profiles import Workload

REJECT, QUEUE = WHEN_FULL = ("reject", "queue")
"""What becomes of a newcomer that has no place."""


class Engine:
    """A fleet that decides.

    Parameters
    ----------
    fleet
        The fleet, with whatever is on it.
    oracles
        Per kind, who tells the throughputs.
    rule
        Which of several NICs takes a newcomer.
    when_full
        One of `WHEN_FULL`.
    waiting
        Those who wait already, first come first.
    most_patterns
        Companies that are asked for beforehand, at most.
    """

    def __init__(
        self,
        fleet: Fleet,
        oracles: Sequence[Oracle],
        rule: Rule = LOOK_AHEAD,
        *,
        when_full: str = REJECT,
        waiting: Iterable[Tenant] = (),
        most_patterns: int = MOST_PATTERNS,
    ) -> None:
        self.fleet = fleet
        self.oracles = oracles
        self.when_full = when_full
        self.selector = Selector(fleet, oracles, rule, most_patterns=most_patterns)
        self.waiting = {tenant.id: tenant for tenant in waiting}
        self._decide: dict[type, Callable[..., Answer]] = {
            Arrive: self._arrive,
            Depart: self._depart,
            Change: self._change,
            Fail: self._fail,
            Drain: self._drain,
            Return: self._return,
            Rebalance: self._rebalance,
        }

    def handle(self, event: Event) -> Answer:
        """Decide on the event, and change the fleet accordingly.

        Raises
        ------
        Refused
            When the event makes no sense; nothing was changed.
        """
        return self._decide[type(event)](event)

    def workload_of(self, tenant_id: str) -> Workload | None:
        """What an instance runs that is on a NIC or waits; None for nobody."""
        home = self.fleet.nic_of(tenant_id)
        tenant = home.tenants_by_id[tenant_id] if home is not None else self.waiting.get(tenant_id)
        return None if tenant is None else tenant.workload

    def _arrive(self, event: Arrive) -> Answer:
        tenant = event.tenant
        if tenant.id in self.waiting or self.fleet.nic_of(tenant.id) is not None:
            raise Refused(f"'{tenant.id}' is here already")
        if not any(kind.hosts(tenant.workload) for kind in self.fleet.kinds):
            raise Refused(f"no NIC hosts '{tenant.workload.nf}'")
        self.selector.observe(tenant)
        nic = self._place(tenant)
        if nic is not None:
            return Answer("placed", (Move(tenant.id, None, nic.id),))
        reasons = tuple(self.selector.reasons(tenant))
        return Answer("queued" if self._wait(tenant) else "rejected", reasons=reasons)

    def _depart(self, event: Depart) -> Answer:
        if self.waiting.pop(event.id, None) is not None:
            return Answer("left")
        if self.fleet.nic_of(event.id) is None:
            raise Refused(f"'{event.id}' is not here")
        nic = self.fleet.remove(event.id)
        return Answer("left", (Move(event.id, nic.id, None), *self._admit()))

    def _change(self, event: Change) -> Answer:
        before = self._tenant(event.id)
        after = Tenant(event.id, event.workload or before.workload, event.sla or before.sla)
        if not any(kind.hosts(after.workload) for kind in self.fleet.kinds):
            raise Refused(f"no NIC hosts '{after.workload.nf}'")
        if event.id in self.waiting:
            self.waiting[event.id] = after
            moves = tuple(self._admit())
            return Answer("placed" if event.id not in self.waiting else "queued", moves)
        home = self.fleet.nic_of(event.id)
        assert home is not None
        others = [tenant for tenant in home.tenants if tenant.id != event.id]
        if self._keeps(home, [*others, after]):
            self._swap(home, after)
            return Answer("kept", tuple(self._admit()))
        self.fleet.remove(event.id)
        nic = self._place(after)
        if nic is not None:
            return Answer("moved", (Move(event.id, home.id, nic.id), *self._admit()))
        if not self._fits(home, [*others, after]):
            raise self._undone(before, home, f"'{after.workload.nf}' has no cores on {home.id}, nor anywhere else")
        return Answer("at-risk", at_risk=tuple(self._below(self._back(after, home))))

    def _fail(self, event: Fail) -> Answer:
        nic = self._nic(event.nic)
        self.fleet.withdraw(nic, Service.FAILED)
        moves: list[Move] = []
        queued: list[str] = []
        rejected: list[str] = []
        for tenant in nic.tenants:
            self.fleet.remove(tenant.id)
            target = self._place(tenant)
            moves.append(Move(tenant.id, nic.id, target.id if target else None))
            if target is None:
                (queued if self._wait(tenant) else rejected).append(tenant.id)
        return Answer("failed", tuple(moves), queued=tuple(queued), rejected=tuple(rejected))

    def _drain(self, event: Drain) -> Answer:
        nic = self._nic(event.nic)
        self.fleet.withdraw(nic, Service.DRAINING)
        moves = []
        for tenant in nic.tenants:
            choice = self.selector.choose(tenant)
            if choice is not None:
                self.fleet.remove(tenant.id)
                moves.append(Move(tenant.id, nic.id, self._settle(tenant, choice).id))
        return Answer("draining" if nic.tenants_by_id else "drained", tuple(moves))

    def _return(self, event: Return) -> Answer:
        nic = self.fleet.out_of_service.get(event.nic)
        if nic is None:
            raise Refused(f"'{event.nic}' is not out of service")
        self.fleet.restore(nic)
        return Answer("returned", tuple(self._admit()))

    def _rebalance(self, event: Rebalance) -> Answer:
        steps = Rebalancer(self.fleet, self.oracles, self.selector).steps(event)
        return Answer("rebalanced" if steps else "as-it-was", (*steps, *self._admit()))

    def _place(self, tenant: Tenant) -> Nic | None:
        choice = self.selector.choose(tenant)
        return None if choice is None else self._settle(tenant, choice)

    def _settle(self, tenant: Tenant, choice: Nic | NicKind) -> Nic:
        nic = self.fleet.open(choice) if isinstance(choice, NicKind) else choice
        self.fleet.place(tenant, nic)
        return nic

    def _wait(self, tenant: Tenant) -> bool:
        if self.when_full == QUEUE:
            self.waiting[tenant.id] = tenant
        return self.when_full == QUEUE

    def _admit(self) -> list[Move]:
        """Place whoever of those who wait fits now, first come first; who fits nowhere holds up nobody."""
        moves = []
        in_vain: dict[Workload, float] = {}
        for tenant in tuple(self.waiting.values()):
            bears = tenant.sla.max_drop
            if bears is not None and bears <= in_vain.get(tenant.workload, -1.0):
                continue
            nic = self._place(tenant)
            if nic is not None:
                del self.waiting[tenant.id]
                moves.append(Move(tenant.id, None, nic.id))
            elif bears is not None:
                in_vain[tenant.workload] = bears
        return moves

    def _swap(self, home: Nic, after: Tenant) -> None:
        self.fleet.remove(after.id)
        self._back(after, home)

    def _back(self, tenant: Tenant, home: Nic) -> Nic:
        """Put a tenant back where it was just removed; the NIC fell out of use when it was the last one there."""
        if not home.tenants_by_id and home.service is Service.UP:
            home = self.fleet.open(home.kind, home.id)
        elif not home.tenants_by_id:
            self.fleet.reuse(home)
        self.fleet.place(tenant, home)
        return home

    def _undone(self, before: Tenant, home: Nic, why: str) -> Refused:
        self._back(before, home)
        return Refused(why)

    def _fits(self, nic: Nic, tenants: Sequence[Tenant]) -> bool:
        hosted = all(nic.kind.hosts(tenant.workload) for tenant in tenants)
        return hosted and nic.kind.cores_taken(tenant.workload for tenant in tenants) <= nic.kind.cores

    def _keeps(self, nic: Nic, tenants: Sequence[Tenant]) -> bool:
        return self._fits(nic, tenants) and smallest_margin(self.oracles[nic.kind.index], tenants) >= 0

    def _below(self, nic: Nic) -> list[str]:
        """Tenants of the NIC that are expected to miss their SLA."""
        oracle = self.oracles[nic.kind.index]
        return [tenant.id for tenant in below_sla(oracle, nic.tenants)]

    def _tenant(self, tenant_id: str) -> Tenant:
        home = self.fleet.nic_of(tenant_id)
        tenant = home.tenants_by_id[tenant_id] if home is not None else self.waiting.get(tenant_id)
        if tenant is None:
            raise Refused(f"'{tenant_id}' is not here")
        return tenant

    def _nic(self, nic_id: str) -> Nic:
        nic = self.fleet.find(nic_id)
        if nic is None:
            raise Refused(f"'{nic_id}' is not a NIC that was ever in use")
        if nic.service is Service.FAILED:
            raise Refused(f"'{nic_id}' failed before")
        return nic
