"""The auditor: recomputes a fleet from its log of events and decisions alone, and lists what is wrong with each. It
shares nothing with the engine but the events and the oracle, and computes everything the simple, slow way."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import inf

from placer.fleet import events
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle

PlacedKind = tuple[int, str, str]  # the index of a kind, a pool, and a domain
MOST_TRIED_TOGETHER = 2  # sets of at most so many tenants are tried to find that fewer could have left


class Auditor:
    """Follows a fleet that began empty. `kinds`, `oracles`: the kinds of NIC, and the oracle of each. `exhaustive`:
    whether a tenant may be turned away only if no NIC fits."""

    def __init__(self, kinds: Sequence[NicKind], oracles: Sequence[Oracle], *, exhaustive: bool = True) -> None:
        self.kinds = kinds
        self.oracles = oracles
        self.exhaustive = exhaustive
        self.tenants: dict[str, Tenant] = {}
        self.places: dict[str, str] = {}
        self.waiting: set[str] = set()
        self.closed: dict[str, bool] = {}
        self.gone: set[str] = set()
        self.groups_left: dict[str, str] = {}
        self.placed_groups: dict[str, float] = {}  # with the highest priority of a member
        self.joined: Counter[PlacedKind] = Counter()
        self.joined_in: dict[str, tuple[str, str]] = {}
        self.at_risk: set[str] = set()
        self.reserved: set[str] = set()

    def follow(self, event: events.FleetEvent, decision: events.Decision, kind_of: Mapping[str, int]) -> list[str]:
        """What is wrong with the decision, one sentence per fault; `kind_of` is the index of every NIC's kind."""
        self._apply(event)
        if isinstance(event, events.Join):
            self._join(event, kind_of[event.nic])
        if (
            isinstance(decision, events.TakenPlace)
            and isinstance(event, events.Arrive)
            and event.tenant.id not in self.reserved
        ):
            return [f"{event.tenant.id} takes a place that is not reserved"]
        faults = list(self._left(event, decision, kind_of)) if isinstance(event, events.Arrive) else []
        if isinstance(event, events.Expire) and event.id not in self.reserved:
            faults.append(f"{event.id} expires and is not reserved")
        faults += list(self._moves(decision, kind_of, each=isinstance(event, events.Rebalance)))
        self._conclude(event, decision)
        faults += [*self._overfull(kind_of), *self._violations(decision, kind_of), *self._barred(kind_of)]
        faults += self._passed_over(event, decision)
        if isinstance(event, events.Arrive) and decision.nic != self.places.get(event.tenant.id):
            faults.append(f"{event.tenant.id} is not on {decision.nic}")
        if isinstance(event, events.Fail | events.Leave) and event.nic in self.places.values():
            faults.append(f"{event.nic} is out of service and still has tenants")
        groups = {tenant.group for tenant in self.tenants.values() if tenant.group}
        faults += [f"the group {group} is placed in part" for group in sorted(groups & self.placed_groups.keys())]
        self.placed_groups.clear()
        self.groups_left.clear()
        if self.exhaustive and self.waiting:
            for tenant in map(self.tenants.__getitem__, sorted(self.waiting)):
                faults += () if tenant.group else self._turned_away(tenant, kind_of)
        if self.exhaustive and isinstance(event, events.Arrive) and decision.status == "rejected":
            faults += self._turned_away(event.tenant, kind_of)
        return faults

    def violating(self, kind: int, tenants: Sequence[Tenant]) -> list[str]:
        """Ids of the tenants that violate their SLA when all of these share a NIC of that kind."""
        co_location = tuple(sorted(tenant.workload for tenant in tenants))
        answer = self.oracles[kind].throughput([co_location])[0]
        below = []
        for tenant in tenants:
            alone = self.oracles[kind].throughput([(tenant.workload,)])[0][0]
            got = min(kpps for workload, kpps in zip(co_location, answer, strict=True) if workload == tenant.workload)
            if not tenant.is_met(got, alone):
                below.append(tenant.id)
        return below

    def fits(self, kind: int, tenants: Sequence[Tenant]) -> bool:
        """Whether these can share a NIC of that kind: all are hosted, cores suffice, and every SLA is met."""
        cores_of = self.kinds[kind].cores_of
        if any(tenant.workload.nf not in cores_of for tenant in tenants):
            return False
        taken = sum(cores_of[tenant.workload.nf] for tenant in tenants)
        return taken <= self.kinds[kind].cores and not self.violating(kind, tenants)

    def _apply(self, event: events.FleetEvent) -> None:
        if isinstance(event, events.Arrive):
            self.tenants[event.tenant.id] = event.tenant
        elif isinstance(event, events.ArriveTogether):
            self.tenants |= {tenant.id: tenant for tenant in event.tenants}
        elif isinstance(event, events.Change):
            before = self.tenants[event.id]
            self.tenants[event.id] = replace(
                before, workload=event.workload or before.workload, sla=event.sla or before.sla
            )
        elif isinstance(event, events.Fail | events.Drain | events.Cordon):
            self.closed[event.nic] = True
        elif isinstance(event, events.DrainTogether):
            self.closed |= dict.fromkeys(event.nics, True)
        elif isinstance(event, events.Return | events.Uncordon):
            del self.closed[event.nic]
        elif isinstance(event, events.Leave):
            self.closed.pop(event.nic, None)
            self.gone.add(event.nic)

    def _join(self, event: events.Join, kind: int) -> None:
        """A NIC is new, or comes from another place, where it is missing then."""
        before = event.nic in self.gone or event.nic in self.joined_in
        self.joined[self._place(event.nic, kind)] -= before
        self.gone.discard(event.nic)
        self.joined_in[event.nic] = event.pool, event.domain
        self.joined[self._place(event.nic, kind)] += 1

    def _place(self, nic: str, kind: int) -> PlacedKind:
        """The kind of a NIC with its pool and its domain."""
        return kind, *self.joined_in.get(nic, (self.kinds[kind].pool, self.kinds[kind].domain))

    def _moves(self, decision: events.Decision, kind_of: Mapping[str, int], *, each: bool) -> Iterator[str]:
        """Replay the moves; with `each`, the fleet must be sound after every single one."""
        for move in decision.moves:
            if self.places.get(move.id) != move.source:
                yield f"{move.id} moved from {move.source}, but was on {self.places.get(move.id)}"
            if move.target is None:
                self.places.pop(move.id, None)
            else:
                self.places[move.id] = move.target
                self.waiting.discard(move.id)
                self._leave_group(move.id)
                if move.target in self.closed or move.target in self.gone:
                    yield f"{move.id} moved to {move.target}, which is out of service"
            if each:
                yield from (*self._overfull(kind_of), *self._violations(decision, kind_of), *self._barred(kind_of))

    def _left(self, event: events.Arrive, decision: events.Decision, kind_of: Mapping[str, int]) -> Iterator[str]:
        """What is wrong with those that make room for an arrival, by the fleet before it."""
        left, arrival = [move.id for move in decision.moves if move.source is not None], event.tenant
        lower = [identity for identity in self.places if self.tenants[identity].priority < arrival.priority]
        if left and not (event.preempt and {*left} <= {*lower}):
            yield f"{left} leave for {arrival.id}"
        if not (self.exhaustive and event.preempt):
            return
        if decision.status != "placed":
            for nic in sorted(set(self.places.values())):
                going = [identity for identity in lower if self.places[identity] == nic]
                if self._fits_without(going, arrival, kind_of):
                    yield f"{arrival.id} was turned away, and would fit without {going}"
        for size in range(min(len(left), MOST_TRIED_TOGETHER + 1)):
            for fewer in combinations(lower, size):
                if self._fits_without(fewer, arrival, kind_of):
                    yield f"{left} leave for {arrival.id}, which would fit without {fewer}"

    def _fits_without(self, going: Sequence[str], arrival: Tenant, kind_of: Mapping[str, int]) -> bool:
        before = self.places
        self.places = {identity: nic for identity, nic in before.items() if identity not in going}
        try:
            return any(self._turned_away(arrival, kind_of))
        finally:
            self.places = before

    def _leave_group(self, placed: str) -> None:
        """An instance is placed with its group, or alone."""
        tenant = self.tenants[placed]
        if tenant.group:
            self.placed_groups[tenant.group] = max(self.placed_groups.get(tenant.group, -inf), tenant.priority)
            self.groups_left[placed] = tenant.group
        self.tenants[placed] = replace(tenant, group="")

    def _passed_over(self, event: events.FleetEvent, decision: events.Decision) -> Iterator[str]:
        """Who still waits although one of lower priority, which needs the same, came out of the queue.

        A group comes out as one, when its member of the highest priority is next.
        """
        arrived = event.tenant.id if isinstance(event, events.Arrive) else None
        for move in decision.moves:
            came = self.tenants.get(move.id)
            if move.source is not None or came is None or move.id == arrived:
                continue
            priority = self.placed_groups.get(self.groups_left.get(came.id, ""), came.priority)
            for waiting in (self.tenants[identity] for identity in sorted(self.waiting)):
                if waiting.priority > priority and _need(waiting) == _need(came):
                    yield f"{waiting.id} waits, and {came.id} of lower priority was placed"

    def _conclude(self, event: events.FleetEvent, decision: events.Decision) -> None:
        if isinstance(event, events.Arrive) and decision.status == "queued":
            self.waiting.add(event.tenant.id)
        self.waiting.update(decision.queued)
        if isinstance(event, events.Reserve) and decision.status == "reserved":
            self.reserved.add(event.tenant.id)
        elif isinstance(event, events.Arrive):
            self.reserved.discard(event.tenant.id)
        elif isinstance(event, events.Depart | events.Expire):
            self.reserved.discard(event.id)
        if isinstance(event, events.Depart | events.Expire):
            self.waiting.discard(event.id)
            del self.tenants[event.id]
        if isinstance(event, events.Arrive) and decision.status == "rejected":
            del self.tenants[event.tenant.id]
        if isinstance(event, events.ArriveTogether):
            for tenant in event.tenants:
                if decision.status == "queued":
                    self.waiting.add(tenant.id)
                elif decision.status == "rejected":
                    del self.tenants[tenant.id]

    def _overfull(self, kind_of: Mapping[str, int]) -> Iterator[str]:
        taken_up = set(self.places.values()) | set(self.closed) | self.gone
        in_use = Counter(self._place(nic, kind_of[nic]) for nic in taken_up)
        for placed, nics in in_use.items():
            if nics > self._count(placed):
                yield f"{nics} NICs of kind {placed}, there are {self._count(placed)}"
        for nic, tenants in self._by_nic().items():
            kind = self.kinds[kind_of[nic]]
            taken = sum(kind.cores_of[tenant.workload.nf] for tenant in tenants)
            if taken > kind.cores:
                yield f"{nic}: {taken} of {kind.cores} cores taken"

    def _violations(self, decision: events.Decision, kind_of: Mapping[str, int]) -> Iterator[str]:
        """Only tenants that were reported as at risk may violate their SLA, until it is met again."""
        below = {one for nic, tenants in self._by_nic().items() for one in self.violating(kind_of[nic], tenants)}
        self.at_risk = (self.at_risk | set(decision.at_risk)) & below
        for identity in sorted(below - self.at_risk):
            yield f"{identity} on {self.places[identity]} violates its SLA"

    def _barred(self, kind_of: Mapping[str, int]) -> Iterator[str]:
        """What a pool or a group bars, by every pair of instances."""
        for identity, nic in self.places.items():
            yield from self._conflicts(self.tenants[identity], nic, self._place(nic, kind_of[nic]), kind_of)

    def _conflicts(self, tenant: Tenant, nic: str, placed: PlacedKind, kind_of: Mapping[str, int]) -> Iterator[str]:
        """Why a tenant must not be on a NIC of a kind beside all others, where these are."""
        asked, (_, given, domain) = tenant.constraints.of("pool"), placed
        yield from self._crowds(tenant, nic, placed, kind_of)
        if given not in (asked.split("|") if asked else [""]):
            yield f"{tenant.id} asks for pool '{asked}', and {nic} is in '{given}'"
        for identity, home in self.places.items():
            other = self.tenants[identity]
            shared = {*tenant.constraints.values} & {*other.constraints.values}
            domains = [domain or nic, self._place(home, kind_of[home])[2] or home]
            owners = [one.constraints.of("exclusive") for one in (tenant, other)]
            if home == nic and owners[0] != owners[1]:
                yield f"{tenant.id} and {identity} share {nic}, and are exclusive for {owners}"
            for name, group in sorted(shared) if identity != tenant.id else ():
                if (name, home == nic) in (("spread", True), ("together", False)) or (
                    name == "apart" and domains[0] == domains[1]
                ):
                    yield f"{tenant.id} on {nic} and {identity} on {home} are of group '{group}' ({name})"

    def _crowds(self, tenant: Tenant, nic: str, placed: PlacedKind, kind_of: Mapping[str, int]) -> Iterator[str]:
        """Why a group that has a limit has more on a NIC or in a domain, with a tenant there, than the limit."""
        for name, value in tenant.constraints.values:
            if name in ("most_per_nic", "most_per_domain"):
                here = {tenant.id}
                for identity, home in self.places.items():
                    domains = [placed[2] or nic, self._place(home, kind_of[home])[2] or home]
                    near = home == nic if name == "most_per_nic" else domains[0] == domains[1]
                    if near and self.tenants[identity].constraints.of(name) == value:
                        here.add(identity)
                if len(here) > int(value.partition(" ")[0]):
                    yield f"{sorted(here)} are of group '{value}' ({name}) where {nic} is"

    def _turned_away(self, tenant: Tenant, kind_of: Mapping[str, int]) -> Iterator[str]:
        by_nic = self._by_nic()
        for nic, tenants in by_nic.items():
            if any(self._conflicts(tenant, nic, self._place(nic, kind_of[nic]), kind_of)):
                continue
            if nic not in self.closed and self.fits(kind_of[nic], [*tenants, tenant]):
                yield f"{tenant.id} was turned away, but fits on {nic}"
        in_use = Counter(self._place(nic, kind_of[nic]) for nic in set(by_nic) | set(self.closed) | self.gone)
        given = {(index, kind.pool, kind.domain) for index, kind in enumerate(self.kinds)}
        for placed in sorted(given | {*self.joined}):
            barred = any(self._conflicts(tenant, "a new NIC", placed, kind_of))
            if not barred and in_use[placed] < self._count(placed) and self.fits(placed[0], [tenant]):
                yield f"{tenant.id} was turned away, but a NIC of kind {placed} could be opened"

    def _count(self, placed: PlacedKind) -> float:
        """How many NICs of a kind there ever were at most in a pool and a domain."""
        kind, *place = self.kinds[placed[0]], *placed[1:]
        given = kind.count if place == [kind.pool, kind.domain] else 0
        return inf if given is None else given + self.joined[placed]

    def _by_nic(self) -> dict[str, list[Tenant]]:
        by_nic: dict[str, list[Tenant]] = defaultdict(list)
        for identity, nic in self.places.items():
            by_nic[nic].append(self.tenants[identity])
        return by_nic


def _need(tenant: Tenant) -> Tenant:
    """What an instance needs of a NIC, whatever its name and its owner are."""
    return replace(tenant, id="", priority=0, owner="", labels=(), reserved_until=None)
