"""A day in equal parts: in each, an instance may be offered another share of its rate.

An instance keeps its NIC and its cores all day. Where nothing is offered to it, it carries nothing and disturbs nobody.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from placer.model.arrival import Arrival
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.sla import Sla

REMEMBERED = 4_096  # tenants of a part, and sets of days, that are kept

Days = tuple[tuple[float, ...], ...]


def has_days(tenants: Iterable[Tenant | Arrival]) -> bool:
    """Whether the load of an instance changes over the day."""
    return any(tenant.day for tenant in tenants)


def at_peak(arrivals: Iterable[Arrival]) -> list[Arrival]:
    """The arrivals as if all of them were offered their whole rate all day."""
    return [replace(arrival, day=()) if arrival.day else arrival for arrival in arrivals]


@lru_cache(REMEMBERED)
def tenant_at(tenant: Tenant, share: float) -> Tenant:
    """The tenant as in a part of the day in which it is offered that share of its rate, above 0.

    `sla_min_kpps` requires no more than what is offered then.
    """
    rate, sla = share * tenant.workload.rate_kpps, tenant.sla
    if sla.min_kpps is not None and sla.min_kpps > rate:
        sla = Sla(min_kpps=rate)
    return replace(tenant, workload=replace(tenant.workload, rate_kpps=rate), sla=sla, day=())


def parts_of(tenants: Sequence[Tenant], *, busiest: bool = False) -> list[tuple[Tenant, ...]]:
    """Those of the tenants that carry something in each part of the day, as they are then; equal parts are one.

    `busiest`: only parts such that in no other one at least as much is offered to every tenant.
    """
    if not has_days(tenants):
        return [tuple(tenants)]
    parts = [
        tuple(
            tenant_at(tenant, share) if tenant.day else tenant
            for tenant, share in zip(tenants, shares, strict=True)
            if share > 0
        )
        for shares in _different_parts(tuple(tenant.day for tenant in tenants), busiest)
    ]
    return [part for part in parts if part]


@lru_cache(REMEMBERED)
def _different_parts(days: Days, busiest: bool) -> Days:
    """The shares of all instances in each part, each set of shares once; without a day it is the whole rate."""
    count = max(map(len, days))
    parts = tuple(dict.fromkeys(zip(*(day or (1.0,) * count for day in days), strict=True)))
    if not busiest:
        return parts
    shares = np.array(parts)
    as_busy = (shares[:, None] <= shares[None]).all(axis=2).sum(axis=1) - 1
    return tuple(part for part, others in zip(parts, as_busy.tolist(), strict=True) if not others)


def gbps_over_day(kind: NicKind, tenant: Tenant, parts: int) -> tuple[float, ...]:
    """What the packets that are offered to the tenant take of the port in each part of the day, Gb/s."""
    gbps = kind.gbps_of(tenant.workload)
    return tuple(share * gbps for share in tenant.day) if tenant.day else (gbps,) * parts
