"""Executes the runs of a study in parallel, keeps each result at once, and continues where it was interrupted.

The file of a result is named after everything that the result depends on, this program included: kept results are
used again, outdated ones never. Results are combined in the order of the tasks, so that the same study gives the same
bytes, with or without interruptions, on one core or many.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

import pandas as pd

from placer.progress import Advance
from placer.studies.executors import Executor, local_executor
from placer.studies.run_task import RunTask
from profiles.aside import file_aside

PROGRAM = ("placer", "predictor", "profiler", "profiles", "traces")
PARTS, RESULTS = "parts", "results.parquet"

NUMBERS = (
    "draw", "budget_pct", "risk", "cost", "violations_pct", "expected_violations_pct", "wastage_pct", "violated",
)  # fmt: skip
"""Columns that are numbers even where a part of the study has no values."""


def execute(
    tasks: Sequence[RunTask],
    out: Path,
    *,
    executor: Executor | None = None,
    advance: Advance = lambda done, total: None,
) -> pd.DataFrame:
    """The rows of all tasks, in their order; also written to `out/results.parquet`.

    Parameters
    ----------
    tasks
        What to run.
    out
        The folder of the study; tasks whose results it holds are not run again.
    executor
        Runs the tasks; by default this process, one after another.
    advance
        Called with the number of finished tasks and of all.

    Raises
    ------
    InputError, TestbedError, InvalidPlan
        From the first task that fails; finished results are kept.
    OSError
        When a result cannot be written, for example on a full disk.
    """
    parts = [out / PARTS / f"{fingerprint(task)}.parquet" for task in tasks]
    missing = {part: task for part, task in zip(parts, tasks, strict=True) if not part.exists()}
    done = len(tasks) - len(missing)
    advance(done, len(tasks))
    named = [(str(part), task) for part, task in missing.items()]
    for part, rows in (executor or local_executor(1))(named) if named else ():
        _write(pd.DataFrame(rows), Path(part))
        done += 1
        advance(done, len(tasks))
    results = pd.concat([_typed(pd.read_parquet(part)) for part in parts], ignore_index=True)
    _write(results, out / RESULTS)
    return results


def fingerprint(task: RunTask) -> str:
    """A name for everything that the task's results depend on."""
    files = [_digest(path) for path in (task.cards.fleet, task.cards.models) if path is not None]
    return hashlib.sha256(repr((task, files, _program())).encode()).hexdigest()[:24]


def _typed(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.astype({name: float for name in NUMBERS if name in rows})


def _write(rows: pd.DataFrame, path: Path) -> None:
    with file_aside(path) as aside:
        rows.to_parquet(aside, index=False)


@cache
def _program() -> str:
    return "".join(_digest(Path(str(import_module(name).__file__)).parent) for name in PROGRAM)


def _digest(root: Path) -> str:
    digest = hashlib.sha256()
    files = [root] if root.is_file() else (path for path in root.rglob("*") if path.suffix not in (".pyc", ""))
    for path in sorted(path for path in files if path.is_file()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
