"""The tables of a state in PostgreSQL, and the functions that write them.

All that writes takes the row of `head` first, so that numbers of events follow the order of commits, and what is
checked stays so until the commit. A batch is one call of `placer_commit`: no lock is held while an agent computes or is
stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from psycopg import Connection, Error

from placer.fleet.learning.actions import ModelAction
from placer.fleet.learning.versions import ModelStore
from placer.fleet.state.postgres.connection import Rows, in_transaction, open_connection, run, show
from placer.fleet.state.postgres.models import SharedModelStore
from placer.fleet.state.retention import CREATE_MARKS
from placer.fleet.state.saved_fleet import facts_of
from placer.fleet.state.saved_learning import next_asked, read_asked
from placer.model.nic_kind import NicKind
from profiles import InputError

LAYOUT_VERSION = "5"
FORMER_LAYOUTS = ["1", "2", "3", "4"]
"""Layouts without reservations, owners and actors, the first three without priorities, the first two without
constraints, the first without loads of tenants, too; a service that opens one brings it up to date."""

KEPT_BATCHES = 1_000_000
"""Events whose changes are kept for agents to follow; one that is further behind has to start again."""

BEAT_SECONDS = 2.0  # how often an agent says that it is alive
DEAD_SECONDS = 10.0  # after which an agent that says nothing counts as dead: others take over its NICs

CREATE_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE head (number BIGINT NOT NULL, kept BIGINT NOT NULL, layout TEXT NOT NULL);
INSERT INTO head VALUES (0, 0, '{layout}');
CREATE TABLE kinds (kind INTEGER PRIMARY KEY, model TEXT NOT NULL, count BIGINT, used BIGINT NOT NULL);
CREATE TABLE nics (
    id TEXT PRIMARY KEY, kind INTEGER NOT NULL REFERENCES kinds, number BIGINT NOT NULL UNIQUE, service TEXT NOT NULL,
    version BIGINT NOT NULL, pool TEXT, domain TEXT
);
CREATE TABLE tenants (
    place BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id TEXT NOT NULL UNIQUE, nic TEXT REFERENCES nics,
    nf TEXT NOT NULL, flows FLOAT8 NOT NULL, packet_size FLOAT8 NOT NULL, mtbr FLOAT8 NOT NULL, sla_drop FLOAT8,
    sla_min_kpps FLOAT8, rate_kpps FLOAT8, cores INTEGER, latency_us FLOAT8, free_cores INTEGER, constraints TEXT,
    priority INTEGER, reserved_until FLOAT8, owner TEXT, labels TEXT
);
CREATE INDEX ON tenants (nic);
CREATE TABLE log (number BIGINT PRIMARY KEY, agent TEXT NOT NULL, event TEXT NOT NULL, answer TEXT NOT NULL,
    time FLOAT8, actor TEXT
);
CREATE TABLE batches (
    id TEXT PRIMARY KEY, last BIGINT NOT NULL, events INTEGER NOT NULL, agent TEXT NOT NULL, changes TEXT NOT NULL
);
CREATE INDEX ON batches (last);
CREATE TABLE answers (
    number BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE, name TEXT PRIMARY KEY, digest TEXT NOT NULL,
    status INTEGER NOT NULL, answer TEXT NOT NULL, version BIGINT
);
CREATE TABLE readings (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event BIGINT NOT NULL, nic_model TEXT NOT NULL,
    co_location TEXT NOT NULL, place INTEGER NOT NULL, tenant TEXT NOT NULL, throughput_kpps FLOAT8 NOT NULL,
    offered_kpps FLOAT8, below_sla INTEGER NOT NULL
);
CREATE TABLE learnt (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE model_files (
    version INTEGER, nic_model TEXT, path TEXT, content BYTEA NOT NULL, PRIMARY KEY (version, nic_model, path)
);
CREATE TABLE agents (name TEXT PRIMARY KEY, epoch BIGINT NOT NULL, seen TIMESTAMPTZ NOT NULL);
CREATE TABLE leases (name TEXT PRIMARY KEY, holder TEXT NOT NULL, epoch BIGINT NOT NULL, expires TIMESTAMPTZ NOT NULL);
"""

TABLE_NAMES = (
    "facts", "head", "kinds", "nics", "tenants", "log", "batches", "answers", "readings", "learnt", "model_files",
    "agents", "leases",
)  # fmt: skip

CREATE_COMPARE = """
    SELECT count(*) INTO lost FROM jsonb_array_elements(changes->'nics') one LEFT JOIN nics ON nics.id = one->>0
        WHERE coalesce(nics.version, 0) <> (one->>4)::bigint;
"""
"""The compare of compare-and-set: every NIC of the batch is of the version that the agent decided on."""

CREATE_COMMIT = """
CREATE OR REPLACE FUNCTION placer_commit(me TEXT, my_epoch BIGINT, batch TEXT, known BIGINT, work TEXT, rest TEXT)
RETURNS TABLE (outcome TEXT, last BIGINT, events INTEGER, news TEXT) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    changes JSONB := work;
    more JSONB := rest;
    my_groups JSONB := changes->'groups';
    size INTEGER := jsonb_array_length(more->'log');
    verdict TEXT := 'committed';
    lost INTEGER := 0;
    base BIGINT;
BEGIN
    SELECT number INTO base FROM head FOR UPDATE;
    IF NOT EXISTS (SELECT 1 FROM agents WHERE name = me AND epoch = my_epoch) THEN
        verdict := 'fenced';
    END IF;
    IF more ? 'lease' THEN
        PERFORM 1 FROM leases WHERE name = more->'lease'->>0 AND epoch = (more->'lease'->>1)::bigint FOR SHARE;
        IF NOT FOUND THEN
            verdict := 'fenced';
        END IF;
    END IF;
{compare}
    IF EXISTS (
        SELECT 1 FROM jsonb_array_elements(changes->'nics') one JOIN nics ON nics.number = (one->>2)::bigint
        WHERE nics.id <> one->>0
    ) OR EXISTS (
        SELECT 1 FROM jsonb_array_elements(changes->'here') one JOIN tenants ON tenants.id = one->>0
        WHERE (one->>8)::int = 1
    ) OR EXISTS (
        SELECT 1 FROM jsonb_array_elements(more->'answers') one JOIN answers ON answers.name = one->>0
    ) OR EXISTS (
        SELECT 1 FROM kinds JOIN (
            SELECT (one->>1)::int AS kind, count(*) AS new FROM jsonb_array_elements(changes->'nics') one
            WHERE (one->>4)::bigint = 0 AND one->>0 = 'nic-' || (one->>2) GROUP BY 1
        ) opened USING (kind) WHERE kinds.used + opened.new > kinds.count
    ) THEN
        lost := lost + 1;
    END IF;
    IF my_groups IS NOT NULL AND EXISTS (
        SELECT 1 FROM batches b, jsonb_array_elements(b.changes::jsonb->'groups') theirs,
            jsonb_array_elements(my_groups) mine
        WHERE b.last > known AND b.events > 0 AND b.changes LIKE '%"groups"%' AND theirs = mine
    ) THEN  -- members of a group on two NICs, decided by two agents
        lost := lost + 1;
    END IF;
    IF lost > 0 AND verdict = 'committed' THEN
        verdict := 'conflict';
    END IF;
    RETURN QUERY SELECT 'news', b.last, b.events, b.changes FROM batches b WHERE b.last > known AND b.events > 0
        ORDER BY b.last;
    IF verdict = 'committed' THEN
        PERFORM placer_write(me, batch, base, size, work, changes, more);
    END IF;
    RETURN QUERY SELECT verdict, base + size, lost, NULL;
END $$;
"""

CREATE_WRITE = """
CREATE OR REPLACE FUNCTION placer_write(
    me TEXT, batch TEXT, base BIGINT, size INTEGER, work TEXT, changes JSONB, more JSONB
) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    UPDATE kinds SET used = used + opened.new FROM (
        SELECT (one->>1)::int AS kind, count(*) AS new FROM jsonb_array_elements(changes->'nics') one
        WHERE (one->>4)::bigint = 0 AND one->>0 = 'nic-' || (one->>2) GROUP BY 1
    ) opened WHERE kinds.kind = opened.kind;
    INSERT INTO nics AS n (id, kind, number, service, version, pool, domain)
        SELECT one->>0, (one->>1)::int, (one->>2)::bigint, one->>3, base + (one->>5)::bigint, one->>6, one->>7
        FROM jsonb_array_elements(changes->'nics') one
        ON CONFLICT (id) DO UPDATE SET service = excluded.service, version = excluded.version, pool = excluded.pool,
            domain = excluded.domain;
    DELETE FROM tenants WHERE id IN (SELECT jsonb_array_elements_text(changes->'gone'));
    INSERT INTO tenants AS t (
        id, nic, nf, flows, packet_size, mtbr, sla_drop, sla_min_kpps, rate_kpps, cores, latency_us, free_cores,
        constraints, priority, reserved_until, owner, labels
    )
        SELECT one->>0, one->>1, one->>2, (one->>3)::float8, (one->>4)::float8, (one->>5)::float8, (one->>6)::float8,
            (one->>7)::float8, (one->>9)::float8, (one->>10)::int, (one->>11)::float8, (one->>12)::int, one->>13,
            (one->>14)::int, (one->>15)::float8, one->>16, one->>17
        FROM jsonb_array_elements(changes->'here') one
        ON CONFLICT (id) DO UPDATE SET nic = excluded.nic, flows = excluded.flows,
            packet_size = excluded.packet_size, mtbr = excluded.mtbr, sla_drop = excluded.sla_drop,
            sla_min_kpps = excluded.sla_min_kpps, rate_kpps = excluded.rate_kpps, cores = excluded.cores,
            latency_us = excluded.latency_us, free_cores = excluded.free_cores, constraints = excluded.constraints,
            priority = excluded.priority, reserved_until = excluded.reserved_until, owner = excluded.owner,
            labels = excluded.labels;
    INSERT INTO log SELECT base + place, me, one->>0, one->>1, (one->>2)::float8, one->>3
        FROM jsonb_array_elements(more->'log') WITH ORDINALITY rows (one, place);
    INSERT INTO answers (name, digest, status, answer, version)
        SELECT one->>0, one->>1, (one->>2)::int, one->>3, base + (one->>4)::bigint
        FROM jsonb_array_elements(more->'answers') one;
    INSERT INTO readings (event, nic_model, co_location, place, tenant, throughput_kpps, offered_kpps, below_sla)
        SELECT (one->>0)::bigint, one->>1, one->>2, (one->>3)::int, one->>4, (one->>5)::float8, (one->>6)::float8,
            (one->>7)::int
        FROM jsonb_array_elements(coalesce(changes->'readings', '[]')) one;
    INSERT INTO learnt
        SELECT key, value FROM jsonb_each_text(coalesce(changes->'learnt', '{}')) WHERE value IS NOT NULL
        ON CONFLICT (name) DO UPDATE SET value = excluded.value;
    DELETE FROM learnt WHERE name IN (
        SELECT key FROM jsonb_each_text(coalesce(changes->'learnt', '{}')) WHERE value IS NULL
    );
    INSERT INTO batches VALUES (batch, base + size, size, me, work);
    UPDATE head SET number = base + size;
END $$;
"""

CREATE_LEASE = """
CREATE FUNCTION placer_lease(lease TEXT, me TEXT, seconds FLOAT8) RETURNS BIGINT LANGUAGE sql AS $$
    INSERT INTO leases AS l VALUES (lease, me, 1, now() + seconds * interval '1 second')
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires = excluded.expires,
        epoch = l.epoch + (CASE WHEN l.holder = excluded.holder AND l.expires > now() THEN 0 ELSE 1 END)
    WHERE l.holder = excluded.holder OR l.expires < now()
    RETURNING epoch
$$;

CREATE FUNCTION placer_holds(lease TEXT, lease_epoch BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM leases WHERE name = lease AND epoch = lease_epoch FOR SHARE;
    RETURN FOUND;
END $$;
"""

CREATE_BEAT = """
CREATE FUNCTION placer_beat(me TEXT, dead FLOAT8) RETURNS SETOF TEXT LANGUAGE plpgsql AS $$
BEGIN
    UPDATE agents SET seen = clock_timestamp() WHERE name = me;
    RETURN QUERY SELECT name FROM agents WHERE seen > clock_timestamp() - dead * interval '1 second' ORDER BY name;
END $$;

CREATE FUNCTION placer_prune(batches_kept BIGINT, answers_kept BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    upto BIGINT;
BEGIN
    UPDATE head SET kept = greatest(kept, number - batches_kept) RETURNING kept INTO upto;
    DELETE FROM batches WHERE last <= upto;
    DELETE FROM answers WHERE number <= (SELECT max(number) FROM answers) - answers_kept;
    DELETE FROM agents WHERE seen < clock_timestamp() - interval '1 day';
END $$;
"""


def statements() -> str:
    """All that makes an empty state."""
    functions = CREATE_COMMIT.format(compare=CREATE_COMPARE) + CREATE_WRITE + CREATE_LEASE + CREATE_BEAT
    return CREATE_TABLES.format(layout=LAYOUT_VERSION) + functions


# Makes the tables of a state, or refuses a database that holds something else.


ALIVE = "SELECT name FROM agents WHERE seen > clock_timestamp() - %s * interval '1 second'"
_ADDED_COLUMNS = {
    "log": ("time FLOAT8", "actor TEXT"),
    "nics": ("pool TEXT", "domain TEXT"),
    "tenants": (
        "rate_kpps FLOAT8", "cores INTEGER", "latency_us FLOAT8", "free_cores INTEGER", "constraints TEXT",
        "priority INTEGER", "reserved_until FLOAT8", "owner TEXT", "labels TEXT",
    ),
}  # fmt: skip
"""Columns that one of `FORMER_LAYOUTS` lacks, by table."""

SCHEMA_LOCK = 7_350_912_041  # the advisory lock of those that make a state at the same time


def make_state(connection: Connection[Any], name: str, kinds: Sequence[NicKind], existing: bool = False) -> bool:
    """Make the tables of an empty fleet in an empty database; one that has them stays as it is.

    Returns whether they were made. Raises InputError when the database holds something else, or nothing where a state
    is to be `existing`.
    """
    try:
        return bool(in_transaction(connection, lambda: _make(connection, name, kinds, existing)))
    except Error as error:
        message = str(error).splitlines()[0]
        hint = "give its user the right to create tables, or let another user begin the state"
        raise InputError.of("--state", f"{name}: no state can be made there: {message}", hint=hint) from error


def check_layout(connection: Connection[Any], name: str) -> None:
    """Refuse a state of another version of this program, or that lacks a table.

    Raises InputError with what is wrong.
    """
    if missing := sorted(set(TABLE_NAMES) - _tables(connection)):
        raise InputError.of(
            "--state", f"{name} lacks the tables of a state: {', '.join(missing)}", hint="restore a backup"
        )
    try:
        found = run(connection, "SELECT layout FROM head")
    except Error:
        found = []
    if len(found) != 1:
        raise InputError.of("--state", f"{name} is not the state of a fleet", hint="name an empty database")
    if found[0][0] != LAYOUT_VERSION:
        raise InputError.of(
            "--state",
            f"{name} is of layout {found[0][0]}, not {LAYOUT_VERSION}",
            hint="use the version of placer that made it",
        )


def keep_kinds(connection: Connection[Any], name: str, kinds: Sequence[NicKind]) -> None:
    """Write how many NICs there are of each kind; agents that run together must agree on it.

    Raises InputError when another agent that is alive was started with other counts.
    """

    def keep() -> None:
        run(connection, "SELECT number FROM head FOR UPDATE")
        known = dict(run(connection, "SELECT kind, count FROM kinds"))
        given = {kind.index: _number(kind) for kind in kinds}
        if known == given:
            return
        if run(connection, ALIVE, DEAD_SECONDS):
            hint = "start every agent with the same --fleet, or stop the others first"
            raise InputError.of("--fleet", f"{name} is used by an agent with other counts of NICs", hint=hint)
        for kind, count in given.items():
            run(connection, "UPDATE kinds SET count = %s WHERE kind = %s", count, kind)

    in_transaction(connection, keep)


def _make(connection: Connection[Any], name: str, kinds: Sequence[NicKind], existing: bool) -> bool:
    run(connection, "SELECT pg_advisory_xact_lock(%s)", SCHEMA_LOCK)
    tables = _tables(connection)
    if not tables and existing:
        hint = "restore a backup, or leave out --existing to begin with an empty fleet"
        raise InputError.of("--state", f"{name} has no state", hint=hint)
    if not tables:
        connection.execute(statements().encode())
        for fact, value in facts_of(kinds).items():
            run(connection, "INSERT INTO facts VALUES (%s, %s)", fact, value)
        for kind in kinds:
            run(connection, "INSERT INTO kinds VALUES (%s, %s, %s, 0)", kind.index, kind.model, _number(kind))
    elif not tables & {"facts", "head"}:
        raise InputError.of("--state", f"{name} holds other tables", hint="name an empty database")
    if "log_times" not in tables:  # a state of an earlier version has none
        run(connection, CREATE_MARKS)
    if tables.issuperset(TABLE_NAMES) and run(connection, "SELECT 1 FROM head WHERE layout = ANY(%s)", FORMER_LAYOUTS):
        _upgrade(connection, name)
    return not tables


def _upgrade(connection: Connection[Any], name: str) -> None:
    """Bring a state of a former layout up to date. Raises InputError while an agent of the former version uses it."""
    run(connection, "SELECT number FROM head FOR UPDATE")
    if run(connection, ALIVE, DEAD_SECONDS):
        hint = "stop all agents, then start them in this version"
        raise InputError.of("--state", f"{name} is used by an agent of an earlier version", hint=hint)
    for table, columns in _ADDED_COLUMNS.items():
        for column in columns:
            connection.execute(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {column}".encode())
    connection.execute((CREATE_COMMIT.format(compare=CREATE_COMPARE) + CREATE_WRITE).encode())
    run(connection, "UPDATE head SET layout = %s", LAYOUT_VERSION)


def _number(kind: NicKind) -> int | None:
    """How many NICs of the kind can be opened without a name; None for any number."""
    return None if kind.count is None else kind.count - len(kind.names)


def _tables(connection: Connection[Any]) -> set[str]:
    query = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
    return {table for (table,) in run(connection, query)}


# A look at a state in PostgreSQL, without being an agent.


class SharedLook(Rows):
    learns = True

    def __init__(self, name: str, connection: Connection[Any], folder: Path) -> None:
        super().__init__(connection)
        self.name = name
        self._folder = folder

    def ask(self, action: ModelAction) -> None:
        def write() -> None:
            run(self.connection, "SELECT number FROM head FOR UPDATE")  # two operators get two numbers
            name = next_asked(read_asked(self))
            run(self.connection, "INSERT INTO learnt VALUES (%s, %s)", name, json.dumps(action.as_dict(0)))

        in_transaction(self.connection, write)

    def models(self, predictor: str) -> ModelStore:
        return SharedModelStore(self._folder, predictor, lambda *statement: run(self.connection, *statement))


@contextmanager
def looking_at(address: str) -> Iterator[SharedLook]:
    """A look at the state at an address. Raises InputError when the server cannot be reached, or has no state there."""
    with open_connection(address) as connection, TemporaryDirectory(prefix="placer-models-") as folder:
        check_layout(connection, show(address))
        yield SharedLook(show(address), connection, Path(folder))
