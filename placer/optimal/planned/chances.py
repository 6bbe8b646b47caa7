"""How likely a tenant falls short of its SLA, for every class of tenants at every place of every co-location.

Tenants of one workload and one SLA are a class. The places of a co-location that run the same workload are one entry of
the table, since the predictor answers alike for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placer.evaluate.expected_violations import LATENCY_RISKS
from placer.model.catalogue import Catalogue
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.optimal.patterns import Members, TenantGroup, group_tenants, workloads_of
from predictor import Predictor
from profiles import CoLocation
from profiles.arrays import Floats, Ints

LIKELIEST_VIOLATION = 0.5  # no tenant is placed where it more likely violates its SLA than not, whatever the budget
ROUNDED_DIGITS = 9  # digits after the point of chances and gaps
Usable = Callable[[int, CoLocation], bool]  # whether a co-location may be used on the kind of NIC of that number


@dataclass(frozen=True, eq=False)
class Classes:
    """Tenants by workload and requirement.

    `groups`: tenants of one workload each, the least demanding first. `first`: per group, the number of the first
    tenant of each class, ascending, shape (classes,). `arrived`: per group, the place of each tenant in the order of
    arrival.
    """

    groups: tuple[TenantGroup, ...]
    first: tuple[Ints, ...]
    arrived: tuple[Ints, ...]

    @classmethod
    def of(cls, tenants: Sequence[Tenant], kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> Classes:
        """The classes of these tenants, in order of arrival; required throughputs are relative to what the oracles
        expect of each alone."""
        groups = group_tenants(tenants, kinds, oracles)
        place = {tenant.id: at for at, tenant in enumerate(tenants)}
        arrived = (np.array([place[tenant.id] for tenant in group.tenants], dtype=np.int64) for group in groups)
        return cls(tuple(groups), tuple(_first_of_classes(group) for group in groups), tuple(arrived))

    @cached_property
    def counts(self) -> tuple[Ints, ...]:
        """Tenants of each class, per group."""
        return tuple(
            np.diff(np.append(first, len(group.tenants))) for group, first in zip(self.groups, self.first, strict=True)
        )

    @property
    def tenants(self) -> int:
        """How many tenants there are."""
        return sum(len(group.tenants) for group in self.groups)


def _first_of_classes(group: TenantGroup) -> Ints:
    known = [values for values in group.required if values is not None]
    if not known:
        return np.zeros(min(len(group.tenants), 1), dtype=np.int64)
    changes = np.any(np.diff(np.stack(known), axis=1) != 0, axis=0)
    return np.append(0, 1 + np.flatnonzero(changes)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Chances:
    """The table of chances.

    `members`: each co-location as numbers of groups, ascending; every part of one is among them, on the same kind.
    `kind`: the number of the kind of NIC of each co-location. `of_group`: per group: the co-locations that it is in,
    how many of it are in each, and the chance that a tenant of each class falls short there, shapes (cases,), (cases,)
    and (cases, classes); infinite where no tenant is placed. `gaps`: per group, the logarithm of what each class
    requires in each case, over the median prediction.
    """

    classes: Classes
    members: tuple[Members, ...]
    kind: Ints
    of_group: tuple[tuple[Ints, Ints, Floats], ...]
    gaps: tuple[Floats, ...]


def chances_of(
    classes: Classes,
    catalogue: Catalogue,
    predictor: str,
    co_locations: Sequence[Sequence[Members]],
    usable: Usable | None = None,
) -> Chances:
    """The table of these co-locations, listed by the number of their kind of NIC; no tenant is placed in others than
    `usable` ones, if that is given."""
    members = tuple(co_location for of_kind in co_locations for co_location in of_kind)
    kind = np.repeat(np.arange(len(co_locations)), [len(of_kind) for of_kind in co_locations])
    rows: list[list[Floats]] = [[] for _ in classes.groups]
    gaps: list[list[Floats]] = [[] for _ in classes.groups]
    where: list[list[tuple[int, int]]] = [[] for _ in classes.groups]
    start = 0
    for number, of_kind in enumerate(co_locations):
        for at, (one, of_members) in enumerate(
            zip(of_kind, _short_on(number, of_kind, classes, catalogue, predictor), strict=True), start=start
        ):
            barred = usable is not None and not usable(number, workloads_of(one, classes.groups))
            for group, (chance, gap) in _worst_of_equal(one, of_members).items():
                where[group].append((at, one.count(group)))
                rows[group].append(chance + 1.0 if barred else chance)
                gaps[group].append(gap)
        start += len(of_kind)
    of_group = []
    most = LIKELIEST_VIOLATION if catalogue.budget_pct is not None else catalogue.risk or LIKELIEST_VIOLATION
    for group, first in enumerate(classes.first):
        cases = np.array(where[group], dtype=np.int64).reshape(-1, 2)
        # rounded, since processors differ in the last bits, and plans with them where two of them cost the same
        table = np.array(rows[group], dtype=np.float64).reshape(len(cases), len(first)).round(ROUNDED_DIGITS)
        table[table > most] = np.inf
        of_group.append((cases[:, 0].copy(), cases[:, 1].copy(), table))
    far = tuple(
        np.array(gap, dtype=np.float64).reshape(len(gap), len(first)).round(ROUNDED_DIGITS)
        for gap, first in zip(gaps, classes.first, strict=True)
    )
    return Chances(classes, members, kind.astype(np.int64), tuple(of_group), far)


def _worst_of_equal(one: Members, of_members: Sequence[tuple[Floats, Floats]]) -> dict[int, tuple[Floats, Floats]]:
    """Per group in a co-location, the larger chances and gaps of equal workloads that are predicted differently."""
    worst: dict[int, tuple[Floats, Floats]] = {}
    for group, (chance, gap) in zip(one, of_members, strict=True):
        if group in worst:
            chance, gap = np.maximum(chance, worst[group][0]), np.maximum(gap, worst[group][1])
        worst[group] = chance, gap
    return worst


def _short_on(
    kind: int, co_locations: Sequence[Members], classes: Classes, catalogue: Catalogue, predictor: str
) -> list[list[tuple[Floats, Floats]]]:
    """Per co-location and member, for a tenant of each class the chance that it falls short, and the gap."""
    if kind in catalogue.gpus:  # whatever the admission test admits is kept
        none = [np.zeros(len(first)) for first in classes.first]
        return [[(none[group], none[group] - 1.0) for group in co_location] for co_location in co_locations]
    groups, by = classes.groups, catalogue.models[kind].predictors[predictor]
    asked = [workloads_of(co_location, groups) for co_location in co_locations]
    risks = LATENCY_RISKS if kind in catalogue.curves else (None,)
    total: list[list[Floats]] = [
        [np.zeros(len(classes.first[group])) for group in co_location] for co_location in co_locations
    ]
    for risk in risks:
        needs = [
            _find_required(group, first, kind, catalogue.least_kpps(kind, group.workload, risk))
            for group, first in zip(groups, classes.first, strict=True)
        ]
        answers = by.shortfalls(asked, [[needs[group] for group in co_location] for co_location in co_locations])
        for sums, answer in zip(total, answers, strict=True):
            for chance, more in zip(sums, answer, strict=True):
                chance += more / len(risks)
    found = []
    # asked last: a predictor that keeps what it has solved answers at once
    for one, chances, kpps in zip(co_locations, total, by.throughput(asked), strict=True):
        gaps = [np.log(needs[group] / max(float(has), 1e-9)) for group, has in zip(one, kpps, strict=True)]
        found.append(list(zip(chances, gaps, strict=True)))
    return found


def _find_required(group: TenantGroup, first: Ints, kind: int, least: float) -> Floats:
    """What the tenants of each class require on a kind (kpps), infinite where it cannot run them."""
    required = group.required[kind]
    return np.full(len(first), np.inf) if required is None else np.maximum(required[first], least)


class SoloThroughputs(Oracle):
    """What a predictor expects of workloads alone (kpps), not rounded: what SLAs are relative to in its error model."""

    def __init__(self, predictor: Predictor) -> None:
        super().__init__()
        self._predictor = predictor

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return [[float(kpps)] for kpps in self._predictor.solo([workload for (workload,) in co_locations])]
