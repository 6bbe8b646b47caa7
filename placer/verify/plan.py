"""The plan, checked by querying the throughputs in every co-location in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction

from placer.verify.certificate_file import Certificate, TenantClass
from placer.verify.query import Query, lowest_of, solo_of
from placer.verify.source import ThroughputSource


def plan_faults(certificate: Certificate, query: Query) -> Iterator[str]:
    """Tenants missing or placed twice, NICs overfull or too many, a wrong cost, and SLA violations."""
    placed = Counter([*(tenant for _, tenants in certificate.nics for tenant in tenants), *certificate.left_out])
    for identity in sorted(placed.keys() | certificate.tenants.keys()):
        if placed[identity] != 1 or identity not in certificate.tenants:
            yield f"plan: {identity} is placed {placed[identity]} times"
    known = range(len(certificate.kinds))
    if unknown := [number for number, _ in certificate.nics if number not in known]:
        yield f"plan: there is no NIC kind {unknown[0]}"
        return
    if not all(tenants for _, tenants in certificate.nics):
        yield "plan: a NIC has no tenants"
    for number, kind in enumerate(certificate.kinds):
        used = sum(of == number for of, _ in certificate.nics)
        if kind.limit is not None and used > kind.limit:
            yield f"plan: {used} NICs of kind {number} are used, there are {kind.limit}"
    cost = sum((certificate.kinds[number].cost for number, _ in certificate.nics), start=Fraction(0))
    if float(cost) != float(certificate.cost):
        yield f"plan: its NICs cost {float(cost):g}, not {float(certificate.cost):g}"
    for number in known:
        yield from _sla_violations(certificate, number, query)


def fleet_faults(certificate: Certificate, number: int, source: ThroughputSource) -> Iterator[str]:
    """Another NIC model, more cores than the NIC has, or NFs that take other cores there."""
    kind = certificate.kinds[number]
    if source.model is not None and kind.model != source.model:
        yield f"fleet: NIC kind {number} is a {kind.model}, the NIC of {source.name} is a {source.model}"
    if source.cores is not None and kind.cores > source.cores:
        yield f"fleet: NIC kind {number} has {kind.cores} cores, the NIC of {source.name} has {source.cores}"
    for nf in sorted({tenant.workload.nf for tenant in certificate.tenants.values()} & kind.cores_of.keys()):
        claimed, taken = kind.cores_of[nf], source.cores_of.get(nf)
        if taken is None:
            yield f"fleet: {nf} runs on NIC kind {number}, {source.name} does not know it"
        elif claimed != taken:
            yield f"fleet: {nf} takes {claimed} cores of NIC kind {number}, by {source.name} it takes {taken}"


def trace_faults(certificate: Certificate, trace: Mapping[str, TenantClass]) -> Iterator[str]:
    """Tenants, by id, that are missing in trace or certificate, or that have another workload or SLA there."""
    for identity in sorted(trace.keys() | certificate.tenants.keys()):
        if identity not in trace or identity not in certificate.tenants:
            yield f"trace: {identity} is only in the {'trace' if identity in trace else 'certificate'}"
        elif trace[identity] != certificate.tenants[identity]:
            yield f"trace: {identity} has another workload or another SLA there"


def _sla_violations(certificate: Certificate, number: int, query: Query) -> Iterator[str]:
    kind = certificate.kinds[number]
    nics = [
        [(name, certificate.tenants[name]) for name in tenants if name in certificate.tenants]
        for of, tenants in certificate.nics
        if of == number
    ]
    co_locations = [tuple(sorted(tenant.workload for _, tenant in nic)) for nic in nics]
    for co_location in co_locations:
        if kind.taken(co_location) > kind.cores:
            yield f"plan: {' + '.join(workload.nf for workload in co_location)} take more than {kind.cores} cores"
    fitting = [
        co_location
        for co_location in dict.fromkeys(co_locations)
        if co_location and kind.taken(co_location) <= kind.cores
    ]
    throughputs = lowest_of(number, fitting, query)
    solo = solo_of(number, {workload for co_location in throughputs for workload in co_location}, query)
    for nic, co_location in zip(nics, co_locations, strict=True):
        for name, tenant in nic if co_location in throughputs else []:
            kpps, alone = throughputs[co_location][tenant.workload], solo[tenant.workload]
            if not tenant.is_met(kpps, alone):
                yield f"plan: {name} gets {kpps:g} of {alone:g} kpps, below its SLA"
