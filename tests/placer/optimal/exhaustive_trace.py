"""Every plan for a trace of a few arrivals, in which no tenant moves: a search that shares no code with the optimum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from placer.model.arrival import Arrival
from placer.model.fleet import NicKind
from placer.model.oracle import Oracle

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

    Raises
    ------
    ValueError
        With more than 8 arrivals.
    """
    if len(arrivals) > MOST_ARRIVALS:
        raise ValueError(f"Exhaustive search takes at most {MOST_ARRIVALS} arrivals, got {len(arrivals)}.")
    groups = list(_groups(arrivals, kinds, oracles))
    costs: list[tuple[int, float]] = []
    peaks: list[tuple[int, int]] = []
    running = sum(1 << i for i, one in enumerate(arrivals) if one.nic is not None)
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
    """NICs in use at each moment."""
    return [sum(used) for used in zip(*(group.in_use for group in groups), strict=True)] or [0]


def _groups(arrivals: Sequence[Arrival], kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> Iterator[Group]:
    """Every set of arrivals that can share a NIC of a kind, with cores and SLAs kept at every moment."""
    times = {one.begins for one in arrivals} | {one.departure for one in arrivals if one.departure is not None}
    for mask in range(1, 1 << len(arrivals)):
        members = [one for i, one in enumerate(arrivals) if mask >> i & 1]
        homes = {one.nic for one in members if one.nic is not None}
        if len(homes) > 1 or any(one.nic in homes and one not in members for one in arrivals):
            continue
        present = [
            [one for one in members if one.begins <= time and (one.departure is None or time < one.departure)]
            for time in sorted(times)
        ]
        for kind, oracle in zip(kinds, oracles, strict=True):
            if homes and len(kinds) > 1 and homes.isdisjoint(kind.names):
                continue
            if all(_keeps_slas(tenants, kind, oracle) for tenants in present if tenants):
                yield Group(kind.index, mask, tuple(bool(tenants) for tenants in present))


def _keeps_slas(tenants: Sequence[Arrival], kind: NicKind, oracle: Oracle) -> bool:
    if sum(kind.cores_of.get(one.workload.nf, kind.cores + 1) for one in tenants) > kind.cores:
        return False
    if all(one.nic is not None for one in tenants):
        return True
    co_location = tuple(sorted(one.workload for one in tenants))
    rates = list(zip(co_location, oracle.throughput([co_location])[0], strict=True))
    return all(
        one.sla.is_met(min(rate for workload, rate in rates if workload == one.workload), oracle.solo(one.workload))
        for one in tenants
    )
