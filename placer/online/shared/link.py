"""The link of an agent to the database: made anew when it was lost, and then nothing of before can be committed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from psycopg import Connection, Error

from placer.online.shared.connection import in_transaction, is_lost, opened, reopened, run

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0
"""Seconds between attempts to reach the database; doubled each time."""

_Found = TypeVar("_Found")


class Ended(Exception):
    """The service ends while the database cannot be reached."""


class Link:
    """The connection of one agent.

    Parameters
    ----------
    address
        Of the database.
    agent
        The agent's name.

    Attributes
    ----------
    epoch
        How often the agent has connected: what an older connection still does in the database is refused.
    up
        Whether the database was reached last.
    """

    def __init__(self, address: str, agent: str) -> None:
        self.address = address
        self.agent = agent
        self.epoch = 0
        self.up = True
        self.connection = opened(address)
        self._ending = threading.Event()

    def end(self) -> None:
        """Try no longer to reach the database."""
        self._ending.set()

    def close(self) -> None:
        """Say goodbye, so that others take over at once."""
        self._ending.set()
        with contextlib.suppress(Error):
            run(self.connection, "DELETE FROM agents WHERE name = %s", self.agent)
        self.connection.close()

    def register(self) -> None:
        """Begin a new epoch; once it has begun, no transaction of an older one is committed any more."""

        def begin() -> None:
            run(self.connection, "SELECT number FROM head FOR UPDATE")
            ((self.epoch,),) = run(
                self.connection,
                "INSERT INTO agents AS a VALUES (%s, 1, clock_timestamp()) ON CONFLICT (name) "
                "DO UPDATE SET epoch = a.epoch + 1, seen = clock_timestamp() RETURNING epoch",
                self.agent,
            )

        in_transaction(self.connection, begin)

    def attempt(self, work: Callable[[Connection[Any]], _Found]) -> _Found | None:
        """What `work` returns; None where the connection was lost meanwhile, and is there again.

        What `work` did is then either committed or will never be.

        Raises
        ------
        Ended
            When the service ends before the database is reached.
        """
        try:
            return work(self.connection)
        except Error:
            if not is_lost(self.connection):
                raise
        self._reconnect()
        return None

    def _reconnect(self) -> None:
        self.up, pause = False, FIRST_PAUSE_S
        while True:
            self.connection.close()
            try:
                self.connection = reopened(self.address)
                self.register()
                self.up = True
                return
            except Error:
                if self._ending.wait(pause):
                    raise Ended from None
                pause = min(2 * pause, LONGEST_PAUSE_S)
