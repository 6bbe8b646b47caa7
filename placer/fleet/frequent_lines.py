"""The lines of the most frequent events and answers, as `json.dumps` would write them, in a quarter of its time."""

from __future__ import annotations

from functools import lru_cache
from json import dumps
from json.encoder import encode_basestring_ascii as quoted
from math import inf

from placer.fleet.events import Arrive, Decision, Depart, FleetEvent
from placer.model.groups import Constraints
from placer.model.nic import Tenant
from placer.model.sla import Sla
from profiles import Workload

MAX_REMEMBERED_TEXTS = 10_000


def frequent_decision(event: FleetEvent, decision: Decision) -> str | None:
    """The answer to an arrival that is placed or a departure, where nothing else moved; None for any other."""
    if type(decision) is not Decision or len(decision.moves) != 1 or _names_others(decision):
        return None
    (move,) = decision.moves
    identity, source, target = move.id, move.source, move.target
    if type(event) is Arrive and (event.tenant.id, decision.status, source) == (identity, "placed", None) and target:
        cores = "" if decision.cores is None else f'"cores": {decision.cores}, '
        return (
            f'{{"ok": true, "event": "arrive", "id": {quoted(identity)}, "status": "placed", "nic": {quoted(target)}, '
            f'{cores}"moves": [{{"id": {quoted(identity)}, "from": null, "to": {quoted(target)}}}]}}'
        )
    if type(event) is Depart and (event.id, decision.status, target) == (identity, "left", None) and source:
        return (
            f'{{"ok": true, "event": "depart", "id": {quoted(identity)}, "status": "left", '
            f'"moves": [{{"id": {quoted(identity)}, "from": {quoted(source)}, "to": null}}]}}'
        )
    return None


def _names_others(decision: Decision) -> bool:
    return bool(decision.at_risk or decision.queued or decision.reasons)


def frequent_event(event: FleetEvent) -> str | None:
    """An arrival that names no NIC, or a departure; None for any other."""
    if type(event) is Arrive and event.nic is None and not event.preempt:
        tenant = event.tenant
        constraints = _format_constraints(tenant.constraints) if tenant.constraints.values else ""
        wanted = _format_workload(tenant.workload, tenant.sla)
        priority = f', "priority": {tenant.priority}' if tenant.priority else ""
        owned = f", {dumps(ownership_of(tenant))[1:-1]}" if tenant.owner or tenant.labels else ""
        return f'{{"event": "arrive", "id": {quoted(tenant.id)}, {wanted}{constraints}{priority}{owned}}}'
    if type(event) is Depart:
        return f'{{"event": "depart", "id": {quoted(event.id)}}}'
    return None


def ownership_of(tenant: Tenant) -> dict[str, object]:
    """What lines say of whose an instance is: `owner` and `labels`, as far as it has them."""
    owner: dict[str, object] = {"owner": tenant.owner} if tenant.owner else {}
    return {**owner, "labels": dict(tenant.labels)} if tenant.labels else owner


def load_of(workload: Workload) -> dict[str, float]:
    """What lines say of a workload's load: `rate_kpps`, `cores` and `sla_latency_us`, as far as it has them."""
    if workload.is_plain:
        return {}
    known = {"rate_kpps": workload.rate_kpps, "cores": workload.cores or inf, "sla_latency_us": workload.latency_us}
    return {key: value for key, value in known.items() if value < inf}


@lru_cache(MAX_REMEMBERED_TEXTS)
def _format_workload(workload: Workload, sla: Sla) -> str:
    """NF, traffic, load and SLA, between braces."""
    need = {"sla_drop": sla.max_drop} if sla.max_drop is not None else {"sla_min_kpps": sla.min_kpps}
    return dumps({"nf": workload.nf, "traffic": workload.traffic.as_dict(), **load_of(workload), **need})[1:-1]


@lru_cache(MAX_REMEMBERED_TEXTS)
def _format_constraints(constraints: Constraints) -> str:
    """Constraints, behind what is before them in braces."""
    return f", {dumps(dict(constraints.values))[1:-1]}"
