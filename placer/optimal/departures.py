"""The optimum of a trace with departures: a bound over its moments, and a plan that knows the whole trace.

The tenants present at a moment need NICs at that moment, so the static optimum of any moment is a bound. The moments
just before a departure are enough: between two of them, tenants are only added.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from placer.model.arrival import Arrival
from placer.model.feasibility import feasible
from placer.model.fleet import NicKind
from placer.model.oracle import Oracle
from placer.model.plan import Placement
from placer.model.replay import events_of
from placer.optimal import Optimum, optimal_plan

MOMENTS = 8
"""One moment gets at most the time divided by this number."""


@dataclass(frozen=True)
class BoundOverTime:
    """Lower bounds on the cost and on the NICs of every plan that places all of these arrivals.

    They are from the `examined` fullest of all `moments`.
    """

    lower_bound: float
    nics_lower_bound: int
    examined: int
    moments: int
    seconds: float
    oracle_seconds: float


def bound_over_time(
    arrivals: Sequence[Arrival],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    fullest: Optimum,
    *,
    enough: float,
    seconds: float,
    solver: str,
) -> BoundOverTime:
    """The highest static optimum of all moments that precede a departure, the fullest first.

    Parameters
    ----------
    fullest
        The static optimum of the fullest moment.
    enough
        The cost of the best plan: with a bound that high, no other moment is examined.
    seconds
        Seconds after which no other moment is examined.
    solver
        As of `optimal_plan`.
    """
    deadline = time.monotonic() + seconds
    moments = peaks(arrivals, kinds)
    found = [fullest]
    for moment in moments[1:]:
        if time.monotonic() >= deadline or max(map(_cost_bound, found)) >= enough - 1e-9:
            break
        tenants = [arrivals[index].tenant for index in present_at(arrivals, moment)]
        found.append(optimal_plan(tenants, kinds, oracles, time_limit=seconds / MOMENTS, solver=solver))
    return BoundOverTime(
        lower_bound=max(map(_cost_bound, found)),
        nics_lower_bound=max(0 if optimum.unplaced else optimum.nics_lower_bound for optimum in found),
        examined=len(found),
        moments=len(moments),
        seconds=sum(optimum.seconds for optimum in found),
        oracle_seconds=sum(optimum.oracle_seconds for optimum in found),
    )


def fullest_moment(
    arrivals: Sequence[Arrival],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    *,
    seconds: float,
    solver: str,
    departure_safe: bool = False,
) -> Optimum:
    """The static optimum of the tenants present when most cores are taken; `departure_safe` as of `optimal_plan`."""
    moments = peaks(arrivals, kinds)
    tenants = [arrivals[index].tenant for index in present_at(arrivals, moments[0])] if moments else []
    return optimal_plan(tenants, kinds, oracles, time_limit=seconds, solver=solver, departure_safe=departure_safe)


def _cost_bound(optimum: Optimum) -> float:
    return 0.0 if optimum.unplaced else optimum.lower_bound


def peaks(arrivals: Sequence[Arrival], kinds: Sequence[NicKind]) -> list[int]:
    """Numbers of the events right before a departure or the end of the trace, most cores taken first."""
    cores_of = {nf: min(k.cores_of[nf] for k in kinds if nf in k.cores_of) for k in kinds for nf in k.cores_of}
    found: list[tuple[int, int]] = []
    cores = 0
    rising = False
    number = -1
    for number, event in enumerate(events_of(arrivals)):
        if event.departs and rising:
            found.append((-cores, number - 1))
        rising = not event.departs
        cores += cores_of.get(arrivals[event.index].workload.nf, 0) * (-1 if event.departs else 1)
    if rising:
        found.append((-cores, number))
    return [moment for _, moment in sorted(found)]


def present_at(arrivals: Sequence[Arrival], moment: int) -> list[int]:
    """Places in the trace of the arrivals that are present after event number `moment`."""
    present: dict[int, None] = {}
    for number, event in enumerate(events_of(arrivals)):
        if number > moment:
            break
        if event.departs:
            del present[event.index]
        else:
            present[event.index] = None
    return list(present)


class _NicOverTime:
    """A NIC over time: the arrivals that it carries, each during its stay."""

    def __init__(self, kind: NicKind) -> None:
        self.kind = kind
        self.arrivals: list[Arrival] = []

    def co_locations_with(self, arrival: Arrival) -> Iterator[list[Arrival]]:
        """The co-locations of the NIC during the stay of one more arrival, as lists of arrivals."""
        neighbours = [one for one in self.arrivals if _overlap(one, arrival)]
        changes = {
            arrival.time,
            *(one.time for one in neighbours),
            *(one.departure for one in neighbours if one.departure),
        }
        for moment in sorted(changes):
            if _is_present(arrival, moment):
                yield [one for one in [*neighbours, arrival] if _is_present(one, moment)]

    def free_cores(self, arrival: Arrival) -> int:
        """The cores that are free throughout the stay of one more arrival."""
        most = max(
            self.kind.cores_taken(one.workload for one in co_location)
            for co_location in self.co_locations_with(arrival)
        )
        return self.kind.cores - most + self.kind.cores_of[arrival.workload.nf]

    def busy_throughout(self, arrival: Arrival) -> bool:
        """Whether the NIC is in use throughout the stay of one more arrival, which then costs nothing."""
        return all(len(co_location) > 1 for co_location in self.co_locations_with(arrival))


def plan_over_time(
    arrivals: Sequence[Arrival],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    fullest: Optimum,
    *,
    deadline: float,
) -> list[Placement] | None:
    """A plan without migration, made from the fullest moment outwards; None where the deadline is earlier.

    The tenants of the fullest moment are placed as in its static optimum. Then the other tenants of every further
    moment are placed, fullest moment first and most demanding tenant first: on the NIC with the fewest free cores that
    meets every SLA during the whole stay, preferably one in use throughout the stay; else on a new NIC; else rejected.
    """
    by_id = {arrival.id: arrival for arrival in arrivals}
    nics: list[_NicOverTime] = []
    nic_of: dict[str, int] = {}
    for kind, tenants in fullest.nics:
        nics.append(_NicOverTime(kind))
        for tenant in tenants:
            arrival = by_id[tenant.id]
            if not _can_stay(nics[-1], arrival, oracles):
                continue
            nics[-1].arrivals.append(arrival)
            nic_of[tenant.id] = len(nics) - 1
    waiting = (index for moment in peaks(arrivals, kinds) for index in _most_demanding_first(arrivals, moment, kinds))
    for index in waiting:
        arrival = arrivals[index]
        if arrival.id in nic_of:
            continue
        if time.monotonic() >= deadline:
            return None
        place = _place(nics, arrival, kinds, oracles)
        if place is None:
            continue
        nics[place].arrivals.append(arrival)
        nic_of[arrival.id] = place
    return [
        Placement(one, f"nic-{nic_of[one.id] + 1}", nics[nic_of[one.id]].kind) if one.id in nic_of else Placement(one)
        for one in arrivals
    ]


def _most_demanding_first(arrivals: Sequence[Arrival], moment: int, kinds: Sequence[NicKind]) -> list[int]:
    """The arrivals present at a moment, most cores first, of equal cores the smallest allowed drop first."""

    def key(index: int) -> tuple[int, float, int]:
        cores = max(kind.cores_of.get(arrivals[index].workload.nf, 0) for kind in kinds)
        drop = arrivals[index].sla.max_drop
        return -cores, 0.0 if drop is None else drop, index

    return sorted(present_at(arrivals, moment), key=key)


def _place(
    nics: list[_NicOverTime], arrival: Arrival, kinds: Sequence[NicKind], oracles: Sequence[Oracle]
) -> int | None:
    """The number of the NIC for one more arrival, which may be a new one; None where there is none."""
    with_room = [
        (not nic.busy_throughout(arrival), free, number)
        for number, nic in enumerate(nics)
        if nic.kind.hosts(arrival.workload)
        and (free := nic.free_cores(arrival)) >= nic.kind.cores_of[arrival.workload.nf]
    ]
    for _, _, number in sorted(with_room):
        if _can_stay(nics[number], arrival, oracles):
            return number
    for kind in sorted(kinds, key=lambda kind: (kind.cost, kind.index)):
        opened = sum(nic.kind is kind for nic in nics)
        new = _NicOverTime(kind)
        if kind.hosts(arrival.workload) and opened != kind.count and _can_stay(new, arrival, oracles):
            nics.append(new)
            return len(nics) - 1
    return None


def _can_stay(nic: _NicOverTime, arrival: Arrival, oracles: Sequence[Oracle]) -> bool:
    groups = [[one.tenant for one in co_location] for co_location in nic.co_locations_with(arrival)]
    return all(feasible(nic.kind, oracles[nic.kind.index], groups))


def _overlap(one: Arrival, other: Arrival) -> bool:
    starts_before_end = other.departure is None or one.time < other.departure
    return starts_before_end and (one.departure is None or other.time < one.departure)


def _is_present(arrival: Arrival, moment: float) -> bool:
    return arrival.time <= moment and (arrival.departure is None or moment < arrival.departure)
