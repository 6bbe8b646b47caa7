"""What was learnt, in a state file: rows by name, each a JSON value.

`action N` is an action on the models with the event that it took effect with; `asked N` one that an operator asked for
and that takes effect with the next measurement. `version N`, `model`, `frozen` and `drift` are for people and programs
that look: a restart finds them again from readings and actions. `settings` are those that decisions were made with.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from placer.feedback.actions import ActionKind, ModelAction
from placer.online.tables import Tables
from profiles import Fault, InputError

ACTION, ASKED, VERSION = "action ", "asked ", "version "
SETTINGS, FROZEN, MODEL, DRIFT_ROWS = "settings", "frozen", "model", "drift"


def read_learnt(file: Tables, name: str) -> dict[str, Any]:
    """All rows, by name.

    Raises
    ------
    InputError
        With every row that makes no sense.
    """
    rows, faults = {}, []
    for key, value in file.execute("SELECT name, value FROM learnt ORDER BY name"):
        try:
            rows[str(key)] = json.loads(value)
            if str(key).startswith((ACTION, ASKED)):
                ModelAction.of(rows[str(key)])
        except (ValueError, TypeError, KeyError) as error:
            faults.append(Fault(name, None, f"learnt {key!r}", f"makes no sense: {error}", "restore a backup"))
    if faults:
        raise InputError(faults)
    return rows


def write_learnt(file: sqlite3.Connection, rows: Mapping[str, str | None]) -> None:
    """Write rows, and remove those that are None; within the transaction of their event."""
    for name, value in rows.items():
        if value is None:
            file.execute("DELETE FROM learnt WHERE name = ?", (name,))
        else:
            file.execute("INSERT OR REPLACE INTO learnt VALUES (?, ?)", (name, value))


def recorded_actions(learnt: Mapping[str, Any]) -> dict[int, list[ModelAction]]:
    """Actions by the event that they took effect with, in order."""
    found: dict[int, list[ModelAction]] = defaultdict(list)
    for name in sorted((one for one in learnt if one.startswith(ACTION)), key=_number):
        found[int(learnt[name]["event"])].append(ModelAction.of(learnt[name]))
    return dict(found)


def read_asked(file: Tables) -> dict[str, Any]:
    """What was asked for and did not take effect yet, by name, in order."""
    return asked_in(file.execute("SELECT name, value FROM learnt WHERE name LIKE 'asked %'"))


def asked_in(rows: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """What these rows ask for, by name, in order."""
    return {name: json.loads(value) for name, value in sorted(rows, key=lambda row: _number(row[0]))}


def ask(file: sqlite3.Connection, action: ModelAction) -> None:
    """Ask for an action; another process may be using the state."""
    file.execute("BEGIN IMMEDIATE")
    write_learnt(file, {next_asked(read_asked(file)): json.dumps(action.as_dict(0))})
    file.execute("COMMIT")


def next_asked(asked: Iterable[str]) -> str:
    """The name of what is asked for next, after these names."""
    return f"{ASKED}{max(map(_number, asked), default=0) + 1}"


def with_asked(learnt: Mapping[str, Any]) -> tuple[int, bool]:
    """The version that decides and whether it stays so, once what was asked for takes effect."""
    model, frozen = learnt.get(MODEL, 1), bool(learnt.get(FROZEN, False))
    for name in sorted((one for one in learnt if one.startswith(ASKED)), key=_number):
        action = ModelAction.of(learnt[name])
        if action.kind is ActionKind.ROLL_BACK and action.version is not None:
            model = action.version
        elif action.kind is not ActionKind.CANARY:
            frozen = action.kind is ActionKind.FREEZE
    return model, frozen


def _number(name: str) -> int:
    return int(name.rpartition(" ")[2])
