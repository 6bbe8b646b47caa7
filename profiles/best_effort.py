"""`best-effort.csv` of a profile directory: runs that the testbed could not measure undisturbed (docs/host-testbed.md).
Their throughputs are in the other files like those of all runs; this file says which they are, and how large their
errors may be. A profile without such runs has no such file."""

from pathlib import Path

import pandas as pd

from profiles.faults import InputError
from profiles.profile import KPPS_COLUMN, RUN_COLUMN
from profiles.table import read_table

BEST_EFFORT = "best-effort.csv"
ERROR_COLUMN, DISTURBED_COLUMN = "standard_error_pct", "disturbed_pct"
TEXT_COLUMNS = ["purpose", "kind", "name", "settings"]
BEST_EFFORT_COLUMNS = [RUN_COLUMN, *TEXT_COLUMNS, KPPS_COLUMN, ERROR_COLUMN, DISTURBED_COLUMN]
"""A row per workload of each run; an unknown error or share of disturbed windows is empty."""


def read_best_effort(directory: Path) -> pd.DataFrame:
    """The runs of the profile in `directory` that are best effort, a row per workload; empty where there are none.
    Raises `InputError` with every fault of the file."""
    path = directory / BEST_EFFORT
    if not path.exists():
        return pd.DataFrame(columns=BEST_EFFORT_COLUMNS)
    table, faults = read_table(
        path, [RUN_COLUMN, KPPS_COLUMN], {ERROR_COLUMN: float("nan"), DISTURBED_COLUMN: float("nan")}, text=TEXT_COLUMNS
    )
    if faults:
        raise InputError(faults)
    return table


def best_effort_summary(table: pd.DataFrame, runs: int | None = None) -> str:
    """How many of the profile's `runs` are best effort, and how large their errors are: of each run the largest."""
    errors = table.groupby(RUN_COLUMN)[ERROR_COLUMN].max().dropna()
    of_all = "" if runs is None else f" of {runs:,}"
    counted = f"best-effort runs, disturbed by other work: {table[RUN_COLUMN].nunique():,}{of_all}"
    if errors.empty:
        return f"{counted}, with unknown errors ({BEST_EFFORT})"
    middle, largest = errors.median(), errors.max()
    return f"{counted}; standard error {middle:.1f} % in the median, {largest:.1f} % at most ({BEST_EFFORT})"
