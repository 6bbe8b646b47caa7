"""Preemption: which instances would have to go so that a rejected arrival fits. Nobody is moved; it only says so."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

from placer.model.constraints import ids_to_go
from placer.model.feasibility import feasible
from placer.model.fleet import Fleet, Nic, NicKind, Tenant
from placer.model.oracle import Oracle

MOST_SETS = 100_000  # sets of instances that are looked at; where that is not enough, nothing is said
SETS_AT_ONCE = 256  # for which oracles are queried in one batch


@dataclass(frozen=True, slots=True)
class Preemption:
    """What would make room for an arrival.

    `kind`, `nic`: the NIC on which it would fit; None for one that would be opened. `ids`: the fewest instances that
    would have to go, the lowest priority first. `lower`: whether all of them have a lower priority than the arrival.
    """

    kind: NicKind
    nic: str | None
    ids: tuple[str, ...]
    lower: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """A NIC, or a new one of the kind; the tenants without which constraints allow it, and the others on it."""

    kind: NicKind
    nic: Nic | None
    must_go: tuple[str, ...]
    others: tuple[Tenant, ...]


def find_preemption(
    fleet: Fleet, oracles: Sequence[Oracle], tenant: Tenant, priority: int, priorities: Mapping[str, int]
) -> Preemption | None:
    """The fewest instances of lower priority without which the tenant fits on a NIC; where those are not enough, the
    fewest of all.

    Of equally many, those of the lowest priorities. None where it fits nowhere whoever goes, or too many sets would
    have to be looked at. `priorities`: by id, of the instances that may go.
    """
    places = list(_places(fleet, tenant, priorities))
    lower = {identity: of for identity, of in priorities.items() if of < priority}
    budget = MOST_SETS
    for may_go in (lower, priorities):
        for size in range(1, max((len(place.must_go) + len(place.others) for place in places), default=0) + 1):
            sets = []
            for rank, (place, going) in enumerate(_sets(places, size, may_go)):
                sets.append((sorted((may_go[one] for one in going), reverse=True), rank, place, going))
                if len(sets) > budget:
                    return None
            budget -= len(sets)
            sets.sort(key=lambda found: found[:2])
            for first in range(0, len(sets), SETS_AT_ONCE):
                tried = [(place, going) for _, _, place, going in sets[first : first + SETS_AT_ONCE]]
                if found := _first_fit(tried, tenant, oracles):
                    place, going = found
                    ids = tuple(sorted(going, key=lambda identity: (may_go[identity], identity)))
                    return Preemption(place.kind, place.nic.id if place.nic else None, ids, lower.keys() >= going)
    return None


def _places(fleet: Fleet, tenant: Tenant, priorities: Mapping[str, int]) -> Iterator[_Place]:
    """Where the tenant could be; of NICs with the same tenants the first."""
    seen = set()
    nics = [nic for nic in fleet.nics.values() if nic.id not in fleet.out_of_service]
    for kind, nic in chain(((nic.kind, nic) for nic in nics), ((kind, None) for kind in fleet.available())):
        must_go = ids_to_go(fleet, tenant, kind, nic)
        if must_go is None or not kind.hosts(tenant.workload):
            continue
        others = tuple(other for other in (nic.tenants if nic else ()) if other.id not in must_go)
        alike = Counter((_needs(other), priorities.get(other.id)) for other in others)
        key = kind.index, nic is None, must_go, frozenset(alike.items())
        if key not in seen:
            seen.add(key)
            yield _Place(kind, nic, must_go, others)


def _sets(places: Sequence[_Place], size: int, may_go: Mapping[str, int]) -> Iterator[tuple[_Place, frozenset[str]]]:
    """Sets of so many instances that may go, with which the tenant has a place by constraints."""
    for place in places:
        further = size - len(place.must_go)
        if further < 0 or not all(identity in may_go for identity in place.must_go):
            continue
        able = [other for other in place.others if other.id in may_go]
        seen = set()
        for chosen in combinations(able, further):
            alike = frozenset(Counter((_needs(other), may_go[other.id]) for other in chosen).items())
            if alike not in seen:
                seen.add(alike)
                yield place, frozenset((*place.must_go, *(other.id for other in chosen)))


def _needs(tenant: Tenant) -> tuple[object, ...]:
    return tenant.workload, tenant.sla, tenant.day


def _first_fit(
    sets: Sequence[tuple[_Place, frozenset[str]]], tenant: Tenant, oracles: Sequence[Oracle]
) -> tuple[_Place, frozenset[str]] | None:
    """The first place and set without which the tenant keeps every SLA there, on any number of cores that it may have;
    one batch of queries for each kind of NIC."""
    groups: defaultdict[NicKind, list[list[Tenant]]] = defaultdict(list)
    numbers: defaultdict[NicKind, list[int]] = defaultdict(list)
    for number, (place, going) in enumerate(sets):
        stay = [other for other in place.others if other.id not in going]
        for workload in place.kind.choices(tenant.workload):
            groups[place.kind].append([*stay, replace(tenant, workload=workload)])
            numbers[place.kind].append(number)
    fitting = [
        number
        for kind, tried in groups.items()
        for number, fits in zip(numbers[kind], feasible(kind, oracles[kind.index], tried), strict=True)
        if fits
    ]
    return sets[min(fitting)] if fitting else None
