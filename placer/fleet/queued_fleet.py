"""A fleet with its queue: where instances are placed, and what is placed once there is room."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import chain

from placer.fleet.cores import CoresChoices, shown_cores
from placer.fleet.events import Decision, Lookup, Move, Refused
from placer.fleet.learning.learning import Feedback
from placer.fleet.nic_versions import NicVersions
from placer.fleet.rebalance import Repairer
from placer.model.constraints import conflict_on, may_join_together
from placer.model.feasibility import keeps_slas
from placer.model.fleet import Fleet
from placer.model.groups import Constraints
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.pools import FleetJournal
from placer.model.unplaceable import pool_fault
from placer.policy.cores import UsualNeighbours
from placer.policy.pattern_table import MOST_PATTERNS
from placer.policy.rejection import Reason
from placer.policy.rules import LOOK_AHEAD, Rule
from placer.policy.selector import Selector
from profiles import Workload

TRIED_IN_ORDER, MOST_TRIED = 8, 16
"""Tenants of the queue that no NIC takes although one has the cores: after so many an event goes on elsewhere in the
queue, and after so many it tries no more, so that none takes long."""

GOLDEN = 0x9E3779B1  # 2^32 times the golden section: its multiples fill a circle evenly, and so do every second or k-th

REJECT, QUEUE = WHEN_FULL = ("reject", "queue")  # what happens to an arrival that fits on no NIC

MAX_NAMED_INSTANCES = 5  # ids that a message names


class QueuedFleet:
    """Places instances of a fleet and of its queue; all that an `Engine` decides by.

    `when_full`: one of `WHEN_FULL`. `waiting`: the queue, in the order in which tenants joined it; it also has the
    tenants of failed NICs that fit nowhere, whatever `when_full` is. `most_patterns`: largest number of co-locations
    that are predicted in advance. `expected`: tenants like those that will come, so that no arrival waits for
    predictions of usual co-locations. `feedback`: learns from measurements; without it they are refused. `events`: the
    number of the last event. `repairs`: most instances that a measurement may move because they were below their SLA.
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
        expected: Sequence[Tenant] = (),
        feedback: Feedback | None = None,
        events: int = 0,
        repairs: int = 0,
    ) -> None:
        self.fleet = fleet
        self.oracles = oracles
        self.when_full = when_full
        self.selector = Selector(fleet, oracles, rule, most_patterns=most_patterns, expected=expected, stand_ins=True)
        self.waiting = {tenant.id: tenant for tenant in waiting}
        self.feedback = feedback
        self.events = events
        self.versions = NicVersions(events)
        self._readings = 0 if feedback is None else feedback.capacities
        self._repairer = Repairer(fleet, self.selector, repairs) if repairs else None
        present = sorted(fleet.all_tenants(), key=lambda tenant: tenant.id)  # the same order after any restart
        self._neighbours = UsualNeighbours(tenant.workload for tenant in present)
        self._cores_choices = CoresChoices(fleet.kinds, oracles, self._neighbours)

    def miss(self, nic_id: str) -> str:
        """What messages say of a NIC that is not in the fleet."""
        return f"'{nic_id}' {'has left the fleet' if nic_id in self.fleet.gone else 'was never in use'}"

    def choices(self, tenant: Tenant) -> Sequence[Tenant]:
        """The instance on each number of cores that it may be given, in the order of `order_choices`."""
        return self._cores_choices.of(tenant)

    def place(self, choices: Sequence[Tenant]) -> Nic | None:
        """Place an instance with the first of its choices of cores with which a NIC in use takes it, else a new one."""
        opening: tuple[Tenant, NicKind] | None = None
        for choice in choices:
            place = self.selector.choose(choice)
            if isinstance(place, Nic):
                return self._put_arrival(choice, place)
            if place is not None and opening is None:
                opening = choice, place
        return None if opening is None else self._put_arrival(*opening)

    def _put_arrival(self, tenant: Tenant, choice: Nic | NicKind) -> Nic:
        self._neighbours.add(tenant.workload)
        return self.put(tenant, choice)

    def put(self, tenant: Tenant, choice: Nic | NicKind) -> Nic:
        nic = self.fleet.open(choice) if isinstance(choice, NicKind) else choice
        self.fleet.place(tenant, nic)
        return nic

    def place_waiting(self) -> list[Move]:
        """Place what fits of the queue, by priority, then first come first; a tenant that fits nowhere does not block
        the others.

        At most `MOST_TRIED` with enough cores that fit nowhere are tried: the first half is the first of the queue, the
        others are elsewhere for each event, by its number: a restarted engine decides as this one would.
        """
        if not self.waiting:
            return []
        moves, tried, has_cores = list[Move](), set[str](), self.selector.has_cores()
        failed_drop: dict[tuple[Workload, Constraints], float] = {}
        groups: dict[str, list[Tenant]] = {}
        for waiting in self.waiting.values():
            if waiting.group:
                groups.setdefault(waiting.group, []).append(waiting)
        for tenant in self._queue(tried):
            if tenant.id not in self.waiting or (tenant.group and tenant.group not in groups):
                continue
            drop, choices = tenant.sla.max_drop, self.choices(tenant)
            has_room = any(has_cores(choice.workload) for choice in choices)
            alike = tenant.workload, tenant.constraints
            if not has_room or (drop is not None and drop <= failed_drop.get(alike, -1.0)):
                continue
            if len(tried) == MOST_TRIED:
                break
            if tenant.group:
                placed = self.place_all(groups.pop(tenant.group))[0]
                moves += placed
                for move in placed:
                    del self.waiting[move.id]
                tried |= set[str]() if placed else {tenant.id}
                has_cores = self.selector.has_cores()
                continue
            nic = self.place(choices)
            if nic is not None:
                del self.waiting[tenant.id]
                moves.append(Move(tenant.id, None, nic.id, cores=self.cores_of(tenant.id)))
                has_cores = self.selector.has_cores()
            else:
                tried.add(tenant.id)
                if drop is not None:
                    failed_drop[alike] = drop
        return moves

    def _queue(self, tried: Set[str]) -> Iterator[Tenant]:
        """The queue in the order in which this event tries it; `tried`: who was tried, and fits nowhere.

        Elsewhere in the queue, too, of those that need the same the first comes first.
        """
        queue = sorted(self.waiting.values(), key=lambda tenant: -tenant.priority)
        for at, tenant in enumerate(queue):
            if len(tried) == TRIED_IN_ORDER:
                behind: dict[object, list[Tenant]] = {}
                for other in queue[at:]:
                    need = other.group or (other.workload, other.sla, other.constraints)
                    behind.setdefault(need, []).append(other)
                alike = [*behind.values()]
                first = (self.events * GOLDEN % 2**32) * len(alike) >> 32
                yield from chain.from_iterable((*alike[first:], *alike[:first]))
                return
            yield tenant

    def place_all(self, tenants: Sequence[Tenant]) -> tuple[list[Move], tuple[Reason, ...]]:
        """Place all of a group, or none, and then say why the first that fits nowhere does not."""
        reasons: tuple[Reason, ...] = ()

        def place() -> list[Move]:
            nonlocal reasons
            moves = []
            for tenant in tenants:
                choices = self.choices(without_group(tenant))
                nic = self.place(choices)
                if nic is None:
                    reasons = tuple(self.selector.reasons(choices[0]))
                    break
                moves.append(Move(tenant.id, None, nic.id, cores=self.cores_of(tenant.id)))
            return moves

        return self.make_all(len(tenants), place), reasons

    def make_all(self, count: int, work: Callable[[], list[Move]]) -> list[Move]:
        """The moves that `work` makes, if there are so many; else they are taken back, and there are none.

        A tenant that is put back on its NIC is then the last one there.
        """
        before, departures = self.fleet.journal, self.selector.departures
        journal = self.fleet.journal = FleetJournal() if before is None else before
        mark = len(journal)
        moves = work()
        self.fleet.journal = None
        if len(moves) < count:
            journal.take_back(mark)
            self.selector.departures = departures
            moves = []
        self.fleet.journal = before
        return moves

    def moved_at_once(self, nic: Nic) -> list[list[Tenant]]:
        """The tenants of a NIC, those that must be on one NIC together."""
        groups: dict[str, list[Tenant]] = {}
        for tenant in nic.tenants:
            groups.setdefault(tenant.constraints.of("together") or f"\0{tenant.id}", []).append(tenant)
        return [*groups.values()]

    def find_place_of_all(self, group: Sequence[Tenant]) -> Nic | NicKind | None:
        """The first of the NICs that are best for one of these tenants, or a new one, that takes all of them."""
        value = group[0].constraints.of("together")
        if len(self.fleet.groups.members("together", value)) > len(group):
            return None
        movable = [replace(tenant, constraints=tenant.constraints.without("together")) for tenant in group]
        first, known = movable[0], self.selector.has_predicted(movable[0])
        ranked = [place for _, place in self.selector.rank(first, MOST_TRIED)] if known else []
        for place in (*ranked, *self.fleet.available()):
            nic, kind = (place, place.kind) if isinstance(place, Nic) else (None, place)
            present = () if nic is None else nic.tenants
            barred = any(conflict_on(self.fleet, tenant, kind, nic) for tenant in movable)
            barred = barred or not may_join_together(self.fleet, movable, kind, nic)
            if not barred and keeps_slas(kind, self.oracles[kind.index], [*present, *movable]):
                return place
        return None

    def place_freed(self, moves: Iterable[Move]) -> list[Move]:
        """Place what waits, where tenants have left NICs or domains that others are kept off."""
        left = (self.find_tenant(move.id) for move in moves)
        return self.place_waiting() if any(tenant and tenant.constraints.values for tenant in left) else []

    def find_place(self, tenant_id: str) -> Lookup:
        """Where an instance runs, or is to run."""
        nic, tenant = self.fleet.nic_of(tenant_id), self.find_tenant(tenant_id)
        until = None if tenant is None else tenant.reserved_until
        if nic is not None:
            status = "placed" if until is None else "reserved"
            return Lookup(status, found_on=nic.id, cores=self.cores_of(tenant_id), until=until)
        return Lookup("unknown" if tenant is None else "queued", until=until)

    def due_reservations(self, now: float) -> list[str]:
        """The reservations that end at a time or before (s since 1970), the earliest first."""
        placed = ((until, tenant_id) for tenant_id, until in self.fleet.reservations.items())
        queued = ((tenant.reserved_until, tenant.id) for tenant in self.waiting.values())
        ends = [(until, tenant_id) for until, tenant_id in (*placed, *queued) if until is not None]
        return [tenant_id for until, tenant_id in sorted(ends) if until <= now]

    def find_tenant(self, tenant_id: str) -> Tenant | None:
        """The tenant on a NIC or in the queue; None for an unknown one."""
        nic = self.fleet.nic_of(tenant_id)
        return nic.tenants_by_id[tenant_id] if nic is not None else self.waiting.get(tenant_id)

    def cores_of(self, identity: str) -> int | None:
        """As of `Decision`."""
        nic = self.fleet.nic_of(identity)
        return None if nic is None else shown_cores(nic.tenants_by_id[identity], nic.kind)

    def refuse_unknown(self, tenant: Tenant, *, is_new: bool = True) -> None:
        """Raise Refused where no NIC hosts what an instance is to run, or its load or cores cannot be predicted.

        Of a new one, pools without a NIC are refused; those of one that is there may have lost their NICs meanwhile.
        """
        for kind in self.fleet.kinds:
            if kind.hosts(tenant.workload):
                break
        else:
            raise Refused(f"no NIC hosts '{tenant.workload.nf}'")
        known = not is_new or tenant.constraints.of("pool") in self.fleet.pools
        if not known and (fault := pool_fault(tenant, self.fleet.all_kinds)):
            raise Refused("; ".join(fault))
        if not tenant.workload.is_plain and not self._cores_choices.knows_loads:
            raise Refused("the predictor knows neither offered loads nor numbers of cores: leave them out")

    def decide_placed(self, identity: str, nic: Nic) -> Decision:
        """The decision on an arrival that is on a NIC now."""
        cores = shown_cores(nic.tenants_by_id[identity], nic.kind)
        return Decision("placed", (Move(identity, None, nic.id),), cores=cores)


def with_placed(moves: Sequence[Move], placed: Sequence[Move]) -> list[Move]:
    """Moves off NICs, then those of instances of the queue; one that left a NIC for the queue and was placed after all
    moved there at once."""
    left = {move.id: move.source for move in moves if move.target is None}
    back = {move.id for move in placed if move.id in left}
    return [move for move in moves if move.id not in back] + [
        replace(move, source=left[move.id]) if move.id in back else move for move in placed
    ]


def without_group(tenant: Tenant) -> Tenant:
    """The instance as it is once it is placed, whatever its group."""
    return replace(tenant, group="") if tenant.group else tenant


def name_some(ids: list[str]) -> str:
    """The first of these ids, and how many more there are."""
    shown = ", ".join(f"'{identity}'" for identity in ids[:MAX_NAMED_INSTANCES])
    return shown + (f" and {len(ids) - MAX_NAMED_INSTANCES} more" if len(ids) > MAX_NAMED_INSTANCES else "")
