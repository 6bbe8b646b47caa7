"""What a journal records: the purpose of each run, faults of the file, and the merging of two machines' journals."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from profiles import Fault, InputError

MEASURED_BY_ORIGIN = "measured_by"  # what measured, where machines describe themselves alike
DIFFERENCES = {
    "schema": "another version of the journal",
    "testbed": "another testbed",
    "seed": "another seed",
    "sweep": "another sweep",
}
FIRST_NF_HINT = (
    "bench levels are measured once per testbed: profile one NF on the first machine, begin with its journal on the "
    "second (--merge), and continue with other NFs on each"
)


def merge(database: sqlite3.Connection, path: Path, other: Path) -> int:
    """Add the runs of the journal `other` to that at `path`, in the open transaction; returns how many were new.

    Runs that both hold must have the same answer. On real cards two measurements never have, so two machines begin with
    copies of one journal that holds the benches. Co-locations of several NFs may be run on both machines, since no
    other run depends on them: the answer at `path` stays. Raises `InputError` when `other` is no journal, is of another
    testbed or seed, or holds other answers to the same requests."""
    if not other.is_file():
        raise InputError.of("--merge", f"{other} does not exist")
    with journal_faults(other, "--merge"), closing(_open_to_read(other)) as read:
        origin = dict(read.execute("SELECT name, value FROM origin"))
        runs = read.execute("SELECT request, answer, measured_at, purpose FROM runs").fetchall()
        plan = read.execute("SELECT nf, method, quota, done FROM plan").fetchall()
        tables = read.execute("SELECT name FROM sqlite_master WHERE name = 'kept'").fetchall()
        kept = read.execute("SELECT run FROM kept").fetchall() if tables else []
    origin.pop(MEASURED_BY_ORIGIN, None)  # another machine may go on
    ours = dict(database.execute("SELECT name, value FROM origin"))
    faults = [
        Fault(str(other), None, None, f"holds runs of {what} than {path}")
        for name, what in DIFFERENCES.items()
        if ours and ours.get(name) != origin.get(name)
    ]
    if faults:
        raise InputError(faults)
    known = dict(database.execute("SELECT request, answer FROM runs"))
    conflicts = [
        request
        for request, answer, _, purpose in runs
        if known.get(request, answer) != answer and not of_co_locations(purpose)
    ]
    if conflicts:
        raise InputError(
            [
                Fault(str(other), None, None, f"another answer than in {path}: {_format_request(r)}", FIRST_NF_HINT)
                for r in conflicts
            ]
        )
    database.executemany("INSERT OR IGNORE INTO origin VALUES (?, ?)", origin.items())
    database.executemany("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?)", runs)
    database.executemany("INSERT OR IGNORE INTO plan VALUES (?, ?, ?, ?)", plan)
    database.executemany("INSERT OR IGNORE INTO kept VALUES (?)", kept)
    return sum(request not in known for request, *_ in runs)


def _open_to_read(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)


def _format_request(request: str) -> str:
    try:
        fields = json.loads(request)
        return f"{', '.join(workload['name'] for workload in fields['workloads'])} with seed {fields['seed']}"
    except (TypeError, ValueError, KeyError):
        return f"{request:.100}"


# What a run in the journal was made for.
#
# Runs of one NF carry its name, and a name holds no slash. Repeats and readings of the reference run during the runs of
# co-locations of several NFs carry both purposes, that of the co-locations first.


BENCHES_PART, TOGETHER_PART, FURTHER_PART, REPEATS_PART, REFERENCE_PART = (
    "/benches",
    "/together",
    "/further",
    "/again",
    "/reference",
)
CORES_PART, LOADS_PART = "/cores", "/loads"
CYCLES_PART, CHAINS_PART, SWEEP_PART, SHARING_PART, LATENCY_PART = (
    "/cycles",
    "/chains",
    "/sweep",
    "/sharing",
    "/latency",
)


def further(number: int) -> str:
    """The purpose of the further runs of this number, counted from 1."""
    return f"{FURTHER_PART}-{number}"


def of_co_locations(purpose: str) -> bool:
    """Whether a run was made for several NFs together, further numbers of cores, rates, cycles, chains, latency or a
    sweep; no run of the NFs alone and with benches depends on it."""
    return purpose.startswith(
        (TOGETHER_PART, FURTHER_PART, CORES_PART, LOADS_PART, CYCLES_PART, CHAINS_PART, SWEEP_PART, SHARING_PART,
         LATENCY_PART)
    )  # fmt: skip


# What goes wrong with a journal, as the user reads it.


NOT_A_JOURNAL = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR}
PRIMARY_CODE = 0xFF


class JournalError(OSError):
    """A journal that cannot be opened, read or written now: no permission, a full disk, a broken device. The runs that
    it holds stay."""


@contextmanager
def journal_faults(path: Path, option: str | None = None) -> Iterator[None]:
    """Turn SQLite's errors about the journal `path` into InputError (it is no journal) or JournalError. `option` is the
    command-line option that named the journal, if one did."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & PRIMARY_CODE not in NOT_A_JOURNAL:
            raise JournalError(f"journal {path}: {error}") from None
        what = f"is not a journal: {error}"
        raise InputError.of(option or str(path), f"{path} {what}" if option else what) from None
