"""Numeric CSV tables that users may write by hand: read whole, or refused with every fault."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from profiles.aside import file_aside
from profiles.faults import Fault, InputError
from profiles.files.csv_table import CsvTable, not_a_number, read_csv_table
from profiles.text import number_of

if TYPE_CHECKING:
    import pandas as pd

SIGNIFICANT_DIGITS = "%.10g"


def read_table(
    path: Path,
    required: Iterable[str],
    defaults: Mapping[str, float] | None = None,
    *,
    text: Iterable[str] = (),
    positive: Iterable[str] = (),
) -> tuple[pd.DataFrame, list[Fault]]:
    """The table in `path` and what is wrong with it.

    Parameters
    ----------
    path
        A CSV file, as `read_csv_table` reads it; it may have no rows.
    required
        Columns that must be there and filled.
    defaults
        Columns that may be missing or empty, with the value that this means.
    text
        Columns kept as text. The required ones and those with a default are numbers: finite and not negative. Any
        other is numbers if all its cells are, else text: users keep notes.
    positive
        Columns in which 0 is a fault.

    Returns
    -------
    table, faults
        One row per data row, in file order, columns of the file plus those of `defaults`; numbers as float64;
        `table.attrs["lines"]` holds the line of each row. The table is not to be used when there are faults."""
    import pandas as pd

    required, defaults = list(required), dict(defaults or {})
    try:
        written = read_csv_table(str(path), without_rows=True)
    except InputError as error:
        return pd.DataFrame(), list(error.faults)
    missing = [
        Fault(written.name, 1, column, "column is missing") for column in required if column not in written.header
    ]
    if missing:
        return pd.DataFrame(), missing
    numbers = (set(required) | set(defaults)) - set(text)
    columns, faults = _columns(written, _Rules(set(required), defaults, numbers, set(positive)))
    if faults:
        return pd.DataFrame(), faults
    table = pd.DataFrame(columns)
    for column, default in defaults.items():
        if column not in table:
            table[column] = default
    for column in map(str, table.columns):
        if column in numbers:
            table[column] = table[column].astype(np.float64)
        elif column not in set(text):
            table[column] = _numbers_if_all(table[column])
    table.attrs["lines"] = written.lines
    return table, []


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write `table` aside, then rename: ten significant digits, LF, empty for NaN; the same table is the same bytes."""
    with file_aside(path) as aside:
        table.to_csv(aside, index=False, float_format=SIGNIFICANT_DIGITS, lineterminator="\n")


@dataclass(frozen=True)
class _Rules:
    """The rules for cells."""

    required: Set[str]
    defaults: Mapping[str, float]
    numbers: Set[str]
    positive: Set[str]


def _columns(written: CsvTable, rules: _Rules) -> tuple[dict[str, list[object]], list[Fault]]:
    """The values of each column, and all that is wrong in the table, by line."""
    columns: dict[str, list[object]] = {column: [] for column in written.header}
    faults = list(written.faults)
    for line, row in zip(written.lines, written.rows, strict=True):
        for column, cell in zip(written.header, row, strict=True):
            value, wrong = _cell(cell, column, rules)
            columns[column].append(value)
            if wrong:
                faults.append(Fault(written.name, line, column, wrong))
    return columns, sorted(faults, key=lambda fault: fault.line or 0)


def _cell(cell: str, column: str, rules: _Rules) -> tuple[object, str | None]:
    if column not in rules.numbers:
        return cell, "is empty" if column in rules.required and not cell else None
    if not cell:
        return rules.defaults.get(column, math.nan), "is empty" if column in rules.required else None
    value = number_of(cell)
    if value is None:
        return math.nan, not_a_number(cell)
    if value == 0 and column in rules.positive:
        return value, "0 is no measurement"
    return value, f"{cell} is negative" if value < 0 else None


def _numbers_if_all(cells: pd.Series[str]) -> pd.Series[str] | pd.Series[float]:
    import pandas as pd

    numbers = pd.to_numeric(cells, errors="coerce")
    return cells if (numbers.isna() & (cells != "")).any() else numbers.astype(np.float64)
