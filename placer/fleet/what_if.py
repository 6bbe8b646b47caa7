"""What the engine would decide, without deciding it: where arrivals would go, and why a NIC would not take one.

Nothing here changes the fleet, its forecast or what is predicted in advance, so that decisions are the same whether
somebody asks or not. Long answers come in steps, between which others may decide; where the fleet has changed then,
what was found before is checked again.
"""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from placer.fleet.cores import shown_cores
from placer.fleet.engine import Engine
from placer.model.constraints import Conflict, conflict_on, may_be_barred
from placer.model.feasibility import Misfit, fits, misfit, misfit_with
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Service, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import co_location_of
from placer.policy.preemption import find_victims
from profiles import CoLocation, Workload

MAX_REMEMBERED_ARRIVALS = 64
REMEMBERED_CLASSES = 100_000  # Co-locations with an arrival whose answer is remembered
MAX_CHECKED_CLASSES = 256  # classes of NICs that are checked for an arrival, the largest first
LONGEST_STEP_S = 0.003  # seconds after which an answer goes on in a further step

LEAST_COPIES = 8
"""Copies of an arrival that a step places at least, besides those of earlier steps, which are placed again."""

PREDICTED_AT_ONCE, SCORED_AT_ONCE = 32, 256
"""NICs that are predicted together, and those whose scores are found in a step, as they were predicted before."""

Found = TypeVar("Found")
Steps = Generator[None, None, Found]  # an answer in steps, each of a few milliseconds


def complete(steps: Steps[Found]) -> Found:
    """The answer, at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            answer: Found = end.value
            return answer


TenantKey = tuple[Workload, float, float]
ClassOfNics = tuple[int, Service, tuple[TenantKey, ...]]
BarredClass = ClassOfNics | tuple[str, Conflict]
ClassKey = tuple[int, tuple[TenantKey, ...], TenantKey]


@dataclass(frozen=True, slots=True)
class ExpectedPlace:
    """Where an arrival would go.

    `nic`: the NIC, by the name that it would get where it is new. `opens`: whether it would be put into use. `score`:
    by the rule, the lower the better; None for a NIC that the rule opens only where no other fits, or finds last.
    `cores`: as of a `Decision`.
    """

    nic: str
    nic_model: str
    opens: bool
    score: float | None = None
    cores: int | None = None


@dataclass(frozen=True, slots=True)
class ClassVerdict:
    """Why a class of NICs does not take an arrival: their model, what runs on each, and how many there are.

    `met`: where a constraint bars them, the ids of the instances that it meets.
    """

    nic_model: str
    co_location: CoLocation
    nics: int
    cause: str
    met: tuple[str, ...] = ()


class WhatIf:
    """Answers for one engine, as its fleet is when it is asked."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._models = -1
        self._classes: dict[str, tuple[int, ClassOfNics]] = {}
        self._by_class: dict[ClassKey, Misfit | None] = {}
        self._by_nic: OrderedDict[TenantKey, dict[str, tuple[int, Misfit | None]]] = OrderedDict()

    def places(self, arrival: Tenant, count: int = 1, top: int = 1) -> Steps[list[ExpectedPlace]]:
        """Where `count` arrivals would go, one after the other; or, of one, the `top` places, best first."""
        if count > 1:
            return (yield from self._in_turn(arrival, count))
        if len(choices := self.engine.choices(arrival)) > 1:
            chosen = self._choose(arrival)
            arrival = choices[0] if chosen is None else chosen[2]
        return [_place(self.engine.fleet, choice, score, arrival) for score, choice in self._rank(arrival, top)]

    def verdicts(self, arrival: Tenant) -> Steps[list[ClassVerdict]]:
        """Why NICs in use or out of service do not take the arrival, by class; the most frequent of the largest."""
        fleet, sizes, until = self.engine.fleet, Counter[BarredClass](), _end_of_step()
        example: dict[BarredClass, Nic] = {}
        empty = (outside for outside in fleet.out_of_service.values() if not outside.tenants_by_id)
        for nic in (*fleet.nics.values(), *empty):
            conflict = conflict_on(fleet, arrival, nic.kind, nic)
            key = (nic.kind.model, conflict) if conflict else self._class_of_nic(nic)
            sizes[key] += 1
            example[key] = nic
            if time.perf_counter() > until:
                yield
                until = _end_of_step()
        largest = sizes.most_common(MAX_CHECKED_CLASSES)
        reasons = yield from self.misfits(arrival, [example[key].id for key, _ in largest])
        found = []
        for key, nics in largest:
            nic, conflict = example[key], key[1] if isinstance(key[1], Conflict) else None
            met, here = (conflict.ids, ()) if conflict else ((), nic.co_location)
            if (reason := reasons[nic.id]) is not None:
                found.append(ClassVerdict(nic.kind.model, here, nics, conflict.text if conflict else str(reason), met))
        return found

    def misfits(self, arrival: Tenant, nic_ids: Sequence[str]) -> Steps[dict[str, Misfit | None]]:
        """By NIC, why it does not take the arrival, what lasts before what may pass; None where it does."""
        if len(choices := self.engine.choices(arrival)) == 1:
            return (yield from self._misfits_of(choices[0], nic_ids))
        return {nic_id: reason for nic_id, (reason, _) in (yield from self._verdicts(arrival, nic_ids)).items()}

    def _verdicts(self, arrival: Tenant, nic_ids: Sequence[str]) -> Steps[dict[str, tuple[Misfit | None, Tenant]]]:
        """By NIC, what `misfits` says, and the arrival with the first choice of cores with which the NIC takes it."""
        found: dict[str, tuple[Misfit | None, Tenant]] = {}
        for choice in self.engine.choices(arrival):
            left = [nic_id for nic_id in nic_ids if nic_id not in found or found[nic_id][0] is not None]
            for nic_id, reason in (yield from self._misfits_of(choice, left)).items():
                before = found.get(nic_id, (None, choice))[0]
                if before is None or reason is None or (before.lasts and not reason.lasts):
                    found[nic_id] = reason, choice
        return found

    def _misfits_of(self, arrival: Tenant, nic_ids: Sequence[str]) -> Steps[dict[str, Misfit | None]]:
        """As `misfits`, of an arrival whose number of cores is fixed."""
        found, until = dict[str, Misfit | None](), _end_of_step()
        constrained = may_be_barred(self.engine.fleet, arrival)
        for first in range(0, len(nic_ids), PREDICTED_AT_ONCE):
            some = nic_ids[first : first + PREDICTED_AT_ONCE]
            known, versions = self._recall_answers(arrival), self.engine.versions
            unknown = [nic_id for nic_id in some if nic_id not in known or known[nic_id][0] != versions.of(nic_id)]
            nics = {nic_id: self.engine.fleet.find(nic_id) for nic_id in unknown}
            self._predict_together([nic for nic in nics.values() if nic is not None], arrival)
            for nic_id in some:
                if nic_id in nics:
                    known[nic_id] = versions.of(nic_id), self._misfit(nics[nic_id], arrival)
                reason = known[nic_id][1]
                if constrained and (reason is None or not reason.lasts):
                    reason = self._barred(nic_id, arrival) or reason
                found[nic_id] = reason
                if time.perf_counter() > until:
                    yield
                    until = _end_of_step()
        return found

    def victims(self, arrival: Tenant, leaving: Mapping[str, Collection[str]]) -> Steps[dict[str, tuple[Tenant, ...]]]:
        """By NIC, the fewest tenants of lower priority that have to leave it, besides those of `leaving`, so that it
        takes the arrival; NICs on which that does not help, or where `leaving` has others, are left out."""
        found, until, fleet = dict[str, tuple[Tenant, ...]](), _end_of_step(), self.engine.fleet
        choices = self.engine.choices(arrival)
        for nic_id, going in leaving.items():
            nic = fleet.find(nic_id)
            if nic is None or nic.service is not Service.UP:
                continue
            if any(here.id in going and here.priority >= arrival.priority for here in nic.tenants):
                continue
            preemption = find_victims(fleet, self.engine.oracles, choices, nic, going)
            if preemption is not None:
                found[nic_id] = tuple(nic.tenants_by_id[identity] for identity in preemption.ids)
            if time.perf_counter() > until:
                yield
                until = _end_of_step()
        return found

    def _class_of_nic(self, nic: Nic) -> ClassOfNics:
        version = self.engine.versions.of(nic.id)
        known = self._classes.get(nic.id)
        if known is None or known[0] != version:
            key = nic.kind.index, nic.service, tuple(sorted(map(_tenant_key, nic.tenants)))
            known = self._classes[nic.id] = version, key
        return known[1]

    def scores(self, arrival: Tenant, nic_ids: Sequence[str]) -> Steps[dict[str, float]]:
        """By NIC that takes the arrival, its score, the lower the better; infinite for one that is not in use."""
        verdicts = yield from self._verdicts(arrival, nic_ids)
        by_choice: dict[Tenant, list[str]] = {}
        for nic_id, (reason, choice) in verdicts.items():
            if reason is None:
                by_choice.setdefault(choice, []).append(nic_id)
        taken = [nic_id for some in by_choice.values() for nic_id in some]
        found = dict.fromkeys(taken, math.inf)
        if self.engine.selector.has_predicted(arrival):
            for choice, fitting in by_choice.items():
                for first in range(0, len(fitting), SCORED_AT_ONCE):
                    some = map(self.engine.fleet.nics.find, fitting[first : first + SCORED_AT_ONCE])
                    found |= self.engine.selector.scores_on(choice, [nic for nic in some if nic is not None])
                    yield
            return found
        in_use = [nic for nic in map(self.engine.fleet.nics.find, taken) if nic is not None]
        return found | {nic.id: float(nic.kind.cores - nic.kind.cores_taken(nic.co_location)) for nic in in_use}

    def _choose(self, arrival: Tenant) -> tuple[float, Nic | NicKind, Tenant] | None:
        """Score, place and cores of an arrival as the engine chooses them; None where no NIC takes it."""
        opening: tuple[float, Nic | NicKind, Tenant] | None = None
        for choice in self.engine.choices(arrival):
            for score, place in self._rank(choice, 1):
                if isinstance(place, Nic):
                    return score, place, choice
                opening = opening or (score, place, choice)
        return opening

    def _rank(self, arrival: Tenant, top: int) -> list[tuple[float, Nic | NicKind]]:
        """The best places; of an arrival that needs a new table the fullest NICs that take it, one per class."""
        if self.engine.selector.has_predicted(arrival):
            return self.engine.selector.rank(arrival, top)
        classes: dict[ClassKey, Nic] = {}
        for nic in self.engine.fleet.nics.values():
            if not conflict_on(self.engine.fleet, arrival, nic.kind, nic):
                classes.setdefault(_class_of(nic.kind, nic.tenants, arrival), nic)
        fullest = sorted(classes.values(), key=lambda nic: (-nic.kind.cores_taken(nic.co_location), nic.number))
        opened = [Nic("", kind) for kind in self.engine.fleet.available()]
        opened = [nic for nic in opened if not conflict_on(self.engine.fleet, arrival, nic.kind, None)]
        fitting = [nic for nic in (*fullest, *opened) if self._misfit(nic, arrival) is None]
        return [(math.inf, nic if nic.tenants_by_id else nic.kind) for nic in fitting[:top]]

    def _in_turn(self, arrival: Tenant, count: int) -> Steps[list[ExpectedPlace]]:
        """Place copies of the arrival one after the other; all of them are taken back at the end of each step."""
        engine, chosen, events = self.engine, list[Chosen](), self.engine.events
        while True:
            until, copies = _end_of_step(), _Copies(engine.fleet, arrival)
            known = engine.selector.has_predicted(arrival)
            with engine.selector.trial() if known else _pause_observer(engine.fleet):
                try:
                    chosen = self._place_again(copies, chosen, events)
                    least = len(chosen) + LEAST_COPIES
                    while len(chosen) < count and (len(chosen) < least or time.perf_counter() < until):
                        best = self._choose(copies.next)
                        if best is None:
                            return copies.places
                        chosen.append((copies.choice_of(best[1]), best[0], best[2]))
                        copies.place(*chosen[-1])
                finally:
                    copies.take_back()
            if len(chosen) == count:
                return copies.places
            events = engine.events
            yield

    def _place_again(self, copies: _Copies, chosen: Sequence[Chosen], events: int) -> list[Chosen]:
        """Place the copies of earlier steps where they still fit after the events behind that number; return these.

        Where no NIC can be opened for a copy any more, those behind it may have been meant for that NIC.
        """
        again = list[Chosen]()
        for choice, score, copy in chosen:
            if events == self.engine.events or self._still_fits(copies, choice, copy, events):
                copies.place(choice, score, copy)
                again.append((choice, score, copy))
            elif isinstance(choice, NicKind):
                break
        return again

    def _still_fits(self, copies: _Copies, choice: Choice, arrival: Tenant, events: int) -> bool:
        """Whether a NIC that was chosen before the events behind that number takes a copy now."""
        fleet, versions = self.engine.fleet, self.engine.versions
        if isinstance(choice, NicKind):
            return choice in fleet.available() and not conflict_on(fleet, arrival, choice, None)
        nic = copies.nic_of(choice)
        if fleet.nics.find(nic.id) is not nic or conflict_on(fleet, arrival, nic.kind, nic):
            return False
        if max(versions.of(nic.id), versions.models) <= events:
            return True
        return misfit(nic, self.engine.oracles[nic.kind.index], arrival) is None

    def _predict_together(self, nics: Sequence[Nic], arrival: Tenant) -> None:
        """Ask for the NICs with the arrival all at once, which takes less than one after the other."""
        wanted: dict[int, dict[CoLocation, None]] = {}
        for nic in nics:
            workloads = [*(tenant.workload for tenant in nic.tenants_by_id.values()), arrival.workload]
            unknown = _class_of(nic.kind, nic.tenants, arrival) not in self._by_class
            if nic.service is Service.UP and unknown and fits(nic.kind, workloads):
                wanted.setdefault(nic.kind.index, {})[co_location_of(workloads)] = None
        for number, co_locations in wanted.items():
            self.engine.oracles[number].throughput(list(co_locations))

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

    def _barred(self, nic_id: str, arrival: Tenant) -> Misfit | None:
        """The constraint that keeps the arrival off a NIC; that of its kind is the same whatever else runs."""
        nic = self.engine.fleet.find(nic_id)
        conflict = None if nic is None else conflict_on(self.engine.fleet, arrival, nic.kind, nic)
        return None if conflict is None else Misfit(conflict.constraint, None, str(conflict), lasts=not conflict.ids)

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


Choice = Nic | NicKind | int
"""A NIC in use, a kind of which one is opened, or one that was opened for a copy before, by their order."""

Chosen = tuple[Choice, float, Tenant]
"""What was chosen for a copy, its score, and the copy with its cores."""


class _Copies:
    """Copies of an arrival that are placed only to be taken back, and where they are."""

    def __init__(self, fleet: Fleet, arrival: Tenant) -> None:
        self.places: list[ExpectedPlace] = []
        self._fleet = fleet
        self._arrival = arrival
        self._before = fleet.opened
        self._opened: list[Nic] = []
        self._placed: list[tuple[Tenant, Nic]] = []

    @property
    def next(self) -> Tenant:
        """The copy that is placed next."""
        return replace(self._arrival, id=self._next_id)

    @property
    def _next_id(self) -> str:
        return f"\0{len(self._placed)}"

    def choice_of(self, chosen: Nic | NicKind) -> Choice:
        """How a choice is named in later steps."""
        opened = isinstance(chosen, Nic) and chosen in self._opened
        return self._opened.index(chosen) if opened else chosen  # type: ignore[arg-type]

    def nic_of(self, choice: Nic | int) -> Nic:
        return self._opened[choice] if isinstance(choice, int) else choice

    def place(self, choice: Choice, score: float, copy: Tenant) -> None:
        """Place a copy there, which is the next one with its cores."""
        found = choice if isinstance(choice, NicKind) else self.nic_of(choice)
        self.places.append(_place(self._fleet, found, score, copy))
        if isinstance(found, NicKind):
            found = self._fleet.open(found)
            self._opened.append(found)
        copy = copy if copy.id == self._next_id else replace(copy, id=self._next_id)
        self._fleet.place(copy, found)
        self._placed.append((copy, found))

    def take_back(self) -> None:
        """Remove all copies, and the NICs that were opened for them."""
        for copy, nic in reversed(self._placed):
            self._fleet.remove(copy.id)
            if nic.number > self._before and not nic.tenants_by_id:
                self._fleet.unopen(nic, self._before)


def _place(fleet: Fleet, choice: Nic | NicKind, score: float, arrival: Tenant) -> ExpectedPlace:
    shown = None if math.isinf(score) else score
    if isinstance(choice, NicKind):
        return ExpectedPlace(fleet.next_of(choice).id, choice.model, True, shown, shown_cores(arrival, choice))
    return ExpectedPlace(choice.id, choice.kind.model, False, shown, shown_cores(arrival, choice.kind))


def _end_of_step() -> float:
    return time.perf_counter() + LONGEST_STEP_S


def _tenant_key(tenant: Tenant) -> TenantKey:
    sla = tenant.sla
    return (
        tenant.workload,
        -1.0 if sla.max_drop is None else sla.max_drop,
        -1.0 if sla.min_kpps is None else sla.min_kpps,
    )


def _class_of(kind: NicKind, tenants: Sequence[Tenant], arrival: Tenant) -> ClassKey:
    return kind.index, tuple(sorted(map(_tenant_key, tenants))), _tenant_key(arrival)
