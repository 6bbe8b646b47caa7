"""Events and decisions as lines of JSON, as a log and answers have them (docs/formats/events.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from placer.fleet.events import (
    Arrive,
    ArriveTogether,
    Change,
    Cordon,
    Decision,
    Depart,
    Drain,
    DrainTogether,
    DryRun,
    ExpectedDecision,
    Expire,
    Fail,
    FleetEvent,
    Join,
    JudgedInstance,
    Learned,
    Leave,
    Measure,
    MeasuredInstance,
    Move,
    Rebalance,
    RebalanceMove,
    Refused,
    Reserve,
    Return,
    Uncordon,
    Where,
)
from placer.fleet.frequent_lines import frequent_decision, frequent_event, load_of, ownership_of
from placer.model.nic import Tenant
from placer.model.sla import Sla
from placer.policy.rejection import Reason
from profiles import Workload

MAX_LISTED_CLASSES = 20  # classes of NICs whose reasons an answer lists, the largest first
LONGEST_ERROR = 700  # characters of an error message; it may quote what was sent
KPPS_DECIMALS = 6


def decision_line(event: FleetEvent, decision: Decision) -> str:
    """The answer to an event as one line of JSON, without its line end; to a dry run that of its event."""
    if isinstance(event, DryRun) and isinstance(decision, ExpectedDecision):
        event, decision = event.event, decision.decision
    return frequent_decision(event, decision) or any_decision(event, decision)


def any_decision(event: FleetEvent, decision: Decision) -> str:
    """As `decision_line`, for all that may be answered."""
    answer: dict[str, Any] = {
        "ok": True,
        "event": _EVENT_NAMES[type(event)],
        **_subject(event),
        "status": decision.status,
    }
    if isinstance(event, _EVENTS_OF_PLACED):
        answer["nic"] = decision.nic
    if decision.cores is not None:
        answer["cores"] = decision.cores
    if decision.until is not None:
        answer["until"] = decision.until
    if decision.placements:
        answer["placements"] = [{"id": identity, "nic": nic} for identity, nic in decision.placements]
    if isinstance(decision, Learned):
        answer |= {"model": decision.model, "instances": [_judge(instance) for instance in decision.instances]}
    answer["moves"] = [_move(move) for move in decision.moves]
    for key in ("at_risk", "queued", "draining"):
        if ids := getattr(decision, key):
            answer[key] = list(ids)
    if decision.reasons:
        answer["classes"] = len(decision.reasons)
        answer["reasons"] = [reason_dict(reason) for reason in decision.reasons[:MAX_LISTED_CLASSES]]
    return json.dumps(answer)


def reason_dict(reason: Reason) -> dict[str, Any]:
    nfs = [workload.nf for workload in reason.co_location]
    shown = {"nic_model": reason.nic_model, "company": nfs, "nics": reason.nics, "cause": reason.cause}
    return {**shown, "with": list(reason.met)} if reason.met else shown


def _judge(one: JudgedInstance) -> dict[str, Any]:
    known = {"predicted_kpps": one.predicted_kpps, "low_kpps": one.low_kpps, "high_kpps": one.high_kpps}
    shown = {name: None if kpps is None else round(kpps, KPPS_DECIMALS) for name, kpps in known.items()}
    return {"id": one.id, **shown, "below_sla": one.below_sla}


def _move(move: Move) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": move.id, "from": move.source, "to": move.target}
    if move.cores is not None:
        shown["cores"] = move.cores
    if isinstance(move, RebalanceMove):
        shown |= {"why": move.why, "gain": round(move.gain, 6), "cost": move.cost}
    return shown


def refusal_line(refused: Refused) -> str:
    """The answer to a line that is refused."""
    message = str(refused)
    return json.dumps({"ok": False, "error": message[:LONGEST_ERROR] + "..." * (len(message) > LONGEST_ERROR)})


def event_line(event: FleetEvent) -> str:
    """The event as one line of JSON, without its line end, with all its traffic."""
    return frequent_event(event) or any_event(event)


def any_event(event: FleetEvent) -> str:
    """As `event_line`, for all that may happen."""
    line: dict[str, Any] = {"event": _EVENT_NAMES[type(event)], **_subject(event)}
    if isinstance(event, Measure):
        line |= {"window_s": event.window_s, "instances": [_measure(instance) for instance in event.instances]}
    if isinstance(event, Arrive):
        if event.nic is not None:
            line["nic"] = event.nic
        if event.kind is not None:
            line["kind"] = event.kind
        if event.tenant.free_cores:
            line["free_cores"] = True
        line |= wanted_of(event.tenant)
        if event.preempt:
            line["preempt"] = True
        if isinstance(event, Reserve):
            line |= {"ttl_s": event.ttl_s, "until": event.tenant.reserved_until}
    elif isinstance(event, ArriveTogether):
        line["arrivals"] = [{"id": tenant.id, **wanted_of(tenant)} for tenant in event.tenants]
    elif isinstance(event, Change):
        line |= _requirement(event.workload, event.sla, event.given)
    return json.dumps(line)


def wanted_of(tenant: Tenant) -> dict[str, Any]:
    """What an instance asks for, by the keys of an event."""
    load = load_of(tenant.workload)
    requirement = _requirement(tenant.workload, tenant.sla, ("traffic", *load) if load else ())
    priority = {"priority": tenant.priority} if tenant.priority else {}
    return {
        "nf": tenant.workload.nf, **requirement, **dict(tenant.constraints.values), **priority, **ownership_of(tenant),
    }  # fmt: skip


def _requirement(workload: Workload | None, sla: Sla | None, given: Sequence[str]) -> dict[str, Any]:
    """Traffic, load and SLA, as far as they are given."""
    found: dict[str, Any] = {} if workload is None else {"traffic": workload.traffic.as_dict()}
    if workload is not None and given:
        known = {**found, **load_of(workload)}
        found = {key: known.get(key) for key in given}
    if sla is not None:
        key, value = ("sla_drop", sla.max_drop) if sla.max_drop is not None else ("sla_min_kpps", sla.min_kpps)
        found[key] = value
    return found


def _measure(one: MeasuredInstance) -> dict[str, Any]:
    offered = {} if one.offered_kpps is None else {"offered_kpps": one.offered_kpps}
    return {"id": one.id, "throughput_kpps": one.throughput_kpps, **offered}


_EVENTS_OF_PLACED, _OF_NICS = (Arrive, Where), (Fail, Drain, Return, Cordon, Uncordon, Leave, Measure)

_EVENT_NAMES: dict[type, str] = {
    Arrive: "arrive", Reserve: "reserve", Expire: "expire", ArriveTogether: "group", Depart: "depart",
    Change: "change", Fail: "fail", Drain: "drain", DrainTogether: "drain", Join: "join", Return: "return",
    Cordon: "cordon", Uncordon: "uncordon", Leave: "leave", Rebalance: "rebalance", Measure: "measured", Where: "where",
}  # fmt: skip


def name_of(event: FleetEvent) -> str:
    """What the event is called in a line."""
    return _EVENT_NAMES[type(event)]


def _subject(event: FleetEvent) -> dict[str, Any]:
    if isinstance(event, DryRun):
        return _subject(event.event)
    if isinstance(event, Arrive):
        return {"id": event.tenant.id}
    if isinstance(event, _OF_NICS):
        return {"nic": event.nic}
    if isinstance(event, DrainTogether):
        return {"nics": list(event.nics)}
    if isinstance(event, Join):
        places = {key: name for key, name in (("pool", event.pool), ("domain", event.domain)) if name}
        return {"nic": event.nic, "nic_model": event.nic_model, **places}
    if isinstance(event, Rebalance):
        named = {} if event.nics is None else {"nics": list(event.nics)}
        return {"budget": event.budget, "move_cost": event.move_cost, "risk_worth": event.risk_worth, **named}
    return {"id": event.id}
