"""Replay: the events of a trace in order of time, and the one loop that lets them happen to a fleet.

Events at one time form a moment: departures come first, and a co-location counts only if it stands when the moment is
over. The constraint checkers, the evaluation and the optimum all mean this.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from placer.model.arrival import Arrival
from placer.model.fleet import Fleet, Nic, NicKind
from placer.model.plan import Plan

Choose = Callable[[int], Nic | NicKind | None]
"""For the arrival at this place of the trace: a NIC in use, the kind of a NIC to open, or None to reject."""


@dataclass(frozen=True, slots=True)
class Event:
    """An arrival, or its departure; `index` is the arrival's place in the trace."""

    time: float
    index: int
    departs: bool


def events_of(arrivals: Sequence[Arrival]) -> Iterator[Event]:
    """Arrivals and departures in order of time; at one time departures come first, so that they free their cores."""
    leaving: list[tuple[float, int]] = []
    for index, arrival in enumerate(arrivals):
        while leaving and leaving[0][0] <= arrival.time:
            yield Event(*heapq.heappop(leaving), departs=True)
        yield Event(arrival.time, index, departs=False)
        if arrival.departure is not None:
            heapq.heappush(leaving, (arrival.departure, index))
    while leaving:
        yield Event(*heapq.heappop(leaving), departs=True)


def replay(arrivals: Sequence[Arrival], fleet: Fleet, choose: Choose) -> Iterator[tuple[Event, Nic | None]]:
    """Let every event of the trace happen to the fleet; yields each with the NIC that changed, None if none did."""
    for event in events_of(arrivals):
        tenant = arrivals[event.index].tenant
        if event.departs:
            yield event, fleet.remove(tenant.id) if fleet.nic_of(tenant.id) is not None else None
            continue
        choice = choose(event.index)
        nic = fleet.open(choice) if isinstance(choice, NicKind) else choice
        if nic is not None:
            fleet.place(tenant, nic)
        yield event, nic


def replay_plan(plan: Plan, fleet: Fleet) -> Iterator[tuple[float, list[Nic]]]:
    """Let a plan happen to an empty fleet; yields each moment (s) with the NICs that changed, as they stand after it.

    A NIC without tenants is out of use, but still yielded.
    """

    def choose(index: int) -> Nic | None:
        placement = plan.placements[index]
        if placement.nic is None or placement.kind is None:
            return None
        return fleet.nics.get(placement.nic) or fleet.open(placement.kind, placement.nic)

    arrivals = [placement.arrival for placement in plan.placements]
    following = chain((event.time for event in islice(events_of(arrivals), 1, None)), [None])
    changed: dict[str, Nic] = {}
    for (event, nic), next_time in zip(replay(arrivals, fleet, choose), following, strict=False):
        if nic is not None:
            changed[nic.id] = nic
        if next_time != event.time:
            yield event.time, list(changed.values())
            changed = {}
