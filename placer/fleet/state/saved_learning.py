"""What was learnt, in a state file: rows by name, each a JSON value.

`action N` is an action on the models with the event that it took effect with; `asked N` one that an operator asked for
and that takes effect with the next measurement. `version N`, `model`, `frozen` and `drift` are for people and programs
that look: a restart finds them again from readings and actions. `settings` are those that decisions were made with.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from placer.fleet.learning.actions import ActionKind, ModelAction
from placer.fleet.learning.ledger import ProductionReading
from placer.fleet.protocol import Check
from placer.fleet.state.tables import Statement, Tables, faults_of_running, load_values, workload_of
from placer.model.oracle import co_location_of
from profiles import CoLocation, Fault, InputError, Workload

ACTION_PREFIX, ASKED_PREFIX, VERSION_PREFIX = "action ", "asked ", "version "
WEBHOOK_PREFIX = "webhook "
SETTINGS_ROW, FROZEN_ROW, MODEL_ROW, DRIFT_ROWS = "settings", "frozen", "model", "drift"


def read_learnt(file: Tables, name: str) -> dict[str, Any]:
    """All rows, by name. Raises InputError with every row that makes no sense."""
    rows, faults = {}, []
    for key, value in file.execute("SELECT name, value FROM learnt ORDER BY name"):
        try:
            rows[str(key)] = json.loads(value)
            if str(key).startswith((ACTION_PREFIX, ASKED_PREFIX)):
                ModelAction.of(rows[str(key)])
        except (ValueError, TypeError, KeyError) as error:
            faults.append(Fault(name, None, f"learnt {key!r}", f"makes no sense: {error}", "restore a backup"))
    if faults:
        raise InputError(faults)
    return rows


def learnt_rows(rows: Mapping[str, str | None]) -> list[Statement]:
    """What writes rows, and removes those that are None."""
    return [
        ("DELETE FROM learnt WHERE name = ?", [(name,)])
        if value is None
        else ("INSERT OR REPLACE INTO learnt VALUES (?, ?)", [(name, value)])
        for name, value in rows.items()
    ]


def recorded_actions(learnt: Mapping[str, Any]) -> dict[int, list[ModelAction]]:
    """Actions by the event that they took effect with, in order."""
    found: dict[int, list[ModelAction]] = defaultdict(list)
    for name in sorted((key for key in learnt if key.startswith(ACTION_PREFIX)), key=_number):
        found[int(learnt[name]["event"])].append(ModelAction.of(learnt[name]))
    return dict(found)


def read_asked(file: Tables) -> dict[str, Any]:
    """What was asked for and did not take effect yet, by name, in order."""
    return requests_in(file.execute("SELECT name, value FROM learnt WHERE name LIKE 'asked %'"))


def requests_in(rows: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """What these rows ask for, by name, in order."""
    return {name: json.loads(value) for name, value in sorted(rows, key=lambda row: _number(row[0]))}


def ask(file: sqlite3.Connection, action: ModelAction) -> None:
    """Ask for an action; another process may be using the state."""
    file.execute("BEGIN IMMEDIATE")
    for statement, rows in learnt_rows({next_asked(read_asked(file)): json.dumps(action.as_dict(0))}):
        file.executemany(statement, rows)
    file.execute("COMMIT")


def next_asked(asked: Iterable[str]) -> str:
    """The name of what is asked for next, after these names."""
    return f"{ASKED_PREFIX}{max(map(_number, asked), default=0) + 1}"


def with_asked(learnt: Mapping[str, Any]) -> tuple[int, bool]:
    """The version that decides and whether it stays so, once what was asked for takes effect."""
    model, frozen = learnt.get(MODEL_ROW, 1), bool(learnt.get(FROZEN_ROW, False))
    for name in sorted((key for key in learnt if key.startswith(ASKED_PREFIX)), key=_number):
        action = ModelAction.of(learnt[name])
        if action.kind is ActionKind.ROLL_BACK and action.version is not None:
            model = action.version
        elif action.kind is not ActionKind.CANARY:
            frozen = action.kind is ActionKind.FREEZE
    return model, frozen


def _number(name: str) -> int:
    return int(name.rpartition(" ")[2])


# Readings in a state file, so that a restart knows what was learnt.


READING_COLUMNS = "event, nic_model, co_location, place, tenant, throughput_kpps, offered_kpps, below_sla"

MAX_REMEMBERED_TEXTS = 100_000


def reading_rows(readings: Sequence[ProductionReading]) -> Statement:
    """What adds readings."""
    marks = ", ".join("?" for _ in READING_COLUMNS.split(","))
    return f"INSERT INTO readings ({READING_COLUMNS}) VALUES ({marks})", [reading_row(reading) for reading in readings]  # noqa: S608


def read_readings(file: Tables, name: str, check: Check) -> Iterator[ProductionReading]:
    """Every reading, in order; `check` lists what is wrong with a workload.

    Raises InputError with the first row that makes no sense.
    """
    co_location_in = lru_cache(MAX_REMEMBERED_TEXTS)(_co_location_in)
    for row in file.execute(f"SELECT {READING_COLUMNS} FROM readings ORDER BY number"):  # noqa: S608
        event = row[0]
        try:
            reading = reading_of(row, co_location_in)
            wrong = [message for running in reading.co_location for _, message in faults_of_running(check, running)]
            texts = isinstance(reading.tenant, str) and isinstance(reading.nic_model, str)
            if wrong or not (texts and event > 0 and reading.kpps >= 0):
                raise ValueError(wrong[0] if wrong else "a value is not of its kind")
        except (ValueError, TypeError, IndexError, KeyError) as error:
            hint = "restore a backup, or give the --models that the state was made with"
            raise InputError([Fault(name, None, f"readings {event!r}", str(error), hint)]) from error
        yield reading


def reading_of(row: Sequence[Any], co_location_in: Callable[[str], CoLocation] | None = None) -> ProductionReading:
    """The reading of a row, as `reading_row` made it."""
    event, nic_model, text, place, tenant, kpps, offered, below = row
    co_location = (co_location_in or _co_location_in)(text)
    return ProductionReading(nic_model, co_location, co_location[place], tenant, kpps, offered, event, bool(below))


def _co_location_in(text: str) -> CoLocation:
    return co_location_of(workload_of(*row) for row in json.loads(text))


def _row_of(workload: Workload) -> list[object]:
    """NF and traffic; then rate, cores and latency, where it has any of them."""
    load = () if workload.is_plain else load_values(workload)
    return [workload.nf, *workload.traffic.as_tuple(), *load]


def reading_row(reading: ProductionReading) -> tuple[object, ...]:
    place = reading.co_location.index(reading.workload)
    text = json.dumps([_row_of(workload) for workload in reading.co_location])
    values = reading.tenant, reading.kpps, reading.offered_kpps, int(reading.below_sla)
    return reading.event, reading.nic_model, text, place, *values
