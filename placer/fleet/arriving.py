"""Arrivals: on which NIC each is placed, and who leaves for it where it may preempt."""

from __future__ import annotations

from dataclasses import replace

from placer.fleet.cores import least_lasting, shortage
from placer.fleet.event_lines import wanted_of
from placer.fleet.events import Arrive, ArriveTogether, Decision, Lookup, Move, Refused, Reserve, TakenPlace
from placer.fleet.queued_fleet import REJECT, QueuedFleet, name_some, with_placed, without_group
from placer.model.constraints import conflict_on
from placer.model.feasibility import feasible, fits, misfit
from placer.model.nic import Service, Tenant
from placer.policy.preemption import Preemption, find_victims
from placer.policy.rejection import Cause, Reason

MOST_SEARCHED = 256
"""Tenants of a fleet that says, without being asked, who would have to go so that an arrival fits."""


def place_arrival(engine: QueuedFleet, event: Arrive) -> Decision:
    tenant = event.tenant
    before = engine.find_tenant(tenant.id)
    if before is not None:
        if before.reserved_until is not None:
            return _take_reserved(engine, event, before)
        if without_group(before.asked) == tenant.asked:  # sent again, because the answer was lost
            return engine.find_place(tenant.id)
        if before.constraints != tenant.constraints:
            raise Refused(f"'{tenant.id}' already exists with other constraints; send a depart first")
        if before.priority != tenant.priority:
            raise Refused(f"'{tenant.id}' already exists with priority {before.priority}; send a depart first")
        if (before.owner, before.labels) != (tenant.owner, tenant.labels):
            raise Refused(f"'{tenant.id}' already exists with another owner or other labels; send a depart first")
        raise Refused(f"'{tenant.id}' already exists with another NF, traffic or SLA; send a change")
    return _place_new(engine, event, engine.when_full)


def reserve_place(engine: QueuedFleet, event: Reserve) -> Decision:
    tenant = event.tenant
    before = engine.find_tenant(tenant.id)
    if before is not None:
        if before.reserved_until is None:
            raise Refused(f"'{tenant.id}' already exists, and needs no reservation")
        _refuse_other_demand(before, tenant)
        return engine.find_place(tenant.id)  # sent again, because the answer was lost
    decision = _place_new(engine, event, REJECT)
    if decision.status == "rejected":
        return decision
    return replace(decision, status="reserved", until=tenant.reserved_until)


def _take_reserved(engine: QueuedFleet, event: Arrive, before: Tenant) -> TakenPlace:
    """Let an arrival have the place that is reserved for it, or its place in the queue where its NIC has failed."""
    _refuse_other_demand(before, event.tenant)
    home = engine.fleet.nic_of(before.id)
    if event.nic is not None and (home is None or home.id != event.nic):
        where = "no NIC any more: it is queued" if home is None else home.id
        raise Refused(f"'{before.id}' is reserved on {where}; leave out nic")
    if home is None:
        engine.waiting[before.id] = replace(before, reserved_until=None)
        return TakenPlace("queued")
    engine.fleet.set_reservation(before.id, None)
    return TakenPlace("placed", found_on=home.id, cores=engine.cores_of(before.id))


def _refuse_other_demand(reserved: Tenant, wanted: Tenant) -> None:
    """Raise Refused with all that differs between an instance and the reservation of that id."""
    before, after = map(_demand_of, (reserved.asked, wanted.asked))
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    if keys:
        differing = (f"{key} {_show(before.get(key))}, not {_show(after.get(key))}" for key in keys)
        raise Refused(f"'{reserved.id}' is reserved with {'; '.join(differing)}")


def _show(value: object) -> str:
    """A value of an event in a message."""
    if isinstance(value, dict):
        return ", ".join(f"{key}={of}" for key, of in value.items()) or "none"
    return f"{value:g}" if isinstance(value, float) else "none" if value is None else f"{value}"


def _demand_of(tenant: Tenant) -> dict[str, object]:
    """All that an instance asks for, by the keys of an event."""
    demand = wanted_of(tenant)
    return {**demand.pop("traffic"), **demand}


def _place_new(engine: QueuedFleet, event: Arrive, when_full: str) -> Decision:
    """Place an instance that is not there yet."""
    tenant = event.tenant
    engine.refuse_unknown(tenant)
    if event.nic is not None and event.kind is not None:
        return _take_over(engine, tenant, event.nic, event.kind)
    if event.nic is not None:
        return _place_on(engine, tenant, event.nic)
    choices = engine.choices(tenant)
    engine.selector.observe(choices[0])
    nic = engine.place(choices)
    if nic is not None:
        return engine.decide_placed(tenant.id, nic)
    is_searched = event.preempt or engine.fleet.tenants <= MOST_SEARCHED
    found = find_victims(engine.fleet, engine.oracles, choices) if is_searched else None
    if found is not None and event.preempt:
        return preempt_victims(engine, found)
    reasons = tuple(engine.selector.reasons(choices[0]))
    if found is not None:
        here, nics = ((), 0) if found.nic is None else (engine.fleet.nics[found.nic].co_location, 1)
        reasons = Reason(found.kind.model, here, nics, Cause.PRIORITY, found.ids), *reasons
    if when_full == REJECT:
        return Decision("rejected", reasons=reasons)
    engine.waiting[tenant.id] = tenant
    return Decision("queued", reasons=reasons)


def place_group(engine: QueuedFleet, event: ArriveTogether) -> Decision:
    known = {tenant.id: engine.find_tenant(tenant.id) for tenant in event.tenants}
    as_asked = {tenant.id: without_group(tenant) for tenant in event.tenants}
    if all(before and without_group(before.asked) == as_asked[identity] for identity, before in known.items()):
        homes = {identity: engine.fleet.nic_of(identity) for identity in known}  # sent again: the answer was lost
        places = tuple((identity, None if home is None else home.id) for identity, home in homes.items())
        return Lookup("placed" if all(homes.values()) else "queued", placements=places)
    if exist := [identity for identity, before in known.items() if before is not None]:
        raise Refused(f"of the group '{event.id}' already exist: {name_some(exist)}")
    if others := [waiting.id for waiting in engine.waiting.values() if waiting.group == event.id]:
        raise Refused(f"a group '{event.id}' already waits, of {name_some(others)}; choose another id")
    for tenant in event.tenants:
        engine.refuse_unknown(tenant)
    for tenant in event.tenants:
        engine.selector.observe(engine.choices(tenant)[0])
    moves, reasons = engine.place_all(event.tenants)
    if moves:
        return Decision("placed", tuple(moves), placements=tuple((move.id, move.target) for move in moves))
    if engine.when_full == REJECT:
        return Decision("rejected", reasons=reasons)
    engine.waiting |= {tenant.id: tenant for tenant in event.tenants}
    return Decision("queued", reasons=reasons)


def preempt_victims(engine: QueuedFleet, found: Preemption) -> Decision:
    """Place an arrival where tenants of lower priority leave; these move where they fit, or else are queued."""
    leaving, in_order = [], dict[str, list[str]]()
    for identity in found.ids:
        home = engine.fleet.nic_of(identity)
        assert home is not None
        leaving.append((home.tenants_by_id[identity], home))
        in_order.setdefault(home.id, [*home.tenants_by_id])
        engine.fleet.remove(identity)
    nic = None if found.nic is None else engine.fleet.nics.find(found.nic) or engine.fleet.open(found.kind, found.nic)
    arrived = engine.decide_placed(found.tenant.id, engine.put(found.tenant, nic or found.kind))
    moves = []
    for tenant, home in reversed(leaving):  # the highest priority first
        target = engine.place(engine.choices(tenant))
        if target is None:
            engine.waiting[tenant.id] = tenant
        if target is None or target.id != home.id:
            moves.append(Move(tenant.id, home.id, target.id if target else None))
            in_order[home.id].remove(tenant.id)
    for nic_id, ids in in_order.items():
        if (kept := engine.fleet.nics.get(nic_id)) is not None:
            kept.keep_order(ids)
    moves = with_placed(moves, engine.place_waiting())
    queued = tuple(move.id for move in moves if move.target is None)
    return replace(arrived, moves=(*arrived.moves, *moves), queued=queued)


def _place_on(engine: QueuedFleet, tenant: Tenant, nic_id: str) -> Decision:
    """Place an arrival on the NIC that it names, or refuse it."""
    nic = engine.fleet.find(nic_id)
    if nic is None:
        raise Refused(f"'{nic_id}' is not a NIC of this fleet")
    if conflict := conflict_on(engine.fleet, tenant, nic.kind, nic):
        raise Refused(f"{nic_id}: {conflict}")
    choices = engine.choices(tenant)
    reasons = [misfit(nic, engine.oracles[nic.kind.index], choice) for choice in choices]
    if None not in reasons:
        raise Refused(f"{nic_id}: {least_lasting(reasons)}")
    engine.selector.observe(choices[0])
    chosen = choices[reasons.index(None)]
    home = engine.put(chosen, nic if nic.tenants_by_id else engine.fleet.open(nic.kind, nic.id))
    return engine.decide_placed(tenant.id, home)


def _take_over(engine: QueuedFleet, tenant: Tenant, nic_id: str, number: int) -> Decision:
    """Place an instance where a plan or a cluster has it, whatever the SLAs; only cores and counts are kept."""
    nic = engine.fleet.find(nic_id)
    shut = nic or engine.fleet.gone.get(nic_id)
    if shut is not None and shut.service not in (Service.UP, Service.CORDONED):
        raise Refused(f"{nic_id}: the NIC is {shut.service.value}")
    kinds = engine.fleet.available() if nic is None else [nic.kind]
    kind = next((kind for kind in kinds if kind.index == number), None)
    if kind is None:
        raise Refused(f"there is no '{nic_id}' of kind {number}")
    if not kind.hosts(tenant.workload):
        raise Refused(f"{nic_id}: {tenant.workload.nf} does not run on a {kind.model}")
    present = () if nic is None else nic.tenants
    workloads = [tenant.workload for tenant in present]
    choices = [choice for choice in engine.choices(tenant) if kind.hosts(choice.workload)]
    fitting = [choice for choice in choices if fits(kind, [*workloads, choice.workload])]
    if not fitting:
        few = shortage(kind, [*workloads, (choices or [tenant])[0].workload])
        raise Refused(f"{nic_id}: {'too few free cores' if few == 'cores' else 'the port is too slow'}")
    engine.selector.observe(tenant)
    met = [True]
    if len(fitting) > 1:
        met = feasible(kind, engine.oracles[kind.index], [[*present, choice] for choice in fitting])
    most = max(fitting, key=lambda choice: kind.cores_for(choice.workload))
    chosen = fitting[met.index(True)] if True in met else most
    if nic is not None and nic.service is Service.CORDONED and not nic.tenants_by_id:
        home = engine.fleet.reuse(nic)
    else:
        home = nic if nic is not None and nic.tenants_by_id else engine.fleet.open(kind, nic_id)
    return engine.decide_placed(tenant.id, engine.put(chosen, home))
