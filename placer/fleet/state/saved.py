"""What a saved state can do, whether it is a file or in a database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

from placer.fleet.engine import Engine
from placer.fleet.events import Decision, FleetEvent
from placer.fleet.learning.ledger import ProductionReading
from placer.fleet.learning.versions import ModelStore
from placer.fleet.state.retention import Retention
from placer.fleet.state.tables import Row, Statement
from placer.model.fleet import Fleet
from placer.model.nic import Tenant


class Unreachable(OSError):
    """The state cannot be reached for now; the message says why."""


class Unwritable(Unreachable):
    """The state cannot be written for now. What was to be written is kept, and written with the next commit."""


LoggedRow = tuple[int, str, str, float | None, str | None]
"""Of an event of the log its number, the event, its answer, when it was decided on (s since 1970), and the name of the
token that sent it; None where that is not known."""

Counted = Callable[[int, int], None]  # called with the number of tenants that were read, and of all


def count_nothing(done: int, total: int) -> None:
    """A `Counted` that nobody looks at."""


class Answers(Protocol):
    """Answers by idempotency key, kept in the transaction of their event."""

    def find(self, key: str) -> KeptAnswer | None:
        """The answer to the request with this key; None for a new key."""

    def keep(self, key: str, answer: KeptAnswer) -> None:
        """Keep an answer, with the event that is recorded in the same transaction."""


class SavedState(Protocol):
    """A fleet, its queue and the log of events.

    `name`: what messages call it. `shared`, `used_elsewhere`: whether other agents may decide on the fleet, too, and
    whether one does. `fleet`, `waiting`: the fleet and its queue as they were after the last event. `readings`: what
    was measured, in order. `learnt`: what was learnt beyond that, by name. `events`: the number of the last event.
    `new`: whether the state was made just now. `log_from`: the number of the first event that is still in the log.
    `retention`: what is kept of the log; None for all.
    """

    shared: bool
    new: bool
    log_from: int
    retention: Retention | None
    fleet: Fleet
    waiting: list[Tenant]
    readings: tuple[ProductionReading, ...]
    learnt: dict[str, Any]
    events: int

    @property
    def name(self) -> str: ...

    @property
    def used_elsewhere(self) -> bool: ...

    @property
    def answers(self) -> Answers: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...

    def record(
        self, event: FleetEvent, decision: Decision, fleet: Fleet, answer: str | None = None, actor: str | None = None
    ) -> None:
        """Write what the event changed, and its answer if that is known; it is kept once committed. `actor`: the name
        of the token that sent it."""

    def write(self) -> None:
        """Hand over everything recorded, which takes the processor but does not wait for the disk."""

    def commit(self) -> None:
        """Put everything recorded on disk. Raises Unwritable where that is not possible for now."""

    def maintain(self) -> bool:
        """Check that the state is still there, and take a short step of deleting what the log need not keep.

        Returns whether there are more steps. Raises Unwritable where the state cannot be written for now.
        """

    def decide(self, engine: Engine, work: Callable[[], object]) -> None:
        """Commit what `work` decides and records; where other agents were faster, it is called again."""

    def models(self, predictor: str) -> ModelStore:
        """Where versions of the models are kept."""

    def note(self, name: str, value: object, task: str | None = None) -> bool:
        """Write a row of what is learnt, which is kept once committed.

        With a `task` it is written only while this agent does that task; returns whether it was.
        """

    def find_note(self, name: str) -> Any:
        """The value of such a row as it is now; None where there is none."""

    def list_requests(self) -> Mapping[str, Any]:
        """What operators have asked for since, by the name of the row."""

    def log(self) -> Iterator[tuple[str, str]]:
        """Every event with its answer, as JSON lines, in order."""

    def log_after(self, number: int, most: int) -> list[LoggedRow]:
        """At most so many events after one, in order."""

    def leads(self, task: str) -> bool:
        """Whether this agent does a task that only one may do: it does until another one has it."""

    def close(self) -> None:
        """Commit and close."""


# Answers that are kept by idempotency key, so that a request that is sent again gets the same answer.


MAX_KEPT_ANSWERS = 1_000_000  # answers that are kept, the newest; some GB of disk at most, and days of requests

ANSWERS_TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, digest BLOB NOT NULL, status INTEGER NOT NULL,
    answer TEXT NOT NULL
)
"""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The HTTP status and the body of an answer, and the digest of the request.

    `version`: the number of the event, which the body ends with; None where it has none, or `answer` has it already.
    """

    digest: bytes
    status: int
    answer: str
    version: int | None = None

    @property
    def text(self) -> str:
        """The body."""
        return self.answer if self.version is None else f'{self.answer[:-1]}, "version": {self.version}}}'


class KeptAnswers:
    """Answers in a state file, and those that are not committed yet.

    `begin`: begins a transaction if that is possible, which keeps every look-up from locking the file anew.
    """

    def __init__(self, file: sqlite3.Connection, begin: Callable[[], None]) -> None:
        self._file = file
        self._begin = begin
        self._written: dict[str, KeptAnswer] = {}
        self._new: dict[str, KeptAnswer] = {}

    def find(self, key: str) -> KeptAnswer | None:
        known = self._new.get(key) or self._written.get(key)
        if known is not None:
            return known
        self._begin()
        row = self._file.execute("SELECT digest, status, answer FROM answers WHERE name = ?", (key,)).fetchone()
        return None if row is None else KeptAnswer(*row)

    def keep(self, key: str, answer: KeptAnswer) -> None:
        self._new[key] = answer

    def statements(self) -> list[Statement]:
        """What writes the answers that are new since the last call; the oldest ones are given up."""
        if not self._new:
            return []
        rows: list[Row] = [(key, one.digest, one.status, one.text) for key, one in self._new.items()]
        self._written |= self._new
        self._new = {}
        return [
            ("INSERT INTO answers (name, digest, status, answer) VALUES (?, ?, ?, ?)", rows),
            ("DELETE FROM answers WHERE number <= (SELECT max(number) FROM answers) - ?", [(MAX_KEPT_ANSWERS,)]),
        ]

    def forget(self) -> None:
        """All that was written is committed."""
        self._written.clear()
