"""Constraints: where an instance may run, whatever the throughput there. Each is one file of this room.

A constraint is a relation. That of a *kind* says which kinds of NIC an instance may be on (`pool`). That of a *group*
says what any two instances with the same value, present at the same time, must share or must not share (`spread`: not
the NIC; `apart`: not the domain; `together`: the NIC). Filters of strategies and explanations follow from the relation;
the check of a plan does not, each file has one of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import ClassVar, TypeVar

from placer.model.arrival import Arrival
from placer.model.fleet import Fleet, Nic, NicKind, Tenant
from placer.model.groups import BETWEEN_POOLS
from placer.model.plan import Placement, Plan
from profiles.registry import Registry

CONSTRAINTS: Registry[type[Constraint]] = Registry(
    "constraint", room="placer.model.constraints", group="placer.constraints", option="constraint",
    first=("spread", "apart", "together", "pool"),
)  # fmt: skip
"""Every constraint by name, which is also its column in a trace."""

MOST_REMEMBERED_POOLS = 1_024  # values of `pool` whose kinds of NIC are remembered
MOST_SHOWN_IDS = 5  # ids of instances that a message names


class Constraint(ABC):
    """A constraint; `name` is its column, `text` what it demands, in one sentence."""

    name: ClassVar[str]
    text: ClassVar[str]

    @classmethod
    @abstractmethod
    def faults(cls, plan: Plan) -> Iterator[str]:
        """A sentence for each violation in a plan, found without the code by which plans are made."""


class KindConstraint(Constraint):
    """A constraint on the kind of NIC; it holds for instances without a value, too."""

    @classmethod
    @abstractmethod
    def allows(cls, value: str, kind: NicKind) -> bool:
        """Whether an instance with this value may be on a NIC of the kind."""


class GroupConstraint(Constraint):
    """A constraint among instances that have the same value.

    `same`: whether any two of them must share a place, or must not. `by_domain`: whether a place is the domain of a
    NIC; else it is the NIC.
    """

    same: ClassVar[bool]
    by_domain: ClassVar[bool] = False


_C = TypeVar("_C", bound=type[Constraint])


def register(constraint: _C) -> _C:
    """A decorator that makes a constraint known under its name."""
    CONSTRAINTS.register(constraint.name)(constraint)
    _kind_constraints.cache_clear()
    return constraint


def domain_of(kind: NicKind, nic_id: str) -> str:
    """The domain of a NIC; one without a domain is one of its own."""
    return kind.domain or f"\0{nic_id}"


# Which NICs an arrival may join as the fleet is now.


@dataclass(frozen=True)
class AllowedNics:
    """The NICs that constraints leave to an arrival.

    `kinds`: the kinds of NIC. `only`: the NIC on which it must be, if that is given. `barred`: NICs that it must not
    join, of any kind.
    """

    kinds: frozenset[NicKind]
    only: Nic | None
    barred: tuple[Nic, ...]

    def allow(self, nic: Nic) -> bool:
        """Whether the arrival may join the NIC."""
        return nic.kind in self.kinds and self.only in (None, nic) and nic not in self.barred

    @property
    def to_open(self) -> frozenset[NicKind]:
        """The kinds of which a NIC may be opened."""
        return self.kinds if self.only is None else frozenset()


def places_for(fleet: Fleet, tenant: Tenant) -> AllowedNics | None:
    """The NICs that constraints leave to the tenant; None for all."""
    if not tenant.constraints.values:
        return AllowedNics(_allowed_kinds(fleet, tenant), None, ()) if fleet.has_pools else None
    kinds = _allowed_kinds(fleet, tenant)
    domains: set[str] = set()
    barred: dict[str, Nic] = {}
    only: list[Nic] = []
    for key in tenant.constraints.values:
        members = fleet.groups.members(*key)
        if not members:
            continue
        constraint = CONSTRAINTS[key[0]]
        if not issubclass(constraint, GroupConstraint):
            continue
        for other, nic in members.items():
            if other == tenant.id:
                continue
            if constraint.same:
                only.append(nic)
            elif constraint.by_domain and nic.kind.domain:
                domains.add(nic.kind.domain)
            else:
                barred[nic.id] = nic
    if not domains and not barred and not only and len(kinds) == len(fleet.all_kinds):
        return None
    if any(nic is not only[0] for nic in only):
        kinds = frozenset()
    elif domains:
        kinds = kinds.difference(*(fleet.kinds_of_domain[domain] for domain in domains))
    return AllowedNics(kinds, only[0] if only else None, tuple(barred.values()))


def _allowed_kinds(fleet: Fleet, tenant: Tenant) -> frozenset[NicKind]:
    """The kinds on which the tenant may be, whatever else runs; the fleet remembers them."""
    values = tenant.constraints.values
    key = tuple([tenant.constraints.of(constraint.name) for constraint in _kind_constraints()]) if values else ()
    known = fleet.allowed_kinds.get(key)
    if known is None:
        if len(fleet.allowed_kinds) >= MOST_REMEMBERED_POOLS:
            fleet.allowed_kinds.clear()
        known = fleet.allowed_kinds[key] = frozenset(kind for kind in fleet.all_kinds if kind_allows(kind, tenant))
    return known


def kind_allows(kind: NicKind, tenant: Tenant | Arrival) -> bool:
    """Whether the tenant may be on NICs of the kind, whatever else runs in the fleet."""
    if not tenant.constraints.values:
        return not kind.pool
    return all(_kind_keeps(constraint, tenant, kind) for constraint in _kind_constraints())


def _kind_keeps(constraint: type[KindConstraint], tenant: Tenant | Arrival, kind: NicKind) -> bool:
    return constraint.allows(tenant.constraints.of(constraint.name), kind)


@cache
def _kind_constraints() -> tuple[type[KindConstraint], ...]:
    return tuple(constraint for constraint in CONSTRAINTS.values() if issubclass(constraint, KindConstraint))


def are_constrained(arrivals: Iterable[Arrival | Tenant], kinds: Iterable[NicKind]) -> bool:
    """Whether constraints keep an instance off some NICs."""
    return any(kind.pool for kind in kinds) or any(arrival.constraints.values for arrival in arrivals)


def by_pool_only(tenants: Iterable[Arrival | Tenant]) -> bool:
    """Whether of the kinds of NIC these tenants may be on, only the pool makes a difference."""
    names = {name for tenant in tenants for name, _ in tenant.constraints.values}
    return not any(constraint.name in names - {"pool"} for constraint in _kind_constraints())


def _groups_of(fleet: Fleet, tenant: Tenant) -> Iterator[tuple[type[GroupConstraint], dict[str, Nic]]]:
    """The tenant's groups, with the NICs of the other members."""
    for name, value in tenant.constraints.values:
        constraint = CONSTRAINTS[name]
        if issubclass(constraint, GroupConstraint):
            members = fleet.groups.members(name, value)
            yield constraint, {other: nic for other, nic in members.items() if other != tenant.id}


def group_keys(tenant: Tenant) -> list[tuple[str, str]]:
    """The constraint and the value of each group of the tenant."""
    return [key for key in tenant.constraints.values if issubclass(CONSTRAINTS[key[0]], GroupConstraint)]


@dataclass(frozen=True, slots=True)
class Conflict:
    """The constraint that keeps an arrival off a NIC, and the ids of the tenants that it meets; none for a kind."""

    constraint: str
    ids: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The constraint and what it demands, without ids."""
        return f"{self.constraint}: {CONSTRAINTS[self.constraint].text}"

    def __str__(self) -> str:
        meets = f"; it would meet {', '.join(self.ids[:MOST_SHOWN_IDS])}" if self.ids and not self._same else ""
        others = f"; the others are {', '.join(self.ids[:MOST_SHOWN_IDS])}" if self.ids and self._same else ""
        more = f" and {len(self.ids) - MOST_SHOWN_IDS} more" if len(self.ids) > MOST_SHOWN_IDS else ""
        return f"{self.text}{meets}{others}{more}"

    @property
    def _same(self) -> bool:
        constraint = CONSTRAINTS[self.constraint]
        return issubclass(constraint, GroupConstraint) and constraint.same


def conflict_on(fleet: Fleet, tenant: Tenant, kind: NicKind, nic: Nic | None) -> Conflict | None:
    """What keeps the tenant off this NIC, or off a new one of the kind; None where constraints allow it."""
    return next(_conflicts_on(fleet, tenant, kind, nic), None)


def ids_to_go(fleet: Fleet, tenant: Tenant, kind: NicKind, nic: Nic | None) -> tuple[str, ...] | None:
    """The tenants without which constraints allow the tenant on this NIC, or on a new one of the kind; None where they
    would not, either."""
    conflicts = list(_conflicts_on(fleet, tenant, kind, nic))
    if any(not conflict.ids for conflict in conflicts):
        return None
    return tuple(sorted({identity for conflict in conflicts for identity in conflict.ids}))


def _conflicts_on(fleet: Fleet, tenant: Tenant, kind: NicKind, nic: Nic | None) -> Iterator[Conflict]:
    """Each constraint that keeps the tenant off this NIC, or off a new one of the kind."""
    if not tenant.constraints.values and not fleet.has_pools:
        return
    for of_kind in _kind_constraints():
        if not of_kind.allows(tenant.constraints.of(of_kind.name), kind):
            yield Conflict(of_kind.name)
    place = (nic.id if nic else None, domain_of(kind, nic.id if nic else ""))
    for constraint, members in _groups_of(fleet, tenant):
        at = 1 if constraint.by_domain else 0
        met = [
            other
            for other, home in members.items()
            if ((home.id, domain_of(home.kind, home.id))[at] == place[at]) is not constraint.same
        ]
        if met:
            yield Conflict(constraint.name, tuple(met))


def barred_kinds(fleet: Fleet, tenant: Tenant) -> list[tuple[Conflict, list[NicKind]]]:
    """What keeps the tenant off new NICs, as `conflict_on`, and of which kinds of one model each."""
    by_domain: defaultdict[str, list[str]] = defaultdict(list)
    found, everywhere = dict[tuple[str, int], tuple[Conflict, list[NicKind]]](), list[Conflict]()
    allowed, by = _allowed_kinds(fleet, tenant), ""
    for constraint, members in _groups_of(fleet, tenant):
        if constraint.same and members:
            everywhere.append(Conflict(constraint.name, tuple(members)))
        elif constraint.by_domain:
            by = constraint.name
            for other, home in members.items():
                by_domain[home.kind.domain].append(other)
    by_domain.pop("", None)
    apart = {domain: Conflict(by, tuple(ids)) for domain, ids in by_domain.items()}
    of_kind = [(constraint, Conflict(constraint.name)) for constraint in _kind_constraints()]
    for kind in fleet.all_kinds:
        conflict = everywhere[0] if everywhere else None
        if kind not in allowed:
            conflict = of_kind[0][1]
            if len(of_kind) > 1:
                conflict = next(fails for constraint, fails in of_kind if not _kind_keeps(constraint, tenant, kind))
        elif apart and kind.domain in apart:
            conflict = apart[kind.domain]
        if conflict is not None:
            alike = kind.model, id(conflict)
            if alike not in found:
                found[alike] = conflict, []
            found[alike][1].append(kind)
    return [*found.values()]


# What no fleet can hold, even empty: found before anything is placed.


def constraint_faults(
    arrivals: Sequence[Arrival], kinds: Sequence[NicKind]
) -> Iterator[tuple[Arrival, str, str, str | None]]:
    """What the whole fleet could not hold, empty and without all other arrivals: the last instance of the smallest
    set that conflicts, the column, the message, and what to do about it."""
    groups: defaultdict[tuple[str, str], list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        for key in arrival.constraints.values:
            groups[key].append(arrival)
        if arrival.nic is None and (fault := pool_fault(arrival, kinds)):
            yield arrival, "pool", *fault
    for (name, value), members in groups.items():
        constraint = CONSTRAINTS[name]
        if issubclass(constraint, GroupConstraint) and (found := _conflicting(members, kinds, constraint)):
            ids = ", ".join(f"'{arrival.id}'" for arrival in found)
            message = f"no fleet of these NICs holds {ids} of group '{value}' at the same time"
            yield found[-1], name, message, _hint(constraint, kinds)


def pool_fault(arrival: Arrival | Tenant, kinds: Sequence[NicKind]) -> tuple[str, str] | None:
    """What is wrong with the pools that an instance asks for, and what to do about it; None where nothing is."""
    asked, pools = arrival.constraints.of("pool"), sorted({kind.pool for kind in kinds if kind.pool})
    if unknown := [name for name in asked.split(BETWEEN_POOLS) if asked and name not in pools]:
        hint = f"pools are {', '.join(pools)}" if pools else "give NICs a pool in the fleet file: pool = ..."
        return f"no NIC of the fleet is in pool '{unknown[0]}'", hint
    if not asked and pools and all(kind.pool for kind in kinds):
        return "all NICs of the fleet are in pools", f"fill pool: {', '.join(pools)}"
    return None


def _hint(constraint: type[GroupConstraint], kinds: Sequence[NicKind]) -> str:
    if constraint.same:
        return f"one NIC has {max(kind.cores for kind in kinds)} cores"
    places = _count_places(kinds, constraint)
    return f"there are {places:,.0f} {'domains' if constraint.by_domain else 'NICs'} for them"


def _conflicting(
    members: Sequence[Arrival], kinds: Sequence[NicKind], constraint: type[GroupConstraint]
) -> list[Arrival]:
    """A smallest set of members, present at one time, that does not fit; empty where all do."""
    for moment in sorted({arrival.begins for arrival in members}):
        present = [arrival for arrival in members if is_present(arrival, moment)]
        if all(arrival.nic is not None for arrival in present):
            continue
        found = _too_many_together(present, kinds) if constraint.same else _too_many_apart(present, kinds, constraint)
        if found:
            return found
    return []


def _too_many_together(present: Sequence[Arrival], kinds: Sequence[NicKind]) -> list[Arrival]:
    """Members that no NIC holds together; of few, as few as possible."""
    for size in range(1, len(present) + 1):
        largest = sorted(present, key=lambda arrival: -max(_fewest_cores(kind, arrival) for kind in kinds))[:size]
        if not any(sum(_fewest_cores(kind, arrival) for arrival in largest) <= kind.cores for kind in kinds):
            return largest
    return []


def _fewest_cores(kind: NicKind, arrival: Arrival) -> float:
    if not kind.hosts(arrival.workload) or not kind_allows(kind, arrival):
        return inf
    return min(kind.cores_for(choice) for choice in kind.choices(arrival.workload))


def _count_places(kinds: Iterable[NicKind], constraint: type[GroupConstraint]) -> float:
    named = {kind.domain for kind in kinds if kind.domain} if constraint.by_domain else ()
    others = (kind for kind in kinds if not (constraint.by_domain and kind.domain))
    return len(named) + sum(inf if kind.count is None else kind.count for kind in others)


def _too_many_apart(
    present: Sequence[Arrival], kinds: Sequence[NicKind], constraint: type[GroupConstraint]
) -> list[Arrival]:
    """Members that have too few places among them: of a matching, those that compete with one that has none."""
    room: dict[object, float] = {}
    for kind in kinds:
        if constraint.by_domain and kind.domain:
            room[kind.domain] = 1.0 if kind.count != 0 else room.get(kind.domain, 0.0)
        else:
            room[kind] = inf if kind.count is None else kind.count
    place_of = {kind: kind.domain if constraint.by_domain and kind.domain else kind for kind in kinds}
    able = [[place_of[kind] for kind in kinds if _fewest_cores(kind, arrival) < inf] for arrival in present]
    at: defaultdict[object, list[int]] = defaultdict(list)

    def place(member: int, seen: set[object]) -> bool:
        for spot in able[member]:
            if spot in seen:
                continue
            seen.add(spot)
            if len(at[spot]) < room[spot]:
                at[spot].append(member)
                return True
            for other in at[spot]:
                if place(other, seen):
                    at[spot].remove(other)
                    at[spot].append(member)
                    return True
        return False

    for member in range(len(present)):
        seen: set[object] = set()
        if able[member] and not place(member, seen):
            return [present[other] for other in sorted({member, *(other for spot in seen for other in at[spot])})]
    return []


# For checks of plans: who of a group is present at the same time.


def is_present(arrival: Arrival, moment: float) -> bool:
    """Whether the instance is present at the moment, s."""
    return arrival.begins <= moment and (arrival.departure is None or moment < arrival.departure)


def members_by_value(plan: Plan, name: str) -> dict[str, list[Placement]]:
    """The placed instances that have a value of the constraint, by value, in the order in which they begin."""
    members: defaultdict[str, list[Placement]] = defaultdict(list)
    constrained = [placement for placement in plan.placed if placement.arrival.constraints.of(name)]
    for placement in sorted(constrained, key=lambda placement: placement.arrival.begins):
        members[placement.arrival.constraints.of(name)].append(placement)
    return members


def meetings(plan: Plan, name: str, place: Callable[[Placement], object]) -> Iterator[tuple[str, str, object]]:
    """For each instance that begins where one of its group is: the ids of both, the group, and the place.

    `place` says where a placement is. Pairs that both already run were nobody's decision.
    """
    for value, members in members_by_value(plan, name).items():
        present: defaultdict[object, list[Placement]] = defaultdict(list)
        for placement in members:
            where, begins = place(placement), placement.arrival.begins
            others = [other for other in present[where] if is_present(other.arrival, begins)]
            present[where] = [*others, placement]
            met = next((o for o in others if o.arrival.nic is None or placement.arrival.nic is None), None)
            if met is not None:
                yield f"{met.arrival.id} and {placement.arrival.id}", value, where
