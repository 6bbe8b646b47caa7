"""Why a NIC does not take an NF, in the words that operators read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placer.model.feasibility import below_sla, fits
from placer.model.fleet import Nic, NicKind, Service, Tenant
from placer.model.oracle import Oracle, co_location_of


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
    """

    cause: str
    nf: str | None
    text: str

    def __str__(self) -> str:
        return self.text


def misfit(nic: Nic, oracle: Oracle, arrival: Tenant) -> Misfit | None:
    """Why the NIC does not take one more NF; None where every SLA is met with it."""
    if nic.service is not Service.UP:
        return Misfit("service", None, f"the NIC is {nic.service.value}")
    return misfit_with(nic.kind, oracle, nic.tenants, arrival)


def misfit_with(kind: NicKind, oracle: Oracle, tenants: Sequence[Tenant], arrival: Tenant) -> Misfit | None:
    """Why a NIC with these tenants does not take one more NF; None where every SLA is met with it."""
    nf = arrival.workload.nf
    if not kind.hosts(arrival.workload):
        return Misfit("not hosted", None, f"{nf} does not run on a {kind.model}")
    if not fits(kind, [*(tenant.workload for tenant in tenants), arrival.workload]):
        return Misfit("cores", None, "too few free cores")
    together = [*tenants, arrival]
    below = below_sla(oracle, together)
    if not below:
        return None
    first = min(below, key=lambda one: (one is arrival, one.workload))
    cause = oracle.bottleneck(co_location_of(one.workload for one in together), first.workload)
    if first is not arrival:
        present = first.workload.nf
        return Misfit(cause, present, f"{present} there would violate its SLA: {cause}")
    where = "beside the NFs there" if tenants else "even alone"
    return Misfit(cause, None, f"{nf} would violate its SLA {where}: {cause}")
