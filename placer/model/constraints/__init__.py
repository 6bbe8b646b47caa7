"""Constraints: where an instance may run, whatever the throughput there. Each is one file of this room.

A constraint is a relation. That of a *kind* says which kinds of NIC an instance may be on (`pool`). That of a *group*
says what instances with the same value, present at the same time, must share (`together`: the NIC), or how many of them
may share it (`spread`: one on a NIC; `apart`: one in a domain; `most_per_nic`, `most_per_domain`: some). That on
*sharing* says which instances may share a NIC, whatever their values (`exclusive`). Filters of strategies and
explanations follow from the relation; the check of a plan does not, each file has one of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import combinations
from typing import ClassVar, TypeVar

from placer.model.arrival import Arrival
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind
from placer.model.plan import Plan
from profiles.registry import Registry

CONSTRAINTS: Registry[type[Constraint]] = Registry(
    "constraint", room="placer.model.constraints", group="placer.constraints", option="constraint",
    first=("spread", "apart", "together", "pool", "most_per_nic", "most_per_domain", "exclusive"),
)  # fmt: skip
"""Every constraint by name, which is also its column in a trace."""

MOST_REMEMBERED_POOLS = 1_024  # values of `pool` whose kinds of NIC are remembered
MOST_SHOWN_IDS = 5  # ids of instances that a message names


class Constraint(ABC):
    """A constraint; `name` is its column, `text` what it demands, in one sentence."""

    name: ClassVar[str]
    text: ClassVar[str]

    @classmethod
    def check_value(cls, value: str) -> None:
        """Raises ValueError where an instance cannot have this value, although it is a name."""

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

    `same`: whether any two of them must share a place; else few may. `by_domain`: whether a place is the domain of a
    NIC; else it is the NIC.
    """

    same: ClassVar[bool]
    by_domain: ClassVar[bool] = False

    @classmethod
    def most(cls, value: str) -> int:
        """How many of a group with this value may share a place, unless all must."""
        return 1


class SharingConstraint(Constraint):
    """A constraint on which instances may share a NIC; it holds for instances without a value, too.

    Any two without a value may share one.
    """

    @classmethod
    @abstractmethod
    def may_share(cls, value: str, other: str) -> bool:
        """Whether instances with these values may be on one NIC; empty for none."""


_C = TypeVar("_C", bound=type[Constraint])


def register(constraint: _C) -> _C:
    """A decorator that makes a constraint known under its name."""
    CONSTRAINTS.register(constraint.name)(constraint)
    _kind_constraints.cache_clear()
    _sharing_constraints.cache_clear()
    return constraint


def domain_of(kind: NicKind, nic_id: str) -> str:
    """The domain of a NIC; one without a domain is one of its own."""
    return kind.domain or f"\0{nic_id}"


# Which NICs an arrival may join as the fleet is now.


@dataclass(frozen=True)
class AllowedNics:
    """The NICs that constraints leave to an arrival.

    `kinds`: the kinds of NIC. `only`: the NIC on which it must be, if that is given. `met`: NICs that it must not join,
    of any kind, because of a tenant with a value that it meets there. `among`: where it may not join NICs with tenants
    without a value, which may be nearly all, the few others in use; `others` lists those with such tenants.
    """

    kinds: frozenset[NicKind]
    only: Nic | None
    met: tuple[Nic, ...]
    among: frozenset[Nic] | None = None
    others: Callable[[], Iterable[Nic]] = tuple

    @cached_property
    def barred(self) -> tuple[Nic, ...]:
        """All NICs that it must not join, of any kind."""
        return tuple(dict.fromkeys((*self.met, *self.others())))

    def allow(self, nic: Nic) -> bool:
        """Whether the arrival may join the NIC."""
        return nic.kind in self.kinds and self.only in (None, nic) and nic not in self._barred

    @cached_property
    def _barred(self) -> frozenset[Nic]:
        return frozenset(self.barred)

    @property
    def to_open(self) -> frozenset[NicKind]:
        """The kinds of which a NIC may be opened."""
        return self.kinds if self.only is None else frozenset()


def places_for(fleet: Fleet, tenant: Tenant) -> AllowedNics | None:
    """The NICs that constraints leave to the tenant; None for all."""
    if not (tenant.constraints.values or fleet.has_pools or fleet.groups.some):
        return None
    barred, among = _unshared(fleet, tenant)
    if not tenant.constraints.values:
        some = fleet.has_pools or barred
        return AllowedNics(_allowed_kinds(fleet, tenant), None, tuple(barred.values())) if some else None
    kinds = _allowed_kinds(fleet, tenant)
    domains: set[str] = set()
    only: list[Nic] = []
    for key in tenant.constraints.values:
        members = fleet.groups.members(*key)
        if not members:
            continue
        constraint = CONSTRAINTS[key[0]]
        if not issubclass(constraint, GroupConstraint):
            continue
        others = [nic for other, nic in members.items() if other != tenant.id]
        if constraint.same:
            only += others
            continue
        for nic in _full(others, constraint, constraint.most(key[1])):
            if constraint.by_domain and nic.kind.domain:
                domains.add(nic.kind.domain)
            else:
                barred[nic.id] = nic
    if not domains and not barred and among is None and not only and len(kinds) == len(fleet.all_kinds):
        return None
    if any(nic is not only[0] for nic in only):
        kinds = frozenset()
    elif domains:
        kinds = kinds.difference(*(fleet.kinds_of_domain[domain] for domain in domains))
    of_all = tuple(barred.values()), among, partial(_with_valueless, fleet, tenant)
    return AllowedNics(kinds, only[0] if only else None, *of_all)


def _unshared(fleet: Fleet, tenant: Tenant) -> tuple[dict[str, Nic], frozenset[Nic] | None]:
    """By id, the NICs with a tenant beside whose value this one must not be; and `AllowedNics.among`.

    NICs are those of groups, which may be counted elsewhere than their tenants are.
    """
    barred: dict[str, Nic] = {}
    among: frozenset[Nic] | None = None
    for constraint in _sharing_constraints():
        own, fitting = tenant.constraints.of(constraint.name), set[Nic]()
        for value, members in fleet.groups.by_value(constraint.name).items():
            if not constraint.may_share(own, value):
                barred |= {nic.id: nic for nic in members.values()}
            elif own:
                fitting.update(members.values())
        if own and not constraint.may_share(own, ""):
            fitting = {nic for nic in fitting if not _has_valueless(nic, tenant, constraint)}
            among = frozenset(fitting if among is None else among & fitting)
    return barred, among


def _with_valueless(fleet: Fleet, tenant: Tenant) -> Iterator[Nic]:
    """The NICs with a tenant without a value, beside which this one must not be: all are looked at."""
    for constraint in _sharing_constraints():
        own = tenant.constraints.of(constraint.name)
        if own and not constraint.may_share(own, ""):
            yield from (nic for nic in fleet.nics.values() if _has_valueless(nic, tenant, constraint))


def _has_valueless(nic: Nic, tenant: Tenant, constraint: type[SharingConstraint]) -> bool:
    others = (other for other in nic.tenants_by_id.values() if other.id != tenant.id)
    return any(not other.constraints.of(constraint.name) for other in others)


def may_be_barred(fleet: Fleet, tenant: Tenant) -> bool:
    """Whether constraints may keep the tenant off NICs of the fleet."""
    if tenant.constraints.values or fleet.has_pools:
        return True
    return any(fleet.groups.by_value(constraint.name) for constraint in _sharing_constraints())


def may_share_nic(tenants: Sequence[Tenant | Arrival]) -> bool:
    """Whether constraints on sharing allow all of these on one NIC."""
    if not any(tenant.constraints.values for tenant in tenants):
        return True
    for constraint in _sharing_constraints():
        values = {tenant.constraints.of(constraint.name) for tenant in tenants}
        if not all(constraint.may_share(*pair) for pair in combinations(sorted(values), 2)):
            return False
    return True


def sharing_values(tenant: Tenant | Arrival) -> tuple[str, ...]:
    """What decides with which others the tenant may share a NIC, besides throughputs."""
    return tuple(tenant.constraints.of(constraint.name) for constraint in _sharing_constraints())


def _full(members: Sequence[Nic], constraint: type[GroupConstraint], most: int) -> Iterable[Nic]:
    """A NIC of each place that has as many of these members as may share it, or more; or all of them where one may."""
    if most == 1:
        return members
    by_place: defaultdict[str, list[Nic]] = defaultdict(list)
    for nic in members:
        by_place[_place_of(constraint, nic.kind, nic.id)].append(nic)
    return [nics[0] for nics in by_place.values() if len(nics) >= most]


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


@cache
def _sharing_constraints() -> tuple[type[SharingConstraint], ...]:
    return tuple(constraint for constraint in CONSTRAINTS.values() if issubclass(constraint, SharingConstraint))


def are_constrained(arrivals: Iterable[Arrival | Tenant], kinds: Iterable[NicKind]) -> bool:
    """Whether constraints keep an instance off some NICs."""
    return any(kind.pool for kind in kinds) or any(arrival.constraints.values for arrival in arrivals)


def by_pool_only(tenants: Iterable[Arrival | Tenant]) -> bool:
    """Whether of the kinds of NIC these tenants may be on, only the pool makes a difference."""
    names = {name for tenant in tenants for name, _ in tenant.constraints.values}
    return not any(constraint.name in names - {"pool"} for constraint in _kind_constraints())


def _groups_of(fleet: Fleet, tenant: Tenant) -> Iterator[tuple[type[GroupConstraint], int, dict[str, Nic]]]:
    """The tenant's groups, with how many of each may share a place, and the NICs of the other members."""
    for name, value in tenant.constraints.values:
        constraint = CONSTRAINTS[name]
        if issubclass(constraint, GroupConstraint):
            members = fleet.groups.members(name, value)
            yield (
                constraint,
                constraint.most(value),
                {other: nic for other, nic in members.items() if other != tenant.id},
            )


def group_keys(tenant: Tenant) -> list[tuple[str, str]]:
    """The constraint and the value of each group of the tenant."""
    return [key for key in tenant.constraints.values if issubclass(CONSTRAINTS[key[0]], GroupConstraint)]


@dataclass(frozen=True, slots=True)
class Conflict:
    """The constraint that keeps an arrival off a NIC, and the ids of the tenants that it meets; none for a kind.

    `excess`: how many of them are too many; None for all.
    """

    constraint: str
    ids: tuple[str, ...] = ()
    excess: int | None = None

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
    would not, either. Of a group of which some have to go, those of the lowest priority do."""
    conflicts = list(_conflicts_on(fleet, tenant, kind, nic))
    if any(not conflict.ids for conflict in conflicts):
        return None
    going: set[str] = set()
    for conflict in sorted(conflicts, key=lambda conflict: conflict.excess is not None):
        excess = len(conflict.ids) if conflict.excess is None else conflict.excess
        going |= {*sorted(conflict.ids, key=lambda identity: (identity not in going, _rank(fleet, identity)))[:excess]}
    return tuple(sorted(going))


def _rank(fleet: Fleet, tenant_id: str) -> tuple[int, str]:
    """The order in which tenants of a group leave, where only some have to: the lowest priority first."""
    nic = fleet.nic_of(tenant_id)
    return 0 if nic is None else nic.tenants_by_id[tenant_id].priority, tenant_id


def _conflicts_on(fleet: Fleet, tenant: Tenant, kind: NicKind, nic: Nic | None) -> Iterator[Conflict]:
    """Each constraint that keeps the tenant off this NIC, or off a new one of the kind."""
    if not may_be_barred(fleet, tenant):
        return
    for of_kind in _kind_constraints():
        if not of_kind.allows(tenant.constraints.of(of_kind.name), kind):
            yield Conflict(of_kind.name)
    for sharing in _sharing_constraints():
        own, there = tenant.constraints.of(sharing.name), () if nic is None else nic.tenants
        others = [other for other in there if other.id != tenant.id]
        if met := [other.id for other in others if not sharing.may_share(own, other.constraints.of(sharing.name))]:
            yield Conflict(sharing.name, tuple(met))
    place = (nic.id if nic else None, domain_of(kind, nic.id if nic else ""))
    for constraint, most, members in _groups_of(fleet, tenant):
        at = 1 if constraint.by_domain else 0
        met = [
            other
            for other, home in members.items()
            if ((home.id, domain_of(home.kind, home.id))[at] == place[at]) is not constraint.same
        ]
        if met and constraint.same:
            yield Conflict(constraint.name, tuple(met))
        elif len(met) >= most:
            yield Conflict(constraint.name, tuple(met), None if most == 1 else len(met) - most + 1)


def may_join_together(fleet: Fleet, tenants: Sequence[Tenant], kind: NicKind, nic: Nic | None) -> bool:
    """Whether the limits of groups that several of these tenants share allow all of them on this NIC, or on a new one
    of the kind, at once; each of them alone may be there."""
    ids = {tenant.id for tenant in tenants}
    for (name, value), joining in Counter(key for tenant in tenants for key in group_keys(tenant)).items():
        constraint = CONSTRAINTS[name]
        if joining < 2 or not issubclass(constraint, GroupConstraint) or constraint.same:
            continue
        place, there = _place_of(constraint, kind, nic.id if nic else ""), joining
        for other, home in fleet.groups.members(name, value).items():
            there += other not in ids and _place_of(constraint, home.kind, home.id) == place
        if there > constraint.most(value):
            return False
    return True


def _place_of(constraint: type[GroupConstraint], kind: NicKind, nic_id: str) -> str:
    """What the members of a group must share, or only so many may."""
    return domain_of(kind, nic_id) if constraint.by_domain else nic_id


def barred_kinds(fleet: Fleet, tenant: Tenant) -> list[tuple[Conflict, list[NicKind]]]:
    """What keeps the tenant off new NICs, as `conflict_on`, and of which kinds of one model each."""
    found = dict[tuple[str, int], tuple[Conflict, list[NicKind]]]()
    allowed = _allowed_kinds(fleet, tenant)
    everywhere, full = _taken_domains(fleet, tenant)
    of_kind = [(constraint, Conflict(constraint.name)) for constraint in _kind_constraints()]
    for kind in fleet.all_kinds:
        conflict = everywhere
        if kind not in allowed:
            conflict = of_kind[0][1]
            if len(of_kind) > 1:
                conflict = next(fails for constraint, fails in of_kind if not _kind_keeps(constraint, tenant, kind))
        elif full and kind.domain in full:
            conflict = full[kind.domain]
        if conflict is not None:
            alike = kind.model, id(conflict)
            if alike not in found:
                found[alike] = conflict, []
            found[alike][1].append(kind)
    return [*found.values()]


def _taken_domains(fleet: Fleet, tenant: Tenant) -> tuple[Conflict | None, dict[str, Conflict]]:
    """What keeps the tenant off every new NIC, since those that it must be with are on others; and off domains."""
    everywhere, full = None, dict[str, Conflict]()
    for constraint, most, members in _groups_of(fleet, tenant):
        if constraint.same and members:
            everywhere = everywhere or Conflict(constraint.name, tuple(members))
        elif constraint.by_domain:
            by_domain: defaultdict[str, list[str]] = defaultdict(list)
            for other, home in members.items():
                by_domain[home.kind.domain].append(other)
            for domain, ids in by_domain.items():
                if domain and len(ids) >= most:
                    full.setdefault(domain, Conflict(constraint.name, tuple(ids)))
    return everywhere, full
