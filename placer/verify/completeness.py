"""Whether a plan is complete: no plan places more tenants."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from itertools import islice

from placer.verify.certificate_file import Certificate, TenantClass
from placer.verify.query import Query, co_locations_on, lowest_of, solo_of

MOST_CO_LOCATIONS = 20_000
"""With more co-locations on a kind of NIC than this, nothing is proven about tenants that are left out."""


class Completeness(Enum):
    """What is known of the tenants that a plan leaves out."""

    ALL_PLACED = "no tenant is left out"
    PROVEN = "no co-location on any NIC meets the SLA of a tenant that is left out"
    UNKNOWN = "that no plan places more tenants is not proven"
    REFUTED = "a tenant that is left out meets its SLA alone on a NIC that the plan does not use"

    @property
    def complete(self) -> bool:
        """Whether it is proven that no plan places more tenants."""
        return self in (Completeness.ALL_PLACED, Completeness.PROVEN)


def completeness_of(certificate: Certificate, query: Query) -> Completeness:
    """Whether the plan of a certificate without faults is complete."""
    left_out = {certificate.tenants[identity] for identity in certificate.left_out}
    if not left_out:
        return Completeness.ALL_PLACED
    if any(_fits_unused_nic(certificate, number, left_out, query) for number in range(len(certificate.kinds))):
        return Completeness.REFUTED
    if all(_unsatisfiable(certificate, number, left_out, query) for number in range(len(certificate.kinds))):
        return Completeness.PROVEN
    return Completeness.UNKNOWN


def _fits_unused_nic(certificate: Certificate, number: int, left_out: set[TenantClass], query: Query) -> bool:
    """Whether there is a NIC of the kind without tenants that one of these meets its SLA on."""
    kind = certificate.kinds[number]
    used = sum(of == number for of, _ in certificate.nics)
    if kind.limit is not None and used >= kind.limit:
        return False
    fitting = [tenant for tenant in left_out if kind.taken([tenant.workload]) <= kind.cores]
    solo = solo_of(number, {tenant.workload for tenant in fitting}, query)
    return any(tenant.is_met(solo[tenant.workload], solo[tenant.workload]) for tenant in fitting)


def _unsatisfiable(certificate: Certificate, number: int, left_out: set[TenantClass], query: Query) -> bool:
    """Whether no co-location of all tenants on a NIC of the kind meets the SLA of one of these."""
    kind = certificate.kinds[number]
    instances_of = Counter(tenant.workload for tenant in certificate.tenants.values())
    co_locations = list(islice(co_locations_on(kind, instances_of), MOST_CO_LOCATIONS + 1))
    if len(co_locations) > MOST_CO_LOCATIONS:
        return False
    workloads = {tenant.workload for tenant in left_out}
    with_left_out = [co_location for co_location in co_locations if workloads.intersection(co_location)]
    throughputs = lowest_of(number, with_left_out, query)
    solo = solo_of(number, {workload for workload in workloads if kind.taken([workload]) <= kind.cores}, query)
    return not any(
        tenant.is_met(lowest[tenant.workload], solo[tenant.workload])
        for lowest in throughputs.values()
        for tenant in left_out
        if tenant.workload in lowest
    )
