"""A batch: events that one agent has decided on in memory, and that become part of the state together or not at all."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from uuid import uuid4

from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line, event_line
from placer.fleet.events import (
    Arrive,
    ArriveTogether,
    Change,
    Decision,
    Depart,
    Expire,
    FleetEvent,
    Learned,
    TakenPlace,
)
from placer.fleet.learning.ledger import ProductionReading
from placer.fleet.state.saved import KeptAnswer
from placer.fleet.state.saved_learning import reading_row
from placer.fleet.state.tables import (
    format_constraints,
    format_labels,
    load_values,
    read_constraints,
    read_labels,
    workload_of,
)
from placer.model.constraints import group_keys
from placer.model.nic import Nic, Service, Tenant
from placer.model.pools import FleetJournal
from placer.model.sla import Sla


@dataclass(frozen=True, slots=True)
class Lease:
    """That this agent does a task that only one may do; who takes it over gets a higher epoch."""

    task: str
    epoch: int


@dataclass(slots=True)
class EventBatch:
    """What is decided, and how to take it back.

    `base`: the number of the last event before. `journal`: takes back what was changed in the fleet.
    """

    base: int
    journal: FleetJournal
    waiting: dict[str, Tenant]
    id: str = field(default_factory=lambda: uuid4().hex)
    lease: Lease | None = None
    log: list[tuple[str, str, float, str | None]] = field(default_factory=list)
    kept: dict[str, KeptAnswer] = field(default_factory=dict)
    touched: dict[str, bool] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)  # who has lost its place in the queue, if it had one
    readings: list[ProductionReading] = field(default_factory=list)
    learnt: dict[str, str | None] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write."""
        return not self.log and not self.kept

    def record(self, event: FleetEvent, decision: Decision, answer: str | None, actor: str | None = None) -> None:
        """Take down what was decided on an event."""
        if isinstance(event, Arrive):
            self.touched.setdefault(event.tenant.id, not isinstance(decision, TakenPlace))
        elif isinstance(event, ArriveTogether):
            for tenant in event.tenants:
                self.touched.setdefault(tenant.id, True)
        elif isinstance(event, Change | Depart | Expire):
            self.touched.setdefault(event.id, False)
            if isinstance(event, Depart | Expire):
                self.left.add(event.id)
        for move in decision.moves:
            self.touched.setdefault(move.id, False)
            self.left.add(move.id)
        if isinstance(decision, Learned):
            self.readings += decision.readings
            self.learnt |= decision.rows
        self.log.append((event_line(event), answer or decision_line(event, decision), time.time(), actor))

    def changes(self, engine: Engine) -> str:
        """What agents need that follow: NICs, tenants that are gone, tenants that are here, and what was learnt.

        Numbers of events count from the base, because others may come before this batch.
        """
        fleet, versions = engine.fleet, engine.versions
        nics = []
        for nic_id, before in versions.touched.items():
            nic = fleet.find(nic_id) or fleet.gone.get(nic_id)
            if nic is not None:
                after = versions.of(nic_id) - self.base
                place = [nic.kind.pool, nic.kind.domain] if nic.kind.joins else []
                nics.append([nic.id, nic.kind.index, nic.number, nic.service.value, before, after, *place])
        gone, here, homes = list[str](), list[list[object]](), dict[str, Nic]()
        for tenant_id, fresh in self.touched.items():
            home = fleet.nic_of(tenant_id)
            waits = tenant_id in self.waiting and tenant_id in engine.waiting and tenant_id not in self.left
            if not fresh and not waits:
                gone.append(tenant_id)
            if home is not None:
                homes[home.id] = home
        for home in homes.values():  # in their order on the NIC, of which those that are not touched come first
            here += [
                _row(tenant, home.id, self.touched[tenant.id]) for tenant in home.tenants if tenant.id in self.touched
            ]
        queue = ((tenant, self.touched.get(tenant.id)) for tenant in engine.waiting.values())
        here += [_row(tenant, None, fresh) for tenant, fresh in queue if fresh is not None]  # in their order
        found: dict[str, Any] = {"nics": nics, "gone": gone, "here": here}
        placed = (home.tenants_by_id.get(tenant_id) for home in homes.values() for tenant_id in self.touched)
        if groups := {key for tenant in placed if tenant for key in group_keys(tenant)}:
            found["groups"] = sorted(groups)
        if self.readings:
            found |= {"readings": [reading_row(reading) for reading in self.readings], "learnt": self.learnt}
        return json.dumps(found)

    def rest(self) -> str:
        """What is written besides: the log and the answers."""
        answers = [
            [key, one.digest.hex(), one.status, one.answer, None if one.version is None else one.version - self.base]
            for key, one in self.kept.items()
        ]
        lease = {} if self.lease is None else {"lease": [self.lease.task, self.lease.epoch]}
        return json.dumps({"log": self.log, "answers": answers, **lease})


def _row(tenant: Tenant, nic: str | None, fresh: bool) -> list[object]:
    workload, sla = tenant.workload, tenant.sla
    row: list[object] = [
        tenant.id,
        nic,
        workload.nf,
        *workload.traffic.as_tuple(),
        sla.max_drop,
        sla.min_kpps,
        int(fresh),
    ]
    constraints = format_constraints(tenant.constraints, tenant.group)
    owned = [tenant.reserved_until, tenant.owner or None, format_labels(tenant.labels)]
    if workload.is_plain and constraints is None and not tenant.priority and owned == [None, None, None]:
        return row
    return [*row, *load_values(workload), int(tenant.free_cores) or None, constraints, tenant.priority or None, *owned]


class BatchAnswers:
    """Answers by idempotency key: those that were found in the state, and those of the batch."""

    def __init__(self) -> None:
        self.found: Mapping[str, KeptAnswer] = {}
        self.batch: EventBatch | None = None

    def find(self, key: str) -> KeptAnswer | None:
        known = None if self.batch is None else self.batch.kept.get(key)
        return known or self.found.get(key)

    def keep(self, key: str, answer: KeptAnswer) -> None:
        assert self.batch is not None
        self.batch.kept[key] = answer


# Following: an agent's fleet becomes what others have made of it, one of their batches after the other.


SERVICES_BY_NAME = {service.value: service for service in Service}

MAX_REMEMBERED_WORKLOADS = 100_000


@dataclass(frozen=True, slots=True)
class ForeignBatch:
    """A batch of another agent: the number of its last event, how many it has, and what changed."""

    last: int
    events: int
    changes: str


@dataclass(frozen=True, slots=True)
class News:
    """What others have committed since, in order, and answers that are kept by key."""

    batches: Sequence[ForeignBatch] = ()
    answers: Mapping[str, KeptAnswer] | None = None


Learn = Callable[[Engine, Sequence[Sequence[Any]], Mapping[str, str | None]], None]
"""Learns readings of another agent, given as rows, and what it recorded of them by name."""


def follow(engine: Engine, batches: Sequence[ForeignBatch], learn: Learn | None = None) -> int:
    """Apply batches to the engine; returns the number of their events."""
    for batch in batches:
        changes = json.loads(batch.changes)
        base = batch.last - batch.events
        for tenant_id in changes["gone"]:  # before the NICs, of which only those without tenants may leave
            if engine.fleet.nic_of(tenant_id) is not None:
                engine.fleet.remove(tenant_id)
            else:
                engine.waiting.pop(tenant_id, None)
        _follow_nics(engine, changes["nics"], base)
        for row in changes["here"]:
            _place(engine, row)
        if "readings" in changes and learn is not None:
            learn(engine, changes["readings"], changes["learnt"])
            engine.versions.models = batch.last
        engine.events = batch.last
    return sum(batch.events for batch in batches)


def _follow_nics(engine: Engine, rows: Sequence[Sequence[Any]], base: int) -> None:
    fleet, versions = engine.fleet, engine.versions
    for nic_id, number_of_kind, number, value, _, after, *place in rows:
        if nic_id in fleet.gone and value != Service.GONE.value:
            fleet.set_service(nic_id, Service.UP)  # it joined again, perhaps in another place
        nic, kind = fleet.find(nic_id) or fleet.gone.get(nic_id), fleet.kinds[number_of_kind]
        if place:
            pool, domain = place
            kind = fleet.kind_in(kind.model, pool, domain, kind.index)
        if nic is None:
            nic = Nic(nic_id, kind, number)
            fleet.adopt(nic, ())
        elif nic.kind is not kind:
            fleet.assign(nic, kind)
            nic = fleet.find(nic_id) or nic
        if nic.service.value != value:
            fleet.set_service(nic_id, SERVICES_BY_NAME[value])
        versions.follow(nic_id, base + after)


def _place(engine: Engine, row: Sequence[Any]) -> None:
    tenant_id, nic_id, nf, flows, size, mtbr, drop, least, fresh, *load = row
    workload = _workload(nf, flows, size, mtbr, *load[:3])
    demanded, priority, until, owner, labels = load[4:] if load else (None, None, None, None, None)
    constraints, group = read_constraints(demanded)
    free_cores, owned = bool(load and load[3]), (owner or "", read_labels(labels), until)
    tenant = Tenant(tenant_id, workload, Sla(drop, least), free_cores, (), constraints, priority or 0, group, *owned)
    if nic_id is None:
        engine.waiting[tenant_id] = tenant
    else:
        nic = engine.fleet.find(nic_id)
        assert nic is not None
        engine.fleet.put_back(tenant, nic)
    if fresh:
        engine.selector.observe_elsewhere(tenant)


_workload = lru_cache(MAX_REMEMBERED_WORKLOADS)(workload_of)
