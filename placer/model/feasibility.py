"""Feasibility: whether NFs can share a NIC, server or GPU with every SLA met, by what margin, and if not, who and why.

Every strategy, rule, optimum and explanation uses it. It is a function of all tenants together, their workloads and
SLAs: behind a NIC or server is the throughput that a predictor or testbed expects, and where latency is promised what
follows from that; behind a GPU is its admission test. A margin is relative: 0.05 means 5 % more throughput than the SLA
requires. Below 0, the SLA is violated.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from placer.model.constraints import kind_allows, may_share_nic
from placer.model.nic import Nic, Service, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle, co_location_of, lowest_by_workload
from profiles import CoLocation, Workload

LEAST_VIOLATION = -1e-12
"""The largest margin of a violated SLA, so that rounding cannot hide a small shortfall."""


def margin(required_kpps: float, throughput_kpps: float) -> float:
    """How far a throughput is above the required one, relative to it; infinite where nothing is required."""
    if throughput_kpps < required_kpps:
        return min(throughput_kpps / required_kpps - 1.0, LEAST_VIOLATION)
    return throughput_kpps / required_kpps - 1.0 if required_kpps > 0 else float("inf")


def tenant_margin(oracle: Oracle, co_location: CoLocation, tenant: Tenant) -> float:
    """The tenant's margin above its SLA in the co-location. Among equal workloads, the slowest counts."""
    required = tenant.required_kpps(oracle.solo(tenant.workload))
    return margin(required, oracle.by_workload(co_location)[tenant.workload])


def smallest_margin(oracle: Oracle, tenants: Sequence[Tenant]) -> float:
    """The smallest margin of tenants that share a NIC; infinite for none."""
    co_location = co_location_of(tenant.workload for tenant in tenants)
    return min((tenant_margin(oracle, co_location, tenant) for tenant in tenants), default=float("inf"))


def below_sla(oracle: Oracle, tenants: Sequence[Tenant]) -> list[Tenant]:
    """Those of the tenants that violate their SLA when all of them share a NIC."""
    co_location = co_location_of(tenant.workload for tenant in tenants)
    return [tenant for tenant in tenants if tenant_margin(oracle, co_location, tenant) < 0]


@dataclass(frozen=True, slots=True)
class Violation:
    """A tenant that does not keep its SLA, and the resource or limit that it lacks."""

    tenant: Tenant
    cause: str


def violations(oracle: Oracle, tenants: Sequence[Tenant]) -> list[Violation]:
    """Who violates an SLA when all of these share a NIC, and why; none where everybody keeps it.

    A cause is a resource that is contended (`memory`, an accelerator), `latency`, or one of a GPU: `batching`, `pcie`,
    `executors`, `kernel`, `workers`.
    """
    co_location = co_location_of(tenant.workload for tenant in tenants)
    return [Violation(tenant, oracle.bottleneck(co_location, tenant.workload)) for tenant in below_sla(oracle, tenants)]


def fits(kind: NicKind, workloads: Iterable[Workload]) -> bool:
    """Whether a NIC of the kind runs all of these NFs and has the cores and the line rate for them together."""
    return kind.fits(list(workloads))


def feasible(kind: NicKind, oracle: Oracle, groups: Sequence[Sequence[Tenant]]) -> list[bool]:
    """For each group of tenants, whether a NIC of the kind may have it and meets every SLA; one batch of queries."""
    fitting = [
        fits(kind, (tenant.workload for tenant in group))
        and all(kind_allows(kind, tenant) for tenant in group)
        and may_share_nic(group)
        for group in groups
    ]
    queried = [group for group, fit in zip(groups, fitting, strict=True) if fit]
    co_locations = [co_location_of(tenant.workload for tenant in group) for group in queried]
    answers = iter(zip(queried, co_locations, oracle.throughput(co_locations), strict=True))
    return [fit and _slas_met(oracle, *next(answers)) for fit in fitting]


def keeps_slas(
    kind: NicKind, oracle: Oracle, tenants: Sequence[Tenant], headroom: tuple[Tenant | None, float] = (None, 0.0)
) -> bool:
    """As `feasible` for one group of tenants, which takes less time by itself.

    `headroom`: the margin above its SLA that one of them has at least.
    """
    if not fits(kind, (tenant.workload for tenant in tenants)):
        return False
    together = sorted(tenants, key=lambda tenant: tenant.workload.sort_key)
    required = [
        tenant.required_kpps(oracle.solo(tenant.workload)) * (1.0 + headroom[1] * (tenant is headroom[0]))
        for tenant in together
    ]
    return oracle.meets(tuple([tenant.workload for tenant in together]), required)[0]


def _slas_met(oracle: Oracle, tenants: Sequence[Tenant], co_location: CoLocation, kpps: Sequence[float]) -> bool:
    lowest = lowest_by_workload(co_location, kpps)
    return all(tenant.is_met(lowest[tenant.workload], oracle.solo(tenant.workload)) for tenant in tenants)


# Why a NIC does not take an NF, in the words that operators read.


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a NIC does not take an NF; as text one line without ids, so that equal reasons can be counted.

    Parameters
    ----------
    cause
        `service`, `not hosted`, `cores`, or the resource on which an SLA would be violated.
    nf
        Of an SLA, the NF whose SLA would be violated; None for the arrival itself.
    text
        What operators read.
    lasts
        Whether it would be the same if all NFs left the NIC.
    """

    cause: str
    nf: str | None
    text: str
    lasts: bool = False

    def __str__(self) -> str:
        return self.text


def misfit(nic: Nic, oracle: Oracle, arrival: Tenant) -> Misfit | None:
    """Why the NIC does not take one more NF; None where every SLA is met with it."""
    if nic.service is not Service.UP:
        return Misfit("service", None, f"the NIC is {nic.service.value}", lasts=True)
    return misfit_with(nic.kind, oracle, nic.tenants, arrival)


def misfit_with(kind: NicKind, oracle: Oracle, tenants: Sequence[Tenant], arrival: Tenant) -> Misfit | None:
    """Why a NIC with these tenants does not take one more NF; None where every SLA is met with it."""
    nf = arrival.workload.nf
    if not kind.hosts(arrival.workload):
        return Misfit("not hosted", None, f"{nf} does not run on a {kind.model}", lasts=True)
    if not fits(kind, workloads := [*(tenant.workload for tenant in tenants), arrival.workload]):
        if kind.cores_taken(workloads) <= kind.cores:
            return Misfit("line-rate", None, "the port is too slow for the packets of all")
        return Misfit("cores", None, "too few free cores")
    together = [*tenants, arrival]
    below = below_sla(oracle, together)
    if not below:
        return None
    first = min(below, key=lambda tenant: (tenant is arrival, tenant.workload))
    cause = oracle.bottleneck(co_location_of(tenant.workload for tenant in together), first.workload)
    if first is not arrival:
        present = first.workload.nf
        return Misfit(cause, present, f"{present} there would violate its SLA: {cause}")
    where = "beside the NFs there" if tenants else "even alone"
    return Misfit(cause, None, f"{nf} would violate its SLA {where}: {cause}", lasts=not tenants)
