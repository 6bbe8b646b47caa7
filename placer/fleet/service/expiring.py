"""Reservations whose time has ended: for each, an event `expire` is decided on and logged.

The engine has no clock: it decides on these events like on those of clients, so that a replay of the log has the same
answers. What was due while no service ran ends when the next one starts.
"""

from __future__ import annotations

from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line
from placer.fleet.events import Expire
from placer.fleet.state.saved import SavedState

LOOK_EVERY_S = 1.0  # how often it is looked which reservations are due: the queue may be long


def expire_due(engine: Engine, state: SavedState | None, now: float) -> list[str]:
    """End the reservations that are due, and record that; returns the answers. `now` is in seconds since 1970."""
    answers = []
    for tenant_id in engine.due_reservations(now):
        event = Expire(tenant_id)
        decision = engine.handle(event)
        answers.append(decision_line(event, decision))
        if state is not None:
            state.record(event, decision, engine.fleet, answers[-1])
    return answers
