"""Gives an empty fleet the instances of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from placer.model.arrival import Arrival
from placer.online.engine import Engine
from placer.online.events import Arrive
from placer.online.saved import SavedState
from placer.progress import Progress

TOGETHER = 1_000
"""Arrivals that are put on disk at once."""


def place_all(arrivals: Sequence[Arrival], engine: Engine, state: SavedState, progress: Progress) -> int:
    """Place all instances of a trace as if none ever departed; returns how many found a NIC.

    An instance that is in the fleet already stays where it is, so that a second call after a kill completes the first.
    """
    with progress.task("placing") as advance:
        for first in range(0, len(arrivals), TOGETHER):
            some = arrivals[first : first + TOGETHER]
            state.decide(engine, partial(_place, some, engine, state))
            advance(first + len(some), len(arrivals))
    return sum(engine.fleet.nic_of(arrival.tenant.id) is not None for arrival in arrivals)


def _place(arrivals: Sequence[Arrival], engine: Engine, state: SavedState) -> None:
    for arrival in arrivals:
        event = Arrive(arrival.tenant)
        state.record(event, engine.handle(event), engine.fleet)
