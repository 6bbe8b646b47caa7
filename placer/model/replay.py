"""Replaying a trace: its events in order of time."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from placer.model.arrival import Arrival


@dataclass(frozen=True, slots=True)
class Event:
    """An arrival, or its departure; `index` is the arrival's place in the trace."""

    time: float
    index: int
    departs: bool


def events_of(arrivals: Sequence[Arrival]) -> Iterator[Event]:
    """Arrivals and departures in order of time; at one time departures come first, so that they free their place."""
    leaving: list[tuple[float, int]] = []
    for index, arrival in enumerate(arrivals):
        while leaving and leaving[0][0] <= arrival.time:
            yield Event(*heapq.heappop(leaving), departs=True)
        yield Event(arrival.time, index, departs=False)
        if arrival.departure is not None:
            heapq.heappush(leaving, (arrival.departure, index))
    while leaving:
        yield Event(*heapq.heappop(leaving), departs=True)
