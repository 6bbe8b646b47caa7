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

from placer.fleet.engine import Engine
from placer.fleet.events import Decision, FleetEvent, Learned, Rebalance
from placer.fleet.learning.actions import ActionKind
from placer.fleet.learning.versions import ModelStore
from placer.fleet.protocol import Check
from placer.fleet.state.model_actions import RETRAINING_TASK, RecordedActions
from placer.fleet.state.postgres import schema
from placer.fleet.state.postgres.agreement import Agreement
from placer.fleet.state.postgres.batch import BatchAnswers, Lease
from placer.fleet.state.postgres.connection import Link, Rows, in_transaction, is_lost, reopen, run, show
from placer.fleet.state.postgres.models import SharedModelStore
from placer.fleet.state.retention import MARK_SECONDS, STEP_EVENTS, Retention, delete_events, last_to_delete
from placer.fleet.state.saved import MAX_KEPT_ANSWERS, Counted, LoggedRow, Unreachable, count_nothing
from placer.fleet.state.saved_fleet import read_saved_fleet
from placer.fleet.state.saved_learning import (
    ASKED_PREFIX,
    read_learnt,
    read_readings,
    reading_of,
    recorded_actions,
    requests_in,
)
from placer.model.nic_kind import NicKind
from placer.model.pools import WHOLE_POOL, Pool
from profiles import InputError

PRUNED_EVERY = 300  # beats between removals of what is no longer needed


REBALANCING_TASK, COMPACTION_TASK = "rebalance", "compaction"

BEAT_EVENTS = 4 * STEP_EVENTS  # events that are deleted at most per beat

NOTE_TIME = """
    INSERT INTO log_times SELECT number, %s FROM head
    WHERE number > 0 AND NOT EXISTS (SELECT 1 FROM log_times WHERE seconds > %s) ON CONFLICT DO NOTHING
"""


class SharedState:
    """An open state in PostgreSQL; a `SavedState`.

    `address`: of a database that is empty or has a state. `kinds`, `check`, `existing`, `counted`: as of `State`.
    `agreement`: how its decisions get into the state. `pool`: the NICs that this agent prefers. `retention`: what is
    kept of the log; None for all.

    Raises InputError when the database cannot be opened, or holds something else or another fleet.
    """

    shared = True

    def __init__(
        self,
        address: str,
        kinds: Sequence[NicKind],
        check: Check = lambda workload: (),
        *,
        existing: bool = False,
        counted: Counted = count_nothing,
    ) -> None:
        self.name = show(address)
        self.retention: Retention | None = None
        self.agent = f"{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        self.pool = WHOLE_POOL
        self._check, self._counted = check, counted
        self._link = Link(address, self.agent)
        self._asking: Connection[Any] | None = None
        self._attached: Engine | None = None
        try:
            self.new = schema.make_state(self._link.connection, self.name, kinds, existing)
            schema.check_layout(self._link.connection, self.name)
            read = Rows(self._link.connection)
            in_transaction(read.connection, lambda: self._read(read, kinds), "BEGIN ISOLATION LEVEL REPEATABLE READ")
            schema.keep_kinds(self._link.connection, self.name, kinds)
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

    def when_lost(self, report: Callable[[], object]) -> None:
        """Call `report` when the connection is found lost, in the thread that finds it."""
        self._link.lost = report

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
        return self.agreement.answers

    def attach(self, engine: Engine) -> None:
        """Let the engine follow from here on; its fleet is that of this state."""
        if self._attached is not engine:
            self._attached = engine
            engine.versions.since = 0
            engine.versions.load(self._versions)
            engine.fleet.belong_to(self.pool)

    def record(
        self, event: FleetEvent, decision: Decision, fleet: object, answer: str | None = None, actor: str | None = None
    ) -> None:
        """Take down an event of the batch under way."""
        lease = None
        if isinstance(event, Rebalance):
            lease = self.leases.find_lease(REBALANCING_TASK)
        elif isinstance(decision, Learned) and brings_a_version(decision.rows):
            lease = self.leases.find_lease(RETRAINING_TASK)
        self.agreement.record(event, decision, answer, lease, actor)

    def decide(self, engine: Engine, work: Callable[[], object]) -> None:
        self.attach(engine)
        self.agreement.decide(engine, work)

    def write(self) -> None:
        """Nothing: batches are written by their agreement."""

    def commit(self) -> None:
        """Nothing: batches are committed by their agreement, and notes at once."""

    def maintain(self) -> bool:
        """Nothing: `beat` does it."""
        return False

    @property
    def beat_is_due(self) -> bool:
        return time.monotonic() >= self._beat_at + schema.BEAT_SECONDS

    def beat(self) -> None:
        """Say that this agent is alive, learn which others are, and delete what the log need not keep.

        It waits for the database.
        """
        self._beat_at = time.monotonic()
        rows = self._link.attempt(
            lambda connection: run(connection, "SELECT placer_beat(%s, %s)", self.agent, schema.DEAD_SECONDS)
        )
        alive = [name for (name,) in rows or ()]
        if self.agent in alive:
            self.pool = Pool(alive.index(self.agent), len(alive))
        if self._beats % PRUNED_EVERY == 0:
            self._link.attempt(
                lambda connection: run(connection, "SELECT placer_prune(%s, %s)", schema.KEPT_BATCHES, MAX_KEPT_ANSWERS)
            )
        self._link.attempt(self._keep_log)
        self._beats += 1

    def _keep_log(self, connection: Connection[Any]) -> None:
        """Note now and then which event was the last at which time, and delete some events that are not kept."""
        now = time.time()
        run(connection, NOTE_TIME, int(now), int(now) - MARK_SECONDS)
        ((last, first),) = run(connection, "SELECT number, (SELECT min(log.number) FROM log) FROM head")
        self.log_from = last + 1 if first is None else first
        if self.retention is None or first is None or not self.leads(COMPACTION_TASK):
            return
        sent = run(connection, "SELECT value FROM learnt WHERE name = %s", self.retention.webhook)
        upto = last_to_delete(self.retention, Rows(connection), last, int(json.loads(sent[0][0])) if sent else 0, now)
        step = min(upto, first + BEAT_EVENTS - 1)
        if step >= first:
            in_transaction(connection, lambda: delete_events(Rows(connection), step))
            self.log_from = step + 1

    def note(self, name: str, value: object, task: str | None = None) -> bool:
        """As of `SavedState`; at once, and with a task only under its lease."""
        lease = None if task is None else self.leases.find_lease(task)
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

    def find_note(self, name: str) -> Any:
        rows = self._ask("SELECT value FROM learnt WHERE name = %s", name)
        return json.loads(rows[0][0]) if rows else None

    def list_requests(self) -> Mapping[str, Any]:
        with suppress(Unreachable):  # it takes effect with a later measurement
            return requests_in(self._ask("SELECT name, value FROM learnt WHERE name LIKE %s", f"{ASKED_PREFIX}%"))
        return {}

    def log(self) -> Iterator[tuple[str, str]]:
        number = 0
        while rows := self.log_after(number, 10_000):
            yield from ((event, answer) for _, event, answer, *_ in rows)
            number = rows[-1][0]

    def log_after(self, number: int, most: int) -> list[LoggedRow]:
        query = "SELECT number, event, answer, time, actor FROM log WHERE number > %s ORDER BY number LIMIT %s"
        return [(at, event, answer, when, actor) for at, event, answer, when, actor in self._ask(query, number, most)]

    def leads(self, task: str) -> bool:
        try:
            return self.leases.take(task) is not None
        except Unreachable:
            return False

    def end(self) -> None:
        """Try no longer to reach a database that is gone."""
        self._link.end()

    def close(self) -> None:
        self._link.close()
        if self._asking is not None:
            self._asking.close()
        self._folder.cleanup()

    def _ask(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """What a statement outside of batches returns, over a connection of its own.

        Raises Unreachable when the database cannot be reached.
        """
        for _ in range(2):
            try:
                if self._asking is None:
                    self._asking = reopen(self._link.address)
                return run(self._asking, statement, *values)
            except Error:
                if self._asking is not None and not is_lost(self._asking):
                    raise
                self._asking = None
        raise Unreachable("the database cannot be reached")

    def _read(self, tables: Rows, kinds: Sequence[NicKind]) -> None:
        """Everything, as it was after one event."""
        ((self.events,),) = tables.execute("SELECT number FROM head")
        self.log_from = self.events + 1
        self.fleet, self.waiting = read_saved_fleet(tables, self.name, kinds, self._check, self._counted)
        self.readings = tuple(read_readings(tables, self.name, self._check))
        self.learnt = read_learnt(tables, self.name)
        self._versions: dict[str, int] = dict(tables.execute("SELECT id, version FROM nics"))


# Leases: who does what only one agent may do. Each new holder gets a higher epoch, and writes only with it.
#
# An agent that was stopped, and does not know yet that its time is over, still has its former epoch: what it writes
# with
# that is refused.


LEASE_SECONDS = 15.0  # how long a lease lasts; it is prolonged when a third of that has passed

Ask = Callable[..., list[tuple[Any, ...]]]


class Leases:
    """Those of one agent."""

    def __init__(self, agent: str, ask: Ask) -> None:
        self._agent = agent
        self._ask = ask
        self._held: dict[str, tuple[Lease, float]] = {}

    def take(self, task: str) -> Lease | None:
        """The lease of a task, taken or prolonged; None while another agent has it."""
        lease, since = self._held.get(task, (None, 0.0))
        now = time.monotonic()
        if lease is not None and now < since + LEASE_SECONDS / 3:
            return lease
        ((epoch,),) = self._ask("SELECT placer_lease(%s, %s, %s)", task, self._agent, LEASE_SECONDS)
        if epoch is None:
            self.lose(task)
            return None
        taken = Lease(task, epoch)
        self._held[task] = taken, now
        return taken

    def find_lease(self, task: str) -> Lease | None:
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


# What other agents have learnt: the same readings and actions lead to the same predictions everywhere.


def learn_from_others(
    store: ModelStore, engine: Engine, rows: Sequence[Sequence[Any]], learnt: Mapping[str, str | None]
) -> None:
    """Learn what another agent has measured, with the actions on models that it took with it.

    `learnt`: what the agent recorded, by name.
    """
    feedback = engine.feedback
    if feedback is None:
        return
    recorded = recorded_actions({name: json.loads(value) for name, value in learnt.items() if value is not None})
    live, drifts = feedback.actions, len(feedback.drifts)
    feedback.actions = RecordedActions(recorded, store, list(feedback.oracles))
    try:
        feedback.restore(map(reading_of, rows))
    finally:
        feedback.actions = live
    engine.follow_readings(drifted=len(feedback.drifts) > drifts)


def brings_a_version(learnt: Mapping[str, str | None]) -> bool:
    """Whether a retrained version came with a measurement."""
    actions = recorded_actions({name: json.loads(value) for name, value in learnt.items() if value is not None})
    return any(action.kind is ActionKind.CANARY for some in actions.values() for action in some)
