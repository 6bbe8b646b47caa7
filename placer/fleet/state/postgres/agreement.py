"""How an agent brings its decisions into the state: follow, decide in memory, compare-and-set, and again where it lost.

The methods that wait for the database (`fetch`, `commit`) may run in another thread; those that touch the engine run
where the engine is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from psycopg import Connection

from placer.fleet.engine import Engine
from placer.fleet.events import Decision, FleetEvent, Lookup
from placer.fleet.state.postgres.batch import BatchAnswers, EventBatch, ForeignBatch, Learn, Lease, News, follow
from placer.fleet.state.postgres.connection import Link, run
from placer.fleet.state.saved import KeptAnswer

LONGEST_HOLD_MS = 20_000  # how long others wait for an agent that has the whole fleet to itself, and then was stopped

OPTIMISTIC_ATTEMPTS = 3
"""Attempts before an agent takes the whole fleet to itself, so that it is never overtaken for ever."""

SELECT_NEWS = "SELECT last, events, id, changes, NULL, NULL FROM batches WHERE last > %s AND events > 0"
WITH_KEYS = (
    f"{SELECT_NEWS} UNION ALL SELECT version, NULL, name, digest, status, answer FROM answers WHERE name = ANY(%s)"  # noqa: S608
)


class Behind(Exception):
    """This agent cannot go on with the fleet that it has in memory, and has to start again."""


class Agreement:
    """The batches of one agent, one at a time.

    `known`: the number of the last event that the engine knows. `conflicts`, `repeated`, `followed`: NICs that another
    agent had changed in between; decisions that were made again for that; events of others that were followed. `alone`:
    whether the batch under way has the whole fleet to itself. `answers`: kept by key.
    """

    def __init__(self, link: Link, known: int) -> None:
        self.link = link
        self.known = known
        self.conflicts = self.repeated = self.followed = 0
        self.alone = False
        self.answers = BatchAnswers()
        self.learn: Learn | None = None
        self._batch: EventBatch | None = None
        self._work: tuple[str, str] | None = None
        self._outcome: tuple[int | None, Sequence[ForeignBatch]] = (None, ())

    def fetch(self, keys: Sequence[str] = (), *, alone: bool = False) -> News:
        """What others have committed, and the answers to these keys.

        `alone`: nobody else commits until this batch is, so that it can be about the whole fleet.
        """
        while True:
            found = self.link.attempt(lambda connection: self._fetch(connection, keys, alone))
            if found is not None:
                return found

    def begin(self, engine: Engine, news: News, *, alone: bool = False) -> None:
        """Follow the others, and take down what is decided from here on."""
        self.alone = alone
        self.follow(engine, news.batches)
        self.answers.found = news.answers or {}
        journal = engine.fleet.begin_journal()
        engine.versions.begin()
        self._batch = self.answers.batch = EventBatch(engine.events, journal, dict(engine.waiting))

    def record(
        self,
        event: FleetEvent,
        decision: Decision,
        answer: str | None = None,
        lease: Lease | None = None,
        actor: str | None = None,
    ) -> None:
        """Take down what was decided on an event of the batch."""
        assert self._batch is not None
        if not isinstance(decision, Lookup):
            self._batch.record(event, decision, answer, actor)
            self._batch.lease = lease or self._batch.lease

    def seal(self, engine: Engine) -> None:
        """Nothing more comes into the batch."""
        assert self._batch is not None
        self._work = None if self._batch.empty else (self._batch.changes(engine), self._batch.rest())

    def commit(self) -> None:
        """Write the batch; `finish` says what came of it."""
        assert self._batch is not None
        if self._work is None:
            self._outcome = self._batch.base, ()
            if self.alone:
                self.link.attempt(lambda connection: run(connection, "ROLLBACK"))
            return
        found = self.link.attempt(self._commit)
        while found is None:  # the connection was lost: has it been committed before?
            found = self.link.attempt(self._commit_again if self._batch.readings else self._look_up)
        self._outcome = found

    def finish(self, engine: Engine) -> int | None:
        """What numbers of the batch are to be raised by; None where another agent was faster, and nothing was written.

        Then the engine is as before the batch, with what the other agent did.
        """
        batch, (last, news) = self._batch, self._outcome
        assert batch is not None
        self._batch = self.answers.batch = None
        engine.fleet.journal = None
        if last is None:
            self._take_back(engine, batch)
            self.follow(engine, news)
            return None
        self.follow(engine, news)
        shift = last - len(batch.log) - batch.base
        engine.versions.shift(shift)
        engine.events = self.known = last
        return shift

    def follow(self, engine: Engine, batches: Sequence[ForeignBatch]) -> None:
        """Let the engine know what others have done, between its own batches."""
        known = self.known
        for batch in batches:
            if batch.last - batch.events != known:
                raise Behind("what others have done is no longer kept: start the service again")
            known = batch.last
        if batches:
            self.followed += follow(engine, batches, self.learn)
            self.known = engine.events

    def abandon(self, engine: Engine) -> None:
        """Take the batch back before it is written, because it needs the whole fleet."""
        batch = self._batch
        assert batch is not None
        self._batch = self.answers.batch = None
        engine.fleet.journal = None
        self._take_back(engine, batch)

    def decide(self, engine: Engine, decide: Callable[[], object]) -> None:
        """Decide on a batch and commit it, as often as it takes; waits for the database."""
        for attempt in count(1):
            alone = attempt > OPTIMISTIC_ATTEMPTS
            self.begin(engine, self.fetch(alone=alone), alone=alone)
            decide()
            self.seal(engine)
            self.commit()
            if self.finish(engine) is not None:
                return

    def _fetch(self, connection: Connection[Any], keys: Sequence[str], alone: bool) -> News:
        if alone:
            run(connection, "BEGIN")
            run(connection, f"SET LOCAL idle_in_transaction_session_timeout = {LONGEST_HOLD_MS}")
            run(connection, "SELECT number FROM head FOR UPDATE")
        rows = run(connection, WITH_KEYS, self.known, list(keys)) if keys else run(connection, SELECT_NEWS, self.known)
        answers = {
            name: KeptAnswer(bytes.fromhex(digest), status, KeptAnswer(b"", status, answer, last).text)
            for last, events, name, digest, status, answer in rows
            if events is None
        }
        found = sorted((row[:2] + row[3:4] for row in rows if row[1] is not None), key=_first)
        return News([ForeignBatch(*row) for row in found], answers)

    def _commit(self, connection: Connection[Any]) -> tuple[int | None, Sequence[ForeignBatch]]:
        assert self._batch is not None and self._work is not None
        rows = run(
            connection, "SELECT * FROM placer_commit(%s, %s, %s, %s, %s, %s)",
            self.link.agent, self.link.epoch, self._batch.id, self._batch.base, *self._work,
        )  # fmt: skip
        *news, (outcome, last, lost, _) = rows
        self.conflicts += lost
        if self.alone:
            run(connection, "COMMIT")
        if outcome == "fenced":
            self.link.register()
        elif outcome == "conflict" and self.alone:
            raise Behind("the fleet in memory is not that of the state: start the service again")
        found = [ForeignBatch(last, events, changes) for _, last, events, changes in news]
        return last if outcome == "committed" else None, found

    def _look_up(self, connection: Connection[Any]) -> tuple[int | None, Sequence[ForeignBatch]]:
        """Whether the batch was committed before the connection was lost; it will not be any more."""
        assert self._batch is not None
        rows = run(connection, "SELECT last FROM batches WHERE id = %s", self._batch.id)
        if not rows:
            return None, ()
        last: int = rows[0][0]
        query = f"{SELECT_NEWS} AND last < %s ORDER BY last"
        news = [ForeignBatch(row[0], row[1], row[3]) for row in run(connection, query, self._batch.base, last)]
        return last, news

    def _commit_again(self, connection: Connection[Any]) -> tuple[int | None, Sequence[ForeignBatch]]:
        """The same batch once more, unless it was committed or others came first: what was learnt is not unlearnt."""
        assert self._batch is not None
        run(connection, "BEGIN")
        ((number,),) = run(connection, "SELECT number FROM head FOR UPDATE")
        if number == self._batch.base:
            found = self._commit(connection)
            if not self.alone:
                run(connection, "COMMIT")
            return found
        run(connection, "ROLLBACK")
        return self._look_up(connection)

    def _take_back(self, engine: Engine, batch: EventBatch) -> None:
        if batch.readings:
            raise Behind("others came first while the database was lost, and something was learnt: start again")
        self.repeated += len(batch.log)
        batch.journal.take_back()
        engine.versions.take_back()
        engine.waiting.clear()
        engine.waiting.update(batch.waiting)
        engine.events = batch.base


def _first(row: tuple[Any, ...]) -> Any:
    return row[0]
