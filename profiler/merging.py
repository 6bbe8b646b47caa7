"""Merging journals of two machines that profiled different NFs on testbeds of one description."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from profiles import Fault, InputError

SAME = {"schema": "another version of the journal", "testbed": "another testbed", "seed": "another seed"}
SHARE = (
    "bench levels are measured once per testbed: profile one NF on the first machine, copy its journal to the second, "
    "and let each go on with other NFs"
)


def merge(into: sqlite3.Connection, path: Path, other: Path) -> int:
    """Add to a journal what another one knows; returns how many runs were new.

    All is added or nothing. Runs that both hold must have the same answer: on real cards two measurements never have,
    so machines that are to be merged begin with the same journal of benches.

    Raises
    ------
    InputError
        When `other` is no journal, is of another testbed or seed, or holds other answers to the same requests.
    """
    if not other.is_file():
        raise InputError.of("--merge", f"{other} is not there")
    try:
        with closing(sqlite3.connect(f"{other.resolve().as_uri()}?mode=ro", uri=True)) as database:
            origin = dict(database.execute("SELECT name, value FROM origin"))
            runs = database.execute("SELECT request, answer, measured_at, purpose FROM runs").fetchall()
            plan = database.execute("SELECT nf, method, quota, done FROM plan").fetchall()
    except sqlite3.DatabaseError as error:
        raise InputError.of("--merge", f"{other} is not a journal: {error}") from None
    _refuse_stranger(dict(into.execute("SELECT name, value FROM origin")), origin, path, other)
    known = dict(into.execute("SELECT request, answer FROM runs"))
    conflicts = [request for request, answer, _, _ in runs if known.get(request, answer) != answer]
    if conflicts:
        raise InputError(
            [Fault(str(other), None, None, f"another answer than in {path}: {_shown(r)}", SHARE) for r in conflicts]
        )
    into.execute("BEGIN IMMEDIATE")
    into.executemany("INSERT OR IGNORE INTO origin VALUES (?, ?)", origin.items())
    into.executemany("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?)", runs)
    into.executemany("INSERT OR IGNORE INTO plan VALUES (?, ?, ?, ?)", plan)
    into.execute("COMMIT")
    return sum(request not in known for request, *_ in runs)


def _refuse_stranger(ours: Mapping[str, str], theirs: Mapping[str, str], path: Path, other: Path) -> None:
    faults = [
        Fault(str(other), None, None, f"holds runs of {what} than {path}")
        for name, what in SAME.items()
        if ours and ours.get(name) != theirs.get(name)
    ]
    if faults:
        raise InputError(faults)


def _shown(request: str) -> str:
    told = json.loads(request)
    return f"{', '.join(one['name'] for one in told['workloads'])} with seed {told['seed']}"
