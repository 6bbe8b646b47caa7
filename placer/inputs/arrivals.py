"""Arrivals: the trace of NF instances to place, read from CSV or refused whole (docs/formats/arrivals.md). A file is
read line by line, so that its size is limited by `MOST_ARRIVALS` and not by what it unpacks to."""

import csv
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import inf
from typing import TextIO

from placer.model.arrival import Arrival, running_faults
from placer.model.constraints import CONSTRAINTS
from placer.model.groups import UNCONSTRAINED, Constraints, usable_group
from placer.model.nic_kind import NicKind, kpps_of
from placer.model.sla import LATENCY_SLAS, Sla
from placer.model.unplaceable import constraint_faults
from profiles import ATTRIBUTES, Fault, InputError, TrafficProfile, Workload
from profiles.description import MOST_CORES
from profiles.faults import printable, suggestion
from profiles.files.cells import DECIMAL_POINT, TimeCells, comma_hint, parse_marked_number, share_of
from profiles.files.lines import LineLimit, open_lines, separator_of
from profiles.text import number_of
from profiles.workload import P99

REQUIRED_COLUMNS = ("id", "time", "nf")
SLA_COLUMNS = ("sla_drop", "sla_min_kpps")
RATE_COLUMN, GBPS_COLUMN, CORES_COLUMN = "rate_kpps", "rate_gbps", "cores"
LATENCY_COLUMNS = {kind.column: kind.statistic for kind in LATENCY_SLAS}  # the statistic of latency that each limits
RATE_COLUMNS = (RATE_COLUMN, GBPS_COLUMN)
OFFER_COLUMNS = (*RATE_COLUMNS, CORES_COLUMN, *LATENCY_COLUMNS)
"""What is offered and given to an instance, and what its packets are promised."""
NIC_COLUMN, LOAD_COLUMN, PRIORITY_COLUMN = "nic", "load", "priority"
CONSTRAINT_COLUMNS = tuple(CONSTRAINTS)
ARRIVAL_COLUMNS = (
    *REQUIRED_COLUMNS, *ATTRIBUTES, *SLA_COLUMNS, *OFFER_COLUMNS, "departure", NIC_COLUMN, *CONSTRAINT_COLUMNS,
    PRIORITY_COLUMN, LOAD_COLUMN,
)  # fmt: skip
NUMBER_READERS = {"flows": parse_marked_number, "packet_size": parse_marked_number, "sla_drop": share_of}
"""Reads a number of a column in which a plain number is not the only form."""
SMALLEST_QUANTITY, LARGEST_QUANTITY = 1e-6, 1e12  # of rates and latencies
LOWEST_PRIORITY, HIGHEST_PRIORITY = -(2**31), 2**31 - 1  # as of Kubernetes

MOST_ARRIVALS = 20_000_000
MOST_FAULTS = 10_000  # reading stops after this many faults; the first of them are shown, and how many more were found
RangeCheck = Callable[[Workload], Sequence[tuple[str, str]]]
"""Which columns of a workload are outside what is profiled, and how."""

GROUPS_HINT = "a comma may separate groups of three digits only: 16,000"
LONGER_ROW = f'{DECIMAL_POINT}, and a thousands mark in quotes: "16,000"'
LOADS_HINT = (
    "--loads FILE.csv of run, size, compare and explain has them; --ignore-columns plans as if all were at their peaks"
)
NOT_UNDERSTOOD = "constraints are not understood here"
PRIORITIES_NOT_UNDERSTOOD = "priorities are not understood here"
SKIP_HINT = "--skip-empty-stays skips instances that depart at the time of their arrival"


@dataclass(frozen=True)
class TraceOptions:
    """What of a trace is skipped rather than refused. `ignore_columns`: whether unknown columns are ignored.
    `skip_empty_stays`: whether rows are skipped whose departure is their arrival. `say`: called with a line that names
    the ignored columns, and with one that counts the skipped rows. `loads`: by the names in the column `load`, the
    share of the rate in each part of the day; None where they are not known."""

    ignore_columns: bool = False
    skip_empty_stays: bool = False
    say: Callable[[str], None] = lambda line: None
    loads: Mapping[str, tuple[float, ...]] | None = None


STRICT_OPTIONS = TraceOptions()


def read_arrivals(
    source: str | TextIO,
    default_traffic: TrafficProfile,
    check: RangeCheck,
    options: TraceOptions = STRICT_OPTIONS,
    *,
    kinds: Sequence[NicKind] | None = None,
    may_run: bool = True,
) -> list[Arrival]:
    """The arrivals of a file, in its order.

    `source`: a path of a `.csv` or `.csv.gz` file, `-` for standard input, or an open text file. `default_traffic`:
    what a missing or empty traffic column means. `check`: refuses NFs that are not profiled and traffic outside the
    profiled range. `options`: what is skipped rather than refused. `kinds`: the kinds of NIC, by which constraints and
    the NICs of instances that already run are checked; None where there may be neither. `may_run`: whether instances
    may already run. Raises `InputError` with every fault of the file."""
    with ExitStack() as stack:
        name, lines = open_lines(source, stack, LineLimit(MOST_ARRIVALS, "arrivals", "split the trace"))
        reader = csv.reader(lines, strict=True)
        try:
            header = _read_header(name, next(reader, []), options)
            rows = _Rows(name, header, default_traffic, check, options)
            arrivals = [arrival for row in reader if row and (arrival := rows.read(reader.line_num, row))]
        except csv.Error as error:
            raise InputError.of(name, f"is not CSV: {error}", line=reader.line_num) from error
    if (
        rows.faults
        or rows.add_nic_faults(arrivals, kinds if may_run else None)
        or rows.add_constraint_faults(arrivals, kinds)
    ):
        raise InputError(rows.faults)
    if kinds is None and rows.add_priority_faults(arrivals):
        raise InputError(rows.faults)
    if not arrivals:
        only_skipped = (
            f"holds only arrivals that depart at the time of their arrival, which are skipped: {rows.skipped:,}"
        )
        raise InputError.of(name, only_skipped if rows.skipped else "has a header but no arrivals")
    if options.loads is not None and not any(arrival.day for arrival in arrivals):
        options.say(f"{name}: no arrival has a load of --loads")
    if rows.skipped:
        options.say(f"{name}: skipped arrivals that depart at the time of their arrival: {rows.skipped:,}")
    return arrivals


def refuse_constraints(arrivals: Sequence[Arrival], known: Collection[str] = ()) -> None:
    """Refuse arrivals with constraints, but for `known` ones, of which what follows would know nothing. Raises
    `InputError` with every fault."""
    if faults := [
        Fault("arrivals", None, f"{arrival.id} {name}", NOT_UNDERSTOOD, "leave out this column")
        for arrival in arrivals
        for name, _ in arrival.constraints.values
        if name not in known
    ]:
        raise InputError(faults)


def refuse_priorities(arrivals: Sequence[Arrival]) -> None:
    """Refuse arrivals with priorities, which what follows would ignore. Raises `InputError` with every fault."""
    if faults := [
        Fault("arrivals", None, f"{arrival.id} {PRIORITY_COLUMN}", PRIORITIES_NOT_UNDERSTOOD, "leave out this column")
        for arrival in arrivals
        if arrival.priority
    ]:
        raise InputError(faults)


def refuse_unknown_nics(arrivals: Sequence[Arrival], kinds: Sequence[NicKind]) -> None:
    """Refuse arrivals that were read for another fleet, in which their NICs are or have room. Raises `InputError` with
    every fault."""
    found = running_faults(arrivals, kinds, lambda arrival: f"'{arrival.id}'")
    faults = [Fault("arrivals", None, arrival.id, message, hint) for arrival, message, hint in found]
    for arrival, name, message, hint in constraint_faults(arrivals, kinds):
        faults.append(Fault("arrivals", None, f"{arrival.id} {name}", message, hint))
    if faults:
        raise InputError(faults)


def _read_header(name: str, written: Sequence[str], options: TraceOptions) -> list[str]:
    """The known column in each place, empty where the column is skipped; InputError with every fault."""
    cells = [cell.strip() for cell in written]
    if not any(cells):
        hint = f"the first line names the columns: {', '.join(ARRIVAL_COLUMNS)}"
        raise InputError.of(name, "is empty: not even a header", hint=hint)
    if separator := separator_of(cells):
        hint = "separate values by commas, and write decimals with a point: 0.1"
        raise InputError.of(name, f"values are separated by {separator!r}, not by commas", line=1, hint=hint)
    known = [column for column in ARRIVAL_COLUMNS if column != LOAD_COLUMN or options.loads is not None]
    header = [cell.lower() if cell.lower() in known else "" for cell in cells]
    unknown = [  # the first column may have no name: the index that pandas writes
        (place, cell) for place, cell in enumerate(cells, start=1) if not header[place - 1] and (cell or place > 1)
    ]
    hint = f"columns are {', '.join(ARRIVAL_COLUMNS)}"
    ignorable = f"{hint}; --ignore-columns ignores others"
    faults = []
    if unknown and options.ignore_columns:
        options.say(f"{name}: ignored columns: {printable(', '.join(cell or f'column {at}' for at, cell in unknown))}")
    elif unknown:
        faults = [
            Fault(name, 1, cell, "the loads of the day are not known", LOADS_HINT)
            if cell.lower() == LOAD_COLUMN
            else Fault(name, 1, cell or None, "unknown column" if cell else f"column {place} has no name", ignorable)
            for place, cell in unknown
        ]
        hint = ignorable  # one hint for all of them
    faults += [Fault(name, 1, c, "column named twice") for c in ARRIVAL_COLUMNS if header.count(c) > 1]
    faults += [Fault(name, 1, column, "column is missing", hint) for column in REQUIRED_COLUMNS if column not in header]
    if not any(column in header for column in (*SLA_COLUMNS, *RATE_COLUMNS, *LATENCY_COLUMNS)):
        faults.append(Fault(name, 1, "sla_drop", "column is missing, and so is sla_min_kpps", hint))
    if faults:
        raise InputError(faults)
    return header


class _Rows:
    """Reads row after row and collects every fault. Equal workloads and SLAs become one object, which saves memory."""

    def __init__(
        self, name: str, header: list[str], default_traffic: TrafficProfile, check: RangeCheck, options: TraceOptions
    ) -> None:
        self.faults: list[Fault] = []
        self.skipped = 0
        self._name = name
        self._header = header
        self._default = default_traffic.as_dict()
        self._check = check
        self._line = 1
        self._ids: dict[str, int] = {}
        self._times = TimeCells(name, self.faults)
        self._time, self._time_cell = 0.0, ""
        self._skip_empty_stays = options.skip_empty_stays
        self._empty_rows: list[int] = []
        self._workloads: dict[tuple[str, ...], Workload] = {}
        self._slas: dict[tuple[str, ...], Sla] = {}
        self._constraints: dict[tuple[str, ...], Constraints] = {}
        self._constrained = [column for column in CONSTRAINT_COLUMNS if column in header]
        self._offered = [column for column in OFFER_COLUMNS if column in header]
        self._loads = options.loads or {}

    def read(self, line: int, row: list[str]) -> Arrival | None:
        """The arrival of a row, or None when the row has faults or is skipped."""
        self._line = line
        before = len(self.faults)
        if before >= MOST_FAULTS:
            raise InputError(self.faults)
        if (not row[0].strip() or len(row) != len(self._header)) and not any(cell.strip() for cell in row):
            if len(self._empty_rows) < MOST_FAULTS:
                self._empty_rows.append(line)
            return None
        if self._empty_rows:
            self._refuse_empty_rows()
        if len(row) != len(self._header):
            hint = LONGER_ROW if len(row) > len(self._header) else None
            self._fault(None, f"has {len(row)} values, the header has {len(self._header)}", hint)
            return None
        cells = {column: cell.strip() for column, cell in zip(self._header, row, strict=True)}
        identity = cells["id"]
        if not identity:
            self._fault("id", "is empty")
        elif not identity.isprintable():
            self._fault("id", f"{identity!r} has a line break or another control character")
        elif identity in self._ids:
            self._fault("id", f"'{identity}' is already on line {self._ids[identity]}", "ids must be unique")
        else:
            self._ids[identity] = self._line
        time = self._arrival_time(cells)
        departure = self._departure(cells, time)
        sla = self._sla(cells)
        workload = self._workload(cells)
        nic, day = self._nic(cells), self._day(cells)
        constraints = self._read_constraints(cells) if self._constrained else UNCONSTRAINED
        priority = self._priority(cells)
        if len(self.faults) > before or workload is None or sla is None or time is None:
            return None
        if departure == time:
            self.skipped += 1
            return None
        return Arrival(identity, time, workload, sla, departure, nic, day, constraints, priority)

    def add_nic_faults(self, arrivals: Sequence[Arrival], kinds: Sequence[NicKind] | None) -> bool:
        """Add what is wrong with the NICs of instances that already run; returns whether anything is."""
        running = [arrival for arrival in arrivals if arrival.nic is not None]
        if kinds is None:
            message, advice = "instances that already run are not understood here", "leave out this column"
            self.faults += [
                Fault(self._name, self._ids[arrival.id], NIC_COLUMN, message, advice) for arrival in running
            ]
        else:
            found = running_faults(running, kinds, lambda arrival: f"line {self._ids[arrival.id]}")
            self.faults += [
                Fault(self._name, self._ids[arrival.id], NIC_COLUMN, message, hint) for arrival, message, hint in found
            ]
        return bool(self.faults)

    def add_constraint_faults(self, arrivals: Sequence[Arrival], kinds: Sequence[NicKind] | None) -> bool:
        """Add what no fleet of these NICs could hold; returns whether anything is."""
        constrained = self._constrained or any(kind.pool for kind in kinds or ())
        if kinds is None:
            for arrival in arrivals:
                for name, _ in arrival.constraints.values:
                    self.faults.append(
                        Fault(self._name, self._ids[arrival.id], name, NOT_UNDERSTOOD, "leave out this column")
                    )
        found = constraint_faults(arrivals, kinds) if kinds and constrained else ()
        for arrival, column, message, hint in sorted(found, key=lambda fault: self._ids[fault[0].id]):
            self.faults.append(Fault(self._name, self._ids[arrival.id], column, message, hint))
        return bool(self.faults)

    def add_priority_faults(self, arrivals: Sequence[Arrival]) -> bool:
        """Add that priorities would be ignored, where there are any; returns whether there are."""
        for arrival in arrivals:
            if arrival.priority:
                line, hint = self._ids[arrival.id], "leave out this column"
                self.faults.append(Fault(self._name, line, PRIORITY_COLUMN, PRIORITIES_NOT_UNDERSTOOD, hint))
        return bool(self.faults)

    def _refuse_empty_rows(self) -> None:
        """Called where a row follows: only at the end may rows be empty, as spreadsheets leave them there."""
        hint = "rows may be empty only at the end of the file"
        self.faults += [
            Fault(self._name, line, None, "is empty, and other rows follow", hint) for line in self._empty_rows
        ]
        self._empty_rows.clear()

    def _fault(self, column: str | None, message: str, hint: str | None = None) -> None:
        self.faults.append(Fault(self._name, self._line, column, message, hint))

    def _number(self, cells: Mapping[str, str], column: str) -> float | None:
        """The number in a cell; None for an empty cell or, with a fault, for what is no number."""
        cell = cells.get(column, "")
        if not cell:
            return None
        value = NUMBER_READERS.get(column, number_of)(cell)
        if value is None:
            hint = comma_hint(cell)
            if hint and NUMBER_READERS.get(column) is parse_marked_number:
                hint = f"{DECIMAL_POINT}; {GROUPS_HINT}"
            self._fault(column, f"'{cell}' is not a number", hint)
        return value

    def _seconds(self, cells: Mapping[str, str], column: str) -> float | None:
        """The time in a cell, in seconds; as `_number`."""
        cell = cells.get(column, "")
        if not cell:
            return None
        if self._times.in_seconds and (value := number_of(cell)) is not None:
            return value
        return self._times.seconds_of(column, cell, self._line)

    def _positive(self, cells: Mapping[str, str], column: str) -> float | None:
        """The number in a cell, which must be above 0; as `_number`."""
        value = self._number(cells, column)
        if value is None or SMALLEST_QUANTITY <= value <= LARGEST_QUANTITY:
            return value
        self._fault(column, f"{cells[column]} is not above 0" if value <= 0 else f"{cells[column]} is out of range")
        return None

    def _rate(self, cells: Mapping[str, str], packet_size: float) -> float | None:
        """The offered rate in kpps; None where none is given, or with a fault."""
        given = [column for column in RATE_COLUMNS if cells.get(column)]
        if len(given) > 1:
            self._fault(GBPS_COLUMN, "two rates", f"fill {RATE_COLUMN} or {GBPS_COLUMN}, not both")
            return None
        value = self._positive(cells, given[0]) if given else None
        if value is None or given[0] == RATE_COLUMN:
            return value
        return kpps_of(value, packet_size)

    def _promise(self, cells: Mapping[str, str]) -> tuple[float, str]:
        """The latency that is promised, us, and of which statistic; infinite where none is, or with a fault."""
        given = [column for column in LATENCY_COLUMNS if cells.get(column)]
        if len(given) > 1:
            self._fault(given[1], "two latency SLAs", f"fill {' or '.join(given)}, not both")
            return inf, P99
        value = self._positive(cells, given[0]) if given else None
        return (inf, P99) if value is None else (value, LATENCY_COLUMNS[given[0]])

    def _cores(self, cells: Mapping[str, str]) -> int:
        """The number of cores that the instance is given; 0 where none is given, or with a fault."""
        value = self._number(cells, CORES_COLUMN)
        if value is None:
            return 0
        if value != int(value) or not 1 <= value <= MOST_CORES:
            self._fault(CORES_COLUMN, f"{cells[CORES_COLUMN]} is not a number of cores", "1 or more, or empty")
            return 0
        return int(value)

    def _priority(self, cells: Mapping[str, str]) -> int:
        """The priority; 0 where none is given, or with a fault."""
        value = self._number(cells, PRIORITY_COLUMN)
        if value is None:
            return 0
        if value != int(value):
            self._fault(PRIORITY_COLUMN, f"{cells[PRIORITY_COLUMN]} is not a whole number")
        elif not LOWEST_PRIORITY <= value <= HIGHEST_PRIORITY:
            message = f"{cells[PRIORITY_COLUMN]} is out of range"
            self._fault(PRIORITY_COLUMN, message, f"{LOWEST_PRIORITY:,} to {HIGHEST_PRIORITY:,}")
        return int(value)

    def _nic(self, cells: Mapping[str, str]) -> str | None:
        nic = cells.get(NIC_COLUMN, "")
        if nic and not nic.isprintable():
            self._fault(NIC_COLUMN, f"{nic!r} has a line break or another control character")
        return nic or None

    def _read_constraints(self, cells: Mapping[str, str]) -> Constraints:
        """What the instance demands of its place; what is wrong becomes a fault."""
        key = tuple(cells[column] for column in self._constrained)
        if key not in self._constraints:
            given = dict(zip(self._constrained, key, strict=True))
            for name, value in given.items():
                try:
                    if value:
                        usable_group(value)
                except ValueError as error:
                    self._fault(name, str(error))
                    return UNCONSTRAINED
                try:
                    if value:
                        CONSTRAINTS[name].check_value(value)
                except ValueError as error:
                    self._fault(name, str(error), CONSTRAINTS[name].text)
                    return UNCONSTRAINED
            values = tuple(sorted((name, value) for name, value in given.items() if value))
            self._constraints[key] = Constraints(values) if values else UNCONSTRAINED
        return self._constraints[key]

    def _day(self, cells: Mapping[str, str]) -> tuple[float, ...]:
        """The share of the rate in each part of the day; empty where no load is given, or with a fault."""
        name = cells.get(LOAD_COLUMN, "")
        if not name:
            return ()
        if not any(cells.get(column) for column in RATE_COLUMNS):
            self._fault(LOAD_COLUMN, "is a share of a rate, and there is none", f"fill {RATE_COLUMN} or {GBPS_COLUMN}")
        elif name not in self._loads:
            self._fault(LOAD_COLUMN, f"'{name}' is not in the file of --loads", suggestion(name, self._loads))
        return self._loads.get(name, ())

    def _arrival_time(self, cells: Mapping[str, str]) -> float | None:
        if not cells["time"]:
            self._fault("time", "is empty")
            return None
        time = self._seconds(cells, "time")
        if time is None:
            return None
        if time >= self._time:
            self._time, self._time_cell = time, cells["time"]
        elif time < 0 and self._times.in_seconds:
            self._fault("time", f"{cells['time']} is below 0")
        else:
            above = f"{self._time:g}" if self._times.in_seconds else self._time_cell
            self._fault("time", f"{cells['time']} is before {above} of the row above", "sort the file by time")
        return time

    def _departure(self, cells: Mapping[str, str], time: float | None) -> float | None:
        departure = self._seconds(cells, "departure")
        if departure is None or time is None or departure > time:
            return departure
        if departure < time or not self._skip_empty_stays:
            hint = SKIP_HINT if departure == time else None
            self._fault("departure", f"{cells['departure']} is not after the arrival at {cells['time']}", hint)
        return departure

    def _sla(self, cells: Mapping[str, str]) -> Sla | None:
        key = tuple(cells.get(column, "") for column in (*SLA_COLUMNS, "packet_size", *self._offered))
        if key not in self._slas:
            sla = self._new_sla(cells)
            if sla is None:
                return None
            self._slas[key] = sla
        return self._slas[key]

    def _new_sla(self, cells: Mapping[str, str]) -> Sla | None:
        given = [column for column in SLA_COLUMNS if cells.get(column)]
        has_rate = any(cells.get(column) for column in RATE_COLUMNS)
        if not given and has_rate:
            return Sla(max_drop=0.0)
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
        # with the SLA, which must not be above the rate
        key = (cells["nf"], *(cells.get(column, "") for column in (*ATTRIBUTES, *self._offered, "sla_min_kpps")))
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
        values = {name: self._default[name] if value is None else value for name, value in given.items()}
        rate = self._rate(cells, values["packet_size"])
        (latency, statistic), cores = self._promise(cells), self._cores(cells)
        if any(cells.get(column) for column in LATENCY_COLUMNS) and not any(
            cells.get(column) for column in RATE_COLUMNS
        ):
            self._fault(RATE_COLUMN, "is missing: latency depends on the rate that is offered", "fill rate_kpps, too")
        least = number_of(cells.get("sla_min_kpps", ""))
        if rate is not None and least is not None and least > rate:
            self._fault("sla_min_kpps", f"{cells['sla_min_kpps']} is above the rate that is offered, {rate:g} kpps")
        if len(self.faults) > before:
            return None
        workload = Workload(
            nf, TrafficProfile.from_mapping(values), inf if rate is None else rate, cores=cores, latency_us=latency,
            latency_statistic=statistic,
        )  # fmt: skip
        for column, message in self._check(workload):
            self._fault(GBPS_COLUMN if column == RATE_COLUMN and cells.get(GBPS_COLUMN) else column, message)
        return workload if len(self.faults) == before else None
