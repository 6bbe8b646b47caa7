"""Measurements of production: what a running fleet makes of them."""

from __future__ import annotations

from dataclasses import replace

from placer.fleet.events import JudgedInstance, Learned, Measure, MeasuredInstance, Refused
from placer.fleet.learning.learning import STATUSES, Feedback
from placer.fleet.learning.ledger import SATURATED_OFFER, ProductionReading
from placer.fleet.queued_fleet import name_some
from placer.model.fleet import Fleet
from placer.model.nic import Nic


def learn(event: Measure, fleet: Fleet, feedback: Feedback, number: int) -> Learned:
    """Compare readings with what was predicted, then learn them; `number` is that of the event.

    Raises Refused where the readings are not of instances on that NIC, or nothing can be learnt of it.
    """
    nic = _nic(event, fleet, feedback)
    begun = feedback.begin(number)
    oracle = feedback.oracles[nic.kind.model]
    expected = dict(zip(nic.co_location, feedback.expect(nic.kind.model, nic.co_location), strict=True))
    judged, readings = [], []
    for instance in event.instances:
        tenant = nic.tenants_by_id[instance.id]
        values = instance.throughput_kpps, instance.offered_kpps, number
        reading = ProductionReading(nic.kind.model, nic.co_location, tenant.workload, tenant.id, *values)
        below = reading.is_below(tenant.required_kpps(oracle.solo(tenant.workload)))
        found = expected[tenant.workload]
        judged.append(JudgedInstance(instance.id, found.kpps, found.low_kpps, found.high_kpps, below))
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
    ids = [instance.id for instance in event.instances]
    if twice := sorted({identity for identity in ids if ids.count(identity) > 1}):
        raise Refused(f"measured twice in one event: {name_some(twice)}")
    if absent := [identity for identity in ids if identity not in nic.tenants_by_id]:
        raise Refused(f"not on {event.nic}: {name_some(absent)}")
    if reserved := [tenant.id for tenant in nic.tenants if tenant.reserved_until is not None]:
        raise Refused(f"{event.nic} does not run all that is predicted of it; reserved is {name_some(reserved)}")
    if more := [instance.id for instance in event.instances if _impossible(instance)]:
        raise Refused(f"throughput_kpps is above offered_kpps: {name_some(more)}")
    return nic


def _impossible(one: MeasuredInstance) -> bool:
    return one.offered_kpps is not None and one.throughput_kpps > SATURATED_OFFER * one.offered_kpps
