"""Gives an empty fleet the instances of a trace."""

from __future__ import annotations

from collections.abc import Sequence

from placer.model.arrival import Arrival
from placer.online.engine import Engine
from placer.online.events import Arrive
from placer.online.store import State
from placer.progress import Progress

TOGETHER = 1_000
"""Arrivals that are put on disk at once."""


def place_all(arrivals: Sequence[Arrival], engine: Engine, state: State, progress: Progress) -> int:
    """Place all instances of a trace as if none ever departed; returns how many found a NIC.

    An instance that is in the fleet already stays where it is, so that a second call after a kill completes the first.
    """
    placed = 0
    with progress.task("placing") as advance:
        for number, arrival in enumerate(arrivals, start=1):
            event = Arrive(arrival.tenant)
            decision = engine.handle(event)
            placed += decision.status == "placed"
            state.record(event, decision, engine.fleet)
            if number % TOGETHER == 0:
                state.commit()
            advance(number, len(arrivals))
    state.commit()
    return placed
