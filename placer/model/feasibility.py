"""How far the tenants of a NIC are above their SLAs."""

from __future__ import annotations

from collections.abc import Iterable

from placer.model.fleet import Tenant
from placer.model.oracle import CoLocation, Oracle


def spare(oracle: Oracle, co_location: CoLocation, tenants: Iterable[Tenant]) -> float:
    """How far the one nearest to its SLA is above what it requires, as a fraction; negative when one is below."""
    expected = oracle.by_workload(co_location)
    least = float("inf")
    for tenant in tenants:
        solo = oracle.solo(tenant.workload)
        got = expected[tenant.workload]
        if not tenant.sla.is_met(got, solo):
            return min(got / tenant.sla.required_kpps(solo) - 1.0, -1e-12)
        required = tenant.sla.required_kpps(solo)
        least = min(least, got / required - 1.0 if required > 0 else least)
    return least
