"""Reservations whose time has ended: for each, an event `expire` is decided on and logged.

The engine has no clock: it decides on these events like on those of clients, so that a replay of the log has the same
answers. What was due while no service ran ends when the next one starts.
"""

from __future__ import annotations

from placer.fleet.engine import Engine
from placer.fleet.events import Expire
from placer.fleet.state.saved import SavedState

LOOK_EVERY_S = 1.0  # how often it is looked which reservations are due: the queue may be long


def expire_due(engine: Engine, state: SavedState | None, now: float) -> None:
    """End the reservations that are due, and record that; `now` is in seconds since 1970."""
    for tenant_id in engine.due_reservations(now):
        event = Expire(tenant_id)
        decision = engine.handle(event)
        if state is not None:
            state.record(event, decision, engine.fleet)
