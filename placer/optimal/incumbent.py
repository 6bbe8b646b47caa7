"""Incumbents: plans without SLA violations that the search improves, and the first of them."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from placer.model.arrival import losses_of
from placer.model.feasibility import feasible
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.optimal.optimum import Optimum
from placer.optimal.program import exact_cost

MAX_TRIED_TENANTS = 32  # tenants among which the first plan looks for the next one to put on a NIC
NicAssignment = tuple[int, tuple[Tenant, ...]]  # a NIC in use: the number of its kind, and its tenants


@dataclass(frozen=True, eq=False)
class Incumbent:
    """A plan without SLA violations, to be improved."""

    nics: tuple[NicAssignment, ...]
    unplaced: tuple[Tenant, ...]

    def cost(self, kinds: Sequence[NicKind]) -> Fraction:
        return sum((exact_cost(kinds[kind]) for kind, _ in self.nics), start=Fraction(0))


def first_incumbent(
    tenants: Sequence[Tenant], kinds: Sequence[NicKind], oracles: Sequence[Oracle], deadline: float
) -> Incumbent:
    """NICs filled one after another, cheapest kind first, each with those that fit of the next `MAX_TRIED_TENANTS`.

    After the deadline, every tenant gets a NIC of its own.
    """
    waiting = list(tenants)
    nics: list[NicAssignment] = []
    for number in sorted(range(len(kinds)), key=lambda number: (kinds[number].cost, number)):
        kind, oracle = kinds[number], oracles[number]
        skipped: list[Tenant] = []
        used = 0
        while waiting and used != kind.count:
            carried: list[Tenant] = []
            while fitting := next(_fitting(carried, waiting, kind, oracle), None):
                carried.append(fitting)
                waiting.remove(fitting)
                if time.monotonic() >= deadline:
                    break
            if carried:
                nics.append((number, tuple(carried)))
                used += 1
            else:
                skipped += waiting[:MAX_TRIED_TENANTS]
                waiting = waiting[MAX_TRIED_TENANTS:]
        waiting = skipped + waiting
    return Incumbent(tuple(nics), tuple(waiting))


def _fitting(carried: Sequence[Tenant], waiting: Sequence[Tenant], kind: NicKind, oracle: Oracle) -> Iterator[Tenant]:
    """Of the next tenants waiting, those that can share a NIC with the tenants that it carries."""
    tried = waiting[:MAX_TRIED_TENANTS]
    able = feasible(kind, oracle, [(*carried, tenant) for tenant in tried])
    return (tenant for tenant, fits in zip(tried, able, strict=True) if fits)


def valid_incumbent(
    plan: Sequence[tuple[NicKind, Sequence[Tenant]]],
    tenants: Sequence[Tenant],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
) -> Incumbent | None:
    """The plan as an incumbent; None where it violates an SLA, or the cores or counts of NICs."""
    for number, kind in enumerate(kinds):
        carried = [on_nic for used, on_nic in plan if used.index == number]
        if kind.count is not None and len(carried) > kind.count:
            return None
        if not all(feasible(kind, oracles[number], carried)):
            return None
    placed = {tenant.id for _, on_nic in plan for tenant in on_nic}
    nics = tuple((kind.index, tuple(on_nic)) for kind, on_nic in plan if on_nic)
    return Incumbent(nics, tuple(tenant for tenant in tenants if tenant.id not in placed))


def better_of(optimum: Optimum, incumbent: Incumbent, kinds: Sequence[NicKind]) -> Optimum:
    """The optimum, or the incumbent where the search ended before it found as good a plan."""
    cost = float(incumbent.cost(kinds))
    of_optimum, of_incumbent = losses_of(optimum.unplaced), losses_of(incumbent.unplaced)
    if optimum.proven or (of_optimum, optimum.cost) <= (of_incumbent, cost):
        return optimum
    as_many = of_optimum == of_incumbent
    return replace(
        optimum,
        nics=[(kinds[kind], on_nic) for kind, on_nic in incumbent.nics],
        unplaced=list(incumbent.unplaced),
        departure_safe=False,
        cost=cost,
        lower_bound=min(cost, optimum.lower_bound) if as_many else 0.0,
        nics_lower_bound=min(len(incumbent.nics), optimum.nics_lower_bound) if as_many else 0,
    )
