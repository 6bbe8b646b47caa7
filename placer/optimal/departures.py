"""The optimum of a trace with departures: a bound over its moments, and plans that know the whole trace.

Whoever is present at one time must be on_nic at that time, so the static optimum of any moment is a bound. Moments just
before somebody leaves are enough: whatever came before has fewer tenants of the same.
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
"""Each moment gets at most this part of the time."""


@dataclass(frozen=True)
class BoundOverTime:
    """What no plan that places all of these arrivals costs less than, and has no fewer NICs than.

    `examined` is of how many moments, `moments` how many there are.
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
    """The highest static optimum of all moments that precede a departure, the fullest looked at first.

    Parameters
    ----------
    fullest
        The static optimum of the fullest moment, which is looked at already.
    enough
        The cost of the best plan: with a bound that high no other moment is looked at.
    seconds
        After which no other moment is looked at.
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
    """The static optimum of those present when most cores are taken; `departure_safe` as of `optimal_plan`."""
    moments = peaks(arrivals, kinds)
    tenants = [arrivals[index].tenant for index in present_at(arrivals, moments[0])] if moments else []
    return optimal_plan(tenants, kinds, oracles, time_limit=seconds, solver=solver, departure_safe=departure_safe)


def _cost_bound(optimum: Optimum) -> float:
    return 0.0 if optimum.unplaced else optimum.lower_bound


def peaks(arrivals: Sequence[Arrival], kinds: Sequence[NicKind]) -> list[int]:
    """Numbers of the events after which somebody leaves or nothing happens any more, most cores taken first."""
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
    """Places in the trace of those who are present after event number `moment`."""
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
    """A NIC over time: who stays on it, and when."""

    def __init__(self, kind: NicKind) -> None:
        self.kind = kind
        self.arrivals: list[Arrival] = []

    def co_locations_with(self, arrival: Arrival) -> Iterator[list[Arrival]]:
        """The companies that the NIC would have during the stay of one more, as lists of arrivals."""
        beside = [one for one in self.arrivals if _overlap(one, arrival)]
        changes = {arrival.time, *(one.time for one in beside), *(one.departure for one in beside if one.departure)}
        for moment in sorted(changes):
            if _is_present(arrival, moment):
                yield [one for one in [*beside, arrival] if _is_present(one, moment)]

    def free_cores(self, arrival: Arrival) -> int:
        """The cores that are never taken during the stay."""
        most = max(
            self.kind.cores_taken(one.workload for one in co_location)
            for co_location in self.co_locations_with(arrival)
        )
        return self.kind.cores - most + self.kind.cores_of[arrival.workload.nf]

    def busy_throughout(self, arrival: Arrival) -> bool:
        """Whether somebody is there at all times of the stay, so that one more costs nothing."""
        return all(len(co_location) > 1 for co_location in self.co_locations_with(arrival))


def plan_over_time(
    arrivals: Sequence[Arrival],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    fullest: Optimum,
    *,
    deadline: float,
) -> list[Placement] | None:
    """A plan that nobody moves in, made from the fullest moment outwards; None where time is over first.

    The tenants of the fullest moment are where its static optimum has them; of every further moment, fullest first,
    those who have no place get one, the hardest to place first: on the NIC with the least room that is in use anyhow
    and keeps every SLA during the whole stay, else on another, else on a new one, else nowhere.
    """
    by_id = {arrival.id: arrival for arrival in arrivals}
    nics: list[_NicOverTime] = []
    home: dict[str, int] = {}
    for kind, tenants in fullest.nics:
        nics.append(_NicOverTime(kind))
        for tenant in tenants:
            arrival = by_id[tenant.id]
            if not _can_stay(nics[-1], arrival, oracles):
                continue
            nics[-1].arrivals.append(arrival)
            home[tenant.id] = len(nics) - 1
    waiting = (index for moment in peaks(arrivals, kinds) for index in _hardest_first(arrivals, moment, kinds))
    for index in waiting:
        arrival = arrivals[index]
        if arrival.id in home:
            continue
        if time.monotonic() >= deadline:
            return None
        place = _place(nics, arrival, kinds, oracles)
        if place is None:
            continue
        nics[place].arrivals.append(arrival)
        home[arrival.id] = place
    return [
        Placement(one, f"nic-{home[one.id] + 1}", nics[home[one.id]].kind) if one.id in home else Placement(one)
        for one in arrivals
    ]


def _hardest_first(arrivals: Sequence[Arrival], moment: int, kinds: Sequence[NicKind]) -> list[int]:
    """Who is present, most cores first, of those the shortest promise of a drop."""

    def key(index: int) -> tuple[int, float, int]:
        cores = max(kind.cores_of.get(arrivals[index].workload.nf, 0) for kind in kinds)
        drop = arrivals[index].sla.max_drop
        return -cores, 0.0 if drop is None else drop, index

    return sorted(present_at(arrivals, moment), key=key)


def _place(
    nics: list[_NicOverTime], arrival: Arrival, kinds: Sequence[NicKind], oracles: Sequence[Oracle]
) -> int | None:
    """The number of the NIC for one more, which may be a new one; None where there is none."""
    roomy = [
        (not nic.busy_throughout(arrival), free, number)
        for number, nic in enumerate(nics)
        if nic.kind.hosts(arrival.workload)
        and (free := nic.free_cores(arrival)) >= nic.kind.cores_of[arrival.workload.nf]
    ]
    for _, _, number in sorted(roomy):
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
