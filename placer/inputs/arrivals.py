"""Arrivals: the trace of NF instances to place, read from CSV or refused whole (docs/formats.md).

A file is read line by line, so that its size is limited by `MOST_ARRIVALS` and not by what it unpacks to.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TextIO

from placer.inputs.lines import LineLimit, open_lines, separator_of
from placer.model.arrival import Arrival
from placer.model.offered import offered_of
from placer.model.sla import Sla
from profiles import ATTRIBUTES, Fault, InputError, TrafficProfile, Workload
from profiles.text import number_of

REQUIRED = ("id", "time", "nf")
SLA_COLUMNS = ("sla_drop", "sla_min_kpps")
RATE, LATENCY = "rate_kpps", "sla_latency_us"
COLUMNS = (*REQUIRED, *ATTRIBUTES, *SLA_COLUMNS, RATE, LATENCY, "departure")
SMALLEST, LARGEST = 1e-6, 1e12
"""Of rates and latencies."""

MOST_ARRIVALS = 20_000_000
MOST_FAULTS = 10_000
"""Reading stops after this many faults; the first of them are shown, and how many more were found."""
RangeCheck = Callable[[Workload], Sequence[tuple[str, str]]]
"""Which columns of a workload are outside what is profiled, and how."""


def read_arrivals(source: str | TextIO, default_traffic: TrafficProfile, check: RangeCheck) -> list[Arrival]:
    """The arrivals of a file, in its order.

    Parameters
    ----------
    source
        A path of a `.csv` or `.csv.gz` file, `-` for standard input, or an open text file.
    default_traffic
        What a missing or empty traffic column means.
    check
        Refuses NFs that are not profiled and traffic outside the profiled range.

    Raises
    ------
    InputError
        With every fault of the file.
    """
    with ExitStack() as stack:
        name, lines = open_lines(source, stack, LineLimit(MOST_ARRIVALS, "arrivals", "split the trace"))
        reader = csv.reader(lines, strict=True)
        try:
            header = [column.strip() for column in next(reader, [])]
            if faults := _header_faults(name, header):
                raise InputError(faults)
            rows = _Rows(name, header, default_traffic, check)
            arrivals = [arrival for row in reader if row and (arrival := rows.read(reader.line_num, row))]
        except csv.Error as error:
            raise InputError.of(name, f"is not CSV: {error}", line=reader.line_num) from error
    if rows.faults:
        raise InputError(rows.faults)
    if not arrivals:
        raise InputError.of(name, "has a header but no arrivals")
    return arrivals


def _header_faults(name: str, header: Sequence[str]) -> list[Fault]:
    if not any(header):
        hint = f"the first line names the columns: {', '.join(COLUMNS)}"
        return [Fault(name, None, None, "is empty: not even a header", hint)]
    if separator := separator_of(header):
        hint = "separate values by commas, and write decimals with a point: 0.1"
        return [Fault(name, 1, None, f"values are separated by {separator!r}, not by commas", hint)]
    hint = f"columns are {', '.join(COLUMNS)}"
    faults = [Fault(name, 1, column, "unknown column", hint) for column in header if column not in COLUMNS]
    faults += [Fault(name, 1, c, "column named twice") for c in COLUMNS if header.count(c) > 1]
    faults += [Fault(name, 1, column, "column is missing", hint) for column in REQUIRED if column not in header]
    if not any(column in header for column in (*SLA_COLUMNS, LATENCY)):
        faults.append(Fault(name, 1, "sla_drop", "column is missing, and so is sla_min_kpps", hint))
    return faults


class _Rows:
    """Reads row after row and collects every fault. Equal workloads and SLAs become one object, which saves memory."""

    def __init__(self, name: str, header: list[str], default_traffic: TrafficProfile, check: RangeCheck) -> None:
        self.faults: list[Fault] = []
        self._name = name
        self._header = header
        self._default = default_traffic.as_dict()
        self._check = check
        self._line = 1
        self._ids: dict[str, int] = {}
        self._time = 0.0
        self._workloads: dict[tuple[str, ...], Workload] = {}
        self._slas: dict[tuple[str, ...], Sla] = {}
        self._offered = [column for column in (RATE, LATENCY) if column in header]

    def read(self, line: int, row: list[str]) -> Arrival | None:
        """The arrival of a row, or None when the row has faults."""
        self._line = line
        before = len(self.faults)
        if before >= MOST_FAULTS:
            raise InputError(self.faults)
        if len(row) != len(self._header):
            hint = "write decimals with a point: 0.1" if len(row) > len(self._header) else None
            self._fault(None, f"has {len(row)} values, the header has {len(self._header)}", hint)
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
        value = number_of(cell)
        if value is None:
            hint = "write decimals with a point: 0.1" if "," in cell else None
            self._fault(column, f"'{cell}' is not a number", hint)
        return value

    def _positive(self, cells: Mapping[str, str], column: str) -> float | None:
        """The number in a cell, which must be above 0; as `_number`."""
        value = self._number(cells, column)
        if value is None or SMALLEST <= value <= LARGEST:
            return value
        self._fault(column, f"{cells[column]} is not above 0" if value <= 0 else f"{cells[column]} is out of range")
        return None

    def _identity(self, cells: Mapping[str, str]) -> str:
        identity = cells["id"]
        if not identity:
            self._fault("id", "is empty")
        elif not identity.isprintable():
            self._fault("id", f"{identity!r} has a line break or another control character")
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
            self._fault("time", f"{cells['time']} is below 0")
        elif time < self._time:
            self._fault("time", f"{cells['time']} is before {self._time:g} of the row above", "sort the file by time")
        self._time = max(self._time, time)
        return time

    def _departure(self, cells: Mapping[str, str], time: float | None) -> float | None:
        departure = self._number(cells, "departure")
        if departure is not None and time is not None and departure <= time:
            self._fault("departure", f"{cells['departure']} is not after the arrival at {cells['time']}")
        return departure

    def _sla(self, cells: Mapping[str, str]) -> Sla | None:
        key = tuple(cells.get(column, "") for column in (*SLA_COLUMNS, *self._offered))
        if key not in self._slas:
            sla = self._new_sla(cells)
            if sla is None:
                return None
            self._slas[key] = sla
        return self._slas[key]

    def _new_sla(self, cells: Mapping[str, str]) -> Sla | None:
        given = [column for column in SLA_COLUMNS if cells.get(column)]
        if not given and cells.get(LATENCY):
            rate = number_of(cells.get(RATE, ""))  # whose faults are those of the workload
            return Sla(min_kpps=rate) if rate is not None and rate > 0 else None
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
        key = (cells["nf"], *(cells.get(column, "") for column in (*ATTRIBUTES, *self._offered)))
        if key not in self._workloads:
            workload = self._new_workload(cells)
            if workload is None:
                return None
            self._workloads[key] = workload
        return self._workloads[key]

    def _new_workload(self, cells: Mapping[str, str]) -> Workload | None:
        nf = cells["nf"]
        if not nf:
            self._fault("nf", "is empty")
            return None
        before = len(self.faults)
        given = {attribute: self._number(cells, attribute) for attribute in ATTRIBUTES}
        rate, latency = self._positive(cells, RATE), self._positive(cells, LATENCY)
        if cells.get(LATENCY) and not cells.get(RATE):
            self._fault(RATE, "is missing: latency depends on the rate that is offered", "fill rate_kpps, too")
        if len(self.faults) > before:
            return None
        values = {name: self._default[name] if value is None else value for name, value in given.items()}
        workload = offered_of(Workload(nf, TrafficProfile.from_mapping(values)), rate, latency)
        for column, message in self._check(workload):
            self._fault(column, message)
        return workload if len(self.faults) == before else None
