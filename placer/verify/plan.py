"""The plan, checked by querying the throughputs in every co-location in it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import Enum
from fractions import Fraction
from itertools import islice

from placer.verify.certificate_file import LIMIT_KEYS, Certificate, TenantClass
from placer.verify.source import Query, ThroughputSource, co_locations_on, lowest_of, solo_of


def plan_faults(certificate: Certificate, query: Query) -> Iterator[str]:
    """Tenants missing or placed twice, NICs overfull or too many, a wrong cost, and SLA violations."""
    yield from placement_faults(certificate)
    if all(number < len(certificate.kinds) for number, _ in certificate.nics):
        for number in range(len(certificate.kinds)):
            yield from _sla_violations(certificate, number, query)


def placement_faults(certificate: Certificate) -> Iterator[str]:
    """Tenants missing or placed twice, NICs overfull or too many, and a wrong cost."""
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
    for number, tenants in certificate.nics:
        kind = certificate.kinds[number]
        co_location = sorted(certificate.tenants[name].workload for name in tenants if name in certificate.tenants)
        if kind.count_cores(co_location) > kind.cores:
            yield f"plan: {' + '.join(workload.nf for workload in co_location)} take more than {kind.cores} cores"
    yield from _constraint_faults(certificate)


def _constraint_faults(certificate: Certificate) -> Iterator[str]:
    """Tenants on a NIC of another pool or owner, and those of a group, of which too many share a place, or that do not
    share one."""
    place_of: dict[str, tuple[int, str]] = {}
    for at, (number, tenants) in enumerate(certificate.nics):
        kind = certificate.kinds[number]
        for name in tenants:
            place_of[name] = at, kind.domain or f"NIC {at}"
            if name in certificate.tenants and not kind.takes(certificate.tenants[name]):
                yield f"plan: {name} is on a NIC of {f'pool {kind.pool}' if kind.pool else 'no pool'}"
        owners = {certificate.groups[name].get("exclusive", "") for name in tenants if name in certificate.groups}
        if len(owners) > 1:
            yield f"plan: {', '.join(tenants)} of several owners violate 'exclusive'"
    for key, which in (("spread", 0), ("apart", 1), ("together", 0), ("most_per_nic", 0), ("most_per_domain", 1)):
        members: dict[str, list[str]] = {}
        for name, groups in certificate.groups.items():
            if key in groups and name in place_of:
                members.setdefault(groups[key], []).append(name)
        for group, names in members.items():
            places = Counter(place_of[name][which] for name in names)
            most = int(group.partition(" ")[0]) if key in LIMIT_KEYS else 1
            if (len(places) > 1) if key == "together" else (max(places.values()) > most):
                yield f"plan: {', '.join(names)} of group {group} violate '{key}'"


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


def trace_faults(
    certificate: Certificate,
    trace: Mapping[str, TenantClass],
    times: Mapping[str, float],
    groups: Mapping[str, Mapping[str, str]],
) -> Iterator[str]:
    """Tenants, by id, that are missing in trace or certificate, or that have another workload, SLA, pool or group
    there. With a budget it matters when they arrive, too: a probability is the largest while a NIC fills up."""
    for identity in sorted(trace.keys() | certificate.tenants.keys()):
        if identity not in trace or identity not in certificate.tenants:
            yield f"trace: {identity} is only in the {'trace' if identity in trace else 'certificate'}"
        elif trace[identity]._replace(pools=certificate.tenants[identity].pools) != certificate.tenants[identity]:
            yield f"trace: {identity} has another workload or another SLA there"
        elif trace[identity] != certificate.tenants[identity] or groups[identity] != certificate.groups[identity]:
            yield f"trace: {identity} is in another pool or group there"
        elif certificate.budget is not None and certificate.budget.times[identity] != times[identity]:
            yield f"trace: {identity} arrives at another time there"


def _sla_violations(certificate: Certificate, number: int, query: Query) -> Iterator[str]:
    kind = certificate.kinds[number]
    nics = [
        [(name, certificate.tenants[name]) for name in tenants if name in certificate.tenants]
        for of, tenants in certificate.nics
        if of == number
    ]
    co_locations = [tuple(sorted(tenant.workload for _, tenant in nic)) for nic in nics]
    fitting = [
        co_location
        for co_location in dict.fromkeys(co_locations)
        if co_location and kind.count_cores(co_location) <= kind.cores
    ]
    throughputs = lowest_of(number, fitting, query)
    solo = solo_of(number, {workload for co_location in throughputs for workload in co_location}, query)
    for nic, co_location in zip(nics, co_locations, strict=True):
        for name, tenant in nic if co_location in throughputs else []:
            kpps, alone = throughputs[co_location][tenant.workload], solo[tenant.workload]
            if not tenant.is_met(kpps, alone):
                yield f"plan: {name} gets {kpps:g} of {alone:g} kpps, below its SLA"


# Whether a plan is complete: no plan places more tenants.


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
    free = not any(certificate.groups[identity] for identity in certificate.left_out)
    if free and any(_fits_unused_nic(certificate, number, left_out, query) for number in range(len(certificate.kinds))):
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
    fitting = [
        tenant for tenant in left_out if kind.takes(tenant) and kind.count_cores([tenant.workload]) <= kind.cores
    ]
    solo = solo_of(number, {tenant.workload for tenant in fitting}, query)
    return any(tenant.is_met(solo[tenant.workload], solo[tenant.workload]) for tenant in fitting)


def _unsatisfiable(certificate: Certificate, number: int, left_out: set[TenantClass], query: Query) -> bool:
    """Whether no co-location of all tenants on a NIC of the kind meets the SLA of one of these."""
    kind = certificate.kinds[number]
    left_out = set(filter(kind.takes, left_out))
    instances_of = Counter(tenant.workload for tenant in certificate.tenants.values() if kind.takes(tenant))
    co_locations = list(islice(co_locations_on(kind, instances_of), MOST_CO_LOCATIONS + 1))
    if len(co_locations) > MOST_CO_LOCATIONS:
        return False
    workloads = {tenant.workload for tenant in left_out}
    with_left_out = [co_location for co_location in co_locations if workloads.intersection(co_location)]
    throughputs = lowest_of(number, with_left_out, query)
    solo = solo_of(number, {workload for workload in workloads if kind.count_cores([workload]) <= kind.cores}, query)
    return not any(
        tenant.is_met(lowest[tenant.workload], solo[tenant.workload])
        for lowest in throughputs.values()
        for tenant in left_out
        if tenant.workload in lowest
    )
