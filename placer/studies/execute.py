"""Conducts a study: runs its units side by side, keeps each as soon as it is done, and goes on where it ended.

A unit's file is named after everything that its figures depend on, this program included, so whatever is kept may be
used again, and nothing stale is. Results are put together in the order of the units: the same study gives the same
bytes, in one go or in many, on one core or on more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from importlib import import_module
from pathlib import Path

import pandas as pd

from placer.progress import Advance
from placer.studies.executors import Runner, locally
from placer.studies.run_task import Unit
from profiles.aside import file_aside

PROGRAM = ("placer", "predictor", "profiler", "profiles", "traces")
PARTS, RESULTS = "parts", "results.parquet"

NUMBERS = ("draw", "risk", "cost", "violations_pct", "wastage_pct", "violated")
"""Columns that are numbers even where a part of the study knows none."""


def conduct(
    units: Sequence[Unit],
    out: Path,
    *,
    runner: Runner | None = None,
    advance: Advance = lambda done, total: None,
) -> pd.DataFrame:
    """The rows of all units, in their order; `out/results.parquet` holds them too.

    Parameters
    ----------
    units
        What to run.
    out
        The folder of the study; what it holds of these units is not run again.
    runner
        Who runs them; by default this process, one after another.
    advance
        Told how many units are done.

    Raises
    ------
    InputError, TestbedError, BrokenPlan
        From the first unit that fails; those done before are kept.
    """
    parts = [out / PARTS / f"{fingerprint(unit)}.parquet" for unit in units]
    missing = {part: unit for part, unit in zip(parts, units, strict=True) if not part.exists()}
    done = len(units) - len(missing)
    advance(done, len(units))
    tasks = [(str(part), unit) for part, unit in missing.items()]
    for part, rows in (runner or locally(1))(tasks) if tasks else ():
        _write(pd.DataFrame(rows), Path(part))
        done += 1
        advance(done, len(units))
    results = pd.concat([_typed(pd.read_parquet(part)) for part in parts], ignore_index=True)
    _write(results, out / RESULTS)
    return results


def fingerprint(unit: Unit) -> str:
    """A name for everything that the unit's figures depend on."""
    files = [_digest(path) for path in (unit.fleet, unit.models) if path is not None]
    told = json.dumps([asdict(unit), files, _program()], sort_keys=True, default=str)
    return hashlib.sha256(told.encode()).hexdigest()[:24]


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
