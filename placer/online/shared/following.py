"""Following: an agent's fleet becomes what others have made of it, one of their batches after the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from placer.model.fleet import Nic, Service, Tenant
from placer.model.sla import Sla
from placer.online.engine import Engine
from placer.online.kept_answers import KeptAnswer
from profiles import TrafficProfile, Workload

SERVICES = {service.value: service for service in Service}

REMEMBERED = 100_000
"""Different workloads that are remembered."""


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
        _follow_nics(engine, changes["nics"], base)
        for tenant_id in changes["gone"]:
            _remove(engine, tenant_id)
        for row in changes["here"]:
            _place(engine, row)
        if "readings" in changes and learn is not None:
            learn(engine, changes["readings"], changes["learnt"])
            engine.versions.models = batch.last
        engine.events = batch.last
    return sum(batch.events for batch in batches)


def _follow_nics(engine: Engine, rows: Sequence[Sequence[Any]], base: int) -> None:
    fleet, versions = engine.fleet, engine.versions
    for nic_id, kind, number, value, _, after in rows:
        nic = fleet.find(nic_id)
        if nic is None:
            nic = Nic(nic_id, fleet.kinds[kind], number)
            fleet.adopt(nic, ())
        if nic.service.value != value:
            fleet.set_service(nic_id, SERVICES[value])
        versions.follow(nic_id, base + after)


def _remove(engine: Engine, tenant_id: str) -> None:
    if engine.fleet.nic_of(tenant_id) is not None:
        engine.fleet.remove(tenant_id)
    else:
        engine.waiting.pop(tenant_id, None)


def _place(engine: Engine, row: Sequence[Any]) -> None:
    tenant_id, nic_id, nf, flows, size, mtbr, drop, least, fresh = row
    tenant = Tenant(tenant_id, _workload(nf, flows, size, mtbr), Sla(drop, least))
    if nic_id is None:
        engine.waiting[tenant_id] = tenant
    else:
        nic = engine.fleet.find(nic_id)
        assert nic is not None
        engine.fleet.put_back(tenant, nic)
    if fresh:
        engine.selector.observe_elsewhere(tenant)


@lru_cache(REMEMBERED)
def _workload(nf: str, flows: float, size: float, mtbr: float) -> Workload:
    return Workload(nf, TrafficProfile(flows, size, mtbr))
