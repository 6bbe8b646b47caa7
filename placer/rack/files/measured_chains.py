"""The files of `placer chain`: profiles of single NFs, measured runs of the chain, and configurations to predict.

A profile holds an NF's configuration, the workload and the measure. In the other files, `nx.cpu` is the column `cpu` of
the profile of `nx`; a column without prefix is the workload, which all NFs share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.chains.stage_costs import column_of
from profiles import Fault, InputError
from profiles.arrays import Floats
from profiles.faults import suggestion
from profiles.files.csv_table import CsvTable, read_csv_table
from profiles.files.lines import STDIN
from profiles.text import number_of

REPEATED_ROWS = 2.0  # rows per distinct value from which a column looks like a configuration, not like a measure
LEAST_INFLUENCE = 1.5  # by how much knowing a column must reduce the spread of the measure for it to be missed
LITTLE_SPREAD = 0.05  # relative spread of the measure of which no column is missed


@dataclass(frozen=True)
class ProfileColumns:
    """One NF's measurements."""

    inputs: tuple[str, ...]  # names of the columns that the measure depends on
    at: Floats  # their values, shape (measurements, inputs)
    measured: Floats  # shape (measurements,)


@dataclass(frozen=True)
class ChainFiles:
    """What the files of a command hold.

    `measured_at`, `measured`: runs of the chain: values by column, and the measure; empty without such a file. `kept`:
    which rows of that file these are.
    """

    profiles: Mapping[str, ProfileColumns]
    measured_at: Mapping[str, Floats]
    measured: Floats
    kept: NDArray[np.bool_]
    asked: CsvTable | None  # the configurations to predict, as they are written; None without such a file
    asked_at: Mapping[str, Floats]  # their values by column
    notes: tuple[str, ...]


def read_chain_files(
    profiles: Mapping[str, str],
    order: Sequence[str],
    measure: str,
    *,
    option: str = "--y",
    measured: str | None = None,
    asked: str | None = None,
    ignored: Sequence[str] = (),
) -> ChainFiles:
    """The files of a command.

    `order`: the NFs whose inputs are needed. `measure`: the column to predict. `option`: by which it is named.
    `measured`, `asked`: paths of measured runs, and of configurations to predict. `ignored`: columns of the profiles
    that are no inputs. Raises InputError with every fault of every file.
    """
    sources = [*profiles.values(), *(source for source in (measured, asked) if source is not None)]
    if sources.count(STDIN) > 1:
        raise InputError.of("<stdin>", "is named for several files", hint="only one file can be `-`")
    reading = _Reading(measure, option, ignored)
    tables = {nf: reading.table(source) for nf, source in profiles.items()}
    runs = reading.table(measured) if measured is not None else None
    rows = reading.table(asked) if asked is not None else None
    reading.refuse()
    return reading.files({nf: table for nf, table in tables.items() if table}, order, runs, rows)


class _Reading:
    """Reads several files and collects the faults of all."""

    def __init__(self, measure: str, option: str, ignored: Sequence[str]) -> None:
        self.measure = measure
        self.option = option
        self.ignored = set(ignored)
        self.faults: list[Fault] = []
        self.notes: list[str] = []

    def table(self, source: str) -> CsvTable | None:
        """The table of a source; None with its faults."""
        try:
            return read_csv_table(source)
        except InputError as error:
            self.faults += error.faults
            return None

    def refuse(self, *tables: CsvTable) -> None:
        """InputError when anything is wrong so far."""
        faults = [*self.faults, *(fault for table in tables for fault in table.faults)]
        if faults:
            raise InputError(faults)

    def files(
        self, tables: Mapping[str, CsvTable], order: Sequence[str], runs: CsvTable | None, rows: CsvTable | None
    ) -> ChainFiles:
        """The columns of all files, once all of them can be read."""
        read = [*tables.values(), *(table for table in (runs, rows) if table is not None)]
        self._need_measure([*tables.values(), *([runs] if runs else [])])
        self.refuse(*read)
        inputs = {nf: self._inputs(nf, tables, order, runs, rows) for nf in tables}
        profiles = {nf: self._profile(tables[nf], inputs[nf]) for nf in tables}
        measured_at, measured, kept = self._runs(runs, inputs, order)
        asked_at = self._values(rows, inputs, order) if rows else {}
        self.refuse(*read)
        return ChainFiles(profiles, measured_at, measured, kept, rows, asked_at, tuple(self.notes))

    def _need_measure(self, tables: Sequence[CsvTable]) -> None:
        for table in tables:
            if self.measure not in table.header:
                hint = f"{self.option} names the measure; {suggestion(self.measure, table.header)}"
                self.faults.append(Fault(table.name, 1, self.measure, "column is missing", hint))

    def _inputs(
        self,
        nf: str,
        tables: Mapping[str, CsvTable],
        order: Sequence[str],
        runs: CsvTable | None,
        rows: CsvTable | None,
    ) -> tuple[str, ...]:
        """The inputs of an NF: columns of its profile that the other files have, too."""
        profile = tables[nf]
        others = [table for table in (runs, rows) if table is not None]
        candidates = [column for column in profile.header if column != self.measure and column not in self.ignored]
        if not others:
            return tuple(candidate for candidate in candidates if profile.is_numeric(candidate))
        lacking = {column: [other for other in others if not _has(other, nf, column)] for column in candidates}
        found = [column for column, tables_without in lacking.items() if not tables_without]
        if nf in order:
            for column, tables_without in lacking.items():
                for table in tables_without[:1]:
                    self._judge_absent(nf, column, found, tables, table)
        return tuple(found)

    def _judge_absent(
        self, nf: str, column: str, found: Sequence[str], tables: Mapping[str, CsvTable], other: CsvTable
    ) -> None:
        """A column that the other files lack: a fault where it is an input, a note where it is not."""
        profile = tables[nf]
        if len(set(profile.cells(column))) == 1:
            return
        of_another = any(f"{table}.{column}" in other.header and column in tables[table].header for table in tables)
        numeric = profile.is_numeric(column)
        if of_another or (numeric and _influences(profile, column, found, self.measure)):
            hint = f"{nf}.{column} is a column of the profile of {nf}; --ignore {column} predicts without it"
            self.faults.append(Fault(other.name, 1, f"{nf}.{column}", "column is missing", hint))
        else:
            self.notes.append(f"{profile.name}: column {column} is not used: {other.name} does not have it")

    def _profile(self, table: CsvTable, inputs: tuple[str, ...]) -> ProfileColumns:
        values = [table.numbers(column) for column in inputs]
        measured, kept = self._measure(table)
        at = np.column_stack(values) if values else np.zeros((len(measured), 0))
        return ProfileColumns(inputs, at[kept], measured[kept])

    def _measure(self, table: CsvTable) -> tuple[Floats, NDArray[np.bool_]]:
        """The measure of each row, and which rows have one."""
        measured = table.numbers(self.measure, optional=True)
        for row in np.flatnonzero(measured < 0):
            table.faults.append(Fault(table.name, table.lines[row], self.measure, f"{measured[row]:g} is negative"))
        kept = measured > 0
        if not kept.any() and not table.faults:
            table.faults.append(Fault(table.name, None, self.measure, "has no value above 0"))
        if empty := int(np.isnan(measured).sum()):
            self.notes.append(f"{table.name}: {empty} of {len(measured)} rows have no {self.measure}: left out")
        if zero := int((measured == 0).sum()):
            self.notes.append(f"{table.name}: {zero} of {len(measured)} rows have {self.measure} 0: left out")
        return measured, kept

    def _runs(
        self, runs: CsvTable | None, inputs: Mapping[str, tuple[str, ...]], order: Sequence[str]
    ) -> tuple[dict[str, Floats], Floats, NDArray[np.bool_]]:
        if runs is None:
            return {}, np.empty(0), np.empty(0, dtype=bool)
        values = self._values(runs, inputs, order)
        measured, kept = self._measure(runs)
        return {column: value[kept] for column, value in values.items()}, measured[kept], kept

    def _values(
        self, table: CsvTable, inputs: Mapping[str, tuple[str, ...]], order: Sequence[str]
    ) -> dict[str, Floats]:
        """Values by column of the inputs of the NFs in order."""
        header = dict.fromkeys(table.header)
        needed = [column_of(nf, name, header) for nf in dict.fromkeys(order) for name in inputs[nf]]
        return {column: table.numbers(column) for column in dict.fromkeys(needed) if column is not None}


def _has(table: CsvTable, nf: str, column: str) -> bool:
    return column_of(nf, column, dict.fromkeys(table.header)) is not None


def _influences(profile: CsvTable, column: str, found: Sequence[str], measure: str) -> bool:
    """Whether a column looks like an input: its values recur, and the measure differs between them."""
    cells = profile.cells(column)
    if len(cells) < REPEATED_ROWS * len(set(cells)):
        return False
    measured = np.array([number_of(cell) or np.nan for cell in profile.cells(measure)])
    logarithm = np.log(np.where(measured > 0, measured, np.nan))
    known = [profile.cells(row) for row in found]
    without, with_it = (_spread_within(logarithm, keys) for keys in (known, [*known, cells]))
    return bool(without > max(LEAST_INFLUENCE * with_it, LITTLE_SPREAD))


def _spread_within(logarithm: Floats, keys: Sequence[Sequence[str]]) -> float:
    """Median distance from the median of the rows with equal keys; 0 when none are equal."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for row in np.flatnonzero(np.isfinite(logarithm)).tolist():
        groups.setdefault(tuple(key[row] for key in keys), []).append(row)
    apart = [logarithm[rows] - np.median(logarithm[rows]) for rows in groups.values() if len(rows) > 1]
    return float(np.median(np.abs(np.concatenate(apart)))) if apart else 0.0
