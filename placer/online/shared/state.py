"""A state in PostgreSQL, on which several agents decide.

Each has a copy of the fleet in memory. A batch becomes part of the state only if no NIC of it has changed since, which
is a compare-and-set on the versions of its NICs (`agreement.py`).
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from psycopg import Connection, Error

from placer.feedback.model_store import ModelStore
from placer.model.fleet import NicKind
from placer.model.pools import WHOLE, Pool
from placer.online.engine import Engine
from placer.online.events import Decision, FleetEvent, Learned, Rebalance
from placer.online.kept_answers import KEPT
from placer.online.model_actions import RETRAINING
from placer.online.protocol import Check
from placer.online.saved import Unreachable
from placer.online.saved_fleet import read_saved_fleet
from placer.online.saved_learning import ASKED, asked_in, read_learnt
from placer.online.saved_readings import read_readings
from placer.online.shared.agreement import Agreement
from placer.online.shared.batch import BatchAnswers
from placer.online.shared.connection import Rows, in_transaction, is_lost, reopened, run, shown
from placer.online.shared.learning import brings_a_version, learn_from_others
from placer.online.shared.leases import Leases
from placer.online.shared.link import Link
from placer.online.shared.making import check_layout, keep_kinds, make_state
from placer.online.shared.models import SharedModelStore
from placer.online.shared.schema import BEAT_SECONDS, DEAD_SECONDS, KEPT_BATCHES
from profiles import InputError

PRUNED_EVERY = 300
"""Beats between removals of what is no longer needed."""


REBALANCING = "rebalance"
"""What only one agent does at a time."""


class SharedState:
    """An open state in PostgreSQL; a `SavedState`.

    Parameters
    ----------
    address
        Of a database that is empty or has a state.
    kinds, check
        As of `State`.

    Attributes
    ----------
    agent
        The name of this agent.
    agreement
        How its decisions get into the state.
    pool
        The NICs that this agent prefers.

    Raises
    ------
    InputError
        When the database cannot be opened, or holds something else or another fleet.
    """

    shared = True

    def __init__(self, address: str, kinds: Sequence[NicKind], check: Check = lambda workload: ()) -> None:
        self.name = shown(address)
        self.agent = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self.pool = WHOLE
        self._check = check
        self._link = Link(address, self.agent)
        self._asking: Connection[Any] | None = None
        self._attached: Engine | None = None
        try:
            make_state(self._link.connection, self.name, kinds)
            check_layout(self._link.connection, self.name)
            read = Rows(self._link.connection)
            in_transaction(read.connection, lambda: self._read(read, kinds), "BEGIN ISOLATION LEVEL REPEATABLE READ")
            keep_kinds(self._link.connection, self.name, kinds)
            self._link.register()
        except BaseException as error:
            lost = is_lost(self._link.connection)
            self._link.connection.close()
            if lost and isinstance(error, Exception):
                message = f"{self.name} cannot be opened: the connection was lost"
                raise InputError.of("--state", message, hint="start again when the database is there") from error
            raise
        self.agreement = Agreement(self._link, self.events)
        self.leases = Leases(self.agent, self._ask)
        self._folder = tempfile.TemporaryDirectory(prefix="placer-models-")
        self._beat_at, self._beats = 0.0, 0
        self.beat()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def up(self) -> bool:
        """Whether the database was reached last."""
        return self._link.up

    def models(self, predictor: str) -> ModelStore:
        """As of `SavedState`: in the database, and copies of what is used in a folder for temporary files."""
        store = SharedModelStore(Path(self._folder.name), predictor, self._ask)
        self.agreement.learn = partial(learn_from_others, store)
        return store

    @property
    def used_elsewhere(self) -> bool:
        """Whether another agent is alive."""
        return self.pool.agents > 1

    @property
    def answers(self) -> BatchAnswers:
        """As of `SavedState`."""
        return self.agreement.answers

    def attach(self, engine: Engine) -> None:
        """Let the engine follow from here on; its fleet is that of this state."""
        if self._attached is not engine:
            self._attached = engine
            engine.versions.since = 0
            engine.versions.load(self._versions)
            engine.fleet.belong_to(self.pool)

    def record(self, event: FleetEvent, decision: Decision, fleet: object, answer: str | None = None) -> None:
        """Take down an event of the batch under way."""
        lease = None
        if isinstance(event, Rebalance):
            lease = self.leases.held(REBALANCING)
        elif isinstance(decision, Learned) and brings_a_version(decision.rows):
            lease = self.leases.held(RETRAINING)
        self.agreement.record(event, decision, answer, lease)

    def decide(self, engine: Engine, work: Callable[[], None]) -> None:
        """As of `SavedState`."""
        self.attach(engine)
        self.agreement.decide(engine, work)

    def write(self) -> None:
        """Nothing: batches are written by their agreement."""

    def commit(self) -> None:
        """Nothing: batches are committed by their agreement, and notes at once."""

    @property
    def beat_is_due(self) -> bool:
        """Whether it is time for `beat`."""
        return time.monotonic() >= self._beat_at + BEAT_SECONDS

    def beat(self) -> None:
        """Say that this agent is alive, and learn which others are; waits for the database."""
        self._beat_at = time.monotonic()
        rows = self._link.attempt(
            lambda connection: run(connection, "SELECT placer_beat(%s, %s)", self.agent, DEAD_SECONDS)
        )
        alive = [name for (name,) in rows or ()]
        if self.agent in alive:
            self.pool = Pool(alive.index(self.agent), len(alive))
        if self._beats % PRUNED_EVERY == 0:
            self._link.attempt(lambda connection: run(connection, "SELECT placer_prune(%s, %s)", KEPT_BATCHES, KEPT))
        self._beats += 1

    def note(self, name: str, value: object, task: str | None = None) -> bool:
        """As of `SavedState`; at once, and with a task only under its lease."""
        lease = None if task is None else self.leases.held(task)
        if task is not None and lease is None:
            return False
        guard = "" if lease is None else "WHERE placer_holds(%s, %s) "
        written = self._ask(
            f"INSERT INTO learnt SELECT %s, %s {guard}"
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value RETURNING 1",
            name, json.dumps(value), *(() if lease is None else (lease.task, lease.epoch)),
        )  # fmt: skip
        if written:
            self.learnt[name] = value
        elif task is not None:
            self.leases.lose(task)
        return bool(written)

    def noted(self, name: str) -> Any:
        """As of `SavedState`."""
        rows = self._ask("SELECT value FROM learnt WHERE name = %s", name)
        return json.loads(rows[0][0]) if rows else None

    def asked(self) -> Mapping[str, Any]:
        """As of `SavedState`."""
        with suppress(Unreachable):  # it takes effect with a later measurement
            return asked_in(self._ask("SELECT name, value FROM learnt WHERE name LIKE %s", f"{ASKED}%"))
        return {}

    def log(self) -> Iterator[tuple[str, str]]:
        """As of `SavedState`."""
        number = 0
        while rows := self.log_after(number, 10_000):
            yield from ((event, answer) for _, event, answer in rows)
            number = rows[-1][0]

    def log_after(self, number: int, most: int) -> list[tuple[int, str, str]]:
        """As of `SavedState`."""
        query = "SELECT number, event, answer FROM log WHERE number > %s ORDER BY number LIMIT %s"
        return [(at, event, answer) for at, event, answer in self._ask(query, number, most)]

    def leads(self, task: str) -> bool:
        """As of `SavedState`."""
        try:
            return self.leases.take(task) is not None
        except Unreachable:
            return False

    def end(self) -> None:
        """Try no longer to reach a database that is gone."""
        self._link.end()

    def close(self) -> None:
        """As of `SavedState`."""
        self._link.close()
        if self._asking is not None:
            self._asking.close()
        self._folder.cleanup()

    def _ask(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """What a statement outside of batches returns, over a connection of its own.

        Raises
        ------
        Unreachable
            When the database cannot be reached.
        """
        for _ in range(2):
            try:
                if self._asking is None:
                    self._asking = reopened(self._link.address)
                return run(self._asking, statement, *values)
            except Error:
                if self._asking is not None and not is_lost(self._asking):
                    raise
                self._asking = None
        raise Unreachable

    def _read(self, tables: Rows, kinds: Sequence[NicKind]) -> None:
        """Everything, as it was after one event."""
        ((self.events,),) = tables.execute("SELECT number FROM head")
        self.fleet, self.waiting = read_saved_fleet(tables, self.name, kinds, self._check)
        self.readings = tuple(read_readings(tables, self.name, self._check))
        self.learnt = read_learnt(tables, self.name)
        self._versions: dict[str, int] = dict(tables.execute("SELECT id, version FROM nics"))
