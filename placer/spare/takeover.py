"""Where the tenants of NICs that fail together go.

Tenants stay together on an empty NIC of the same kind while there is one. The others are placed by a search that tries
first the tenant that fewest NICs take, on the NIC that it fills most."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from math import inf
from typing import Self

from placer.model.constraints import AllowedNics, kind_allows, may_join_together, may_share_nic, places_for
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind

MAX_STEPS = 1_000  # tenants that one search places, those that it places again included

NEW_NIC = "\0"  # begins the names of NICs that were empty

Group = tuple[NicKind, tuple[Tenant, ...]]
Key = tuple[int, ...]  # the classes of the tenants of a NIC, ascending


class SharingRule(ABC):
    """Which tenants may share a NIC, as the plan was made."""

    worst: Mapping[str, float] = {}
    """By instance, the chance that it violates its SLA in the plan; none is listed where chances do not count."""
    slack = inf  # by how much the sum of chances may grow

    @abstractmethod
    def chances(self, groups: Sequence[Group]) -> list[Sequence[float] | None]:
        """For tenants on one NIC, the chance that each violates its SLA; None where they must not share it."""


@dataclass(frozen=True, eq=False, slots=True)
class OccupiedNic:
    """A NIC with its tenants. `free`: cores. `more`: what it adds to the sum of chances."""

    nic: Nic
    tenants: tuple[Tenant, ...]
    key: Key
    free: float
    more: float = 0.0


@dataclass(frozen=True, eq=False)
class Moment:
    """A plan at a time (s): the NICs in use by class, and how many more of each kind the plan has."""

    time: float
    classes: Mapping[tuple[int, Key], list[OccupiedNic]]
    empty: Mapping[int, int]
    registry: Fleet | None

    @cached_property
    def place_of(self) -> Mapping[Nic, OccupiedNic]:
        """All NICs in use."""
        return {place.nic: place for alike in self.classes.values() for place in alike}


@dataclass(frozen=True)
class Failure:
    """NICs in use that fail together, how many empty ones of each kind with them (by index), and which domains."""

    nics: tuple[Nic, ...]
    empty: tuple[tuple[int, int], ...] = ()
    domains: frozenset[str] = frozenset()


class SharingAnswers:
    """What a rule answered, by classes of tenants that demand the same."""

    def __init__(self, rule: SharingRule) -> None:
        self._rule = rule
        self._classes: dict[object, int] = {}
        self._class_of: dict[str, int] = {}
        self._cores: dict[tuple[int, int], float] = {}
        self._answers: dict[tuple[int, Key], Mapping[int, float] | None] = {}

    def class_of(self, tenant: Tenant) -> int:
        """The number of all tenants that demand the same."""
        number = self._class_of.get(tenant.id)
        if number is None:
            demand = tenant.workload, tenant.sla, tenant.day, tenant.constraints
            number = self._class_of[tenant.id] = self._classes.setdefault(demand, len(self._classes))
        return number

    def cores(self, kind: NicKind, tenant: Tenant) -> float:
        """The cores that the tenant takes there; infinite where it cannot be."""
        at = kind.index, self.class_of(tenant)
        if at not in self._cores:
            hosts = kind.hosts(tenant.workload) and kind_allows(kind, tenant)
            self._cores[at] = kind.cores_for(tenant.workload) if hosts else inf
        return self._cores[at]

    def ask(self, groups: Sequence[tuple[Group, Key]]) -> list[bool]:
        """Whether each group may share a NIC of its kind, by the rule; all that is new in one query."""
        new = {(kind.index, key): (kind, of) for (kind, of), key in groups if (kind.index, key) not in self._answers}
        for at, (_, tenants), chances in zip(new, new.values(), self._rule.chances(list(new.values())), strict=True):
            if not may_share_nic(tenants):
                self._answers[at] = None
                continue
            largest: dict[int, float] = {}
            for tenant, chance in zip(tenants, chances or (), strict=False):
                largest[self.class_of(tenant)] = max(chance, largest.get(self.class_of(tenant), 0.0))
            self._answers[at] = None if chances is None else largest
        return [self._answers[kind.index, key] is not None for (kind, _), key in groups]

    def more(self, kind: NicKind, tenants: Sequence[Tenant], key: Key) -> float:
        """What a group that was asked for adds to the sum of chances."""
        chances, worst = self._answers[kind.index, key] or {}, self._rule.worst
        if not worst:
            return 0.0
        return sum(max(chances.get(self.class_of(of), 0.0) - worst.get(of.id, 0.0), 0.0) for of in tenants)

    def take_alone(self, kind: NicKind, tenant: Tenant) -> bool:
        """Whether an empty NIC of the kind takes the tenant."""
        return self.cores(kind, tenant) <= kind.cores and self.ask([((kind, (tenant,)), (self.class_of(tenant),))])[0]

    @property
    def slack(self) -> float:
        """By how much the sum of chances may grow."""
        return self._rule.slack


class Room:
    """The NICs that are left after a failure, while tenants are placed on them.

    `left`: how many NICs of each kind are empty, by its index. `homes`: the NIC of each tenant that was placed; those
    that were empty have numbers below 0. `more`: what this adds to the sum of chances.
    """

    def __init__(
        self, kinds: Sequence[NicKind], answers: SharingAnswers, moment: Moment, failure: Failure, left: Counter[int]
    ) -> None:
        self._kinds, self._answers, self._moment, self._left = kinds, answers, moment, left
        self._dead = failure.domains
        self._failed = frozenset(failure.nics)
        self._changed: dict[Nic, OccupiedNic] = {}
        self.more = 0.0
        self._numbers = count(1)
        self.lost = [moment.place_of[nic] for nic in failure.nics]
        self.homes: dict[str, Nic] = {}

    @contextmanager
    def opened(self) -> Iterator[Self]:
        """While the tenants of failed NICs count in their groups only where they are placed."""
        groups = None if self._moment.registry is None else self._moment.registry.groups
        if groups is None:
            yield self
            return
        homes = [(tenant, place.nic) for place in self.lost for tenant in place.tenants]
        for tenant, _ in homes:
            groups.remove(tenant.id, tenant.constraints)
        try:
            yield self
        finally:
            for tenant, nic in homes:
                if tenant.id in self.homes:
                    groups.remove(tenant.id, tenant.constraints)
                groups.add(tenant.id, tenant.constraints, nic)

    def move_whole(self) -> list[Tenant]:
        """Move tenants of one NIC together to an empty one, those that fill it most first; the others are left."""
        fullest = sorted(self.lost, key=lambda place: place.free)
        return [tenant for place in fullest if not self._moves_whole(place) for tenant in place.tenants]

    def _moves_whole(self, place: OccupiedNic) -> bool:
        own = place.nic.kind
        for kind in [own] if own.domain not in self._dead else sorted(self._kinds, key=lambda kind: kind.cost):
            if self._left[kind.index] > 0:
                new = self._with_all(place, kind) if kind is not own else replace(place, nic=self._new(kind))
                if new is not None:
                    self._put(place.tenants, new)
                    return True
        return False

    def _with_all(self, place: OccupiedNic, kind: NicKind) -> OccupiedNic | None:
        """An empty NIC of another kind with all tenants of a failed one; None where it does not take them."""
        new = self._new(kind)
        taken = sum(self._answers.cores(kind, tenant) for tenant in place.tenants)
        allowed = [self._allowed(tenant) for tenant in place.tenants]
        if taken > kind.cores or any(nics is not None and not nics.allow(new) for nics in allowed):
            return None
        registry = self._moment.registry
        if registry is not None and not may_join_together(registry, place.tenants, kind, None):
            return None
        (grown,) = self._grow([(OccupiedNic(new, (), (), kind.cores), place.tenants)])
        return grown

    def place(self, tenants: Sequence[Tenant]) -> bool:
        """Place all of these; where no place was found, some stay placed."""
        to_place = {tenant.id: tenant for tenant in tenants}
        trail: list[tuple[Tenant, Iterator[OccupiedNic], OccupiedNic | None]] = []
        steps = MAX_STEPS + len(tenants)
        while to_place:
            tenant, options = self._tightest(to_place.values())
            while (chosen := next(options, None)) is None:
                if not trail:
                    return False
                tenant, options, before = trail.pop()
                self._take_back(tenant, before)
                to_place[tenant.id] = tenant
            steps -= 1
            if steps < 0:
                return False
            del to_place[tenant.id]
            trail.append((tenant, options, self._put((tenant,), chosen)))
        return True

    def _tightest(self, tenants: Iterable[Tenant]) -> tuple[Tenant, Iterator[OccupiedNic]]:
        """The tenant that fewest NICs take, and these with it."""
        fewest: tuple[Tenant, list[OccupiedNic]] | None = None
        for tenant in {self._answers.class_of(tenant): tenant for tenant in tenants}.values():
            options = self.options(tenant)
            if fewest is None or len(options) < len(fewest[1]):
                fewest = tenant, options
            if not options:
                break
        assert fewest is not None
        return fewest[0], iter(fewest[1])

    def options(self, tenant: Tenant) -> list[OccupiedNic]:
        """The NICs that take the tenant, with it: one of each class, the fullest first, then an empty one per kind."""
        taken = {kind.index: self._answers.cores(kind, tenant) for kind in self._kinds}
        able = [(place, (tenant,)) for place in self._candidates(taken, self._allowed(tenant))]
        fitting = [place for place in self._grow(able) if place is not None]
        return sorted(fitting, key=lambda place: (len(place.tenants) == 1, place.free, place.nic.number))

    def _grow(self, pairs: Sequence[tuple[OccupiedNic, tuple[Tenant, ...]]]) -> list[OccupiedNic | None]:
        """Each NIC with further tenants; None where the rule forbids it, or chances would grow by too much."""
        groups = [
            (
                (place.nic.kind, (*place.tenants, *joining)),
                tuple(sorted((*place.key, *map(self._answers.class_of, joining)))),
            )
            for place, joining in pairs
        ]
        found: list[OccupiedNic | None] = []
        for (place, joining), ((kind, tenants), key), fits in zip(
            pairs, groups, self._answers.ask(groups), strict=True
        ):
            before = self._changed[place.nic].more if place.nic in self._changed else 0.0
            more = self._answers.more(kind, tenants, key) if fits else inf
            taken = sum(self._answers.cores(kind, tenant) for tenant in joining)
            within = fits and self.more + more - before <= self._answers.slack
            found.append(OccupiedNic(place.nic, tenants, key, place.free - taken, more) if within else None)
        return found

    def _candidates(self, taken: Mapping[int, float], allowed: AllowedNics | None) -> Iterator[OccupiedNic]:
        """A NIC of each class with free cores that constraints allow, and an empty one of each kind."""
        seen: set[tuple[int, Key]] = set()
        for place in self._changed.values():
            at = place.nic.kind.index, place.key
            fits = taken[at[0]] <= place.free and at not in seen
            if fits and (allowed is None or allowed.allow(place.nic)):
                seen.add(at)
                yield place
        for at, alike in self._moment.classes.items():
            for place in alike if taken[at[0]] <= alike[0].free and at not in seen else ():
                gone = place.nic in self._changed or place.nic in self._failed
                if not gone and (allowed is None or allowed.allow(place.nic)):
                    yield place
                    break
        for kind in self._kinds:
            if self._left[kind.index] > 0 and taken[kind.index] <= kind.cores:
                empty = OccupiedNic(self._new(kind), (), (), kind.cores)
                if allowed is None or allowed.allow(empty.nic):
                    yield empty

    def _allowed(self, tenant: Tenant) -> AllowedNics | None:
        registry = self._moment.registry
        return None if registry is None else places_for(registry, tenant)

    def _new(self, kind: NicKind) -> Nic:
        number = next(self._numbers)
        return Nic(f"{NEW_NIC}{number}", kind, -number)

    def _put(self, tenants: Sequence[Tenant], place: OccupiedNic) -> OccupiedNic | None:
        """Place tenants on a NIC, which is as `place` with them; returns it as it was changed before, if it was."""
        before = self._changed.get(place.nic)
        self.more += place.more - (before.more if before else 0.0)
        self._left[place.nic.kind.index] -= before is None and place.nic.number < 0
        self._changed[place.nic] = place
        for tenant in tenants:
            self.homes[tenant.id] = place.nic
            if self._moment.registry is not None:
                self._moment.registry.groups.add(tenant.id, tenant.constraints, place.nic)
        return before

    def _take_back(self, tenant: Tenant, before: OccupiedNic | None) -> None:
        nic = self.homes.pop(tenant.id)
        place = self._changed.pop(nic)
        if before is not None:
            self._changed[nic] = before
        self.more -= place.more - (before.more if before else 0.0)
        self._left[nic.kind.index] += before is None and nic.number < 0
        if self._moment.registry is not None:
            self._moment.registry.groups.remove(tenant.id, tenant.constraints)
