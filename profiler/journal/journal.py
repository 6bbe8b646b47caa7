"""The journal: every run of a profiling, in SQLite, written before the next one begins. Methods are deterministic given
the seed and the answers, so a profiling that was killed is resumed by starting it again: runs in the journal are
answered from it, the others run on the testbed."""

import contextlib
import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from profiler import testbed as testbed_api
from profiler.journal.records import MEASURED_BY_ORIGIN, journal_faults, merge
from profiler.protocol.protocol import write_measurement
from profiles import CoLocation, Counters, InputError, Load, TrafficProfile, Workload

SCHEMA_VERSION = 2
DECIDING_ORIGINS = ("schema", "seed", "testbed")
SWEEP_ORIGIN = "sweep"  # recorded at the first claim of a sweep
COMMIT_BATCH = 64

RecordedRun = tuple[CoLocation, tuple[float, ...]]
"""A run of NFs: the workloads, and the throughput (kpps) of each, as in co-locations.csv."""

CREATE_TABLES = """
CREATE TABLE IF NOT EXISTS origin (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS runs
    (request TEXT PRIMARY KEY, answer TEXT NOT NULL, measured_at REAL NOT NULL, purpose TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS plan (nf TEXT PRIMARY KEY, method TEXT NOT NULL, quota INTEGER, done INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS kept (run TEXT PRIMARY KEY);
"""


class Journal:
    """The runs of one testbed under one seed.

    Only one process at a time may hold it. Written runs survive kill -9; a power failure may lose the last runs, never
    more. `path`: the SQLite file, created when it does not exist. Raises `InputError` when another process holds it, or
    it is no journal. The other methods raise it for a damaged journal. Raises `JournalError` when it cannot be opened.
    The other methods raise it when the journal cannot be read or written."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._lock = hold(path)
        self._database: sqlite3.Connection | None = None
        try:
            with journal_faults(path):
                self._database = sqlite3.connect(path, timeout=0.5, isolation_level=None)
                self._database.execute("PRAGMA journal_mode = WAL")
                self._database.execute("PRAGMA synchronous = NORMAL")
            with self._transaction() as database:
                for statement in CREATE_TABLES.split(";\n"):
                    database.execute(statement)
        except BaseException:
            self.close()
            raise

    def origin(self) -> dict[str, str]:
        """What was recorded at the first claim; empty before."""
        return {str(name): str(value) for name, value in self._select("SELECT name, value FROM origin")}

    def claim(self, testbed: testbed_api.Testbed, seed: int, sweep: Mapping[str, str] | None = None) -> None:
        """Record whose runs these are; the first claim decides. `testbed`: where they are measured. `sweep`: what else
        the journal of a sweep holds: the sweep itself, and more that does not decide. Raises `InputError` when it holds
        runs of another testbed, another machine of the same description, another seed or another version of the
        journal, or runs of a sweep where a profile is wanted, and the reverse."""
        measured_by = {MEASURED_BY_ORIGIN: testbed.measured_by} if testbed.measured_by else {}
        origin = {
            "schema": str(SCHEMA_VERSION),
            "seed": str(seed),
            "testbed": json.dumps(testbed.describe().model_dump(mode="json"), sort_keys=True),
            **measured_by,
            **(sweep or {}),
        }
        known = self.origin()
        of_one_kind = (SWEEP_ORIGIN in known) == (SWEEP_ORIGIN in origin)
        names = (*DECIDING_ORIGINS, SWEEP_ORIGIN) if of_one_kind else (SWEEP_ORIGIN,)
        wrong = [name for name in names if known and known.get(name) != origin.get(name)]
        if wrong:
            name = wrong[0]
            shown = f"{name} {known.get(name)}, not {origin.get(name)}"
            if name == "testbed":
                shown = "another testbed"
            elif name == SWEEP_ORIGIN:
                shown = "a sweep" if sweep is None else "another sweep" if SWEEP_ORIGIN in known else "a profile"
            raise InputError.of(
                str(self.path),
                f"journal holds runs of {shown}",
                hint=f"choose another --out, or remove {self.path} to measure everything again",
            )
        # journals of earlier versions do not say what measured
        before = known.get(MEASURED_BY_ORIGIN, testbed.measured_by)
        if measured_by and before != testbed.measured_by:
            raise InputError.of(
                str(self.path),
                f"journal holds runs that another machine measured: {before}, not {testbed.measured_by}",
                hint=f"choose another --out, or remove {self.path} to measure everything again",
            )
        with self._transaction() as database:
            database.executemany("INSERT OR IGNORE INTO origin VALUES (?, ?)", origin.items())

    def forget(self) -> None:
        """Remove everything, so that the next claim is the first."""
        with self._transaction() as database:
            for empty in ("DELETE FROM origin", "DELETE FROM runs", "DELETE FROM plan", "DELETE FROM kept"):
                database.execute(empty)

    def get(self, request: str) -> testbed_api.Run | None:
        """The run that answered `request`, or None."""
        rows = self._select("SELECT answer FROM runs WHERE request = ?", (request,))
        try:
            return _parse_run(rows[0][0]) if rows else None
        except (TypeError, ValueError, KeyError, RecursionError):
            raise InputError.of(
                str(self.path),
                f"journal is damaged: the answer to {request:.200} cannot be read",
                hint=f"remove {self.path} to measure everything again",
            ) from None

    def add(self, runs: Iterable[tuple[str, testbed_api.Run]], purpose: str = "") -> None:
        """Keep the answer to each request, with its purpose; it survives this process when this returns."""
        rows = [(request, _answer(run), time.time(), purpose) for request, run in runs]
        with self._transaction() as database:
            database.executemany("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)", rows)

    def best_efforts(self) -> list[tuple[str, str, testbed_api.Run]]:
        """Purpose, request and answer of every run that is best effort, in the order in which they were kept."""
        query = "SELECT purpose, request FROM runs WHERE answer LIKE '%\"best_effort\"%' ORDER BY rowid"
        found = ((purpose, request, self.get(request)) for purpose, request in self._select(query))
        return [(purpose, request, run) for purpose, request, run in found if run and run.best_effort]

    def plan(self, parts: Iterable[tuple[str, str, int | None]]) -> None:
        """Record NF, method and runs (None for no limit) of what will be measured, for `placer profile --status`."""
        with self._transaction() as database:
            database.executemany("INSERT OR REPLACE INTO plan VALUES (?, ?, ?, 0)", list(parts))

    def finished(self, part: str, kept: Iterable[RecordedRun] = ()) -> None:
        """Record that an NF, or another part, is measured completely; `kept` are runs that every profile will have."""
        with self._transaction() as database:
            database.execute("UPDATE plan SET done = 1 WHERE nf = ?", (part,))
            database.executemany("INSERT OR IGNORE INTO kept VALUES (?)", [(_as_json(run),) for run in kept])

    def kept(self) -> list[RecordedRun]:
        """The runs that every profile will have, in the order in which they were kept."""
        rows = self._select("SELECT run FROM kept ORDER BY rowid")
        try:
            return [_from_json(run) for (run,) in rows]
        except (TypeError, ValueError, KeyError):
            raise InputError.of(str(self.path), "journal is damaged: a run that it keeps cannot be read") from None

    def parts(self) -> dict[str, tuple[str, int | None, bool]]:
        """Method, runs and whether it is done of each part of the plan."""
        rows = self._select("SELECT nf, method, quota, done FROM plan ORDER BY rowid")
        return {
            part: (method, None if quota is None else int(quota), bool(int(done))) for part, method, quota, done in rows
        }

    def add_journal(self, other: Path) -> int:
        """Add the runs of another journal; returns how many were new. Raises `InputError` when `other` is no journal,
        is of another testbed or seed, or holds other answers to the same requests."""
        with self._transaction() as database:
            return merge(database, self.path, other)

    def __len__(self) -> int:
        """How many runs it holds."""
        return int(str(self._select("SELECT count(*) FROM runs")[0][0]))

    def close(self) -> None:
        """Close the file and release the lock; safe to call twice."""
        if self._database is not None:
            self._database.close()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _select(self, query: str, values: Sequence[str] = ()) -> list[tuple[str, ...]]:
        assert self._database is not None
        with journal_faults(self.path):
            return self._database.execute(query, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        assert self._database is not None
        with journal_faults(self.path):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise


class JournaledTestbed(testbed_api.TestbedWrapper):
    """A testbed that never repeats a run which is in the journal. Closing it leaves the testbed and the journal open:
    their creators close them. `testbed`: runs what is not in the journal. `journal`: where runs are kept. `purpose`:
    recorded with every run that is measured here."""

    def __init__(self, testbed: testbed_api.Testbed, journal: Journal, purpose: str = "") -> None:
        super().__init__(testbed)
        self._journal = journal
        self._purpose = purpose

    def run_many(
        self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
    ) -> list[testbed_api.Run]:
        requested = {canonical(loads, noise, seed): loads for loads in co_locations}
        known = {request: run for request in requested if (run := self._journal.get(request))}
        missing = [request for request in requested if request not in known]
        step = COMMIT_BATCH if self._inner.batches else 1
        for start in range(0, len(missing), step):
            requests = missing[start : start + step]
            runs = self._inner.run_many([requested[request] for request in requests], noise=noise, seed=seed)
            answered = dict(zip(requests, runs, strict=True))
            for run in runs:
                testbed_api.refuse_invalid(run)
            self._journal.add(answered.items(), self._purpose)
            known |= answered
        return [known[canonical(loads, noise, seed)] for loads in co_locations]


def canonical(loads: Sequence[Load], noise: bool, seed: int | None) -> str:
    """The request as the journal stores it: the loads, and what their noise is drawn from."""
    return json.dumps({"workloads": [load.as_request() for load in loads], "noise": noise, "seed": seed})


def _as_json(run: RecordedRun) -> str:
    workloads, kpps = run
    return json.dumps({"workloads": [workload.as_request() for workload in workloads], "throughput_kpps": kpps})


def _from_json(text: str) -> RecordedRun:
    fields = json.loads(text)
    workloads = (Workload(load["name"], TrafficProfile.from_mapping(load["traffic"])) for load in fields["workloads"])
    return tuple(workloads), tuple(float(kpps) for kpps in fields["throughput_kpps"])


def _answer(run: testbed_api.Run) -> str:
    """The answer as the journal keeps it; only that of a best-effort run says so."""
    answer: dict[str, Any] = {
        "measurements": [write_measurement(measurement) for measurement in run.measurements],
        "elapsed_s": run.elapsed_s,
    }
    return json.dumps(answer | ({"best_effort": run.best_effort.as_dict()} if run.best_effort else {}))


def _parse_run(answer: str) -> testbed_api.Run:
    fields = json.loads(answer)
    effort = fields.get("best_effort")
    measurements = tuple(map(_measurement, fields["measurements"]))
    return testbed_api.Run(
        measurements, float(fields["elapsed_s"]), testbed_api.BestEffort.from_mapping(effort) if effort else None
    )


def _measurement(fields: dict[str, Any]) -> testbed_api.Measurement:
    measured = testbed_api.Measurement(float(fields["throughput_kpps"]), Counters.from_mapping(fields["counters"]))
    latency = fields.get("latency_us")
    return replace(
        measured,
        stages=tuple(testbed_api.StageMeasurement(**stage) for stage in fields.get("stages", ())),
        latency_us=testbed_api.PacketLatency(**latency) if latency else None,
        stages_us=_gpu_stages(fields.get("stages_us")),
        stages_p99_us=_gpu_stages(fields.get("stages_p99_us")),
    )


def _gpu_stages(fields: dict[str, Any] | None) -> testbed_api.GpuStages | None:
    return testbed_api.GpuStages(*(float(fields[name]) for name in testbed_api.GPU_STAGES)) if fields else None


# One process at a time: a lock that the system releases when the process that holds it ends in any way.


@dataclass
class HeldLock:
    """A lock that is held; `release` may be called twice."""

    path: Path
    handle: int | None

    def release(self) -> None:
        """Release the lock and remove its file."""
        if self.handle is not None:
            self.path.unlink(missing_ok=True)
            os.close(self.handle)
        self.handle = None


def hold(journal: Path) -> HeldLock:
    """Hold the lock of a journal, which other processes may go on reading. Raises `InputError` when another process
    holds it."""
    path = journal.with_name(f"{journal.name}.lock")
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            if not isinstance(error, BlockingIOError):
                raise
            raise InputError.of(
                str(journal), "journal is in use", hint="another process may be profiling into the same --out"
            ) from None
        # the previous holder may have removed the file between opening and locking
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return HeldLock(path, handle)
        os.close(handle)
