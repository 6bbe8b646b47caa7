"""The state file: a fleet, its queue and the log of events in one SQLite file. A kill at any time loses nothing.

What an event changed is written in one transaction with the event and its answer; the answer is given only after the
transaction is on disk. SQLite's rollback journal is used and not its write-ahead log, so that everything that was
acknowledged is in the file itself, whatever happens to the files next to it.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

from placer.feedback.model_store import ModelStore
from placer.model.fleet import Fleet, NicKind
from placer.online.engine import Engine
from placer.online.events import Decision, FleetEvent, Learned, Lookup
from placer.online.fleet_rows import FleetRows
from placer.online.kept_answers import KeptAnswers
from placer.online.protocol import Check, decision_line, event_line
from placer.online.saved_fleet import check_tables, make_tables, read_saved_fleet, upgrade
from placer.online.saved_learning import read_asked, read_learnt, write_learnt
from placer.online.saved_readings import read_readings, write_readings
from profiles import InputError
from profiles.aside import file_aside

BACKUP_SECONDS = 60.0
"""How long an event waits for a backup that reads the file."""

FAILURES = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_NOMEM")
"""Errors that are not the fault of the file."""


class State:
    """An open state file, which no other process may open for writing; a `SavedState`.

    Parameters
    ----------
    path
        Is made if it does not exist.
    kinds
        The kinds of the fleet.
    check
        Lists what is wrong with the workload of a tenant, such as traffic outside the profiled range.

    Attributes
    ----------
    fleet, waiting
        The fleet and its queue as they were after the last event in the file.
    readings
        What was measured, in order.
    learnt
        What was learnt beyond that, by name.
    events
        The number of the last event.

    Raises
    ------
    InputError
        When the file is something else, damaged, of another fleet, or in use.
    """

    shared = False

    def __init__(self, path: Path, kinds: Sequence[NicKind], check: Check = lambda workload: ()) -> None:
        self.path = path
        self._open = False
        self._log: list[tuple[FleetEvent, Decision, str | None]] = []
        with _refusing(path):
            if not path.exists():
                _create(path, kinds)
            self._lock = _locked(path)
            try:
                self._file = _connected(path)
                self._file.execute("PRAGMA journal_mode = TRUNCATE")
                self._file.execute("PRAGMA synchronous = FULL")
                check_tables(self._file, str(path))
                upgrade(self._file)
                self._refuse_unwritable()
                self.fleet, self.waiting = read_saved_fleet(self._file, str(path), kinds, check)
                self.readings = tuple(read_readings(self._file, str(path), check))
                self.learnt = read_learnt(self._file, str(path))
                ((self.events,),) = self._file.execute("SELECT coalesce(max(number), 0) FROM log")
                self._rows = FleetRows(list(self.fleet.all_nics()))
            except BaseException:
                self._release()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self._release()

    @property
    def name(self) -> str:
        """As of `SavedState`."""
        return str(self.path)

    def models(self, predictor: str) -> ModelStore:
        """As of `SavedState`: beside the file."""
        return ModelStore.beside(self.path, predictor)

    def decide(self, engine: Engine, work: Callable[[], None]) -> None:
        """As of `SavedState`."""
        work()
        self.commit()

    @property
    def used_elsewhere(self) -> bool:
        """False: no other process uses the file."""
        return False

    def leads(self, task: str) -> bool:
        """True: no other process uses the file."""
        return True

    def record(self, event: FleetEvent, decision: Decision, fleet: Fleet, answer: str | None = None) -> None:
        """Note what the event changed, and its answer if that is known; it is on disk once committed."""
        if isinstance(decision, Lookup):
            return
        self._rows.note(event, decision, fleet)
        if isinstance(decision, Learned):
            self._begin()
            write_readings(self._file, decision.readings)
            write_learnt(self._file, decision.rows)
        self._log.append((event, decision, answer))

    def write(self) -> None:
        """As of `SavedState`."""
        if not self._log:
            return
        self._begin()
        self._rows.write(self._file)
        log, self._log = self._log, []
        self._file.executemany(
            "INSERT INTO log (event, answer) VALUES (?, ?)",
            [(event_line(event), answer or decision_line(event, decision)) for event, decision, answer in log],
        )

    def commit(self) -> None:
        """Put everything recorded on disk."""
        self.write()
        if self._open:
            self._file.execute("COMMIT")
            self._open = False

    def note(self, name: str, value: object, task: str | None = None) -> bool:
        """Write a row of what is learnt; it is on disk once committed."""
        self._begin()
        self.learnt[name] = value
        write_learnt(self._file, {name: json.dumps(value)})
        return True

    def noted(self, name: str) -> Any:
        """As of `SavedState`."""
        return self.learnt.get(name)

    def asked(self) -> dict[str, Any]:
        """What operators have asked for since (`ask`), by the name of the row."""
        return read_asked(self._file)

    def log(self) -> Iterator[tuple[str, str]]:
        """Every event with its answer, as JSON lines, in order."""
        yield from self._file.execute("SELECT event, answer FROM log ORDER BY number")

    def log_after(self, number: int, most: int) -> list[tuple[int, str, str]]:
        """The number, event and answer of at most so many events after one, in order."""
        query = "SELECT number, event, answer FROM log WHERE number > ? ORDER BY number LIMIT ?"
        return self._file.execute(query, (number, most)).fetchall()

    @property
    def answers(self) -> KeptAnswers:
        """Answers by idempotency key, written in the transaction of their event."""
        return KeptAnswers(self._file, self._begin)

    def close(self) -> None:
        """Commit and close."""
        try:
            self.commit()
        finally:
            self._release()

    def _refuse_unwritable(self) -> None:
        """Write and undo it: some damage is only found on writing."""
        self._file.execute("BEGIN IMMEDIATE")
        self._file.execute("INSERT INTO log (event, answer) VALUES ('', '')")
        self._file.execute("ROLLBACK")

    def _release(self) -> None:
        """Close without a commit."""
        if hasattr(self, "_file"):
            self._file.close()
        os.close(self._lock)

    def _begin(self) -> None:
        if not self._open:
            self._file.execute("BEGIN IMMEDIATE")
            self._open = True


def back_up(state: Path, copy: Path) -> None:
    """Copy a state as it is after its last event, also while another process uses it.

    Raises
    ------
    InputError
        When there is no such state, it is damaged, or `copy` exists.
    """
    if copy.exists():
        raise InputError.of("--backup", f"{copy} exists already", hint="name a new file")
    with (
        reading(state) as source,
        file_aside(copy) as aside,
        closing(sqlite3.connect(aside)) as target,
    ):
        source.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")
        check_tables(target, str(state))


@contextmanager
def reading(state: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a state that another process may be using.

    Raises
    ------
    InputError
        When there is no such state, or it is damaged.
    """
    if not state.is_file():
        raise InputError.of("--state", f"{state} does not exist")
    with _refusing(state), closing(_connected(state)) as file:
        check_tables(file, str(state))
        yield file


def _create(path: Path, kinds: Sequence[NicKind]) -> None:
    """Make the file whole or not at all; where another process makes it at the same time, that one is kept."""
    if not path.parent.is_dir():  # a mistyped path would begin with an empty fleet
        raise InputError.of("--state", f"there is no folder {path.parent}", hint=f"make it: mkdir -p {path.parent}")
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        made = Path(folder) / path.name
        with closing(sqlite3.connect(made)) as file:
            make_tables(file, kinds)
            file.commit()
        with suppress(FileExistsError):
            os.link(made, path)


def _locked(path: Path) -> int:
    """A descriptor that holds the lock of the file until it is closed."""
    lock = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise InputError.of(str(path), "is in use by another process", hint="one service decides on a fleet") from None
    return lock


def _connected(path: Path) -> sqlite3.Connection:
    """A connection to an existing file; text that is not UTF-8 is read as unprintable."""
    file = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=BACKUP_SECONDS,
        check_same_thread=False,
    )  # fmt: skip
    file.text_factory = lambda raw: raw.decode(errors="surrogateescape")
    return file


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Refuse a file that cannot be opened or that SQLite cannot read; a full disk stays a failure."""
    try:
        yield
    except UnicodeDecodeError as error:  # the message of SQLite quotes damaged text
        message = error.object.decode(errors="replace")
        raise InputError.of(str(path), f"is not the state of a fleet: {message}") from error
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorname", "").startswith(FAILURES):
            raise
        raise InputError.of(str(path), f"is not the state of a fleet: {error}") from error
    except OSError as error:
        raise InputError.of(str(path), f"cannot be opened: {error.strerror}") from error
