"""The journal: every run of a profiling, in SQLite, written before the next one begins.

Methods are deterministic given the seed and the answers, so a profiling that was killed is resumed by running it
again: what the journal knows is answered from it, the rest is asked of the testbed.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self

from profiler.lock import hold
from profiler.merging import merge
from profiler.testbed import Measurement, Run, Testbed, TestbedInFront, refuse_unsound
from profiles import Counters, InputError, Load, TestbedDescription

SCHEMA = 2
BATCH = 64
BENCHES, AGAIN, REFERENCE = "/benches", "/again", "/reference"
"""What runs are for, beside those of one NF, which carry its name; a name holds no slash."""

TABLES = """
CREATE TABLE IF NOT EXISTS origin (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS runs
    (request TEXT PRIMARY KEY, answer TEXT NOT NULL, measured_at REAL NOT NULL, purpose TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS plan (nf TEXT PRIMARY KEY, method TEXT NOT NULL, quota INTEGER, done INTEGER NOT NULL);
"""


class Journal:
    """The runs of one testbed under one seed.

    Only one process at a time may hold it. What it was given survives kill -9; a loss of power may cost the last runs,
    never more.

    Parameters
    ----------
    path
        The SQLite file, made when it is not there.

    Raises
    ------
    InputError
        When another process holds it, or it is no journal.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._lock = hold(path)
        self._database = sqlite3.connect(path, timeout=0.5, isolation_level=None)
        try:
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute("BEGIN IMMEDIATE")
            for statement in TABLES.split(";\n"):
                self._database.execute(statement)
            self._database.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            self.close()
            raise InputError.of(str(path), f"is not a journal: {error}") from None

    def claim(self, description: TestbedDescription, seed: int) -> None:
        """Say whose runs these are; the first to claim a journal owns it.

        Raises
        ------
        InputError
            When it holds runs of another testbed, another seed or another version of the journal.
        """
        origin = {
            "schema": str(SCHEMA),
            "seed": str(seed),
            "testbed": json.dumps(description.model_dump(mode="json"), sort_keys=True),
        }
        known = dict(self._database.execute("SELECT name, value FROM origin"))
        wrong = [name for name in origin if known and known.get(name) != origin[name]]
        if wrong:
            name = wrong[0]
            shown = "another testbed" if name == "testbed" else f"{name} {known.get(name)}, not {origin[name]}"
            raise InputError.of(
                str(self.path),
                f"journal holds runs of {shown}",
                hint=f"choose another --out, or remove {self.path} to measure everything again",
            )
        with self._transaction():
            self._database.executemany("INSERT OR IGNORE INTO origin VALUES (?, ?)", origin.items())

    def get(self, request: str) -> Run | None:
        """The run that answered `request`, or None."""
        row = self._database.execute("SELECT answer FROM runs WHERE request = ?", (request,)).fetchone()
        return None if row is None else _read(row[0])

    def add(self, runs: Iterable[tuple[str, Run]], purpose: str = "") -> None:
        """Keep what each request was answered, and what for; it outlives this process when this returns."""
        rows = [(request, _written(run), time.time(), purpose) for request, run in runs]
        with self._transaction():
            self._database.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)", rows)

    def plan(self, nfs: Iterable[str], method: str, quota: int | None) -> None:
        """Note what is going to be measured, for those who ask how far it is."""
        with self._transaction():
            self._database.executemany(
                "INSERT OR REPLACE INTO plan VALUES (?, ?, ?, 0)", [(nf, method, quota) for nf in nfs]
            )

    def finished(self, nf: str) -> None:
        """Note that all of an NF is measured."""
        with self._transaction():
            self._database.execute("UPDATE plan SET done = 1 WHERE nf = ?", (nf,))

    def take_over(self, other: Path) -> int:
        """Add the runs of another journal; returns how many were new.

        Raises
        ------
        InputError
            When `other` is no journal, is of another testbed or seed, or holds other answers to the same requests.
        """
        return merge(self._database, self.path, other)

    def __len__(self) -> int:
        """How many runs it holds."""
        return int(self._database.execute("SELECT count(*) FROM runs").fetchone()[0])

    def close(self) -> None:
        """Let go of the file; safe to call twice."""
        self._database.close()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")


class JournaledTestbed(TestbedInFront):
    """A testbed that never measures twice what the journal already knows.

    Closing it leaves the testbed and the journal open: they belong to whoever made them.

    Parameters
    ----------
    testbed
        Asked for what the journal does not know.
    journal
        Where runs are kept.
    purpose
        Filed with every run that is measured here.
    """

    def __init__(self, testbed: Testbed, journal: Journal, purpose: str = "") -> None:
        super().__init__(testbed)
        self._journal = journal
        self._purpose = purpose

    def run_many(
        self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
    ) -> list[Run]:
        asked = {canonical(loads, noise, seed): loads for loads in co_locations}
        known = {request: run for request in asked if (run := self._journal.get(request))}
        missing = [request for request in asked if request not in known]
        step = BATCH if self._behind.batches else 1
        for start in range(0, len(missing), step):
            requests = missing[start : start + step]
            runs = self._behind.run_many([asked[request] for request in requests], noise=noise, seed=seed)
            answered = dict(zip(requests, runs, strict=True))
            for run in runs:
                refuse_unsound(run)
            self._journal.add(answered.items(), self._purpose)
            known |= answered
        return [known[canonical(loads, noise, seed)] for loads in co_locations]


def canonical(loads: Sequence[Load], noise: bool, seed: int | None) -> str:
    """The request as the journal knows it: what shares the NIC, and what the noise is drawn from."""
    return json.dumps({"workloads": [load.as_request() for load in loads], "noise": noise, "seed": seed})


def _written(run: Run) -> str:
    return json.dumps(asdict(run))


def _read(answer: str) -> Run:
    told = json.loads(answer)
    measurements = tuple(
        Measurement(one["throughput_kpps"], Counters.from_mapping(one["counters"])) for one in told["measurements"]
    )
    return Run(measurements, told["elapsed_s"])
