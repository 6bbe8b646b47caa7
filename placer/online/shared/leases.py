"""Leases: who does what only one agent may do. Each new holder gets a higher epoch, and writes only with it.

An agent that was stopped, and does not know yet that its time is over, still has its former epoch: what it writes with
that is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from placer.online.saved import Unreachable
from placer.online.shared.batch import Lease

SECONDS = 15.0
"""How long a lease lasts; it is prolonged when a third of that has passed."""

Ask = Callable[..., list[tuple[Any, ...]]]
"""Runs a statement with values, and returns its rows."""


class Leases:
    """Those of one agent.

    Parameters
    ----------
    agent
        Its name.
    ask
        Of the database.
    """

    def __init__(self, agent: str, ask: Ask) -> None:
        self._agent = agent
        self._ask = ask
        self._held: dict[str, tuple[Lease, float]] = {}

    def take(self, task: str) -> Lease | None:
        """The lease of a task, taken or prolonged; None while another agent has it."""
        lease, since = self._held.get(task, (None, 0.0))
        now = time.monotonic()
        if lease is not None and now < since + SECONDS / 3:
            return lease
        ((epoch,),) = self._ask("SELECT placer_lease(%s, %s, %s)", task, self._agent, SECONDS)
        if epoch is None:
            self.lose(task)
            return None
        taken = Lease(task, epoch)
        self._held[task] = taken, now
        return taken

    def held(self, task: str) -> Lease | None:
        """The lease of a task as far as this agent knows; the database has the last word."""
        found = self._held.get(task)
        return None if found is None else found[0]

    def give_back(self, task: str) -> None:
        """Let others have it, if it is held."""
        lease = self._held.pop(task, (None, 0.0))[0]
        if lease is not None:
            with suppress(Unreachable):  # then it ends by itself
                self._ask("UPDATE leases SET expires = now() WHERE name = %s AND epoch = %s", task, lease.epoch)

    def lose(self, task: str) -> None:
        """Another agent has it."""
        self._held.pop(task, None)
