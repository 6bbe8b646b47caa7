"""Connections to PostgreSQL, and what is said of them: never a password."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

from psycopg import Connection, Error, ProgrammingError, connect
from psycopg.conninfo import conninfo_to_dict

from profiles import InputError

CONNECTION_SETTINGS: dict[str, str | int] = {
    "connect_timeout": 5, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3,
    "tcp_user_timeout": 15_000, "application_name": "placer",
}  # fmt: skip
"""Unless the address says otherwise: a server that cannot be reached is noticed within seconds."""

ADDRESS_HINT = "as in postgresql://placer@db.example/fleet; the password belongs in PGPASSWORD or ~/.pgpass"


def show(address: str) -> str:
    """The address as messages name it: without password and settings."""
    try:
        parts = urlsplit(address)
        return _without_password(parts)
    except ValueError:
        return "postgresql://..."


def _without_password(parts: SplitResult) -> str:
    user, _, place = parts.netloc.rpartition("@")
    name = user.split(":", 1)[0]
    return f"{parts.scheme}://{name + '@' if name else ''}{place}{parts.path}"


class Rows:
    """A connection as the code sees it that reads states of every kind: statements, and rows of what they return."""

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection

    def execute(self, statement: str, values: Iterable[object] = ()) -> Iterable[tuple[Any, ...]]:
        return run(self.connection, statement, *values)


def run(connection: Connection[Any], statement: str, *values: object) -> list[tuple[Any, ...]]:
    """The rows that a statement returns."""
    found = connection.execute(statement, values or None)
    return found.fetchall() if found.description else []


def open_connection(address: str) -> Connection[Any]:
    """A connection, outside any transaction. Raises InputError when the address is none, or the server refuses it."""
    try:
        given = conninfo_to_dict(address)
        if urlsplit(address).netloc.count("@") > 1:
            raise ValueError("an @ of a password is written as %40")
    except (ProgrammingError, ValueError):  # libpq's message may quote a part of the password
        raise InputError.of("--state", f"{show(address)} is no address of PostgreSQL", hint=ADDRESS_HINT) from None
    try:
        return reopen(address)
    except Error as error:
        message = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if given.get("password"):
            message = message.replace(str(given["password"]), "...")
        raise InputError.of("--state", f"{show(address)} cannot be opened: {message}") from None


def reopen(address: str) -> Connection[Any]:
    """A connection to an address that was good before; psycopg's errors."""
    given = conninfo_to_dict(address)
    settings: dict[str, Any] = {key: value for key, value in CONNECTION_SETTINGS.items() if key not in given}
    made = connect(address, autocommit=True, **settings)
    try:
        made.execute("SET synchronous_commit = on")  # nothing is acknowledged that a crash could lose
    except BaseException:
        made.close()
        raise
    return made


def is_lost(connection: Connection[Any]) -> bool:
    """Whether, after an error, the connection is gone, and with it what is known of the transaction."""
    return connection.closed or connection.broken


def in_transaction(connection: Connection[Any], work: Callable[[], Any], begin: str = "BEGIN") -> Any:
    run(connection, begin)
    try:
        found = work()
        run(connection, "COMMIT")
    except BaseException:
        if not is_lost(connection):
            run(connection, "ROLLBACK")
        raise
    return found


# The link of an agent to the database: made anew when it was lost, and then nothing of before can be committed.


FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0  # seconds between attempts to reach the database; doubled each time

_Found = TypeVar("_Found")


class Ended(Exception):
    """The service ends while the database cannot be reached."""


class Link:
    """The connection of one agent.

    `epoch`: how often the agent has connected: what an older connection still does in the database is refused. `lost`:
    called in the thread that finds the connection lost.
    """

    def __init__(self, address: str, agent: str) -> None:
        self.address = address
        self.agent = agent
        self.epoch = 0
        self.lost: Callable[[], object] = bool
        self.connection = open_connection(address)
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

        Raises Ended when the service ends before the database is reached.
        """
        try:
            return work(self.connection)
        except Error:
            if not is_lost(self.connection):
                raise
        self._reconnect()
        return None

    def _reconnect(self) -> None:
        pause = FIRST_PAUSE_S
        self.lost()
        while True:
            self.connection.close()
            try:
                self.connection = reopen(self.address)
                self.register()
                return
            except Error:
                if self._ending.wait(pause):
                    raise Ended from None
                pause = min(2 * pause, LONGEST_PAUSE_S)
