"""Measured curves, and points to predict: CSV files of `placer fit`, read or refused whole (docs/formats/curves.md)."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.fitting.points import MeasuredCurve
from profiles import Fault, InputError
from profiles.faults import printable, suggestion
from profiles.files.csv_table import CsvTable, read_csv_table
from profiles.text import number_of

LEAST_X = 3  # distinct x of a curve: a straight line has two parameters, and one point more shows whether it is one
MOST_X = 20_000
MOST_SETTINGS = 1_000
SHOWN_SETTINGS = 10

Setting = tuple[float, ...]


@dataclass(frozen=True)
class CurveFile:
    """What a file of measurements holds. `curves`: one per combination of the settings' values, by rising values.
    `settings`: names of the columns that are settings. `notes`: what users should know of how the file was read.
    `name`: of the file, for messages."""

    curves: tuple[MeasuredCurve, ...]
    settings: tuple[str, ...]
    notes: tuple[str, ...]
    name: str


@dataclass(frozen=True)
class CurvePoints:
    """Points to predict. `table`: as they are written. `x`: shape (rows,). `fits`: which of the fits holds for each
    row, shape (rows,)."""

    table: CsvTable
    x: NDArray[np.float64]
    fits: NDArray[np.intp]


def read_curves(
    source: str, x: Sequence[str] = (), y: str | None = None, error: str | None = None, breaks: Sequence[float] = ()
) -> CurveFile:
    """The curves of a `.csv` or `.csv.gz` file, or of standard input for `-`. `source`: path or `-`. `x`: the column of
    x, then those of settings; empty if the file says by itself. `y`: the column that was measured; None if the file
    says by itself. `error`: the column of standard deviations of the measurements. `breaks`: given breakpoints, which
    must be inside of every curve. Raises `InputError` with every fault."""
    of_error = [] if error is None else [error]
    table = read_csv_table(source, used=(*x, y, *of_error) if x and y is not None else ())
    if table.header[0].startswith("{"):
        hint = "a model is read from a file, or from standard input by `-`"
        raise InputError.of(table.name, "is JSON, not CSV", line=1, hint=hint)
    notes = []
    given = (*x, *([] if y is None else [y]), *of_error)
    by_option = {**dict.fromkeys(of_error, "--error"), **dict.fromkeys(x, "--x"), **({} if y is None else {y: "--y"})}
    _need(table, given, by_option)
    if not x or y is None:
        x, y = _choose(table, x, y, of_error)
        notes.append(f"{table.name}: fits {printable(y)} over {printable(x[0])}: no other columns hold numbers")
    columns = {name: table.numbers(name) for name in (*x, y, *of_error)}
    for name in of_error:
        table.faults.extend(
            Fault(table.name, line, name, f"is {value:g}, not above 0")
            for line, value in zip(table.lines, columns[name].tolist(), strict=True)
            if value <= 0
        )
    if table.faults:
        raise InputError(table.faults)
    return CurveFile(_curves(table, columns, tuple(x), y, error, breaks), tuple(x[1:]), tuple(notes), table.name)


def read_points(source: str, x: str, settings: Sequence[Mapping[str, float]]) -> CurvePoints:
    """Points to predict by fits over `x`, of a file or standard input. `source`: path or `-`. `x`: its column of x.
    `settings`: the setting of each fit; all name the same columns. Raises `InputError` with every fault."""
    names = list(settings[0])
    table = read_csv_table(source, used=(x, *names))
    _need(table, (x, *names), dict.fromkeys((x, *names), "the fit"))
    at = table.numbers(x)
    rows = list(zip(*(table.numbers(name).tolist() for name in names), strict=True)) if names else [()] * len(at)
    known = {tuple(one[name] for name in names): number for number, one in enumerate(settings)}
    if not table.faults:
        for row, line in zip(rows, table.lines, strict=True):
            if row not in known:
                fault = f"{_show(names, row)} was not fitted"
                table.faults.append(Fault(table.name, line, names[0], fault, _find_settings(names, list(known))))
    if table.faults:
        raise InputError(table.faults)
    return CurvePoints(table, at, np.array([known[row] for row in rows], dtype=np.intp))


def _choose(table: CsvTable, x: Sequence[str], y: str | None, used: Sequence[str]) -> tuple[list[str], str]:
    """The columns that the file itself determines: its only ones with numbers, first x, then y."""
    given = [*x, *([] if y is None else [y]), *used]
    others = [name for name in table.header if name not in given]
    numbers = [name for name in others if _holds_numbers(table, name)]
    lacking = (not x) + (y is None)
    for candidates in (numbers, others):
        if len(candidates) == lacking:
            if unnamed := [name for name in candidates if number_of(name) is not None]:
                hint = "the first line names the columns; if these are names, give --x and --y"
                raise InputError.of(
                    table.name, f"{unnamed[0]} is a number, not the name of a column", line=1, hint=hint
                )
            left = iter(candidates)
            return [*x] or [next(left)], next(left) if y is None else y
    hint = f"columns with numbers: {', '.join(numbers)}" if numbers else "no column holds numbers"
    options = " and ".join(option for option, lacks in (("--x", not x), ("--y", y is None)) if lacks)
    verb = "are" if lacking == 2 else "is"
    raise InputError.of(table.name, f"{options} {verb} needed", hint=hint)


def _holds_numbers(table: CsvTable, name: str) -> bool:
    """Whether most filled cells of a column are numbers: the others are faults, if it is used."""
    filled = [cell for cell in table.cells(name) if cell]
    return 2 * sum(number_of(cell) is not None for cell in filled) > len(filled)


def _need(table: CsvTable, names: Sequence[str], named_by: Mapping[str, str]) -> None:
    """InputError when columns are missing, named twice, or rows cannot be read."""
    for name in dict.fromkeys(names):
        if name not in table.header:
            several = [part.strip() for part in name.split(",")]
            hint = f"{named_by[name]} names it; {suggestion(name, table.header)}"
            if len(several) > 1 and set(several) <= set(table.header):
                hint = f"name one column each: {' '.join(f'{named_by[name]} {part}' for part in several)}"
            table.faults.append(Fault(table.name, 1, name, "column is missing", hint))
        if names.count(name) > 1:
            hint = "x, y and each setting are different columns"
            table.faults.append(Fault("--x", None, None, f"'{name}' is named twice", hint))
    if any(name not in table.header for name in names) or len(set(names)) < len(names):
        raise InputError(table.faults)


def _curves(
    table: CsvTable,
    columns: Mapping[str, NDArray[np.float64]],
    x: tuple[str, ...],
    y: str,
    error: str | None,
    breaks: Sequence[float],
) -> tuple[MeasuredCurve, ...]:
    """One curve per setting."""
    groups: dict[Setting, list[int]] = {}
    values = [columns[name].tolist() for name in x[1:]]
    for row in range(len(table.rows)):
        groups.setdefault(tuple(column[row] for column in values), []).append(row)
    if len(groups) > MOST_SETTINGS:
        hint = "name only columns of few different values after the first --x"
        raise InputError.of(table.name, f"holds {len(groups):,} settings, more than {MOST_SETTINGS:,}", hint=hint)
    curves = []
    for setting, rows in sorted(groups.items()):
        named = dict(zip(x[1:], setting, strict=True))
        errors = None if error is None else columns[error][rows]
        curve = MeasuredCurve(x[0], y, columns[x[0]][rows], columns[y][rows], named, errors)
        table.faults.extend(_curve_faults(table, curve, table.lines[rows[0]]) or _break_faults(curve, breaks))
        curves.append(curve)
    if table.faults:
        raise InputError(table.faults)
    return tuple(curves)


def _curve_faults(table: CsvTable, curve: MeasuredCurve, line: int) -> list[Fault]:
    different = np.unique(curve.x)
    where = f" at {_show(list(curve.setting), tuple(curve.setting.values()))}" if curve.setting else ""
    at = line if curve.setting else None
    hint = None
    if len(different) == 1:
        message = f"does not vary{where}: it is {different[0]:g} in every row"
        hint = "--x names the column that was varied"
    elif len(different) < LEAST_X:
        message = f"has {len(different)} different values{where}; a fit needs at least {LEAST_X}"
        hint = "measure at more values"
    elif len(different) > MOST_X:
        message = f"has {len(different):,} different values{where}, more than {MOST_X:,}"
        hint = "round them, or average rows of about the same value"
    else:
        return []
    return [Fault(table.name, at, curve.x_name, message, hint)]


def _break_faults(curve: MeasuredCurve, breaks: Sequence[float]) -> list[Fault]:
    """What is wrong with given breakpoints: each must have points of the curve on both sides, to the next ones."""
    edges = np.array([-np.inf, *sorted(breaks), np.inf])
    if not len(breaks) or np.all(np.histogram(curve.x, edges)[0] if np.isfinite(breaks).all() else 0):
        return []
    where = f" at {_show(list(curve.setting), tuple(curve.setting.values()))}" if curve.setting else ""
    message = f"leaves a segment without measurements{where}: {curve.x_name} is {curve.x.min():g} to {curve.x.max():g}"
    return [Fault("--break", None, None, message, "give each breakpoint once, with measurements on both sides")]


def _show(names: Sequence[str], setting: Setting) -> str:
    return ", ".join(f"{name}={value:.12g}" for name, value in zip(names, setting, strict=True))


def _find_settings(names: Sequence[str], known: Sequence[Setting]) -> str:
    shown = [_show(names, setting) for setting in itertools.islice(known, SHOWN_SETTINGS)]
    more = "; ..." if len(known) > SHOWN_SETTINGS else ""
    return f"there are fits of {'; '.join(shown)}{more}"
