"""Preemption: which instances would have to go so that an arrival fits that fits nowhere. Nobody is moved here."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

from placer.model.constraints import ids_to_go
from placer.model.feasibility import feasible
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle

MOST_SETS = 100_000  # sets of instances that are looked at; where that is not enough, nothing is said
SETS_AT_ONCE = 256  # for which oracles are queried in one batch

MOST_TRIED_PLACES, MOST_PLACES, MOST_SETS_AT_ONCE = 1_024, 32, 2_048
"""For an arrival at a running fleet: NICs from which all of lower priority are taken to see whether that is enough,
those of them whose sets of instances are compared, and how many sets."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """What would make room for an arrival.

    `kind`, `nic`: the NIC on which it would fit; None for one that would be opened. `ids`: the fewest instances that
    would have to go, the lowest priority first. `lower`: whether all of them have a lower priority than the arrival.
    `tenant`: the arrival, with the cores with which it would fit.
    """

    kind: NicKind
    nic: str | None
    ids: tuple[str, ...]
    lower: bool
    tenant: Tenant


@dataclass(frozen=True, slots=True)
class _Place:
    """A NIC, or a new one of the kind; the tenants without which constraints allow it, and the others on it."""

    kind: NicKind
    nic: Nic | None
    must_go: tuple[str, ...]
    others: tuple[Tenant, ...]


_Set = tuple[_Place, frozenset[str]]  # a place, and instances that go
_Choices = Callable[[NicKind], Iterable[Tenant]]  # the arrival on each number of cores that it may have on a kind


def find_preemption(
    fleet: Fleet, oracles: Sequence[Oracle], tenant: Tenant, priority: int, priorities: Mapping[str, int]
) -> Preemption | None:
    """The fewest instances of lower priority without which the tenant fits on a NIC; where those are not enough, the
    fewest of all.

    Of equally many, those of the lowest priorities. None where it fits nowhere without any of them, or too many
    sets would have to be looked at. `priorities`: by id, of the instances that may go.
    """

    def choices(kind: NicKind) -> Iterable[Tenant]:
        return (replace(tenant, workload=workload) for workload in kind.choices(tenant.workload))

    places = list(_places(fleet, tenant, priorities, fleet.nics.values(), fleet.available()))
    lower = {identity: of for identity, of in priorities.items() if of < priority}
    left = MOST_SETS
    for may_go in (lower, priorities):
        found, left = _fewest(places, choices, oracles, may_go, left)
        if found is not None or left < 0:
            return found and _preemption(*found, may_go, lower)
    return None


def find_victims(
    fleet: Fleet,
    oracles: Sequence[Oracle],
    choices: Sequence[Tenant],
    only: Nic | None = None,
    leaving: Collection[str] = (),
) -> Preemption | None:
    """The tenants of lower priority without which an arrival fits, that fits nowhere with them; none of them where it
    fits on `only`; None where they are not enough.

    They are the fewest, and of equally many those of the lowest priorities, among the `MOST_PLACES` NICs where the
    fewest are in the way of its cores; and of more than `MOST_SETS_AT_ONCE` sets, one of which nobody can stay.
    `choices`: the arrival on each number of cores that it may be given. `only`: the NIC on which it is to be, whose
    tenants alone may go; None for any. `leaving`: tenants that leave anyway, so that perhaps nobody else has to.
    """
    arrival = choices[0]
    present = fleet.all_tenants() if only is None else only.tenants
    lower = {tenant.id: tenant.priority for tenant in present if tenant.priority < arrival.priority}
    if not lower and only is None:
        return None

    def choices_on(kind: NicKind) -> Iterable[Tenant]:
        return (choice for choice in choices if kind.hosts(choice.workload))

    ranked = list[tuple[int, int, _Place]]()
    nics = [only] if only is not None else sorted(fleet.nics.values(), key=lambda nic: nic.number)
    for found in _places(fleet, arrival, lower, nics, fleet.available() if only is None else ()):
        place = _without(found, leaving)
        few = _fewest_by_cores(place, choices_on(place.kind), lower)
        if few is not None:
            ranked.append((few, len(ranked), place))
    ranked.sort(key=lambda found: found[:2])
    for first in range(0, min(len(ranked), MOST_TRIED_PLACES), SETS_AT_ONCE):
        every = [_without_all(place, lower) for _, _, place in ranked[first : first + SETS_AT_ONCE]]
        if enough := _fitting(every, choices_on, oracles):
            several = [every[number] for number in [*enough][:MOST_PLACES]]
            places = [place for place, _ in several]
            fewest, _ = _fewest(places, choices_on, oracles, lower, MOST_SETS_AT_ONCE, least=1 if only is None else 0)
            return _preemption(*(fewest or _keep_most(several[0], choices_on, oracles, lower)), lower, lower)
    return None


def _preemption(
    place: _Place, going: frozenset[str], chosen: Tenant, may_go: Mapping[str, int], lower: Mapping[str, int]
) -> Preemption:
    ids = tuple(sorted(going, key=lambda identity: (may_go[identity], identity)))
    return Preemption(place.kind, place.nic.id if place.nic else None, ids, lower.keys() >= going, chosen)


def _fewest(
    places: Sequence[_Place],
    choices: _Choices,
    oracles: Sequence[Oracle],
    may_go: Mapping[str, int],
    most: int,
    least: int = 1,
) -> tuple[tuple[_Place, frozenset[str], Tenant] | None, int]:
    """The fewest of those that may go, at least so many, without which the arrival has a place, and how it fits there;
    and how many sets less than `most` were looked at, below 0 where that was not enough."""
    for size in range(least, max((len(place.must_go) + len(place.others) for place in places), default=0) + 1):
        sets = []
        for rank, (place, going) in enumerate(_sets(places, size, may_go)):
            sets.append((sorted((may_go[identity] for identity in going), reverse=True), rank, place, going))
            if len(sets) > most:
                return None, -1
        most -= len(sets)
        sets.sort(key=lambda found: found[:2])
        for first in range(0, len(sets), SETS_AT_ONCE):
            tried = [(place, going) for _, _, place, going in sets[first : first + SETS_AT_ONCE]]
            if fitting := _fitting(tried, choices, oracles):
                number = min(fitting)
                return (*tried[number], fitting[number]), most
    return None, most


def _without(place: _Place, leaving: Collection[str]) -> _Place:
    """The place without those that leave anyway; the others by id, not in the order in which they are remembered."""
    must_go = tuple(identity for identity in place.must_go if identity not in leaving)
    others = sorted((other for other in place.others if other.id not in leaving), key=lambda other: other.id)
    return replace(place, must_go=must_go, others=tuple(others))


def _fewest_by_cores(place: _Place, choices: Iterable[Tenant], lower: Mapping[str, int]) -> int | None:
    """How many tenants have to go at least so that a place has the cores; None where it never has."""
    needs = [place.kind.cores_for(choice.workload) for choice in choices]
    if not needs or not all(identity in lower for identity in place.must_go):
        return None
    free = place.kind.cores - place.kind.cores_taken(tenant.workload for tenant in place.others)
    held = sorted((place.kind.cores_for(other.workload) for other in place.others if other.id in lower), reverse=True)
    for number in range(len(held) + 1):
        if free + sum(held[:number]) >= min(needs):
            return len(place.must_go) + number
    return None


def _without_all(place: _Place, lower: Mapping[str, int]) -> _Set:
    return place, frozenset((*place.must_go, *(other.id for other in place.others if other.id in lower)))


def _keep_most(
    tried: _Set, choices: _Choices, oracles: Sequence[Oracle], lower: Mapping[str, int]
) -> tuple[_Place, frozenset[str], Tenant]:
    """A set without which the arrival fits, less those that can stay after all, the highest priority first."""
    place, going = tried
    for identity in sorted(going.difference(place.must_go), key=lambda identity: (-lower[identity], identity)):
        if _fitting([(place, going - {identity})], choices, oracles):
            going -= {identity}
    return place, going, _fitting([(place, going)], choices, oracles)[0]


def _places(
    fleet: Fleet, tenant: Tenant, priorities: Mapping[str, int], nics: Iterable[Nic], kinds: Iterable[NicKind]
) -> Iterator[_Place]:
    """Where the tenant could be of these NICs and new ones of these kinds; of NICs with the same tenants the first."""
    seen = set()
    up = [nic for nic in nics if nic.id not in fleet.out_of_service]
    for kind, nic in chain(((nic.kind, nic) for nic in up), ((kind, None) for kind in kinds)):
        must_go = ids_to_go(fleet, tenant, kind, nic)
        if must_go is None or not kind.hosts(tenant.workload):
            continue
        others = tuple(other for other in (nic.tenants if nic else ()) if other.id not in must_go)
        alike = Counter((_needs(other), priorities.get(other.id)) for other in others)
        key = kind.index, nic is None, must_go, frozenset(alike.items())
        if key not in seen:
            seen.add(key)
            yield _Place(kind, nic, must_go, others)


def _sets(places: Sequence[_Place], size: int, may_go: Mapping[str, int]) -> Iterator[_Set]:
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


def _fitting(sets: Sequence[_Set], choices: _Choices, oracles: Sequence[Oracle]) -> dict[int, Tenant]:
    """By the numbers of the sets without which the arrival keeps every SLA on the place, the first choice of cores with
    which it does; one batch of queries for each kind of NIC."""
    groups: defaultdict[NicKind, list[list[Tenant]]] = defaultdict(list)
    tried: defaultdict[NicKind, list[tuple[int, Tenant]]] = defaultdict(list)
    for number, (place, going) in enumerate(sets):
        stay = [other for other in place.others if other.id not in going]
        for choice in choices(place.kind):
            groups[place.kind].append([*stay, choice])
            tried[place.kind].append((number, choice))
    found: dict[int, Tenant] = {}
    for kind, together in groups.items():
        for (number, choice), fits in zip(tried[kind], feasible(kind, oracles[kind.index], together), strict=True):
            if fits:
                found.setdefault(number, choice)
    return dict(sorted(found.items()))
