"""Measurements of production: what the engine makes of them."""

from __future__ import annotations

from dataclasses import replace

from placer.feedback.learning import STATUSES, Feedback
from placer.feedback.reading import SATURATED, ProductionReading
from placer.model.fleet import Fleet, Nic
from placer.online.events import JudgedInstance, Learned, Measure, MeasuredInstance, Refused

SHOWN = 5
"""Instances that a refusal names."""


def learn(event: Measure, fleet: Fleet, feedback: Feedback, number: int) -> Learned:
    """Compare readings with what was predicted, then learn them; `number` is that of the event.

    Raises
    ------
    Refused
        Where the readings are not of instances on that NIC, or nothing can be learnt of it.
    """
    nic = _nic(event, fleet, feedback)
    begun = feedback.begin(number)
    oracle = feedback.oracles[nic.kind.model]
    expected = dict(zip(nic.co_location, feedback.expected(nic.kind.model, nic.co_location), strict=True))
    judged, readings = [], []
    for one in event.instances:
        tenant = nic.tenants_by_id[one.id]
        values = one.throughput_kpps, one.offered_kpps, number
        reading = ProductionReading(nic.kind.model, nic.co_location, tenant.workload, tenant.id, *values)
        below = reading.is_below(tenant.sla.required_kpps(oracle.solo(tenant.workload)))
        found = expected[tenant.workload]
        judged.append(JudgedInstance(one.id, found.kpps, found.low_kpps, found.high_kpps, below))
        readings.append(replace(reading, below_sla=below is True))
    status = max(begun, feedback.learn(readings), key=STATUSES.index)
    return Learned(
        status, model=feedback.model, instances=tuple(judged), readings=tuple(readings), rows=feedback.take_rows()
    )


def _nic(event: Measure, fleet: Fleet, feedback: Feedback) -> Nic:
    """The NIC of the readings, which are checked."""
    nic = fleet.nics.get(event.nic)
    if nic is None:
        raise Refused(f"'{event.nic}' has no tenants")
    if nic.kind.model not in feedback.oracles:
        raise Refused(f"nothing is learnt of a {nic.kind.model}: its predictions are not those of a predictor")
    ids = [one.id for one in event.instances]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise Refused(f"measured twice in one event: {_named(twice)}")
    if absent := [one for one in ids if one not in nic.tenants_by_id]:
        raise Refused(f"not on {event.nic}: {_named(absent)}")
    if more := [one.id for one in event.instances if _impossible(one)]:
        raise Refused(f"throughput_kpps is above offered_kpps: {_named(more)}")
    return nic


def _impossible(one: MeasuredInstance) -> bool:
    return one.offered_kpps is not None and one.throughput_kpps > SATURATED * one.offered_kpps


def _named(ids: list[str]) -> str:
    shown = ", ".join(f"'{one}'" for one in ids[:SHOWN])
    return shown + (f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else "")
