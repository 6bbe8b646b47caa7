"""Repair: an instance that production shows below its SLA moves to another NIC, few at a time and ever less often.

Only the instance itself moves, never a neighbour: one that reports false readings moves nobody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placer.model.fleet import Fleet, Nic, NicKind, Service, Tenant
from placer.online.events import JudgedInstance, Move
from placer.policy.selector import Selector
from profiles import CoLocation

SEEN = 2
"""Readings below its SLA, in the co-location that it has now, after which an instance moves."""

PATIENCE = 200
"""Events after a move before an instance may move again; they double with each of its moves."""


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

    Parameters
    ----------
    fleet
        Is changed by the moves.
    selector
        Picks the NIC for an instance that moves.
    budget
        Most moves per measurement.
    """

    def __init__(self, fleet: Fleet, selector: Selector, budget: int) -> None:
        self.fleet = fleet
        self.selector = selector
        self.budget = budget
        self._seen: dict[str, _Sighting] = {}
        self._patience: dict[str, _Patience] = {}

    def moves(self, nic: Nic, judged: Sequence[JudgedInstance], event: int) -> list[Move]:
        """Count what was measured on a NIC, and make the moves that are due."""
        due = [one.id for one in judged if self._is_below(nic, one) and self._may_move(nic, one.id, event)]
        made: list[Move] = []
        for identity in due:
            if len(made) < self.budget and len(nic.tenants_by_id) > 1:
                made += self._moved(nic, nic.tenants_by_id[identity], event)
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
        return seen.times >= SEEN

    def _may_move(self, nic: Nic, identity: str, event: int) -> bool:
        patience = self._patience.get(identity)
        return nic.service is Service.UP and (patience is None or event >= patience.until)

    def _moved(self, nic: Nic, tenant: Tenant, event: int) -> list[Move]:
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
        patience.until = event + PATIENCE * 2 ** (patience.moves - 1)
        return [Move(tenant.id, nic.id, target.id)]
