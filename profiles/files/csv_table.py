"""A CSV file of somebody's measurements: its cells as they are written, with the line of each row."""

import csv
import math
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from profiles import Fault, InputError
from profiles.files.cells import DECIMAL_POINT, comma_hint
from profiles.files.lines import LineLimit, open_lines, separator_of
from profiles.text import number_of

MOST_ROWS = 1_000_000
LARGEST_NUMBER = 1e15  # above every measurement; arithmetic with larger numbers overflows


@dataclass(frozen=True)
class CsvTable:
    """A table as it is written."""

    name: str  # of the file, for messages
    header: list[str]  # column names, without columns that have no name, such as the index that pandas writes
    rows: list[list[str]]  # cells without blanks around them, one list per row
    lines: list[int]  # the line of each row
    faults: list[Fault] = field(default_factory=list)  # what is wrong in it, collected by those who read its cells

    def cells(self, column: str) -> list[str]:
        """The cells of a column."""
        at = self.header.index(column)
        return [row[at] for row in self.rows]

    def numbers(self, column: str, *, optional: bool = False) -> NDArray[np.float64]:
        """The numbers of a column, shape (rows,); NaN where a cell is none, which is a fault. `column`: its name.
        `optional`: whether an empty cell is no fault."""
        values = np.full(len(self.rows), np.nan)
        for row, cell in enumerate(self.cells(column)):
            value = number_of(cell)
            if value is not None and abs(value) <= LARGEST_NUMBER:
                values[row] = value
            elif value is not None:
                self._fault(row, column, f"{cell} is above {LARGEST_NUMBER:g}")
            elif cell:
                self._fault(row, column, not_a_number(cell), comma_hint(cell))
            elif not optional:
                self._fault(row, column, "is empty")
        return values

    def is_numeric(self, column: str) -> bool:
        """Whether every filled cell of a column is a number."""
        return all(not cell or number_of(cell) is not None for cell in self.cells(column))

    def _fault(self, row: int, column: str, message: str, hint: str | None = None) -> None:
        self.faults.append(Fault(self.name, self.lines[row], column, message, hint))


def not_a_number(cell: str) -> str:
    """What is wrong with a cell that `number_of` does not take."""
    try:
        finite = math.isfinite(float(cell))
    except ValueError:
        finite = True
    return f"'{cell}' is not a {'number' if finite else 'finite number'}"


def read_csv_table(source: str, *, used: Collection[str] = (), without_rows: bool = False) -> CsvTable:
    """The table in a `.csv` or `.csv.gz` file, or in standard input for `-`. `used`: the columns that are used, where
    that is known: others may then lack a name, or share it. Raises `InputError` when it cannot be read, is no CSV, has
    no header, or has no rows and `without_rows` is false."""
    faults: list[Fault] = []
    rows, lines = [], []
    with ExitStack() as stack:
        name, text = open_lines(source, stack, LineLimit(MOST_ROWS, "rows"))
        reader = csv.reader(text, strict=True)
        try:
            header = [column.strip() for column in next(reader, [])]
            if faults := _header_faults(name, header, used):
                raise InputError(faults)
            for row in reader:
                if len(row) == len(header):
                    rows.append([cell.strip() for cell in row])
                    lines.append(reader.line_num)
                elif row:
                    faults.append(_wrong_length(name, reader.line_num, len(row), len(header)))
        except csv.Error as error:
            raise InputError.of(name, f"is not CSV: {error}", line=reader.line_num) from error
    while rows and not any(rows[-1]):  # as spreadsheets write them
        rows.pop()
        lines.pop()
    if not rows and not faults and not without_rows:
        raise InputError.of(name, "has a header but no rows")
    named = [at for at, column in enumerate(header) if column]
    if len(named) < len(header):
        header, rows = [header[at] for at in named], [[row[at] for at in named] for row in rows]
    return CsvTable(name, header, rows, lines, faults)


def _wrong_length(name: str, line: int, values: int, columns: int) -> Fault:
    hint = DECIMAL_POINT if values > columns else None
    return Fault(name, line, None, f"has {values} values, the header has {columns}", hint)


def _header_faults(name: str, header: list[str], used: Collection[str]) -> list[Fault]:
    if not any(header):
        return [Fault(name, None, None, "is empty: not even a header", "the first line names the columns")]
    if separator := separator_of(header):
        return [Fault(name, 1, None, f"values are separated by {separator!r}, not by commas", DECIMAL_POINT)]
    index = next(at for at, column in enumerate(header) if column)
    nameless = [] if used else [at for at, column in enumerate(header[index:], index + 1) if not column]
    faults = [Fault(name, 1, None, f"column {at} has no name") for at in nameless]
    twice = sorted({column for column in used or header if column and header.count(column) > 1})
    return faults + [Fault(name, 1, column, "column named twice") for column in twice]
