"""Exhaustive search over the partitions of a few tenants: checks the pattern program and shares no code with it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import Oracle, co_location_of
from placer.optimal.optimum import Optimum

MOST_TENANTS = 12


def exhaustive_plan(tenants: Sequence[Tenant], kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> Optimum:
    """The plan without SLA violations that places the most tenants and, of those, costs least, by dynamic programming.

    Sets of tenants are bit masks. For every kind, the fewest NICs that carry exactly a set; then, kind after kind,
    the least cost of placing exactly a set.

    Raises
    ------
    ValueError
        With more than 12 tenants.
    """
    if len(tenants) > MOST_TENANTS:
        raise ValueError(f"Exhaustive search takes at most {MOST_TENANTS} tenants, got {len(tenants)}.")
    began = time.monotonic()
    all_of_them = (1 << len(tenants)) - 1
    best: dict[int, tuple[float, list[tuple[int, int]]]] = {0: (0.0, [])}
    for number, (kind, oracle) in enumerate(zip(kinds, oracles, strict=True)):
        fewest = _fewest_nics(tenants, kind, oracle)
        extended: dict[int, tuple[float, list[tuple[int, int]]]] = {}
        for placed, (cost, plan) in best.items():
            for more in _subsets(all_of_them & ~placed):
                if more in fewest:
                    total = cost + kind.cost * len(fewest[more])
                    if placed | more not in extended or total < extended[placed | more][0]:
                        extended[placed | more] = (total, [*plan, *((number, mask) for mask in fewest[more])])
        best = extended
    chosen = min(best, key=lambda mask: (-mask.bit_count(), best[mask][0], mask))
    cost, plan = best[chosen]
    return Optimum(
        nics=[(kinds[number], tuple(_members(tenants, mask))) for number, mask in plan],
        unplaced=list(_members(tenants, all_of_them & ~chosen)),
        cost=cost,
        lower_bound=cost,
        nics_lower_bound=len(plan) if len({kind.cost for kind in kinds}) == 1 else 0,
        proven=True,
        seconds=time.monotonic() - began,
    )


def _fewest_nics(tenants: Sequence[Tenant], kind: NicKind, oracle: Oracle) -> dict[int, list[int]]:
    """Sets of tenants that NICs of the kind can carry, each with the fewest NICs that do, as the set on each."""
    feasible = {mask for mask in range(1, 1 << len(tenants)) if _fits(list(_members(tenants, mask)), kind, oracle)}
    fewest: dict[int, list[int]] = {0: []}
    for mask in range(1, 1 << len(tenants)):
        first = mask & -mask
        for rest in _subsets(mask & ~first):
            others = mask & ~first & ~rest
            if first | rest in feasible and others in fewest:
                nics = [first | rest, *fewest[others]]
                if len(nics) < len(fewest.get(mask, range(len(tenants) + 1))):
                    fewest[mask] = nics
    return {mask: nics for mask, nics in fewest.items() if kind.count is None or len(nics) <= kind.count}


def _fits(tenants: Sequence[Tenant], kind: NicKind, oracle: Oracle) -> bool:
    """Whether these tenants can share one NIC of the kind."""
    if not all(kind.hosts(tenant.workload) for tenant in tenants):
        return False
    if sum(kind.cores_of[tenant.workload.nf] for tenant in tenants) > kind.cores:
        return False
    co_location = co_location_of(tenant.workload for tenant in tenants)
    kpps = list(zip(co_location, oracle.throughput([co_location])[0], strict=True))
    return all(
        tenant.sla.is_met(
            min(rate for workload, rate in kpps if workload == tenant.workload), oracle.solo(tenant.workload)
        )
        for tenant in tenants
    )


def _subsets(mask: int) -> Iterator[int]:
    """All subsets of a bit mask, the empty one last."""
    subset = mask
    while True:
        yield subset
        if subset == 0:
            return
        subset = (subset - 1) & mask


def _members(tenants: Sequence[Tenant], mask: int) -> Iterator[Tenant]:
    return (tenant for i, tenant in enumerate(tenants) if mask >> i & 1)
