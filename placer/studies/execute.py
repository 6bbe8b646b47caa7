"""Executes the runs of a study in parallel, keeps each result at once, and continues where it was interrupted. The file
of a result is named after everything that the result depends on, this program included: kept results are used again,
outdated ones never. Results are combined in the order of the tasks, so that the same study gives the same bytes, with
or without interruptions, on one core or many."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import joblib

from placer.progress import Advance
from placer.studies.run_task import Row, RunTask, run_task
from profiles import InputError
from profiles.aside import file_aside

if TYPE_CHECKING:
    import pandas as pd


PROGRAM_PACKAGES = ("placer", "predictor", "profiler", "profiles", "traces")
PARTS_FOLDER, RESULTS_FILE = "parts", "results.parquet"

NUMBER_COLUMNS = (
    "draw", "budget_pct", "risk", "cost", "violations_pct", "expected_violations_pct", "wastage_pct", "violated",
    "spare_nics",
)  # fmt: skip
"""Columns that are numbers even where a part of the study has no values."""


def execute(
    tasks: Sequence[RunTask], out: Path, *, jobs: int = 1, advance: Advance = lambda done, total: None
) -> pd.DataFrame:
    """The rows of all tasks, in their order; also written to `out/results.parquet`.

    `out`: the folder of the study; tasks whose results it holds are not run again. `jobs`: tasks at a time; -1 means
    one per core. `advance`: called with the number of finished tasks and of all.

    Raises InputError when `jobs` is 0. Raises InputError, TestbedError, InvalidPlan from the first task that fails;
    finished results are kept. Raises OSError when a result cannot be written, for example on a full disk."""
    if jobs == 0:
        raise InputError.of("--jobs", "0 runs at a time can finish no study", hint="-1 is one per core")
    import pandas as pd  # only where a study is run: `placer run` loads this room, too

    parts = [out / PARTS_FOLDER / f"{fingerprint(task)}.parquet" for task in tasks]
    missing = {part: task for part, task in zip(parts, tasks, strict=True) if not part.exists()}
    done = len(tasks) - len(missing)
    advance(done, len(tasks))
    named = [(str(part), task) for part, task in missing.items()]
    for part, rows in _in_parallel(named, jobs) if named else ():
        _write(pd.DataFrame(rows), Path(part))
        done += 1
        advance(done, len(tasks))
    results = pd.concat([_set_types(pd.read_parquet(part)) for part in parts], ignore_index=True)
    _write(results, out / RESULTS_FILE)
    return results


def fingerprint(task: RunTask) -> str:
    """A name for everything that the task's results depend on."""
    files = [_digest(path) for path in (task.cards.fleet, task.cards.models) if path is not None]
    return hashlib.sha256(repr((task, files, _program())).encode()).hexdigest()[:24]


def _set_types(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.astype({name: float for name in NUMBER_COLUMNS if name in rows})


def _write(rows: pd.DataFrame, path: Path) -> None:
    with file_aside(path) as aside:
        rows.to_parquet(aside, index=False)


@cache
def _program() -> str:
    return "".join(_digest(Path(str(import_module(name).__file__)).parent) for name in PROGRAM_PACKAGES)


def _digest(root: Path) -> str:
    digest = hashlib.sha256()
    files = [root] if root.is_file() else (path for path in root.rglob("*") if path.suffix not in (".pyc", ""))
    for path in sorted(path for path in files if path.is_file()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _in_parallel(tasks: Sequence[tuple[str, RunTask]], jobs: int) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each task under its name as soon as it is done, in any order."""
    workers = min(joblib.effective_n_jobs(jobs), len(tasks))
    calls = (joblib.delayed(_run)(*task) for task in tasks)
    yield from joblib.Parallel(n_jobs=workers, return_as="generator_unordered")(calls)


def _run(name: str, task: RunTask) -> tuple[str, list[Row]]:
    return name, run_task(task)
