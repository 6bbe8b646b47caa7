"""How many cores an instance gets: those that are given for it, else the first number with which every SLA is met.

Without a rate an instance has the default number of its NF. Its number changes only where the instance itself changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from placer.model.feasibility import Misfit, fits, keeps_slas, tenant_margin
from placer.model.fleet import Nic, NicKind, Tenant
from placer.model.oracle import Oracle, co_location_of
from placer.policy.cores import order_choices
from profiles import Workload

LEAST_HEADROOM = 0.1
"""Headroom above its SLA that an instance has at least where its cores become fewer, so that it does not need them back
soon."""


def cores_choices(kinds: Sequence[NicKind], oracles: Sequence[Oracle], tenant: Tenant) -> list[Tenant]:
    """The instance on each number of cores that it may be given, in the order of `order_choices`.

    As it is where that is fixed. Numbers with which it would violate its SLA even alone are left out, unless nothing
    else is left.
    """
    choices = order_choices(kinds, oracles, tenant.workload)
    if len(choices) == 1:
        return [tenant]
    found = [replace(tenant, workload=choice, free_cores=True) for choice in choices]
    return [choice for choice in found if _keeps_sla_alone(kinds, oracles, choice)] or found


def _keeps_sla_alone(kinds: Sequence[NicKind], oracles: Sequence[Oracle], tenant: Tenant) -> bool:
    """Whether a NIC of some kind that runs the instance alone meets its SLA."""
    hosting = (oracle for kind, oracle in zip(kinds, oracles, strict=True) if kind.hosts(tenant.workload))
    return any(tenant.is_met(solo, solo) for solo in (oracle.solo(tenant.workload) for oracle in hosting))


def stay(home: Nic, oracle: Oracle, before: Tenant, after: Tenant, choices: Sequence[Tenant]) -> Tenant | None:
    """A changed instance with the cores with which all SLAs are met on its NIC; None where there are none.

    They are as many as before if possible, and fewer where its rate has fallen and `LEAST_HEADROOM` is left. `choices`:
    as of `cores_choices`.
    """
    kind, others = home.kind, [tenant for tenant in home.tenants if tenant.id != after.id]
    by_cores: dict[int, Tenant] = {}
    for choice in choices:
        if kind.hosts(choice.workload):
            by_cores.setdefault(kind.cores_for(choice.workload), choice)
    held = kind.cores_for(before.workload)
    as_before = by_cores.pop(held, None)
    if as_before is None or not keeps_slas(kind, oracle, [*others, as_before]):
        return next((choice for choice in by_cores.values() if keeps_slas(kind, oracle, [*others, choice])), None)
    if after.workload.rate_kpps < before.workload.rate_kpps:
        for cores, choice in by_cores.items():
            if cores < held and _keeps_with_headroom(kind, oracle, others, choice):
                return choice
    return as_before


def _keeps_with_headroom(kind: NicKind, oracle: Oracle, others: Sequence[Tenant], tenant: Tenant) -> bool:
    """Whether all SLAs are met on a NIC, that of the tenant with `LEAST_HEADROOM`."""
    together = [*others, tenant]
    if not keeps_slas(kind, oracle, together):
        return False
    return tenant_margin(oracle, co_location_of(member.workload for member in together), tenant) >= LEAST_HEADROOM


def stay_at_risk(home: Nic, before: Tenant, after: Tenant, choices: Sequence[Tenant]) -> Tenant | None:
    """A changed instance, taken off its NIC, as it stays there whatever the SLAs; None where it does not fit.

    It has the cores that it had, or else as many as fit; on a GPU the first of `choices`, as of `cores_choices`.
    """
    if home.kind.paced:
        return next((choice for choice in choices if home.kind.hosts(choice.workload)), None)
    present, held = [tenant.workload for tenant in home.tenants], home.kind.cores_for(before.workload)
    chosen = not after.workload.cores and not after.workload.is_saturated
    fitting = [choice for choice in home.kind.choices(after.workload) if fits(home.kind, [*present, choice])]
    cores = {home.kind.cores_for(choice): replace(after, workload=choice, free_cores=chosen) for choice in fitting}
    return cores.get(held) or (cores[max(cores)] if cores else None)


def shown_cores(tenant: Tenant, kind: NicKind) -> int | None:
    """The cores of a tenant of a NIC, where it has a rate or they were given; None of any other."""
    workload = tenant.workload
    return None if workload.is_saturated and not workload.cores else kind.cores_for(workload)


def least_lasting(reasons: Iterable[Misfit | None]) -> Misfit:
    """The first of several reasons that may pass; the first of all where none may."""
    known = [reason for reason in reasons if reason is not None]
    return next((reason for reason in known if not reason.lasts), known[0])


def shortage(kind: NicKind, workloads: Sequence[Workload]) -> str:
    """What a NIC has too little of for these workloads: `cores` or `line rate`."""
    few = kind.cores_taken(workloads) > kind.cores or kind.has_port_for(workloads)
    return "cores" if few else "line rate"
