"""Exhaustive search over the partitions of a few tenants: checks the pattern program and shares no code with it. Every
plan for a trace of a few arrivals, in which no tenant moves: a search that shares no code with the optimum."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from placer.model.arrival import Arrival
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle, co_location_of
from placer.optimal.optimum import Optimum

MOST_TENANTS = 12


def exhaustive_plan(tenants: Sequence[Tenant], kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> Optimum:
    """The plan without SLA violations that places the most tenants and, of those, costs least, by dynamic programming.
    Sets of tenants are bit masks. For every kind, the fewest NICs that carry exactly a set; then, kind after kind, the
    least cost of placing exactly a set. Raises `ValueError` with more than 12 tenants."""
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
    return _keep_slas(tenants, oracle)


def _keep_slas(tenants: Sequence[Tenant], oracle: Oracle) -> bool:
    co_location = co_location_of(tenant.workload for tenant in tenants)
    kpps = list(zip(co_location, oracle.throughput([co_location])[0], strict=True))
    return all(
        tenant.is_met(min(rate for workload, rate in kpps if workload == tenant.workload), oracle.solo(tenant.workload))
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


MOST_ARRIVALS = 8


class Best(NamedTuple):
    """The fewest arrivals that a plan rejects and, of such plans, the least cost and the least peak of NICs."""

    rejected: int
    cost: float
    nics: int


class Group(NamedTuple):
    """Arrivals that share a NIC of a kind, as a bit mask, and whether the NIC is in use at each moment."""

    kind: int
    arrivals: int
    in_use: tuple[bool, ...]


def exhaustive_trace(arrivals: Sequence[Arrival], kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> Best:
    """Try every partition of every subset of the arrivals into NICs of every kind; what already runs is in all of them.
    Raises `ValueError` with more than 8 arrivals."""
    if len(arrivals) > MOST_ARRIVALS:
        raise ValueError(f"Exhaustive search takes at most {MOST_ARRIVALS} arrivals, got {len(arrivals)}.")
    groups = list(_groups(arrivals, kinds, oracles))
    costs: list[tuple[int, float]] = []
    peaks: list[tuple[int, int]] = []
    running = sum(1 << i for i, arrival in enumerate(arrivals) if arrival.nic is not None)
    for rejected, chosen in _plans((1 << len(arrivals)) - 1, groups, running):
        by_kind = [_in_use([group for group in chosen if group.kind == kind.index]) for kind in kinds]
        if all(kind.count is None or max(used) <= kind.count for kind, used in zip(kinds, by_kind, strict=True)):
            costs.append((rejected, sum(kind.cost * max(used) for kind, used in zip(kinds, by_kind, strict=True))))
            peaks.append((rejected, max(_in_use(chosen))))
    rejected, cost = min(costs)
    return Best(rejected, cost, min(peaks)[1])


def _plans(waiting: int, groups: Sequence[Group], running: int) -> Iterator[tuple[int, list[Group]]]:
    """Every plan for the waiting arrivals: the number that it rejects, none of those running, and its groups."""
    if not waiting:
        yield 0, []
        return
    first = waiting & -waiting
    if not first & running:
        for rejected, chosen in _plans(waiting & ~first, groups, running):
            yield rejected + 1, chosen
    for group in groups:
        if group.arrivals & first and not group.arrivals & ~waiting:
            for rejected, chosen in _plans(waiting & ~group.arrivals, groups, running):
                yield rejected, [group, *chosen]


def _in_use(groups: Sequence[Group]) -> list[int]:
    return [sum(used) for used in zip(*(group.in_use for group in groups), strict=True)] or [0]


def _groups(arrivals: Sequence[Arrival], kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> Iterator[Group]:
    """Every set of arrivals that can share a NIC of a kind, with cores and SLAs kept at every moment."""
    times = {arrival.begins for arrival in arrivals} | {
        arrival.departure for arrival in arrivals if arrival.departure is not None
    }
    for mask in range(1, 1 << len(arrivals)):
        members = [arrival for i, arrival in enumerate(arrivals) if mask >> i & 1]
        homes = {arrival.nic for arrival in members if arrival.nic is not None}
        if len(homes) > 1 or any(arrival.nic in homes and arrival not in members for arrival in arrivals):
            continue
        present = [
            [
                arrival
                for arrival in members
                if arrival.begins <= time and (arrival.departure is None or time < arrival.departure)
            ]
            for time in sorted(times)
        ]
        for kind, oracle in zip(kinds, oracles, strict=True):
            if homes and len(kinds) > 1 and homes.isdisjoint(kind.names):
                continue
            if any(
                all(
                    _may_share([given[arrival.id] for arrival in tenants], kind, oracle)
                    for tenants in present
                    if tenants
                )
                for given in _with_cores(members, kind)
            ):
                yield Group(kind.index, mask, tuple(bool(tenants) for tenants in present))


def _with_cores(members: Sequence[Arrival], kind: NicKind) -> Iterator[dict[str, Arrival]]:
    """The arrivals by id, with all numbers of cores that those at a rate can be given; the others as they are."""
    counts = [
        (member.workload.cores,)
        if member.nic is not None or member.workload.cores or member.workload.is_saturated
        else kind.core_counts.get(member.workload.nf, (0,))
        for member in members
    ]
    for cores in product(*counts):
        yield {
            member.id: replace(member, workload=replace(member.workload, cores=count))
            for member, count in zip(members, cores, strict=True)
        }


def _may_share(arrivals: Sequence[Arrival], kind: NicKind, oracle: Oracle) -> bool:
    workloads = [arrival.workload for arrival in arrivals]
    if sum(workload.cores or kind.cores_of.get(workload.nf, kind.cores + 1) for workload in workloads) > kind.cores:
        return False
    present = all(arrival.nic is not None for arrival in arrivals)
    return present or _keep_slas([arrival.tenant for arrival in arrivals], oracle)
