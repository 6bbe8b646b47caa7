"""The state file: a fleet, its queue and the log of events in one SQLite file. A kill at any time loses nothing.

What an event changed is written in one transaction with the event and its answer; the answer is given only after the
transaction is on disk. SQLite's rollback journal is used and not its write-ahead log, so that everything that was
acknowledged is in the file itself, whatever happens to the files next to it. That costs time: a commit waits for the
disk five times, that of a write-ahead log once (20 and 4 ms where a sync takes 4 ms).

Statements are kept until they are committed: where a commit fails, as on a full disk, the next one writes them anew.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line, event_line
from placer.fleet.events import (
    Arrive,
    ArriveTogether,
    Change,
    Decision,
    Depart,
    DrainTogether,
    Expire,
    FleetEvent,
    Learned,
    Lookup,
    TakenPlace,
)
from placer.fleet.learning.versions import ModelStore
from placer.fleet.protocol import Check
from placer.fleet.state.backup import BY_STEPS, complete_restore
from placer.fleet.state.file import DISK_FAILURES, connect, lock_file, refusing
from placer.fleet.state.retention import MARK_SECONDS, STEP_EVENTS, Retention, delete_events, last_to_delete
from placer.fleet.state.saved import Counted, KeptAnswers, LoggedRow, Unwritable, count_nothing
from placer.fleet.state.saved_fleet import (
    LOAD_COLUMNS,
    TENANT_COLUMNS,
    check_tables,
    make_tables,
    place_values,
    read_saved_fleet,
    upgrade,
)
from placer.fleet.state.saved_learning import learnt_rows, read_asked, read_learnt, read_readings, reading_rows
from placer.fleet.state.tables import Row, Statement, format_constraints, format_labels, load_values
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Service, Tenant
from placer.model.nic_kind import NicKind
from profiles import InputError

PASSING_FAILURES = (*DISK_FAILURES, "SQLITE_BUSY", "SQLITE_READONLY", "SQLITE_CANTOPEN")
"""Errors of a commit that may pass: it is tried again."""

STEP_PAGES = 500  # pages by which a file is made smaller at once

FREE_PAGES, FREE_SHARE = 100, 0.2
"""Free pages that a file may have: so many, or this share of all; commits to come fill them."""

LAST_NUMBER = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'log'"
"""The number of the last event, which stays when events are deleted."""

WRITE_TIME = "INSERT OR REPLACE INTO log_times SELECT seq, ? FROM sqlite_sequence WHERE name = 'log'"


class State:
    """An open state file, which no other process may open for writing; a `SavedState`.

    `path`: is made if it does not exist, unless it is to be `existing`. `check`: lists what is wrong with the workload
    of a tenant, such as traffic outside the profiled range. `counted`: is called with how many tenants were read.

    Raises InputError when the file is missing, something else, damaged, of another fleet, or in use.
    """

    shared = False

    def __init__(
        self,
        path: Path,
        kinds: Sequence[NicKind],
        check: Check = lambda workload: (),
        *,
        existing: bool = False,
        counted: Counted = count_nothing,
    ) -> None:
        self.path = path
        self.retention: Retention | None = None
        self._pending: list[Statement] = []
        self._executed = 0
        self._log: list[tuple[FleetEvent, Decision, str | None, str | None, float]] = []
        self._taken: set[str] = set()
        with refusing(path):
            complete_restore(path)
            self.new = not path.exists()
            if self.new and existing:
                hint = "restore a backup with --restore, or leave out --existing to begin with an empty fleet"
                raise InputError.of("--state", f"{path} does not exist", hint=hint)
            if self.new:
                _create(path, kinds)
            self._lock = lock_file(path)
            try:
                self._file = connect(path)
                self._file.execute("PRAGMA journal_mode = TRUNCATE")
                self._file.execute("PRAGMA synchronous = FULL")
                check_tables(self._file, str(path))
                upgrade(self._file)
                # write and undo it: some damage is only found on writing
                self._file.execute("BEGIN IMMEDIATE")
                self._file.execute("INSERT INTO log (event, answer) VALUES ('', '')")
                self._file.execute("ROLLBACK")
                self.fleet, self.waiting = read_saved_fleet(self._file, str(path), kinds, check, counted)
                self.readings = tuple(read_readings(self._file, str(path), check))
                self.learnt = read_learnt(self._file, str(path))
                ((self._marked_at,),) = self._file.execute("SELECT coalesce(max(seconds), 0) FROM log_times")
                ((self.events,),) = self._file.execute(LAST_NUMBER)
                ((self.log_from,),) = self._file.execute("SELECT coalesce(min(number), ?) FROM log", (self.events + 1,))
                written = {nic_id for (nic_id,) in self._file.execute("SELECT id FROM nics")}
                known = (*self.fleet.all_nics(), *self.fleet.gone.values())
                self._rows = FleetRows([nic for nic in known if nic.id in written])
                self.answers = KeptAnswers(self._file, self._begin)
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

    def decide(self, engine: Engine, work: Callable[[], object]) -> None:
        work()
        self.commit()

    @property
    def used_elsewhere(self) -> bool:
        """False: no other process uses the file."""
        return False

    def leads(self, task: str) -> bool:
        """True: no other process uses the file."""
        return True

    def record(
        self, event: FleetEvent, decision: Decision, fleet: Fleet, answer: str | None = None, actor: str | None = None
    ) -> None:
        """As of `SavedState`; it is on disk once committed."""
        if isinstance(decision, Lookup):
            return
        self._rows.note(event, decision, fleet)
        if isinstance(decision, Learned):
            self._pending += [reading_rows(decision.readings), *learnt_rows(decision.rows)]
            self._taken |= decision.rows.keys()
        self._log.append((event, decision, answer, actor, time.time()))

    def write(self) -> None:
        """As of `SavedState`; where it fails, the commit does it again."""
        with suppress(Unwritable):
            self._execute()

    def commit(self) -> None:
        self._execute()
        if self._file.in_transaction:
            with self._transaction():
                self._file.execute("COMMIT")
        self._pending.clear()
        self._executed = 0
        self._taken.clear()
        self.answers.forget()

    def maintain(self) -> bool:
        """As of `SavedState`: deletes at most `STEP_EVENTS` events, or makes the file smaller by `STEP_PAGES`."""
        self._check_place()
        if self.retention is None:
            return False
        sent = 0 if self.retention.webhook is None else int(self.find_note(self.retention.webhook) or 0)
        ((last,),) = self._file.execute(LAST_NUMBER)
        upto = last_to_delete(self.retention, self._file, last, sent, time.time())
        if upto >= self.log_from:
            step = min(upto, self.log_from + STEP_EVENTS - 1)
            with self._transaction():
                delete_events(self._file, step)
                self._file.execute("COMMIT")
            self.log_from = step + 1
            return True
        return self._shrink()

    def note(self, name: str, value: object, task: str | None = None) -> bool:
        """Write a row of what is learnt; it is on disk once committed."""
        self.learnt[name] = value
        self._pending += learnt_rows({name: json.dumps(value)})
        return True

    def find_note(self, name: str) -> Any:
        return self.learnt.get(name)

    def list_requests(self) -> dict[str, Any]:
        """What operators have asked for since (`ask`), by the name of the row."""
        return {name: asked for name, asked in read_asked(self._file).items() if name not in self._taken}

    def log(self) -> Iterator[tuple[str, str]]:
        yield from self._file.execute("SELECT event, answer FROM log ORDER BY number")

    def log_after(self, number: int, most: int) -> list[LoggedRow]:
        query = "SELECT number, event, answer, time, actor FROM log WHERE number > ? ORDER BY number LIMIT ?"
        return self._file.execute(query, (number, most)).fetchall()

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
        """Begin a transaction where that is possible, unless one has begun."""
        if not self._file.in_transaction:
            with suppress(Unwritable), self._transaction():
                pass

    def _execute(self) -> None:
        """Execute what is recorded and was not executed in this transaction."""
        self._gather()
        if self._executed == len(self._pending):
            return
        with self._transaction():
            for statement, rows in self._pending[self._executed :]:
                self._file.executemany(statement, rows)
                self._executed += 1

    def _gather(self) -> None:
        """Turn what is recorded into statements."""
        log, self._log = self._log, []
        self._pending += [*self._rows.take(), *self.answers.statements()]
        if not log:
            return
        rows: list[Row] = [
            (event_line(event), answer or decision_line(event, made), at, actor)
            for event, made, answer, actor, at in log
        ]
        self._pending.append(("INSERT INTO log (event, answer, time, actor) VALUES (?, ?, ?, ?)", rows))
        now = time.time()
        if not self._marked_at <= now < self._marked_at + MARK_SECONDS:
            self._marked_at = now
            self._pending.append((WRITE_TIME, [(int(now),)]))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """A transaction, unless one has begun; what fails in it is rolled back, and executed anew later.

        Raises Unwritable where a failure may pass.
        """
        try:
            self._check_place()
            if not self._file.in_transaction:
                self._file.execute("BEGIN IMMEDIATE")
            yield
        except (sqlite3.Error, Unwritable) as error:
            self._executed = 0
            if self._file.in_transaction:
                with suppress(sqlite3.Error):
                    self._file.execute("ROLLBACK")
            if getattr(error, "sqlite_errorname", "").startswith(PASSING_FAILURES):
                raise Unwritable(f"{self.path} cannot be written: {error}") from error
            raise

    def _check_place(self) -> None:
        """Raises Unwritable where the path no longer leads to the file: what is written would be lost."""
        here = os.fstat(self._lock)
        try:
            there = self.path.stat()
        except OSError as error:
            raise Unwritable(f"{self.path} is no longer there: {error.strerror}") from error
        if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
            raise Unwritable(f"{self.path} is now another file")

    def _shrink(self) -> bool:
        """Give free pages back, some at a time; returns whether there are more."""
        (free,), (pages,), (mode,) = (
            self._file.execute(f"PRAGMA {name}").fetchone() for name in ("freelist_count", "page_count", "auto_vacuum")
        )
        if mode != BY_STEPS or free <= max(FREE_PAGES, FREE_SHARE * pages):
            return False
        with self._transaction():
            # a script is a transaction of its own; `execute` takes only the first step, which gives one page back
            self._file.executescript(f"PRAGMA incremental_vacuum({STEP_PAGES})")
        return True


def _create(path: Path, kinds: Sequence[NicKind]) -> None:
    """Make the file whole or not at all; where another process makes it at the same time, that one is kept."""
    if not path.parent.is_dir():  # a mistyped path would begin with an empty fleet
        raise InputError.of("--state", f"there is no folder {path.parent}", hint=f"make it: mkdir -p {path.parent}")
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        made = Path(folder) / path.name
        with closing(sqlite3.connect(made)) as file:
            file.execute(f"PRAGMA auto_vacuum = {BY_STEPS}")
            make_tables(file, kinds)
            file.commit()
        with suppress(FileExistsError):
            os.link(made, path)


# Rows of a state file that events changed: noted as events come, and written together with the next commit.


WRITE_NIC = """
    INSERT INTO nics VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET service = excluded.service, pool = excluded.pool, domain = excluded.domain
"""
WRITE_TENANT = f"INSERT INTO tenants ({TENANT_COLUMNS}) VALUES ({', '.join('?' * 17)})"  # noqa: S608
DELETE_TENANT = "DELETE FROM tenants WHERE id = ?"
TO_THE_QUEUE = "UPDATE tenants SET nic = NULL, place = (SELECT max(place) + 1 FROM tenants) WHERE id = ?"
CHANGE_WORKLOAD = f"UPDATE tenants SET (flows, packet_size, mtbr, {LOAD_COLUMNS}) = (?, ?, ?, ?, ?, ?, ?) WHERE id = ?"  # noqa: S608
TAKE_PLACE = "UPDATE tenants SET reserved_until = NULL WHERE id = ?"
CHANGE_SLA = "UPDATE tenants SET sla_drop = ?, sla_min_kpps = ? WHERE id = ?"


class FleetRows:
    """Rows of NICs and tenants, with as few statements as there can be.

    `nics`: those that are in the file.
    """

    def __init__(self, nics: Sequence[Nic]) -> None:
        self._known: dict[str, tuple[Service, NicKind]] = {nic.id: (nic.service, nic.kind) for nic in nics}
        self._statements: list[Statement] = []
        self._nics: list[Row] = []
        self._gone: dict[str, None] = {}
        self._here: dict[str, Row] = {}

    def note(self, event: FleetEvent, decision: Decision, fleet: Fleet) -> None:
        self._note_nics(event, decision, fleet)
        if isinstance(event, Arrive) and isinstance(decision, TakenPlace):
            self._then(TAKE_PLACE, (event.tenant.id,))
            return
        arrived = event.tenant.id if isinstance(event, Arrive) else None
        if arrived is not None and decision.status == "queued":
            self._come(event.tenant, None)  # type: ignore[union-attr]
        for tenant in event.tenants if isinstance(event, ArriveTogether) and decision.status == "queued" else ():
            self._come(tenant, None)
        if isinstance(event, Change):
            self._note_change(event, fleet)
        for move in decision.moves:
            if move.id in decision.queued:
                self._then(TO_THE_QUEUE, (move.id,))
                continue
            if move.id != arrived:
                self._leave(move.id)
            nic = fleet.nic_of(move.id)
            if nic is not None:
                self._come(nic.tenants_by_id[move.id], nic.id)
        if isinstance(event, Depart | Expire) and not decision.moves:
            self._leave(event.id)

    def take(self) -> list[Statement]:
        """What writes the rows that were noted since the last call."""
        self._close()
        statements, self._statements = self._statements, []
        return statements

    def _note_nics(self, event: FleetEvent, decision: Decision, fleet: Fleet) -> None:
        """NICs that are new, and those that the event names: their service may have changed."""
        known = self._known
        new = [nic for move in decision.moves for nic in (move.source, move.target) if nic and nic not in known]
        named = event.nics if isinstance(event, DrainTogether) else filter(None, [getattr(event, "nic", None)])
        for nic_id in (*new, *named):
            nic = fleet.find(nic_id) or fleet.gone.get(nic_id)
            if nic is not None and known.get(nic_id) != (nic.service, nic.kind):
                known[nic_id] = nic.service, nic.kind
                place = place_values(nic.kind)
                self._nics.append((nic.id, nic.kind.index, nic.number, nic.service.value, *place))

    def _note_change(self, event: Change, fleet: Fleet) -> None:
        """What an instance is after a change; on a NIC with the cores that were chosen for it, behind the others."""
        home = fleet.nic_of(event.id)
        if home is not None:
            self._leave(event.id)
            self._come(home.tenants_by_id[event.id], home.id)
            return
        if event.workload is not None:
            values = *event.workload.traffic.as_tuple(), *load_values(event.workload), None
            self._then(CHANGE_WORKLOAD, (*values, event.id))
        if event.sla is not None:
            self._then(CHANGE_SLA, (event.sla.max_drop, event.sla.min_kpps, event.id))

    def _come(self, tenant: Tenant, nic: str | None) -> None:
        sla, workload = tenant.sla, tenant.workload
        values = *workload.traffic.as_tuple(), sla.max_drop, sla.min_kpps, *load_values(workload)
        demanded = format_constraints(tenant.constraints, tenant.group)
        owned = tenant.reserved_until, tenant.owner or None, format_labels(tenant.labels)
        more = int(tenant.free_cores) or None, demanded, tenant.priority or None, *owned
        self._here[tenant.id] = (tenant.id, nic, workload.nf, *values, *more)

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
                self._statements.append((statement, rows))
        self._nics, self._gone, self._here = [], {}, {}
