"""What the engine would decide, without deciding it: where arrivals would go, and why a NIC would not take one.

Nothing here changes the fleet, its forecast or what is predicted in advance, so that decisions are the same whether
somebody asks or not.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from placer.fleet.engine import Engine
from placer.model.feasibility import Misfit, feasible, misfit, misfit_with
from placer.model.fleet import Fleet, Nic, NicKind, Service, Tenant
from profiles import CoLocation, Workload

MAX_REMEMBERED_ARRIVALS = 64
REMEMBERED_CLASSES = 100_000
"""Co-locations with an arrival whose answer is remembered."""

MAX_CHECKED_CLASSES = 256
"""Classes of NICs that are checked for a workload that has not come yet, the fullest first."""

TenantKey = tuple[Workload, float, float]
ClassOfNics = tuple[int, Service, tuple[TenantKey, ...]]
ClassKey = tuple[int, tuple[TenantKey, ...], TenantKey]


@dataclass(frozen=True, slots=True)
class ExpectedPlace:
    """Where an arrival would go.

    `nic`: the NIC, by the name that it would get where it is new. `opens`: whether it would be put into use. `score`:
    by the rule, the lower the better; None where the workload has not come before, and the fullest NICs are first.
    """

    nic: str
    nic_model: str
    opens: bool
    score: float | None = None


@dataclass(frozen=True, slots=True)
class ClassVerdict:
    """Why a class of NICs does not take an arrival: their model, what runs on each, and how many there are."""

    nic_model: str
    co_location: CoLocation
    nics: int
    cause: str


class WhatIf:
    """Answers for one engine, as its fleet is when it is asked."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._models = -1
        self._classes: dict[str, tuple[int, ClassOfNics]] = {}
        self._by_class: dict[ClassKey, Misfit | None] = {}
        self._by_nic: OrderedDict[TenantKey, dict[str, tuple[int, Misfit | None]]] = OrderedDict()

    def places(self, arrival: Tenant, count: int = 1, top: int = 1) -> list[ExpectedPlace]:
        """Where `count` arrivals would go, one after the other; or, of one, the `top` places, best first."""
        if count == 1:
            return [self._place(choice, score) for score, choice in self._choices(arrival, top)]
        return list(self._in_turn(arrival, count))

    def verdicts(self, arrival: Tenant) -> list[ClassVerdict]:
        """Why NICs in use or out of service do not take the arrival, by class; the most frequent of the largest."""
        fleet, sizes = self.engine.fleet, Counter[ClassOfNics]()
        example: dict[ClassOfNics, Nic] = {}
        for nic in (
            *fleet.nics.values(),
            *(outside for outside in fleet.out_of_service.values() if not outside.tenants_by_id),
        ):
            key = self._class_of_nic(nic)
            sizes[key] += 1
            example[key] = nic
        self._recall_answers(arrival)
        found = []
        for key, nics in sizes.most_common(MAX_CHECKED_CLASSES):
            reason = self._misfit(example[key], arrival)
            if reason is not None:
                found.append(ClassVerdict(example[key].kind.model, example[key].co_location, nics, str(reason)))
        return found

    def misfits(self, arrival: Tenant, nic_ids: Sequence[str]) -> dict[str, Misfit | None]:
        """By NIC, why it does not take the arrival, what lasts before what may pass; None where it does."""
        known = self._recall_answers(arrival)
        fleet, versions = self.engine.fleet, self.engine.versions
        found = {}
        for nic_id in nic_ids:
            version = versions.of(nic_id)
            seen = known.get(nic_id)
            if seen is None or seen[0] != version:
                seen = known[nic_id] = version, self._misfit(fleet.find(nic_id), arrival)
            found[nic_id] = seen[1]
        return found

    def _class_of_nic(self, nic: Nic) -> ClassOfNics:
        version = self.engine.versions.of(nic.id)
        known = self._classes.get(nic.id)
        if known is None or known[0] != version:
            key = nic.kind.index, nic.service, tuple(sorted(map(_tenant_key, nic.tenants)))
            known = self._classes[nic.id] = version, key
        return known[1]

    def scores(self, arrival: Tenant, nic_ids: Sequence[str]) -> dict[str, float]:
        """By NIC that takes the arrival, its score, the lower the better; infinite for one that is not in use."""
        taken = [nic_id for nic_id, reason in self.misfits(arrival, nic_ids).items() if reason is None]
        in_use = [nic for nic in map(self.engine.fleet.nics.find, taken) if nic is not None]
        found = dict.fromkeys(taken, math.inf)
        if self.engine.selector.has_predicted(arrival):
            return found | self.engine.selector.scores_on(arrival, in_use)
        return found | {nic.id: float(_free_cores(nic)) for nic in in_use}

    def _choices(self, arrival: Tenant, top: int) -> Sequence[tuple[float | None, Nic | NicKind]]:
        if self.engine.selector.has_predicted(arrival):
            return self.engine.selector.rank(arrival, top)
        return self._fullest_first(arrival, top)

    def _in_turn(self, arrival: Tenant, count: int) -> Iterator[ExpectedPlace]:
        """ExpectedPlace copies of the arrival, and take all of them back."""
        fleet, selector = self.engine.fleet, self.engine.selector
        opened, placed = fleet.opened, list[tuple[Tenant, Nic]]()
        ranked = selector.has_predicted(arrival) and not selector.rebuilding
        with selector.trial() if ranked else _pause_observer(fleet):
            try:
                for number in range(count):
                    one = Tenant(f"\0{number}", arrival.workload, arrival.sla)
                    choices = selector.rank(one, 1) if ranked else self._fullest_first(one, 1)
                    if not choices:
                        break
                    score, choice = choices[0]
                    yield self._place(choice, score)
                    nic = fleet.open(choice) if isinstance(choice, NicKind) else choice
                    fleet.place(one, nic)
                    placed.append((one, nic))
            finally:
                for one, nic in reversed(placed):
                    fleet.remove(one.id)
                    if nic.number > opened and not nic.tenants_by_id:
                        fleet.unopen(nic, opened)

    def _place(self, choice: Nic | NicKind, score: float | None) -> ExpectedPlace:
        shown = None if score is None or math.isinf(score) else score
        if isinstance(choice, NicKind):
            return ExpectedPlace(self.engine.fleet.next_of(choice).id, choice.model, True, shown)
        return ExpectedPlace(choice.id, choice.kind.model, False, shown)

    def _fullest_first(self, arrival: Tenant, top: int) -> list[tuple[float | None, Nic | NicKind]]:
        """NICs in use that take an arrival whose workload has not come before, one per class; then models to open."""
        fleet = self.engine.fleet
        needs = {kind.index: kind.cores_of.get(arrival.workload.nf, kind.cores + 1) for kind in fleet.kinds}
        classes: dict[ClassKey, tuple[int, Nic]] = {}
        for nic in fleet.nics.values():
            free = _free_cores(nic)
            if nic.service is Service.UP and free >= needs[nic.kind.index]:
                classes.setdefault(_class_of(nic.kind, nic.tenants, arrival), (free, nic))
        fullest = sorted(classes.values(), key=lambda one: (one[0], one[1].number))[:MAX_CHECKED_CLASSES]
        found: list[tuple[float | None, Nic | NicKind]] = []
        for kind, oracle in zip(fleet.kinds, self.engine.oracles, strict=True):
            nics = [nic for _, nic in fullest if nic.kind is kind]
            keeps = feasible(kind, oracle, [[*nic.tenants, arrival] for nic in nics])
            found += [(None, nic) for nic, kept in zip(nics, keeps, strict=True) if kept]
        for kind in fleet.available():
            if feasible(kind, self.engine.oracles[kind.index], [[arrival]])[0]:
                found.append((None, kind))
        return found[:top]

    def _recall_answers(self, arrival: Tenant) -> dict[str, tuple[int, Misfit | None]]:
        """Answers by NIC for arrivals like this one; forgotten when models answer otherwise."""
        if self._models != self.engine.versions.models:
            self._models = self.engine.versions.models
            self._by_class.clear()
            self._by_nic.clear()
        key = _tenant_key(arrival)
        known = self._by_nic.setdefault(key, {})
        self._by_nic.move_to_end(key)
        while len(self._by_nic) > MAX_REMEMBERED_ARRIVALS:
            self._by_nic.popitem(last=False)
        return known

    def _misfit(self, nic: Nic | None, arrival: Tenant) -> Misfit | None:
        if nic is None:
            return Misfit("unknown", None, "the NIC is not in the fleet", lasts=True)
        if nic.service is not Service.UP:
            return misfit(nic, self.engine.oracles[nic.kind.index], arrival)
        key = _class_of(nic.kind, nic.tenants, arrival)
        if key not in self._by_class:
            if len(self._by_class) >= REMEMBERED_CLASSES:
                self._by_class.clear()
            oracle = self.engine.oracles[nic.kind.index]
            found = misfit_with(nic.kind, oracle, nic.tenants, arrival)
            lasting = None if found is None else misfit_with(nic.kind, oracle, (), arrival)
            self._by_class[key] = lasting or found
        return self._by_class[key]


@contextmanager
def _pause_observer(fleet: Fleet) -> Iterator[None]:
    """A time in which nobody follows the fleet, which is as before at its end."""
    observer, fleet.observer = fleet.observer, None
    try:
        yield
    finally:
        fleet.observer = observer


def _free_cores(nic: Nic) -> int:
    return nic.kind.cores - nic.kind.cores_taken(tenant.workload for tenant in nic.tenants_by_id.values())


def _tenant_key(tenant: Tenant) -> TenantKey:
    sla = tenant.sla
    return (
        tenant.workload,
        -1.0 if sla.max_drop is None else sla.max_drop,
        -1.0 if sla.min_kpps is None else sla.min_kpps,
    )


def _class_of(kind: NicKind, tenants: Sequence[Tenant], arrival: Tenant) -> ClassKey:
    return kind.index, tuple(sorted(map(_tenant_key, tenants))), _tenant_key(arrival)
