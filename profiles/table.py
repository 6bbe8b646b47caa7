"""Numeric CSV tables that users may write by hand: read whole, or refused with every fault."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from profiles.aside import file_aside
from profiles.faults import Fault

SIGNIFICANT = "%.10g"
NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
"""What Python takes for a number beyond this, such as 1_0 or digits of other scripts, is a typing error."""


def read_table(
    path: Path,
    required: Iterable[str],
    defaults: Mapping[str, float] | None = None,
    *,
    text: Iterable[str] = (),
    positive: Iterable[str] = (),
    shown_as: str | None = None,
) -> tuple[pd.DataFrame, list[Fault]]:
    """The table in `path` and what is wrong with it.

    Parameters
    ----------
    path
        A CSV file, UTF-8 with or without byte order mark.
    required
        Columns that must be there and filled.
    defaults
        Columns that may be missing or empty, with the value that this means.
    text
        Columns kept as text. The required ones and those with a default are numbers: finite and not negative. Any
        other is numbers if all its cells are, else text: users keep notes.
    positive
        Columns in which 0 is a fault.
    shown_as
        The name of the file in faults.

    Returns
    -------
    table, faults
        One row per data row, in file order, columns of the file plus those of `defaults`; numbers as float64;
        `table.attrs["lines"]` holds the line of each row. The table is not to be used when there are faults.
    """
    name = shown_as or str(path)
    required, defaults = list(required), dict(defaults or {})
    try:
        header, rows = _rows(path)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        return pd.DataFrame(), [Fault(name, None, None, f"cannot be read as CSV: {error}")]
    if header is None:
        return pd.DataFrame(), [Fault(name, None, None, "is empty: not even a header")]
    if len(header) == 1 and ";" in header[0]:
        hint = "separate columns by commas, and write decimal numbers with a point"
        return pd.DataFrame(), [Fault(name, 1, None, "columns are separated by semicolons", hint)]
    faults = [Fault(name, 1, column, "column is missing") for column in required if column not in header]
    faults += [
        Fault(name, 1, column, "column named twice") for column in sorted(set(header)) if header.count(column) > 1
    ]
    if faults:
        return pd.DataFrame(), faults
    numbers = (set(required) | set(defaults)) - set(text)
    columns, faults = _columns(name, header, rows, _Rules(set(required), defaults, numbers, set(positive)))
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
    table.attrs["lines"] = [line for line, _ in rows]
    return table, []


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write `table` aside, then rename: ten significant digits, LF, empty for NaN; the same table is the same bytes."""
    with file_aside(path) as aside:
        table.to_csv(aside, index=False, float_format=SIGNIFICANT, lineterminator="\n")


def _rows(path: Path) -> tuple[list[str] | None, list[tuple[int, list[str]]]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        header = next(reader, None)
        rows = [(reader.line_num, row) for row in reader if row]
    return (None, []) if not header else ([column.strip() for column in header], rows)


@dataclass(frozen=True)
class _Rules:
    """The rules for cells."""

    required: Set[str]
    defaults: Mapping[str, float]
    numbers: Set[str]
    positive: Set[str]


def _columns(
    name: str, header: Sequence[str], rows: Iterable[tuple[int, list[str]]], rules: _Rules
) -> tuple[dict[str, list[object]], list[Fault]]:
    columns: dict[str, list[object]] = {column: [] for column in header}
    faults = []
    for line, row in rows:
        if len(row) != len(header):
            faults.append(Fault(name, line, None, f"has {len(row)} values, the header {len(header)}"))
            continue
        for column, cell in zip(header, row, strict=True):
            value, wrong = _cell(cell.strip(), column, rules)
            columns[column].append(value)
            if wrong:
                faults.append(Fault(name, line, column, wrong))
    return columns, faults


def _cell(cell: str, column: str, rules: _Rules) -> tuple[object, str | None]:
    if column not in rules.numbers:
        return cell, "is empty" if column in rules.required and not cell else None
    if not cell:
        return rules.defaults.get(column, math.nan), "is empty" if column in rules.required else None
    try:
        value = float(cell)
    except ValueError:
        return math.nan, f"'{cell}' is not a number"
    if math.isfinite(value) and not NUMBER.fullmatch(cell):
        return math.nan, f"'{cell}' is not a number"
    if not math.isfinite(value):
        return math.nan, f"{cell} is not a finite number"
    if value == 0 and column in rules.positive:
        return value, "0 is no measurement"
    return value, f"{cell} is negative" if value < 0 else None


def _numbers_if_all(cells: pd.Series[str]) -> pd.Series[str] | pd.Series[float]:
    numbers = pd.to_numeric(cells, errors="coerce")
    return cells if (numbers.isna() & (cells != "")).any() else numbers.astype(np.float64)
