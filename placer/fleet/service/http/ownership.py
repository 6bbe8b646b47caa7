"""Whose instances a token may place, change and remove, and how many an owner may have.

Neither is decided by the engine: a fleet whose log is replayed, or which another token file limits, is the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from placer.fleet.engine import Engine
from placer.fleet.events import Arrive, ArriveTogether, Change, Depart, FleetEvent, Measure, Refused
from placer.fleet.service.http.tokens import AccessToken, OwnerTable
from placer.model.nic import Tenant


def foreign_fault(engine: Engine, token: AccessToken, event: FleetEvent) -> str | None:
    """Why a token does not allow an event, because it is of somebody else's instance; None where it does."""
    if token.owners is None:
        return None
    for tenant in _concerned(engine, event):
        if tenant.owner not in token.owners:
            whose = f"is of owner '{tenant.owner}'" if tenant.owner else "has no owner"
            allowed = " or ".join(f"'{owner}'" for owner in sorted(token.owners))
            return f"'{tenant.id}' {whose}; the token is for instances of {allowed}"
    return None


def _concerned(engine: Engine, event: FleetEvent) -> list[Tenant]:
    """The instances that an event places, changes, removes, or says something of."""
    if isinstance(event, Arrive):
        return [event.tenant]
    if isinstance(event, ArriveTogether):
        return [*event.tenants]
    ids = [event.id] if isinstance(event, Change | Depart) else []
    if isinstance(event, Measure):
        ids = [instance.id for instance in event.instances]
    return [tenant for identity in ids if (tenant := engine.find_tenant(identity)) is not None]


class Quotas:
    """What owners may have; `by_owner`: by name. Reservations count, and a queued instance counts with the most cores
    that it may get."""

    def __init__(self, by_owner: Mapping[str, OwnerTable]) -> None:
        self._by_owner = by_owner

    def limit(self, engine: Engine, event: FleetEvent) -> bool:
        """Whether an event is of an owner with a quota."""
        return bool(self._by_owner) and any(tenant.owner in self._by_owner for tenant in _concerned(engine, event))

    def fault(self, engine: Engine, event: FleetEvent) -> str | None:
        """Why an event would give an owner too much; None where it would not."""
        if not self._by_owner or not isinstance(event, Arrive | ArriveTogether | Change):
            return None
        if isinstance(event, Arrive) and event.kind is not None:  # it runs there already
            return None
        by_owner: defaultdict[str, list[Tenant]] = defaultdict(list)
        for tenant in _concerned(engine, event):
            if isinstance(event, Change) or engine.find_tenant(tenant.id) is None:
                by_owner[tenant.owner].append(tenant)
        faults = (
            _over(engine, event, self._by_owner[owner], tenants)
            for owner, tenants in by_owner.items()
            if owner in self._by_owner
        )
        return next(filter(None, faults), None)


def _over(engine: Engine, event: FleetEvent, quota: OwnerTable, tenants: Sequence[Tenant]) -> str | None:
    """Why these instances are too many or too large for their owner; those of a change are there already."""
    instances, cores = _usage(engine, quota.name)
    more = 0 if isinstance(event, Change) else len(tenants)
    if quota.max_instances is not None and more and instances + more > quota.max_instances:
        return f"owner '{quota.name}' has {instances:,} of at most {quota.max_instances:,} instances"
    if quota.max_cores is None:
        return None
    fewest, most = cores, cores
    for tenant in tenants:
        after = tenant
        if isinstance(event, Change):
            here = _cores_here(engine, tenant)
            fewest, most = fewest - here, most - here
            after = _changed(tenant, event)
        counts = _core_counts(engine, after)
        fewest, most = fewest + min(counts, default=0), most + max(counts, default=0)
    if fewest <= quota.max_cores < most:  # how many it gets depends on where it goes
        fewest = most = _cores_then(engine, event, quota.name)
    if fewest > max(quota.max_cores, cores if isinstance(event, Change) else 0):
        return f"owner '{quota.name}' takes {cores:,} of at most {quota.max_cores:,} cores, and would take {fewest:,}"
    return None


def _changed(tenant: Tenant, event: Change) -> Tenant:
    asked = tenant.asked
    return asked if event.workload is None else replace(asked, workload=event.workload)


def _usage(engine: Engine, owner: str) -> tuple[int, int]:
    """How many instances an owner has, and the cores that they take."""
    instances, cores = engine.fleet.owned.get(owner, (0, 0))
    queued = [tenant for tenant in engine.waiting.values() if tenant.owner == owner]
    return instances + len(queued), cores + sum(_cores_here(engine, tenant) for tenant in queued)


def _cores_here(engine: Engine, tenant: Tenant) -> int:
    """The cores that an instance takes; in the queue the most that it may get."""
    home = engine.fleet.nic_of(tenant.id)
    return max(_core_counts(engine, tenant), default=0) if home is None else home.kind.cores_for(tenant.workload)


def _core_counts(engine: Engine, tenant: Tenant) -> set[int]:
    """The numbers of cores that an instance may get on a NIC of some kind."""
    return {
        kind.cores_for(choice.workload)
        for choice in engine.choices(tenant)
        for kind in engine.fleet.kinds
        if kind.hosts(choice.workload)
    }


def _cores_then(engine: Engine, event: FleetEvent, owner: str) -> int:
    """The cores that an owner takes after an event, which is decided on in a copy; as before where it is refused."""
    expected = engine.copy()
    with suppress(Refused):
        expected.handle(event)
    return _usage(expected, owner)[1]
