"""The tables of a state file, and the fleet in them: read whole, or refused with every fault by name."""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from placer.fleet.protocol import Check
from placer.fleet.state.retention import CREATE_MARKS
from placer.fleet.state.saved import ANSWERS_TABLE, Counted, count_nothing
from placer.fleet.state.tables import Labels, Tables, faults_of_running, read_constraints, read_labels, workload_of
from placer.inputs.arrivals import HIGHEST_PRIORITY, LOWEST_PRIORITY
from placer.model.feasibility import fits
from placer.model.fleet import Fleet
from placer.model.groups import UNCONSTRAINED
from placer.model.nic import NUMBERED_NIC_ID, Nic, Service, Tenant, numbers_nics
from placer.model.nic_kind import NicKind
from placer.model.sla import Sla
from profiles import ATTRIBUTES, Fault, InputError, Workload
from profiles.description import MOST_CORES

STATE_FORMAT = "2"
FORMER_FORMAT = "1"  # the format without readings, which is read, too, and written on as the new one

MOST_NICS = 1_000_000_000
MOST_PLACES = 10**15  # largest number of a NIC, and largest place in the order of arrival

STATE_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE nics (
    id TEXT PRIMARY KEY, kind INTEGER NOT NULL, number INTEGER NOT NULL, service TEXT NOT NULL, pool TEXT, domain TEXT
);
CREATE TABLE tenants (
    place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, nic TEXT REFERENCES nics(id), nf TEXT NOT NULL,
    flows REAL NOT NULL, packet_size REAL NOT NULL, mtbr REAL NOT NULL, sla_drop REAL, sla_min_kpps REAL,
    rate_kpps REAL, cores INTEGER, latency_us REAL, free_cores INTEGER, constraints TEXT, priority INTEGER,
    reserved_until REAL, owner TEXT, labels TEXT
);
CREATE TABLE log (
    number INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT NOT NULL, answer TEXT NOT NULL, time REAL, actor TEXT
);
"""

ADDED_TABLES = """
CREATE TABLE readings (
    number INTEGER PRIMARY KEY, event INTEGER NOT NULL, nic_model TEXT NOT NULL, co_location TEXT NOT NULL,
    place INTEGER NOT NULL, tenant TEXT NOT NULL, throughput_kpps REAL NOT NULL, offered_kpps REAL, below_sla INTEGER
);
CREATE TABLE learnt (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""
"""Tables that format 1 does not have: what was measured, and what was learnt of it beyond the readings themselves."""

ADDED_COLUMNS = {
    "log": ("time REAL", "actor TEXT"),
    "nics": ("pool TEXT", "domain TEXT"),
    "readings": ("below_sla INTEGER",),
    "tenants": (
        "rate_kpps REAL", "cores INTEGER", "latency_us REAL", "free_cores INTEGER", "constraints TEXT",
        "priority INTEGER", "reserved_until REAL", "owner TEXT", "labels TEXT",
    ),
}  # fmt: skip
"""Columns that earlier files lack, at the end of their tables; they are added to them."""

MAX_CHECKED_WORKLOADS = 100_000
COUNTED_TENANTS = 1_000
LOAD_COLUMNS = "rate_kpps, cores, latency_us, free_cores"
TENANT_COLUMNS = (
    f"id, nic, nf, flows, packet_size, mtbr, sla_drop, sla_min_kpps, {LOAD_COLUMNS}, constraints, priority,"
    " reserved_until, owner, labels"
)
"""`free_cores`: 1 where the number of cores was chosen. `constraints`: as of `format_constraints`. `priority`: null is
0. `labels`: as of `format_labels`."""


def make_tables(file: sqlite3.Connection, kinds: Sequence[NicKind], schema: str = STATE_SCHEMA + ADDED_TABLES) -> None:
    for statement in schema.split(";"):
        file.execute(statement)
    file.executemany("INSERT INTO facts VALUES (?, ?)", facts_of(kinds).items())


def upgrade(file: sqlite3.Connection) -> None:
    """Add to a file of the former format what it lacks."""
    file.execute("BEGIN IMMEDIATE")
    if _format(file) == FORMER_FORMAT:
        for statement in ADDED_TABLES.split(";"):
            file.execute(statement)
        file.execute("UPDATE facts SET value = ? WHERE name = 'format'", (STATE_FORMAT,))
    for table, columns in ADDED_COLUMNS.items():
        known = {name for (name,) in file.execute("SELECT name FROM pragma_table_info(?)", (table,))}
        for column in columns:
            if column.split()[0] not in known:
                file.execute(f"ALTER TABLE {table} ADD COLUMN {column}")
    for table in (ANSWERS_TABLE, CREATE_MARKS):
        file.execute(table)
    file.execute("COMMIT")


def check_tables(file: sqlite3.Connection, name: str) -> None:
    """Refuse a file that is damaged, or that lacks a table of a state. Raises InputError with what is wrong."""
    damage = [line for (line,) in file.execute("PRAGMA integrity_check(20)")]
    if damage != ["ok"]:
        raise InputError([Fault(name, None, None, f"is damaged: {line}", "restore a backup") for line in damage])
    with closing(sqlite3.connect(":memory:")) as reference:
        make_tables(reference, (), STATE_SCHEMA + ("" if _format(file) == FORMER_FORMAT else ADDED_TABLES))
        found = _columns(file)
        wrong = [
            table for table, columns in _columns(reference).items() if found.get(table) not in _former(table, columns)
        ]
    if "facts" in wrong:
        raise InputError.of(name, "is not the state of a fleet", hint="name a new file, or one that this command made")
    if wrong:
        raise InputError.of(name, f"lacks the tables of a state: {', '.join(wrong)}", hint="restore a backup")
    foreign = list(file.execute("SELECT type, name FROM sqlite_master WHERE type IN ('trigger', 'view')"))
    if foreign:
        hint = "this command makes neither triggers nor views: restore a backup"
        raise InputError([Fault(name, None, None, f"has a {kind} {title!r}", hint) for kind, title in foreign])


def read_saved_fleet(
    file: Tables, name: str, kinds: Sequence[NicKind], check: Check, counted: Counted = count_nothing
) -> tuple[Fleet, list[Tenant]]:
    """The fleet as it was after the last event, and its queue; `check` lists what is wrong with a workload.

    Raises InputError when the state is of another fleet, or with every row that makes no sense.
    """
    known = dict(file.execute("SELECT name, value FROM facts"))
    if known.get("format") != STATE_FORMAT:
        raise InputError.of(name, f"is of format {known.get('format')}, not {STATE_FORMAT}")
    if known != facts_of(kinds):
        hint = "give the --fleet and --models that it was made with; counts and costs may change"
        raise InputError.of(name, "is the state of another fleet", hint=hint)
    rows = _Rows(name, kinds, check)
    nics = {nic.id: nic for nic in rows.nics(file)}
    placed: dict[str, list[Tenant]] = defaultdict(list)
    waiting = []
    ((total,),) = file.execute("SELECT count(*) FROM tenants")
    for number, (nic_id, tenant) in enumerate(rows.tenants(file, nics)):
        if number % COUNTED_TENANTS == 0:
            counted(number, total)
        if nic_id is None:
            waiting.append(tenant)
        else:
            placed[nic_id].append(tenant)
    rows.check_nics(nics, placed)
    if rows.faults:
        raise InputError(rows.faults)
    fleet = Fleet(kinds)
    for nic in nics.values():
        fleet.adopt(nic, placed[nic.id])
    return fleet, waiting


class _Rows:
    """Reads the rows, and collects what is wrong with them."""

    def __init__(self, name: str, kinds: Sequence[NicKind], check: Check) -> None:
        self.faults: list[Fault] = []
        self._name = name
        self._kinds = tuple(kinds)
        self._row: tuple[str, object] = ("", None)
        self._in_places: dict[tuple[int, str, str], NicKind] = {}
        # many tenants have the same traffic
        self._workload_of = lru_cache(MAX_CHECKED_WORKLOADS)(partial(_checked_workload, check))

    def nics(self, file: Tables) -> Iterator[Nic]:
        """Every NIC that was ever in use, without tenants."""
        numbers: Counter[int] = Counter()
        services = {service.value: service for service in Service}
        numbered = numbers_nics(self._kinds)
        query = "SELECT id, kind, number, service, pool, domain FROM nics ORDER BY number"
        for nic_id, kind, number, service, *place in file.execute(query):
            self._row, before = ("nics", nic_id), len(self.faults)
            self._check_id(nic_id)
            if not isinstance(kind, int) or not 0 <= kind < len(self._kinds):
                self._fault(f"kind {kind!r} is not one of {len(self._kinds)} of the fleet")
            if not _is_whole(number, MOST_NICS) or numbers[number]:
                self._fault(f"number {number!r} is not a whole number of its own from 1 to {MOST_NICS:,}")
            elif numbered and NUMBERED_NIC_ID.fullmatch(str(nic_id)) and nic_id != f"nic-{number}":
                self._fault(f"number {number} is not that of its id")
            if service not in services:
                self._fault(f"service {service!r} is not one of {', '.join(services)}")
            if len(self.faults) == before:
                numbers[number] += 1
                nic = Nic(nic_id, self._kind_in(kind, *place), number)
                nic.service = services[service]
                yield nic

    def tenants(self, file: Tables, nics: dict[str, Nic]) -> Iterator[tuple[str | None, Tenant]]:
        """Every tenant with the id of its NIC, None for one that waits; in order of arrival."""
        for row in file.execute(f"SELECT place, {TENANT_COLUMNS} FROM tenants ORDER BY place"):  # noqa: S608
            place, identity, nic_id, nf, *numbers, drop, least, rate, cores, latency, free = row[:-5]
            self._row, before = ("tenants", identity), len(self.faults)
            self._check_id(identity)
            if not _is_whole(place, MOST_PLACES):
                self._fault(f"place {place!r} is not a whole number from 1 to {MOST_PLACES:,}")
            if nic_id is not None and nic_id not in nics:
                self._fault(f"nic {nic_id!r} is not among the NICs")
            elif not isinstance(nf, str) or not any(nf in kind.cores_of for kind in self._kinds_of(nic_id, nics)):
                self._fault_of_nf(nf, self._kinds_of(nic_id, nics))
            for attribute, value in zip(ATTRIBUTES, numbers, strict=True):
                if not _is_number(value) or value < 0:
                    self._fault(f"{attribute} {value!r} is not a number from 0 up")
            self._check_sla(drop, least)
            self._check_load(rate, cores, latency, free)
            more = self._read_demand(*row[-5:])
            if len(self.faults) == before:
                workload, messages = self._workload_of(nf, *numbers, rate, cores, latency)
                for message in messages:
                    self._fault(message, "restore a backup, or give the --models that the state was made with")
                kinds = self._kinds_of(nic_id, nics)
                if not any(kind.hosts(workload) for kind in kinds):
                    self._fault_of_nf(nf, kinds)
                sla = Sla(drop, least)
                tenant = Tenant(identity, workload, sla, bool(free), **more)
                yield nic_id, tenant if nic_id is None else replace(tenant, group="")

    def _read_demand(
        self, constraints: str | None, priority: object, until: object, owner: object, labels: str | None
    ) -> dict[str, Any]:
        """What an instance asks for besides its load and SLA, as parameters of `Tenant`."""
        demanded, group, labelled = UNCONSTRAINED, "", Labels()
        if priority is not None and not _is_priority(priority):
            self._fault(f"priority {priority!r} is not a whole number from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}")
        if until is not None and not _is_number(until):
            self._fault(f"reserved_until {until!r} is not a time, s since 1970")
        if owner is not None:
            self._check_name("owner", owner)
        try:
            demanded, group = read_constraints(constraints)
        except ValueError as error:
            self._fault(f"constraints {constraints!r} make no sense: {error}")
        try:
            labelled = read_labels(labels)
        except ValueError as error:
            self._fault(f"labels {labels!r} make no sense: {error}")
        return {
            "constraints": demanded, "priority": priority or 0, "group": group, "owner": owner or "",
            "labels": labelled, "reserved_until": until,
        }  # fmt: skip

    def _kind_in(self, number: int, pool: str | None, domain: str | None) -> NicKind:
        """The kind of a NIC; null for the pool and the domain of the kind itself."""
        if pool is None and domain is None:
            return self._kinds[number]
        place = number, str(pool or ""), str(domain or "")
        if place not in self._in_places:
            self._in_places[place] = self._kinds[number].in_place(*place[1:])
        return self._in_places[place]

    def check_nics(self, nics: dict[str, Nic], placed: dict[str, list[Tenant]]) -> None:
        """Every NIC has the cores for its tenants, and one that failed or is gone has no tenants."""
        for nic_id, tenants in placed.items():
            nic, self._row = nics[nic_id], ("nics", nic_id)
            if not fits(nic.kind, (tenant.workload for tenant in tenants)):
                few = nic.kind.cores_taken(tenant.workload for tenant in tenants) > nic.kind.cores
                limit = f"its {nic.kind.cores} cores" if few else "its port carries"
                self._fault(f"its tenants take more than {limit}")
            if nic.service in (Service.FAILED, Service.GONE):
                self._fault(f"{nic.service.value}, but has tenants")

    def _kinds_of(self, nic_id: str | None, nics: dict[str, Nic]) -> tuple[NicKind, ...]:
        """The kind of a NIC; all kinds for a tenant that waits."""
        return self._kinds if nic_id is None else (nics[nic_id].kind,)

    def _fault_of_nf(self, nf: object, kinds: Sequence[NicKind]) -> None:
        self._fault(f"nf {nf!r} does not run on a {' or '.join(kind.model for kind in kinds)}")

    def _check_id(self, identity: object) -> None:
        self._check_name("id", identity)

    def _check_name(self, column: str, name: object) -> None:
        if not isinstance(name, str) or not name or not name.isprintable():
            self._fault(f"{column} {name!r} is not a name")

    def _check_sla(self, drop: object, least: object) -> None:
        if (drop is None) == (least is None):
            self._fault(f"has not one SLA: sla_drop {drop!r}, sla_min_kpps {least!r}")
        elif drop is not None and not (_is_number(drop) and 0 <= drop < 1):  # type: ignore[operator]
            self._fault(f"sla_drop {drop!r} is not a number from 0 up and below 1")
        elif least is not None and not (_is_number(least) and least > 0):  # type: ignore[operator]
            self._fault(f"sla_min_kpps {least!r} is not a number above 0")

    def _check_load(self, rate: object, cores: object, latency: object, free: object) -> None:
        for name, value in (("rate_kpps", rate), ("latency_us", latency)):
            if value is not None and not (_is_number(value) and value > 0):  # type: ignore[operator]
                self._fault(f"{name} {value!r} is not a number above 0")
        if cores is not None and not _is_whole(cores, MOST_CORES):
            self._fault(f"cores {cores!r} is not a whole number from 1 to {MOST_CORES:,}")
        if free not in (None, 1):
            self._fault(f"free_cores {free!r} is not 1")

    def _fault(self, message: str, hint: str = "restore a backup") -> None:
        table, identity = self._row
        self.faults.append(Fault(self._name, None, f"{table} {identity!r}", message, hint))


def _checked_workload(check: Check, nf: str, *values: float | None) -> tuple[Workload, list[str]]:
    """The workload of a row, and what is wrong with it."""
    workload = workload_of(nf, *values)
    return workload, [f"{column} {message}" for column, message in faults_of_running(check, workload)]


def place_values(kind: NicKind) -> tuple[str | None, str | None]:
    """The pool and the domain of a NIC as a state has them: null where they are those of a kind of the fleet file."""
    return (kind.pool, kind.domain) if kind.joins else (None, None)


def facts_of(kinds: Sequence[NicKind]) -> dict[str, str]:
    """What a state says of its fleet, by name."""
    described = [[kind.model, kind.cores, dict(sorted(kind.cores_of.items())), *_place_of(kind)] for kind in kinds]
    return {"format": STATE_FORMAT, "kinds": json.dumps(described)}


def _place_of(kind: NicKind) -> list[dict[str, str]]:
    """The pool and the domain of a kind, where it has any."""
    given = {"pool": kind.pool, "domain": kind.domain}
    return [{key: name for key, name in given.items() if name}] if kind.pool or kind.domain else []


def _format(file: sqlite3.Connection) -> str | None:
    """The format of a state; None for another file."""
    with suppress(sqlite3.Error):
        for (value,) in file.execute("SELECT value FROM facts WHERE name = 'format'"):
            return str(value)
    return None


def _former(table: str, columns: list[tuple[object, ...]]) -> list[list[tuple[object, ...]]]:
    """The columns of a table, and those that it had before some were added."""
    return [columns[: len(columns) - missing] for missing in range(len(ADDED_COLUMNS.get(table, ())) + 1)]


def _columns(file: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """Name, type, and constraints of the columns of every table."""
    tables = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {
        table: list(file.execute("SELECT * FROM pragma_table_info(?)", (table,)))
        for table in tables
        if not table.startswith("sqlite_")
    }


def _is_whole(value: object, largest: int) -> bool:
    return isinstance(value, int) and 1 <= value <= largest


def _is_priority(value: object) -> bool:
    return isinstance(value, int) and LOWEST_PRIORITY <= value <= HIGHEST_PRIORITY


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
