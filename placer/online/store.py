"""State: a fleet, those who wait, and the log of events, in one SQLite file; a kill between two events loses nothing.

Whatever an event changed is written in one transaction with the event and its answer; an answer is given only after
the transaction is on disk.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from placer.model.fleet import Fleet, Nic, NicKind, Service, Tenant
from placer.model.sla import Sla
from placer.online.events import Answer, Arrive, Change, Event, Move
from placer.online.protocol import answer_line, event_line
from profiles import InputError, TrafficProfile, Workload

FORMAT = "1"

SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE nics (id TEXT PRIMARY KEY, kind INTEGER NOT NULL, number INTEGER NOT NULL, service TEXT NOT NULL);
CREATE TABLE tenants (
    place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, nic TEXT REFERENCES nics(id), nf TEXT NOT NULL,
    flows REAL NOT NULL, packet_size REAL NOT NULL, mtbr REAL NOT NULL, sla_drop REAL, sla_min_kpps REAL
);
CREATE TABLE log (number INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT NOT NULL, answer TEXT NOT NULL);
"""

_TENANT = "id, nic, nf, flows, packet_size, mtbr, sla_drop, sla_min_kpps"


class State:
    """The file.

    Parameters
    ----------
    path
        Made when it does not exist.
    kinds
        The fleet's kinds; a file of another fleet is refused.

    Raises
    ------
    InputError
        When the file is something else, of another fleet, or in use.
    """

    def __init__(self, path: Path, kinds: Sequence[NicKind]) -> None:
        self.path = path
        self.kinds = tuple(kinds)
        self._open = False
        try:
            self._file = sqlite3.connect(path, isolation_level=None, timeout=2.0)
            # nobody else may decide on the same fleet
            self._file.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = FULL")
            self._begin()
            self._agree()
            self.commit()
        except sqlite3.OperationalError as error:
            raise InputError.of(str(path), f"cannot be opened: {error}", hint="is it in use?") from error
        except sqlite3.DatabaseError as error:
            raise InputError.of(str(path), f"is no state of a fleet: {error}") from error

    def fleet(self) -> tuple[Fleet, list[Tenant]]:
        """The fleet as it was after the last event, and those who wait."""
        fleet, waiting = Fleet(self.kinds), []
        housed: dict[str, list[Tenant]] = {}
        for nic_id, tenant in self._tenants():
            if nic_id is None:
                waiting.append(tenant)
            else:
                housed.setdefault(nic_id, []).append(tenant)
        rows = self._file.execute("SELECT id, kind, number, service FROM nics ORDER BY number")
        for nic_id, kind, number, service in rows.fetchall():
            nic = Nic(nic_id, self.kinds[kind], number)
            nic.service = Service(service)
            fleet.adopt(nic, housed.get(nic_id, []))
        return fleet, waiting

    def record(self, event: Event, answer: Answer, fleet: Fleet) -> None:
        """Write what the event changed; on disk once committed."""
        self._begin()
        self._write_nics(event, answer, fleet)
        if isinstance(event, Arrive) and answer.status == "queued":
            self._insert(event.tenant, None)
        for move in answer.moves:
            if move.id in answer.queued:
                self._enqueue(move.id)
            else:
                self._write_move(move, fleet)
        if isinstance(event, Change):
            self._update(event)
        if answer.status == "left" and not answer.moves:
            self._delete(event.id)  # type: ignore[union-attr]
        for tenant_id in answer.rejected:
            self._delete(tenant_id)
        self._file.execute(
            "INSERT INTO log (event, answer) VALUES (?, ?)", (event_line(event), answer_line(event, answer))
        )

    def commit(self) -> None:
        """Put everything recorded on disk."""
        if self._open:
            self._file.execute("COMMIT")
            self._open = False

    def log(self) -> Iterator[tuple[str, str]]:
        """Every event with its answer, as JSON lines, in order."""
        yield from self._file.execute("SELECT event, answer FROM log ORDER BY number")

    def close(self) -> None:
        """Commit and close."""
        self.commit()
        self._file.close()

    def _begin(self) -> None:
        if not self._open:
            self._file.execute("BEGIN IMMEDIATE")
            self._open = True

    def _agree(self) -> None:
        """Make the tables, or check that they are of this fleet."""
        ours = {
            "format": FORMAT,
            "kinds": json.dumps([[kind.model, kind.cores, dict(sorted(kind.cores_of.items()))] for kind in self.kinds]),
        }
        tables = {name for (name,) in self._file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables:
            for statement in SCHEMA.split(";"):
                self._file.execute(statement)
            self._file.executemany("INSERT INTO facts VALUES (?, ?)", ours.items())
            return
        if "facts" not in tables:
            raise InputError.of(str(self.path), "is no state of a fleet")
        theirs = dict(self._file.execute("SELECT name, value FROM facts"))
        if theirs.get("format") != FORMAT:
            raise InputError.of(str(self.path), f"is of format {theirs.get('format')}, not {FORMAT}")
        if theirs != ours:
            hint = "give the --fleet and --models that it was made with; counts and costs may change"
            raise InputError.of(str(self.path), "is the state of another fleet", hint=hint)

    def _tenants(self) -> Iterator[tuple[str | None, Tenant]]:
        for row in self._file.execute(f"SELECT {_TENANT} FROM tenants ORDER BY place"):
            identity, nic, nf, flows, packet_size, mtbr, drop, least = row
            yield nic, Tenant(identity, Workload(nf, TrafficProfile(flows, packet_size, mtbr)), Sla(drop, least))

    def _write_nics(self, event: Event, answer: Answer, fleet: Fleet) -> None:
        touched = {nic for move in answer.moves for nic in (move.source, move.target) if nic is not None}
        named = getattr(event, "nic", None)
        for nic_id in sorted(touched | ({named} if named else set())):
            nic = fleet.find(nic_id)
            if nic is not None:
                self._file.execute(
                    "INSERT INTO nics VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET service = excluded.service",
                    (nic.id, nic.kind.index, nic.number, nic.service.value),
                )

    def _write_move(self, move: Move, fleet: Fleet) -> None:
        self._delete(move.id)
        home = fleet.nic_of(move.id)
        if home is not None:
            self._insert(home.tenants_by_id[move.id], home.id)

    def _enqueue(self, tenant_id: str) -> None:
        """Let somebody who lost a place wait, behind all others."""
        last = "(SELECT max(place) + 1 FROM tenants)"
        self._file.execute(f"UPDATE tenants SET nic = NULL, place = {last} WHERE id = ?", (tenant_id,))

    def _insert(self, tenant: Tenant, nic: str | None) -> None:
        values = (tenant.id, nic, tenant.workload.nf, *tenant.workload.traffic.as_tuple(),
                  tenant.sla.max_drop, tenant.sla.min_kpps)  # fmt: skip
        self._file.execute(f"INSERT INTO tenants ({_TENANT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    def _update(self, event: Change) -> None:
        if event.workload is not None:
            traffic = event.workload.traffic.as_tuple()
            self._file.execute(
                "UPDATE tenants SET flows = ?, packet_size = ?, mtbr = ? WHERE id = ?", (*traffic, event.id)
            )
        if event.sla is not None:
            self._file.execute(
                "UPDATE tenants SET sla_drop = ?, sla_min_kpps = ? WHERE id = ?",
                (event.sla.max_drop, event.sla.min_kpps, event.id),
            )

    def _delete(self, tenant_id: str) -> None:
        self._file.execute("DELETE FROM tenants WHERE id = ?", (tenant_id,))
