"""Causes: why a class of NICs does not take an arrival, and why capacity idles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from placer.model.constraints import AllowedNics, Conflict, barred_kinds, conflict_on
from placer.model.feasibility import misfit
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Service, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from profiles import CoLocation


class Cause(StrEnum):
    """Everything but a contended resource that keeps NFs off a NIC; the value is what JSON output has.

    `placer.report.text.explanation` words them for people.
    """

    NOT_HOSTED = "not hosted"
    CORES = "cores"
    LINE_RATE = "line-rate"
    RATE = "rate"
    ARRIVAL_SLA = "SLA of the arrival"
    TENANT_SLA = "SLA of a tenant"
    SAMPLED_SLA = "an SLA, on the NICs that were checked"
    OUT_OF_SERVICE = "out of service"
    SLA_ALONE = "SLA of the arrival even alone"
    NONE_LEFT = "none left"
    TIGHT_SLA = "SLA too tight to share"
    ORDER = "order of arrival"
    SPREAD = "spread"
    APART = "apart"
    TOGETHER = "together"
    POOL = "pool"
    MOST_PER_NIC = "most_per_nic"
    MOST_PER_DOMAIN = "most_per_domain"
    EXCLUSIVE = "exclusive"
    CONSTRAINT = "another constraint"
    PRIORITY = "priority"

    @classmethod
    def of(cls, constraint: str) -> Cause:
        """The cause that a constraint is."""
        try:
            return cls(constraint)
        except ValueError:
            return cls.CONSTRAINT


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one class of NICs does not take an arrival.

    `co_location`: what runs on each; empty where the class has various co-locations. `nics`: how many there are; 0 for
    a NIC that would have to be opened. `met`: where a constraint bars them, the ids of the instances that it meets.
    """

    nic_model: str
    co_location: CoLocation
    nics: int
    cause: Cause
    met: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tally:
    """NICs in use, those with too few cores for an arrival, and those that fit; None where only some were checked."""

    nics: int
    too_few_cores: int
    fit: int | None

    def __add__(self, other: Tally) -> Tally:
        fit = None if self.fit is None or other.fit is None else self.fit + other.fit
        return Tally(self.nics + other.nics, self.too_few_cores + other.too_few_cores, fit)

    def __str__(self) -> str:
        if self.fit is None:
            return f"{self.nics} NICs in use: {self.too_few_cores} have too few cores"
        violating = self.nics - self.too_few_cores - self.fit
        return (
            f"{self.fit} of {self.nics} NICs in use fit: {self.too_few_cores} have too few cores, "
            f"{violating} would violate an SLA"
        )


# All reasons why a fleet does not take an arrival: those of NICs in use, of constraints, and of NICs to be opened.


MOST_NAMED_NICS = 256  # NICs in use up to which reasons name all that an arrival must not meet

BarredKinds = Sequence[tuple[Conflict, list[NicKind]]]
"""Kinds of NIC that a constraint bars as a whole."""


def why_rejected(
    fleet: Fleet,
    oracles: Sequence[Oracle],
    tenant: Tenant,
    places: AllowedNics | None,
    in_use: Iterable[Reason],
    opens: Sequence[bool],
) -> list[Reason]:
    """Why no NIC takes the tenant: classes of NICs in use, the largest first, then kinds that could be opened.

    `places`: what constraints leave; None without constraints. `in_use`: reasons of NICs in use that these leave.
    `opens`: by kind, whether the SLA of the tenant is met on a NIC of its own.
    """
    barred = [] if places is None else barred_kinds(fleet, tenant)
    found = _merge([*in_use, *(_barred_in_use(fleet, oracles, tenant, places, barred) if places else ())])
    out = Counter(nic.kind.model for nic in fleet.out_of_service.values())
    found += [Reason(model, (), nics, Cause.OUT_OF_SERVICE) for model, nics in out.items()]
    found += [Reason(kinds[0].model, (), 0, Cause.of(conflict.constraint), conflict.ids) for conflict, kinds in barred]
    left = {*fleet.all_kinds} - {kind for _, kinds in barred for kind in kinds}
    free = {*fleet.available()}
    causes = [
        (kind.model, Cause.NONE_LEFT if opens[kind.index] and kind not in free else Cause.SLA_ALONE)
        for kind in fleet.all_kinds
        if kind in left
    ]
    return found + [Reason(model, (), 0, why) for model, why in (dict.fromkeys(causes) if places else causes)]


def _merge(reasons: Iterable[Reason]) -> list[Reason]:
    """One reason for each class of NICs, the largest first."""
    found: dict[object, Reason] = {}
    for reason in reasons:
        alike = reason.nic_model, reason.co_location, reason.cause, reason.met
        before = found.get(alike)
        found[alike] = reason if before is None else replace(before, nics=before.nics + reason.nics)
    return sorted(found.values(), key=lambda reason: -reason.nics)


def _barred_in_use(
    fleet: Fleet, oracles: Sequence[Oracle], tenant: Tenant, places: AllowedNics, barred: BarredKinds
) -> Iterator[Reason]:
    """Why constraints keep the tenant off NICs that are in use and in service."""
    out = Counter(nic.kind for nic in fleet.out_of_service.values() if nic.tenants_by_id)
    named: Sequence[Nic] = (places.only,) if places.only else ()  # the group is elsewhere for all others
    if places.only is None:
        many = places.among is not None and len(fleet.nics) > MOST_NAMED_NICS
        named = places.met if many else places.barred
        yield from _unshared_in_use(fleet, tenant, places, out) if many else ()
    single = [nic for nic in named if nic.service is Service.UP]
    for conflict, kinds in barred:
        nics = sum(map(fleet.in_use, kinds)) - sum(number for kind, number in out.items() if kind in kinds)
        nics -= places.only is not None and places.only in single and places.only.kind in kinds
        if nics:
            yield Reason(kinds[0].model, (), nics, Cause.of(conflict.constraint), conflict.ids)
    for nic in single:
        met = conflict_on(fleet, tenant, nic.kind, nic)
        if met and (nic is places.only or nic.kind in places.kinds):
            yield Reason(nic.kind.model, nic.co_location, 1, Cause.of(met.constraint), met.ids)
        elif nic is places.only:
            reason = misfit(nic, oracles[nic.kind.index], tenant)
            causes = {"not hosted": Cause.NOT_HOSTED, "cores": Cause.CORES, "line-rate": Cause.LINE_RATE}
            below = Cause.TENANT_SLA if reason and reason.nf else Cause.ARRIVAL_SLA
            cause = causes.get(reason.cause, below) if reason else below
            yield Reason(nic.kind.model, nic.co_location, 1, cause)


def _unshared_in_use(fleet: Fleet, tenant: Tenant, places: AllowedNics, out: Mapping[NicKind, int]) -> Iterator[Reason]:
    """How many NICs have tenants beside which this one must not be, without the ids of these; `out`: NICs with
    tenants that are out of service."""
    other = next(iter(places.others()), None)
    met = None if other is None else conflict_on(fleet, tenant, other.kind, other)
    if met is None:
        return
    nics = Counter[str]()
    for kind in [kind for kind in fleet.all_kinds if kind in places.kinds]:
        nics[kind.model] += fleet.in_use(kind) - out.get(kind, 0)
    known = {*(places.among or ()), *places.met}
    nics.subtract(nic.kind.model for nic in known if nic.kind in places.kinds and nic.service is Service.UP)
    yield from (Reason(model, (), count, Cause.of(met.constraint)) for model, count in nics.items() if count > 0)
