"""The plan, checked by asking the testbed about every company in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction

from placer.verify.asking import Ask, alone_of, lowest_of
from placer.verify.claims import Certificate, Class
from placer.verify.witness import Witness


def plan_faults(certificate: Certificate, ask: Ask) -> Iterator[str]:
    """Tenants lost or doubled, NICs overfull or too many, a wrong cost, and SLAs that the testbed finds broken."""
    placed = Counter([*(tenant for _, housed in certificate.nics for tenant in housed), *certificate.left_out])
    for identity in sorted(placed.keys() | certificate.tenants.keys()):
        if placed[identity] != 1 or identity not in certificate.tenants:
            yield f"plan: {identity} is placed {placed[identity]} times"
    known = range(len(certificate.kinds))
    if strange := [number for number, _ in certificate.nics if number not in known]:
        yield f"plan: there is no NIC kind {strange[0]}"
        return
    if not all(housed for _, housed in certificate.nics):
        yield "plan: a NIC carries nobody"
    for number, kind in enumerate(certificate.kinds):
        used = sum(of == number for of, _ in certificate.nics)
        if kind.limit is not None and used > kind.limit:
            yield f"plan: {used} NICs of kind {number} are used, there are {kind.limit}"
    cost = sum((certificate.kinds[number].cost for number, _ in certificate.nics), start=Fraction(0))
    if float(cost) != float(certificate.cost):
        yield f"plan: its NICs cost {float(cost):g}, not {float(certificate.cost):g}"
    for number in known:
        yield from _broken_slas(certificate, number, ask)


def fleet_faults(certificate: Certificate, number: int, witness: Witness) -> Iterator[str]:
    """More cores than the NIC has, or NFs that take other cores there."""
    kind = certificate.kinds[number]
    if witness.cores is not None and kind.cores > witness.cores:
        yield f"fleet: NIC kind {number} has {kind.cores} cores, {witness.name} says {witness.cores}"
    for nf in sorted({tenant.workload.nf for tenant in certificate.tenants.values()} & kind.cores_of.keys()):
        taken, told = kind.cores_of[nf], witness.cores_of.get(nf)
        if taken != told:
            yield f"fleet: {nf} takes {taken} cores of NIC kind {number}, {witness.name} says {told}"


def trace_faults(certificate: Certificate, trace: Mapping[str, Class]) -> Iterator[str]:
    """Tenants, by id, that the trace does not have, or lacks, or that run or were promised something else there."""
    for identity in sorted(trace.keys() | certificate.tenants.keys()):
        if identity not in trace or identity not in certificate.tenants:
            yield f"trace: {identity} is in the {'trace' if identity in trace else 'certificate'} alone"
        elif trace[identity] != certificate.tenants[identity]:
            yield f"trace: {identity} runs something else there, or was promised something else"


def _broken_slas(certificate: Certificate, number: int, ask: Ask) -> Iterator[str]:
    kind = certificate.kinds[number]
    nics = [
        [(name, certificate.tenants[name]) for name in housed if name in certificate.tenants]
        for of, housed in certificate.nics
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
    told = lowest_of(number, fitting, ask)
    alone = alone_of(number, {workload for co_location in told for workload in co_location}, ask)
    for nic, co_location in zip(nics, co_locations, strict=True):
        for name, tenant in nic if co_location in told else []:
            if not tenant.content(told[co_location][tenant.workload], alone[tenant.workload]):
                yield f"plan: {name} gets {told[co_location][tenant.workload]:g} of {alone[tenant.workload]:g} kpps"
