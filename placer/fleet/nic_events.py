"""NICs that join and leave, fail and return, and that are emptied or closed for arrivals."""

from __future__ import annotations

from functools import partial

from placer.fleet import events
from placer.fleet.queued_fleet import QueuedFleet, name_some, with_placed
from placer.model.nic import NUMBERED_NIC_ID, Nic, Service, numbers_nics


def fail(engine: QueuedFleet, event: events.Fail) -> events.Decision:
    nic = _serving_nic(engine, event.nic)
    engine.fleet.withdraw(nic, Service.FAILED)
    moves = []
    for group in engine.moved_at_once(nic):
        home = engine.find_place_of_all(group) if len(group) > 1 else None
        for tenant in group:
            engine.fleet.remove(tenant.id)
        for tenant in group:
            if home is None:
                target = engine.place(engine.choices(tenant))
            else:
                target = home = engine.put(tenant, home)
            if target is None:
                engine.waiting[tenant.id] = tenant
            moves.append(events.Move(tenant.id, nic.id, target.id if target else None))
    moves = with_placed(moves, engine.place_freed(moves))
    return events.Decision("failed", tuple(moves), queued=tuple(move.id for move in moves if move.target is None))


def drain(engine: QueuedFleet, event: events.Drain) -> events.Decision:
    nic = _serving_nic(engine, event.nic)
    engine.fleet.withdraw(nic, Service.DRAINING)
    moves = _move_away(engine, nic)
    moves += engine.place_freed(moves)
    return events.Decision("draining" if nic.tenants_by_id else "drained", tuple(moves))


def drain_together(engine: QueuedFleet, event: events.DrainTogether) -> events.Decision:
    """Empty NICs of which none takes tenants of another one: each tenant moves once, which are the fewest moves.

    Where there is not room for all, as many NICs as are found become empty: those with fewest tenants come first, and
    leave no tenant behind. Then tenants of the others move where they fit.
    """
    nics, faults = list[Nic](), list[str]()
    for nic_id in event.nics:
        try:
            nics.append(_serving_nic(engine, nic_id))
        except events.Refused as refused:
            faults.append(str(refused))
    if faults:
        raise events.Refused("; ".join(faults))
    for nic in nics:
        engine.fleet.withdraw(nic, Service.DRAINING)
    moves, left = list[events.Move](), list[Nic]()
    for nic in sorted(nics, key=lambda nic: (len(nic.tenants_by_id), nic.number)):
        tenants = nic.tenants_by_id.copy()
        moved = engine.make_all(len(tenants), partial(_move_away, engine, nic, only_all=True))
        if len(moved) < len(tenants):
            nic.tenants_by_id = tenants  # in their order of arrival
            left.append(nic)
        moves += moved
    for nic in left:
        moves += _move_away(engine, nic)
    moves += engine.place_freed(moves)
    draining = tuple(nic.id for nic in nics if nic.tenants_by_id)
    return events.Decision("draining" if draining else "drained", tuple(moves), draining=draining)


def _move_away(engine: QueuedFleet, nic: Nic, *, only_all: bool = False) -> list[events.Move]:
    """Move the tenants of a NIC where they fit elsewhere; with `only_all` no more once one does not."""
    moves: list[events.Move] = []
    for group in engine.moved_at_once(nic):
        choice = engine.find_place_of_all(group) if len(group) > 1 else engine.selector.choose(group[0])
        if choice is None and only_all:
            break
        if choice is None:
            continue
        for tenant in group:
            engine.fleet.remove(tenant.id)
            choice = engine.put(tenant, choice)
            moves.append(events.Move(tenant.id, nic.id, choice.id))
    return moves


def cordon(engine: QueuedFleet, event: events.Cordon) -> events.Decision:
    nic = _serving_nic(engine, event.nic)
    if nic.service is Service.DRAINING:
        raise events.Refused(f"'{event.nic}' is draining, and takes no arrivals already")
    if nic.service is Service.CORDONED:  # sent again, because the answer was lost
        return events.Lookup("cordoned")
    engine.fleet.withdraw(nic, Service.CORDONED)
    return events.Decision("cordoned")


def uncordon(engine: QueuedFleet, event: events.Uncordon) -> events.Decision:
    nic = _serving_nic(engine, event.nic)
    if nic.service is Service.DRAINING:
        raise events.Refused(f"'{event.nic}' is draining: send a return")
    if nic.service is Service.UP:  # sent again, because the answer was lost
        return events.Lookup("up")
    engine.fleet.restore(nic)
    return events.Decision("up", tuple(engine.place_waiting()))


def return_nic(engine: QueuedFleet, event: events.Return) -> events.Decision:
    nic = engine.fleet.out_of_service.get(event.nic)
    if nic is None:
        raise events.Refused(f"'{event.nic}' is not out of service")
    if nic.service is Service.CORDONED:
        raise events.Refused(f"'{event.nic}' is cordoned: send an uncordon")
    engine.fleet.restore(nic)
    return events.Decision("returned", tuple(engine.place_waiting()))


def join(engine: QueuedFleet, event: events.Join) -> events.Decision:
    if not any(kind.model == event.nic_model for kind in engine.fleet.kinds):
        known = ", ".join(dict.fromkeys(kind.model for kind in engine.fleet.kinds))
        raise events.Refused(f"'{event.nic_model}' is not a NIC model of this fleet; it is one of {known}")
    nic, gone = engine.fleet.find(event.nic), engine.fleet.gone.get(event.nic)
    if nic is not None and nic.kind.model != event.nic_model:
        raise events.Refused(f"'{event.nic}' is a {nic.kind.model}")
    if gone is not None and gone.kind.model != event.nic_model:
        raise events.Refused(f"'{event.nic}' left as a {gone.kind.model}: choose another name")
    index = next((known.kind.index for known in (nic, gone) if known), None)
    kind = engine.fleet.kind_in(event.nic_model, event.pool, event.domain, index)
    if nic is not None and (event.pool, event.domain) == (nic.kind.pool, nic.kind.domain):
        return events.Lookup("joined")  # sent again, because the answer was lost
    if gone is not None:
        engine.fleet.join_again(gone)
        if gone.kind is not kind:
            engine.fleet.assign(gone, kind)
    elif nic is not None:
        busy = nic.id in engine.fleet.nics or nic.id in engine.fleet.out_of_service
        if busy or not nic.has_name or nic.id in nic.kind.names:
            place = f"pool '{nic.kind.pool}' and domain '{nic.kind.domain}'"
            raise events.Refused(f"'{event.nic}' is in {place}, which only an idle NIC that has joined can change")
        engine.fleet.assign(nic, kind)
    if gone is not None or nic is not None:
        return events.Decision("joined", tuple(engine.place_waiting()))
    if NUMBERED_NIC_ID.fullmatch(event.nic) and numbers_nics(engine.fleet.kinds):
        raise events.Refused(f"'{event.nic}' is a name that new NICs get: choose another")
    engine.fleet.join(kind, event.nic)
    return events.Decision("joined", tuple(engine.place_waiting()))


def leave(engine: QueuedFleet, event: events.Leave) -> events.Decision:
    if event.nic in engine.fleet.gone:  # sent again, because the answer was lost
        return events.Lookup("gone")
    nic = engine.fleet.find(event.nic)
    if nic is None:
        raise events.Refused(f"'{event.nic}' was never in use")
    if nic.tenants_by_id:
        raise events.Refused(f"'{event.nic}' has tenants: {name_some([*nic.tenants_by_id])}; drain it before")
    engine.fleet.leave(nic)
    return events.Decision("gone")


def _serving_nic(engine: QueuedFleet, nic_id: str) -> Nic:
    nic = engine.fleet.find(nic_id)
    if nic is None:
        raise events.Refused(engine.miss(nic_id))
    if nic.service is Service.FAILED:
        raise events.Refused(f"'{nic_id}' failed before")
    return nic
