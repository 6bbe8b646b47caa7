"""Makes the tables of a state, or refuses a database that holds something else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import Connection, Error

from placer.model.fleet import NicKind
from placer.online.saved_fleet import facts_of
from placer.online.shared.connection import in_transaction, run
from placer.online.shared.schema import DEAD_SECONDS, LAYOUT, NAMES, statements
from profiles import InputError

LOCK = 7_350_912_041
"""The advisory lock of those that make a state at the same time."""


def make_state(connection: Connection[Any], name: str, kinds: Sequence[NicKind]) -> None:
    """Make the tables of an empty fleet in an empty database; one that has them stays as it is.

    Raises
    ------
    InputError
        When the database holds something else.
    """
    try:
        in_transaction(connection, lambda: _make(connection, name, kinds))
    except Error as error:
        message = str(error).splitlines()[0]
        hint = "give its user the right to create tables, or let another user begin the state"
        raise InputError.of("--state", f"{name}: no state can be made there: {message}", hint=hint) from error


def check_layout(connection: Connection[Any], name: str) -> None:
    """Refuse a state of another version of this program, or that lacks a table.

    Raises
    ------
    InputError
        With what is wrong.
    """
    if missing := sorted(set(NAMES) - _tables(connection)):
        raise InputError.of(
            "--state", f"{name} lacks the tables of a state: {', '.join(missing)}", hint="restore a backup"
        )
    try:
        found = run(connection, "SELECT layout FROM head")
    except Error:
        found = []
    if len(found) != 1:
        raise InputError.of("--state", f"{name} is not the state of a fleet", hint="name an empty database")
    if found[0][0] != LAYOUT:
        raise InputError.of(
            "--state", f"{name} is of layout {found[0][0]}, not {LAYOUT}", hint="use the version of placer that made it"
        )


def keep_kinds(connection: Connection[Any], name: str, kinds: Sequence[NicKind]) -> None:
    """Write how many NICs there are of each kind; agents that run together must agree on it.

    Raises
    ------
    InputError
        When another agent that is alive was started with other counts.
    """

    def keep() -> None:
        run(connection, "SELECT number FROM head FOR UPDATE")
        known = dict(run(connection, "SELECT kind, count FROM kinds"))
        given = {kind.index: kind.count for kind in kinds}
        if known == given:
            return
        alive = "SELECT name FROM agents WHERE seen > clock_timestamp() - %s * interval '1 second'"
        if run(connection, alive, DEAD_SECONDS):
            hint = "start every agent with the same --fleet, or stop the others first"
            raise InputError.of("--fleet", f"{name} is used by an agent with other counts of NICs", hint=hint)
        for kind, count in given.items():
            run(connection, "UPDATE kinds SET count = %s WHERE kind = %s", count, kind)

    in_transaction(connection, keep)


def _make(connection: Connection[Any], name: str, kinds: Sequence[NicKind]) -> None:
    run(connection, "SELECT pg_advisory_xact_lock(%s)", LOCK)
    tables = _tables(connection)
    if not tables:
        connection.execute(statements().encode())
        for fact, value in facts_of(kinds).items():
            run(connection, "INSERT INTO facts VALUES (%s, %s)", fact, value)
        for kind in kinds:
            run(connection, "INSERT INTO kinds VALUES (%s, %s, %s, 0)", kind.index, kind.model, kind.count)
    elif not tables & {"facts", "head"}:
        raise InputError.of("--state", f"{name} holds other tables", hint="name an empty database")


def _tables(connection: Connection[Any]) -> set[str]:
    query = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
    return {table for (table,) in run(connection, query)}
