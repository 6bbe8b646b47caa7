"""Arrivals: the trace of NF instances to place, read from CSV or refused whole (docs/formats.md)."""

from __future__ import annotations

import csv
import gzip
import io
import math
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from placer.model.arrival import Arrival
from placer.model.sla import Sla
from profiles import ATTRIBUTES, Fault, InputError, TrafficProfile, Workload

REQUIRED = ("id", "time", "nf")
SLA_COLUMNS = ("sla_drop", "sla_min_kpps")
COLUMNS = (*REQUIRED, *ATTRIBUTES, *SLA_COLUMNS, "departure")
STDIN = "-"

RangeCheck = Callable[[Workload], Sequence[tuple[str, str]]]
"""Tells which columns of a workload are outside what is profiled, and how."""


def read_arrivals(path: str, default_traffic: TrafficProfile, check: RangeCheck) -> list[Arrival]:
    """The arrivals of a file, in its order.

    Parameters
    ----------
    path
        `.csv`, `.csv.gz`, or `-` for standard input.
    default_traffic
        What a missing or empty traffic column means.
    check
        Refuses NFs that are not profiled and traffic outside the profiled range.

    Raises
    ------
    InputError
        With every fault of the file.
    """
    name = "<stdin>" if path == STDIN else path
    reader = csv.reader(io.StringIO(_text(path, name), newline=""))
    try:
        header = [column.strip() for column in next(reader, [])]
        if faults := _header_faults(name, header):
            raise InputError(faults)
        rows = _Rows(name, header, default_traffic, check)
        arrivals = [arrival for arrival in map(rows.read, _filled(reader)) if arrival]
    except csv.Error as error:
        raise InputError.of(name, f"is not CSV: {error}", line=reader.line_num) from error
    if rows.faults:
        raise InputError(rows.faults)
    if not arrivals:
        raise InputError.of(name, "has a header but no arrivals")
    return arrivals


def _text(path: str, name: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
        raw = gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
        if b"\0" in raw:
            raise InputError.of(name, "holds a NUL byte: it is not text", line=_line_at(raw, raw.index(b"\0")))
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = _line_at(raw, error.start)
        raise InputError.of(name, "is not UTF-8 text", line=line, hint="save the file as UTF-8") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError.of(name, f"is not a whole gzip file: {error}") from error
    except OSError as error:
        raise InputError.of(name, error.strerror or str(error)) from error


def _line_at(raw: bytes, position: int) -> int:
    return raw[:position].count(b"\n") + 1


def _header_faults(name: str, header: Sequence[str]) -> list[Fault]:
    if not any(header):
        hint = f"the first line names the columns: {', '.join(COLUMNS)}"
        return [Fault(name, None, None, "is empty: not even a header", hint)]
    hint = f"columns are {', '.join(COLUMNS)}"
    faults = [Fault(name, 1, column, "unknown column", hint) for column in header if column not in COLUMNS]
    faults += [Fault(name, 1, c, "column named twice") for c in COLUMNS if header.count(c) > 1]
    faults += [Fault(name, 1, column, "column is missing", hint) for column in REQUIRED if column not in header]
    if not any(column in header for column in SLA_COLUMNS):
        faults.append(Fault(name, 1, "sla_drop", "column is missing, and so is sla_min_kpps", hint))
    return faults


def _filled(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    for row in reader:
        if row:
            yield reader.line_num, row  # type: ignore[attr-defined]


class _Rows:
    """Reads row after row, remembering ids and time, and collects every fault on the way."""

    def __init__(self, name: str, header: list[str], default_traffic: TrafficProfile, check: RangeCheck) -> None:
        self.faults: list[Fault] = []
        self._name = name
        self._header = header
        self._default = default_traffic.as_dict()
        self._check = check
        self._line = 1
        self._ids: dict[str, int] = {}
        self._time = 0.0
        self._checked: dict[Workload, Sequence[tuple[str, str]]] = {}

    def read(self, numbered: tuple[int, list[str]]) -> Arrival | None:
        """The arrival of a row, or None when the row has faults."""
        self._line, row = numbered
        before = len(self.faults)
        if len(row) != len(self._header):
            self._fault(None, f"has {len(row)} values, the header has {len(self._header)}")
            return None
        cells = {column: cell.strip() for column, cell in zip(self._header, row, strict=True)}
        identity = self._identity(cells)
        time = self._arrival_time(cells)
        departure = self._departure(cells, time)
        sla = self._sla(cells)
        workload = self._workload(cells)
        if len(self.faults) > before or workload is None or sla is None or time is None:
            return None
        return Arrival(identity, time, workload, sla, departure)

    def _fault(self, column: str | None, message: str, hint: str | None = None) -> None:
        self.faults.append(Fault(self._name, self._line, column, message, hint))

    def _number(self, cells: Mapping[str, str], column: str) -> float | None:
        """The number in a cell; None for an empty cell or, with a fault, for what is no number."""
        cell = cells.get(column, "")
        if not cell:
            return None
        try:
            value = float(cell) if "_" not in cell else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self._fault(column, f"'{cell}' is not a number")
            return None
        return value

    def _identity(self, cells: Mapping[str, str]) -> str:
        identity = cells["id"]
        if not identity:
            self._fault("id", "is empty")
        elif identity in self._ids:
            self._fault("id", f"'{identity}' is already on line {self._ids[identity]}", "ids must be unique")
        else:
            self._ids[identity] = self._line
        return identity

    def _arrival_time(self, cells: Mapping[str, str]) -> float | None:
        if not cells["time"]:
            self._fault("time", "is empty")
            return None
        time = self._number(cells, "time")
        if time is None:
            return None
        if time < 0:
            self._fault("time", f"{cells['time']} is before 0")
        elif time < self._time:
            self._fault("time", f"{cells['time']} is before {self._time:g}, the row above", "sort the file by time")
        self._time = max(self._time, time)
        return time

    def _departure(self, cells: Mapping[str, str], time: float | None) -> float | None:
        departure = self._number(cells, "departure")
        if departure is not None and time is not None and departure <= time:
            self._fault("departure", f"{cells['departure']} is not after the arrival at {cells['time']}")
        return departure

    def _sla(self, cells: Mapping[str, str]) -> Sla | None:
        given = [column for column in SLA_COLUMNS if cells.get(column)]
        if not given:
            self._fault("sla_drop", "no SLA", "fill sla_drop, or sla_min_kpps")
            return None
        if len(given) > 1:
            self._fault("sla_min_kpps", "two SLAs", "fill sla_drop or sla_min_kpps, not both")
            return None
        value = self._number(cells, given[0])
        if value is None:
            return None
        if given[0] == "sla_drop":
            if 0 <= value < 1:
                return Sla(max_drop=value)
            self._fault("sla_drop", f"{cells['sla_drop']} is not in [0, 1)", "0.1 allows a drop of 10 %")
        elif value > 0:
            return Sla(min_kpps=value)
        else:
            self._fault("sla_min_kpps", f"{cells['sla_min_kpps']} is not above 0")
        return None

    def _workload(self, cells: Mapping[str, str]) -> Workload | None:
        nf = cells["nf"]
        if not nf:
            self._fault("nf", "is empty")
            return None
        before = len(self.faults)
        given = {attribute: self._number(cells, attribute) for attribute in ATTRIBUTES}
        if len(self.faults) > before:
            return None
        values = {name: self._default[name] if value is None else value for name, value in given.items()}
        workload = Workload(nf, TrafficProfile.from_mapping(values))
        if workload not in self._checked:
            self._checked[workload] = self._check(workload)
        for column, message in self._checked[workload]:
            self._fault(column, message)
        return workload
