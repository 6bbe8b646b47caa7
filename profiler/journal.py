"""The journal: every run of a profiling, in SQLite, written before the next one begins.

Methods are deterministic given the seed and the answers, so a profiling that was killed is resumed by running it
again: what the journal knows is answered from it, the rest is asked of the testbed.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self

from profiler.testbed import Measurement, Run, Testbed, TestbedError
from profiles import Counters, InputError, Load, TestbedDescription

SCHEMA = 1
BATCH = 64

TABLES = """
CREATE TABLE IF NOT EXISTS origin (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS runs (request TEXT PRIMARY KEY, answer TEXT NOT NULL, measured_at REAL NOT NULL);
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
        self._database = sqlite3.connect(path, timeout=0.5, isolation_level=None)
        try:
            self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute("BEGIN IMMEDIATE")
            for statement in TABLES.split(";\n"):
                self._database.execute(statement)
            self._database.execute("COMMIT")
        except sqlite3.OperationalError as error:
            self._database.close()
            raise InputError.of(
                str(path), f"journal is not free: {error}", hint="another profiling may be running into the same --out"
            ) from None
        except sqlite3.DatabaseError as error:
            self._database.close()
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

    def add(self, runs: Iterable[tuple[str, Run]]) -> None:
        """Keep what each request was answered; it outlives this process when this returns."""
        rows = [(request, _written(run), time.time()) for request, run in runs]
        with self._transaction():
            self._database.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?)", rows)

    def __len__(self) -> int:
        """How many runs it holds."""
        return int(self._database.execute("SELECT count(*) FROM runs").fetchone()[0])

    def close(self) -> None:
        """Let go of the file; safe to call twice."""
        self._database.close()

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


class JournaledTestbed(Testbed):
    """A testbed that never measures twice what the journal already knows.

    Closing it leaves the testbed and the journal open: they belong to whoever made them.
    """

    def __init__(self, testbed: Testbed, journal: Journal) -> None:
        self._testbed = testbed
        self._journal = journal
        self.measured = 0

    def describe(self) -> TestbedDescription:
        return self._testbed.describe()

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        return self.run_many([loads], noise=noise, seed=seed)[0]

    def run_many(
        self, companies: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
    ) -> list[Run]:
        asked = {canonical(loads, noise, seed): loads for loads in companies}
        known = {request: run for request in asked if (run := self._journal.get(request))}
        missing = [request for request in asked if request not in known]
        step = BATCH if self._testbed.batches else 1
        for start in range(0, len(missing), step):
            requests = missing[start : start + step]
            runs = self._testbed.run_many([asked[request] for request in requests], noise=noise, seed=seed)
            answered = dict(zip(requests, runs, strict=True))
            for request, run in answered.items():
                _refuse_unsound(request, run)
            self._journal.add(answered.items())
            self.measured += len(answered)
            known |= answered
        return [known[canonical(loads, noise, seed)] for loads in companies]


def canonical(loads: Sequence[Load], noise: bool, seed: int | None) -> str:
    """The request as the journal knows it: what shares the NIC, and what the noise is drawn from."""
    return json.dumps({"workloads": [load.as_request() for load in loads], "noise": noise, "seed": seed})


def _refuse_unsound(request: str, run: Run) -> None:
    """No model may learn from a throughput or counter that is not a measurement."""
    for one in run.measurements:
        if not (math.isfinite(one.throughput_kpps) and one.throughput_kpps > 0):
            raise TestbedError(f"testbed reports a throughput of {one.throughput_kpps} kpps for {request}")
        if wrong := {name: value for name, value in one.counters.as_dict().items() if not 0 <= value < math.inf}:
            raise TestbedError(f"testbed reports counters {wrong} for {request}")


def _written(run: Run) -> str:
    return json.dumps(asdict(run))


def _read(answer: str) -> Run:
    told = json.loads(answer)
    measurements = tuple(
        Measurement(one["throughput_kpps"], Counters.from_mapping(one["counters"])) for one in told["measurements"]
    )
    return Run(measurements, told["elapsed_s"])
