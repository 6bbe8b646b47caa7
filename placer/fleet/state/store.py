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

from placer.fleet.engine import Engine
from placer.fleet.events import Arrive, Change, Decision, Depart, FleetEvent, Learned, Lookup
from placer.fleet.learning.versions import ModelStore
from placer.fleet.protocol import Check, decision_line, event_line
from placer.fleet.state.saved import KeptAnswers
from placer.fleet.state.saved_fleet import TENANT_COLUMNS, check_tables, make_tables, read_saved_fleet, upgrade
from placer.fleet.state.saved_learning import read_asked, read_learnt, read_readings, write_learnt, write_readings
from placer.model.fleet import Fleet, Nic, NicKind, Service, Tenant
from profiles import InputError
from profiles.aside import file_aside

BACKUP_SECONDS = 60.0
"""How long an event waits for a backup that reads the file."""

DISK_FAILURES = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_NOMEM")
"""Errors that are not the fault of the file."""


class State:
    """An open state file, which no other process may open for writing; a `SavedState`.

    `path`: is made if it does not exist. `check`: lists what is wrong with the workload of a tenant, such as traffic
    outside the profiled range.

    Raises InputError when the file is something else, damaged, of another fleet, or in use.
    """

    shared = False

    def __init__(self, path: Path, kinds: Sequence[NicKind], check: Check = lambda workload: ()) -> None:
        self.path = path
        self._open = False
        self._log: list[tuple[FleetEvent, Decision, str | None]] = []
        with _refusing(path):
            if not path.exists():
                _create(path, kinds)
            # a descriptor that holds the lock of the file until it is closed
            lock = os.open(path, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                raise InputError.of(
                    str(path), "is in use by another process", hint="one service decides on a fleet"
                ) from None
            self._lock = lock
            try:
                self._file = _connect(path)
                self._file.execute("PRAGMA journal_mode = TRUNCATE")
                self._file.execute("PRAGMA synchronous = FULL")
                check_tables(self._file, str(path))
                upgrade(self._file)
                # write and undo it: some damage is only found on writing
                self._file.execute("BEGIN IMMEDIATE")
                self._file.execute("INSERT INTO log (event, answer) VALUES ('', '')")
                self._file.execute("ROLLBACK")
                self.fleet, self.waiting = read_saved_fleet(self._file, str(path), kinds, check)
                self.readings = tuple(read_readings(self._file, str(path), check))
                self.learnt = read_learnt(self._file, str(path))
                ((self.events,),) = self._file.execute("SELECT coalesce(max(number), 0) FROM log")
                written = {nic_id for (nic_id,) in self._file.execute("SELECT id FROM nics")}
                self._rows = FleetRows([nic for nic in self.fleet.all_nics() if nic.id in written])
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
        return str(self.path)

    def models(self, predictor: str) -> ModelStore:
        """As of `SavedState`: beside the file."""
        return ModelStore.beside(self.path, predictor)

    def decide(self, engine: Engine, work: Callable[[], None]) -> None:
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

    def find_note(self, name: str) -> Any:
        return self.learnt.get(name)

    def list_requests(self) -> dict[str, Any]:
        """What operators have asked for since (`ask`), by the name of the row."""
        return read_asked(self._file)

    def log(self) -> Iterator[tuple[str, str]]:
        yield from self._file.execute("SELECT event, answer FROM log ORDER BY number")

    def log_after(self, number: int, most: int) -> list[tuple[int, str, str]]:
        query = "SELECT number, event, answer FROM log WHERE number > ? ORDER BY number LIMIT ?"
        return self._file.execute(query, (number, most)).fetchall()

    @property
    def answers(self) -> KeptAnswers:
        """Answers by idempotency key, written in the transaction of their event."""
        return KeptAnswers(self._file, self._begin)

    def close(self) -> None:
        try:
            self.commit()
        finally:
            self._release()

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

    Raises InputError when there is no such state, it is damaged, or `copy` exists.
    """
    if copy.exists():
        raise InputError.of("--backup", f"{copy} exists already", hint="name a new file")
    with reading(state) as source, file_aside(copy) as aside, closing(sqlite3.connect(aside)) as target:
        source.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")
        check_tables(target, str(state))


@contextmanager
def reading(state: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a state that another process may be using.

    Raises InputError when there is no such state, or it is damaged.
    """
    if not state.is_file():
        raise InputError.of("--state", f"{state} does not exist")
    with _refusing(state), closing(_connect(state)) as file:
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


def _connect(path: Path) -> sqlite3.Connection:
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
        if getattr(error, "sqlite_errorname", "").startswith(DISK_FAILURES):
            raise
        raise InputError.of(str(path), f"is not the state of a fleet: {error}") from error
    except OSError as error:
        raise InputError.of(str(path), f"cannot be opened: {error.strerror}") from error


# Rows of a state file that events changed: noted as events come, and written together with the next commit.


WRITE_NIC = "INSERT INTO nics VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET service = excluded.service"
WRITE_TENANT = f"INSERT INTO tenants ({TENANT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
DELETE_TENANT = "DELETE FROM tenants WHERE id = ?"
TO_THE_QUEUE = "UPDATE tenants SET nic = NULL, place = (SELECT max(place) + 1 FROM tenants) WHERE id = ?"
CHANGE_TRAFFIC = "UPDATE tenants SET flows = ?, packet_size = ?, mtbr = ? WHERE id = ?"
CHANGE_SLA = "UPDATE tenants SET sla_drop = ?, sla_min_kpps = ? WHERE id = ?"

Row = tuple[object, ...]


class FleetRows:
    """Rows of NICs and tenants, with as few statements as there can be.

    `nics`: those that are in the file.
    """

    def __init__(self, nics: Sequence[Nic]) -> None:
        self._services: dict[str, Service] = {nic.id: nic.service for nic in nics}
        self._statements: list[tuple[str, list[Row]]] = []
        self._nics: list[Row] = []
        self._gone: dict[str, None] = {}
        self._here: dict[str, Row] = {}

    def note(self, event: FleetEvent, decision: Decision, fleet: Fleet) -> None:
        self._note_nics(event, decision, fleet)
        arrived = event.tenant.id if isinstance(event, Arrive) else None
        if arrived is not None and decision.status == "queued":
            self._come(event.tenant, None)  # type: ignore[union-attr]
        for move in decision.moves:
            if move.id in decision.queued:
                self._then(TO_THE_QUEUE, (move.id,))
                continue
            if move.id != arrived:
                self._leave(move.id)
            nic = fleet.nic_of(move.id)
            if nic is not None:
                self._come(nic.tenants_by_id[move.id], nic.id)
        if isinstance(event, Change):
            if event.workload is not None:
                self._then(CHANGE_TRAFFIC, (*event.workload.traffic.as_tuple(), event.id))
            if event.sla is not None:
                self._then(CHANGE_SLA, (event.sla.max_drop, event.sla.min_kpps, event.id))
        if isinstance(event, Depart) and not decision.moves:
            self._leave(event.id)

    def write(self, file: sqlite3.Connection) -> None:
        self._close()
        statements, self._statements = self._statements, []
        for statement, rows in statements:
            file.executemany(statement, rows)

    def _note_nics(self, event: FleetEvent, decision: Decision, fleet: Fleet) -> None:
        """NICs that are new, and the one that the event names: its service may have changed."""
        known = self._services
        new = [nic for move in decision.moves for nic in (move.source, move.target) if nic and nic not in known]
        named = getattr(event, "nic", None)
        for nic_id in (*new, named) if named else new:
            nic = fleet.find(nic_id)
            if nic is not None and known.get(nic_id) is not nic.service:
                known[nic_id] = nic.service
                self._nics.append((nic.id, nic.kind.index, nic.number, nic.service.value))

    def _come(self, tenant: Tenant, nic: str | None) -> None:
        sla = tenant.sla
        traffic = tenant.workload.traffic.as_tuple()
        self._here[tenant.id] = (tenant.id, nic, tenant.workload.nf, *traffic, sla.max_drop, sla.min_kpps)

    def _leave(self, tenant_id: str) -> None:
        self._here.pop(tenant_id, None)
        self._gone[tenant_id] = None

    def _then(self, statement: str, row: Row) -> None:
        """A statement that rests on the rows before it."""
        self._close()
        self._statements.append((statement, [row]))

    def _close(self) -> None:
        """Who left and came back is written where it came last."""
        for statement, rows in (
            (WRITE_NIC, self._nics),
            (DELETE_TENANT, [(identity,) for identity in self._gone]),
            (WRITE_TENANT, [*self._here.values()]),
        ):
            if rows:
                self._statements.append((statement, rows))  # type: ignore[arg-type]
        self._nics, self._gone, self._here = [], {}, {}
