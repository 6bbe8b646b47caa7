"""Loads over the day: named shares of a rate, read from CSV or refused whole (docs/formats/arrivals.md)."""

import csv
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TextIO

from profiles import Fault, InputError
from profiles.files.cells import comma_hint, share_of
from profiles.files.lines import LineLimit, open_lines, separator_of

NAME_COLUMN = "name"
MOST_LOADS, MOST_PARTS = 1_000_000, 1_440
HEADER_HINT = "the first line is name,1,2,...,N: N equal parts of a day, as name,1,2,3,4 for four of six hours"
SHARE_HINT = "0.25 or 25 % is a quarter of the rate"


def read_day_loads(source: str | TextIO) -> dict[str, tuple[float, ...]]:
    """By name, the share of its rate that is offered to an instance in each part of the day; all have as many parts.
    Raises `InputError` with every fault of the file."""
    with ExitStack() as stack:
        name, lines = open_lines(source, stack, LineLimit(MOST_LOADS, "loads"))
        reader = csv.reader(lines, strict=True)
        try:
            parts = _count_parts(name, [cell.strip() for cell in next(reader, [])])
            faults: list[Fault] = []
            loads: dict[str, tuple[float, ...]] = {}
            line_of: dict[str, int] = {}
            for row in reader:
                cells = [cell.strip() for cell in row]
                if not any(cells):
                    continue
                line, named = reader.line_num, cells[0]
                if len(cells) != parts + 1:
                    faults.append(Fault(name, line, None, f"has {len(cells)} values, the header has {parts + 1}"))
                elif not named:
                    faults.append(Fault(name, line, NAME_COLUMN, "is empty"))
                elif named in line_of:
                    message = f"'{named}' is already on line {line_of[named]}"
                    faults.append(Fault(name, line, NAME_COLUMN, message, "names must be unique"))
                else:
                    loads[named] = _read_shares(name, line, cells[1:], faults)
                line_of.setdefault(named, line)
        except csv.Error as error:
            raise InputError.of(name, f"is not CSV: {error}", line=reader.line_num) from error
    if not faults and not loads:
        faults.append(Fault(name, None, None, "has a header but no loads"))
    if faults:
        raise InputError(faults)
    return loads


def _count_parts(name: str, header: Sequence[str]) -> int:
    """How many parts the day has by the header; InputError where it is another header."""
    if not any(header):
        raise InputError.of(name, "is empty: not even a header", hint=HEADER_HINT)
    if separator := separator_of(header):
        raise InputError.of(name, f"values are separated by {separator!r}, not by commas", line=1, hint=HEADER_HINT)
    parts = len(header) - 1
    expected = [NAME_COLUMN, *map(str, range(1, parts + 1))]
    faults = [
        Fault(name, 1, found or None, f"is where '{column}' should be" if found else f"column {at} has no name")
        for at, (found, column) in enumerate(zip(header, expected, strict=True), start=1)
        if found.lower() != column
    ]
    if parts < 1:
        faults.append(Fault(name, 1, None, "the day has no parts"))
    if parts > MOST_PARTS:
        faults.append(Fault(name, 1, None, f"the day has {parts:,} parts, more than {MOST_PARTS:,}"))
    if faults:
        raise InputError([*faults[:-1], Fault(name, 1, faults[-1].column, faults[-1].message, HEADER_HINT)])
    return parts


def _read_shares(name: str, line: int, cells: Sequence[str], faults: list[Fault]) -> tuple[float, ...]:
    """The shares of a row; what is wrong in it is added to the faults."""
    before, shares = len(faults), []
    for part, cell in enumerate(cells, start=1):
        share = share_of(cell) if cell else None
        if not cell:
            faults.append(Fault(name, line, str(part), "is empty", "0 where nothing is offered"))
        elif share is None:
            faults.append(Fault(name, line, str(part), f"'{cell}' is not a number", comma_hint(cell) or SHARE_HINT))
        elif not 0 <= share <= 1:
            faults.append(Fault(name, line, str(part), f"{cell} is not from 0 to 1", SHARE_HINT))
        else:
            shares.append(share)
    if len(faults) == before and not any(shares):
        faults.append(Fault(name, line, None, "offers nothing in any part of the day", "leave out the instance"))
    return tuple(shares)
