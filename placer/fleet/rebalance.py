"""Rebalancing: fewer expected SLA violations and fewer NICs, in few moves.

A move takes one tenant to another NIC on which every SLA stays met, and makes no tenant that stays behind violate its
SLA; so the fleet is sound after each move. First come moves that end expected violations, then moves that empty a NIC,
all of them or none. A move is made only if its gain exceeds its cost. Both the violations and the cost of the NICs in
use only ever fall, so a second run never moves anything back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from placer.fleet.events import JudgedInstance, Move, Rebalance, RebalanceMove
from placer.model.feasibility import below_sla
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Service, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.policy.selector import Selector
from profiles import CoLocation

EMPTIES_NIC, ENDS_RISK = "empties a NIC", "ends a risk"


class Rebalancer:
    """Moves tenants of a fleet."""

    def __init__(self, fleet: Fleet, oracles: Sequence[Oracle], selector: Selector) -> None:
        self.fleet = fleet
        self.oracles = oracles
        self.selector = selector

    def moves(self, request: Rebalance) -> list[RebalanceMove]:
        """Make all moves that pay, up to the budget, and return them in order."""
        moves: list[RebalanceMove] = []
        for nic in self._in_service(request):
            moves += self._end_violations(nic, request, request.budget - len(moves))
        before = -1
        while len(moves) > before:
            before = len(moves)
            for nic in self._easiest_first(request):
                moves += self._empty(nic, request, request.budget - len(moves))
        return moves

    def _in_service(self, request: Rebalance) -> list[Nic]:
        named = self.fleet.nics.values() if request.nics is None else map(self.fleet.nics.find, request.nics)
        return [nic for nic in named if nic is not None and nic.service is Service.UP]

    def _easiest_first(self, request: Rebalance) -> Iterator[Nic]:
        """NICs by the cost that emptying them saves per move, without those that were emptied or filled meanwhile."""
        nics = self._in_service(request)
        tenants = {nic.id: len(nic.tenants_by_id) for nic in nics}
        for nic in sorted(nics, key=emptied_first):
            if len(nic.tenants_by_id) <= tenants[nic.id] and self.fleet.nics.get(nic.id) is nic:
                yield nic

    def _end_violations(self, nic: Nic, request: Rebalance, budget: int) -> Iterator[RebalanceMove]:
        """Move away the tenant that ends most violations, until there are none left."""
        while budget > 0 and (violations := self._violations(nic, nic.tenants)):
            found = self._best_relief(nic, violations, request)
            if found is None:
                return
            yield found
            budget -= 1

    def _best_relief(self, nic: Nic, violations: int, request: Rebalance) -> RebalanceMove | None:
        """The move that ends most violations on a NIC; None where none pays."""
        remaining = {
            tenant.id: self._violations(nic, [other for other in nic.tenants if other is not tenant])
            for tenant in nic.tenants
        }
        for tenant in sorted(nic.tenants, key=lambda tenant: remaining[tenant.id]):
            ended = violations - remaining[tenant.id]
            if ended <= 0:
                break
            choice = self.selector.choose(tenant)
            if choice is None or choice is nic:
                continue
            opening = choice.cost if isinstance(choice, NicKind) else 0.0
            gain = ended * request.risk_worth - opening
            if gain > request.move_cost:
                target = self._move(tenant, choice)
                return RebalanceMove(tenant.id, nic.id, target.id, ENDS_RISK, gain, request.move_cost)
        return None

    def _empty(self, nic: Nic, request: Rebalance, budget: int) -> list[RebalanceMove]:
        """Moves that empty the NIC; none, and all taken back, where one of its tenants fits on no other NIC."""
        tenants = nic.tenants
        if len(tenants) > budget or nic.kind.cost <= request.move_cost * len(tenants):
            return []
        moved: list[tuple[Tenant, Nic]] = []
        with self.selector.trial():  # a try that fails leaves no trace
            self.fleet.withdraw(nic, Service.DRAINING)
            for tenant in self._hardest_first(nic):
                places = (choice for _, choice in self.selector.rank(tenant, 2))
                choice = next((place for place in places if isinstance(place, Nic)), None)
                rest = [other for other in nic.tenants if other is not tenant]
                if choice is None or self._violations(nic, rest):
                    break
                moved.append((tenant, choice))
                if len(moved) < len(tenants):
                    self._move(tenant, choice)
            for tenant, target in reversed(moved):
                if target.tenants_by_id.get(tenant.id) is tenant:
                    self._move(tenant, nic)
            nic.tenants_by_id = {tenant.id: tenant for tenant in tenants}  # in their order of arrival
            self.fleet.restore(nic)
        if len(moved) < len(tenants):
            return []
        for tenant, target in moved:
            self._move(tenant, target)
        gain = nic.kind.cost / len(tenants)
        return [RebalanceMove(one.id, nic.id, target.id, EMPTIES_NIC, gain, request.move_cost) for one, target in moved]

    def _hardest_first(self, nic: Nic) -> list[Tenant]:
        """Tenants by the share of their throughput alone that they require: the highest is the hardest to place."""
        oracle = self.oracles[nic.kind.index]
        solo = {tenant.workload: oracle.solo(tenant.workload) for tenant in nic.tenants}
        return sorted(
            nic.tenants, key=lambda tenant: -tenant.required_kpps(solo[tenant.workload]) / solo[tenant.workload]
        )

    def _move(self, tenant: Tenant, choice: Nic | NicKind) -> Nic:
        nic = self.fleet.open(choice) if isinstance(choice, NicKind) else choice
        self.fleet.remove(tenant.id)
        self.fleet.place(tenant, nic)
        return nic

    def _violations(self, nic: Nic, tenants: Sequence[Tenant]) -> int:
        """How many of these would violate their SLA if they were the tenants of the NIC."""
        return len(below_sla(self.oracles[nic.kind.index], tenants)) if tenants else 0


def emptied_first(nic: Nic) -> tuple[float, int]:
    """The order in which NICs are emptied: by the cost that it saves per move, then by number."""
    return -nic.kind.cost / len(nic.tenants_by_id), nic.number


# Repair: an instance that production shows below its SLA moves to another NIC, few at a time and ever less often.
#
# Only the instance itself moves, never a neighbour: one that reports false readings moves nobody else.


READINGS_TO_MOVE = 2  # readings below its SLA, in the co-location that it has now, after which an instance moves
EVENTS_BETWEEN_MOVES = 200  # events after a move before an instance may move again; they double with each of its moves


@dataclass(slots=True)
class _Sighting:
    """How often an instance was below its SLA in a co-location."""

    co_location: CoLocation
    times: int = 0


@dataclass(slots=True)
class _Patience:
    """How often an instance was moved, and from which event on it may be again."""

    moves: int = 0
    until: int = 0


class Repairer:
    """Moves instances of a fleet.

    `budget`: most moves per measurement.
    """

    def __init__(self, fleet: Fleet, selector: Selector, budget: int) -> None:
        self.fleet = fleet
        self.selector = selector
        self.budget = budget
        self._seen: dict[str, _Sighting] = {}
        self._patience: dict[str, _Patience] = {}

    def moves(self, nic: Nic, judged: Sequence[JudgedInstance], event: int) -> list[Move]:
        """Count what was measured on a NIC, and make the moves that are due."""
        due = [seen.id for seen in judged if self._is_below(nic, seen) and self._may_move(nic, seen.id, event)]
        made: list[Move] = []
        for identity in due:
            if len(made) < self.budget and len(nic.tenants_by_id) > 1:
                made += self._move(nic, nic.tenants_by_id[identity], event)
        return made

    def forget(self, identity: str) -> None:
        """The instance has left the fleet."""
        self._seen.pop(identity, None)
        self._patience.pop(identity, None)

    def _is_below(self, nic: Nic, one: JudgedInstance) -> bool:
        """Whether an instance was seen below its SLA often enough; one reading that is not begins anew."""
        if one.below_sla is None:
            return False
        if not one.below_sla:
            self._seen.pop(one.id, None)
            return False
        seen = self._seen.get(one.id)
        if seen is None or seen.co_location != nic.co_location:
            seen = self._seen[one.id] = _Sighting(nic.co_location)
        seen.times += 1
        return seen.times >= READINGS_TO_MOVE

    def _may_move(self, nic: Nic, identity: str, event: int) -> bool:
        patience = self._patience.get(identity)
        return nic.service is Service.UP and (patience is None or event >= patience.until)

    def _move(self, nic: Nic, tenant: Tenant, event: int) -> list[Move]:
        self.fleet.withdraw(nic, Service.DRAINING)
        choice = self.selector.choose(tenant)
        self.fleet.restore(nic)
        if choice is None:
            return []
        target = self.fleet.open(choice) if isinstance(choice, NicKind) else choice
        self.fleet.remove(tenant.id)
        self.fleet.place(tenant, target)
        self._seen.pop(tenant.id, None)
        patience = self._patience.setdefault(tenant.id, _Patience())
        patience.moves += 1
        patience.until = event + EVENTS_BETWEEN_MOVES * 2 ** (patience.moves - 1)
        return [Move(tenant.id, nic.id, target.id)]
