"""Connections to PostgreSQL, and what is said of them: never a password."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import SplitResult, urlsplit

from psycopg import Connection, Error, ProgrammingError, connect
from psycopg.conninfo import conninfo_to_dict

from profiles import InputError

SETTINGS: dict[str, str | int] = {
    "connect_timeout": 5, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3,
    "tcp_user_timeout": 15_000, "application_name": "placer",
}  # fmt: skip
"""Unless the address says otherwise: a server that cannot be reached is noticed within seconds."""

HINT = "as in postgresql://placer@db.example/fleet; the password belongs in PGPASSWORD or ~/.pgpass"


def shown(address: str) -> str:
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
        """The rows that a statement returns."""
        return run(self.connection, statement, *values)


def run(connection: Connection[Any], statement: str, *values: object) -> list[tuple[Any, ...]]:
    """The rows that a statement returns."""
    found = connection.execute(statement, values or None)
    return found.fetchall() if found.description else []


def opened(address: str) -> Connection[Any]:
    """A connection, outside any transaction.

    Raises
    ------
    InputError
        When the address is none, or the server refuses it.
    """
    try:
        given = conninfo_to_dict(address)
        if urlsplit(address).netloc.count("@") > 1:
            raise ValueError("an @ of a password is written as %40")
    except (ProgrammingError, ValueError):  # libpq's message may quote a part of the password
        raise InputError.of("--state", f"{shown(address)} is no address of PostgreSQL", hint=HINT) from None
    try:
        return reopened(address)
    except Error as error:
        message = _first_line(error)
        if given.get("password"):
            message = message.replace(str(given["password"]), "...")
        raise InputError.of("--state", f"{shown(address)} cannot be opened: {message}") from None


def reopened(address: str) -> Connection[Any]:
    """A connection to an address that was good before; psycopg's errors."""
    given = conninfo_to_dict(address)
    made = connect(address, autocommit=True, **{key: value for key, value in SETTINGS.items() if key not in given})  # type: ignore[arg-type]
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
    """What `work` returns, in one transaction."""
    run(connection, begin)
    try:
        found = work()
        run(connection, "COMMIT")
    except BaseException:
        if not is_lost(connection):
            run(connection, "ROLLBACK")
        raise
    return found


def _first_line(error: Error) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
