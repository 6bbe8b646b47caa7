"""The profile directory (docs/formats/profile.md): everything that was measured of the NFs of one testbed. Users may
write the files from their own measurements; what a file leaves out has a meaning, given at each reader."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from profiles.aside import file_aside, files_aside
from profiles.counters import COUNTERS
from profiles.description import MOST_CORES, NfDescription, TestbedDescription
from profiles.faults import Fault, InputError
from profiles.files.json import read_model
from profiles.latency_table import LATENCY_FILE, no_latencies, read_latencies
from profiles.table import read_table, write_table
from profiles.traffic import ATTRIBUTES, TrafficProfile

if TYPE_CHECKING:
    import pandas as pd

TRAFFIC_COLUMNS = list(ATTRIBUTES)
COUNTER_COLUMNS = list(COUNTERS)
KPPS_COLUMN = "throughput_kpps"
FIRST_SERVICE = "competitor_service_ms"
FIRST_RATE = "competitor_kpps"
RUN_COLUMN, NF_COLUMN = "run", "nf"
CORES_COLUMN, RATE_COLUMN = "cores", "rate_kpps"
"""Cores of the row's NF, empty for its default number; what is offered to it, empty where it is saturated."""
CO_LOCATIONS, FORMER_CO_LOCATIONS = "co-locations", "companies"
"""The file of measured co-locations, and its name in profiles written by earlier versions."""
MIXED = ("pattern", "co-runs")  # tables with the demand on each accelerator
NOT_ACCELERATORS = ("solo", "pattern", "co-runs", CO_LOCATIONS, FORMER_CO_LOCATIONS, LATENCY_FILE)


def service_column(accelerator: str) -> str:
    """The column with the competitors' service demand (ms, Tomur's equation 2) on one of several accelerators."""
    return f"{accelerator}_service_ms"


def rate_column(accelerator: str) -> str:
    """The column with the competitors' offered rate (kpps) on one of several accelerators; NaN when they saturate."""
    return f"{accelerator}_kpps"


@dataclass(frozen=True)
class NfProfile:
    """What was measured of one NF: tables with the traffic columns and `throughput_kpps`; empty means not measured."""

    name: str
    description: NfDescription | None
    """Cores and accelerators as its testbed described them; None when the profile has no `nf.json`."""
    solo: pd.DataFrame  # alone on the NIC: the NF's own seven counters
    memory: pd.DataFrame  # under memory contention only: the competitors' summed seven counters
    accelerators: dict[str, pd.DataFrame] = field(default_factory=dict)
    """Per accelerator: `competitor_service_ms` and `competitor_kpps` (NaN when the competitor saturates)."""
    pattern: pd.DataFrame = field(default_factory=lambda: _no_table())
    """Under memory and accelerator contention together: the competitors' summed seven counters, and for each
    accelerator `service_column` and `rate_column`."""
    co_runs: pd.DataFrame = field(default_factory=lambda: _no_table())
    """Co-located with other NFs that are only known by the contention they cause; columns of `pattern`."""
    co_locations: pd.DataFrame = field(default_factory=lambda: _no_table())
    """Co-located with NFs that are known by name: `run`, `nf`, the traffic columns and `throughput_kpps`. Rows of one
    run ran side by side; a second run of the same co-location is a repeat."""
    loads: pd.DataFrame = field(default_factory=lambda: _no_table())
    """As `co_locations`, of runs in which an NF has another number of cores than by default, or an offered rate:
    further columns are `rate_kpps` (infinite where it is saturated) and `cores` (0 for its default number)."""
    further: dict[int, NfProfile] = field(default_factory=dict)
    """Per further number of cores, what was measured of the NF on that many; see `on_cores`. The tables here are of the
    default number."""
    latency: pd.DataFrame = field(default_factory=no_latencies)
    """Latencies at offered rates, alone and beside others: `LATENCY_COLUMNS`. Profiling of latency writes its file."""

    @property
    def uses(self) -> tuple[str, ...]:
        """The accelerators it uses: as described, else those it was measured with."""
        return self.description.accelerators if self.description else tuple(sorted(self.accelerators))

    def write(self, directory: Path) -> None:
        """Write the NF's files into `directory`; all others stay, except those outdated."""
        with files_aside(directory, self.outdated(directory)) as aside:
            self.write_files(aside)

    def write_files(self, folder: Path) -> None:
        """Write the NF's files into `folder`, which is made where it does not exist."""
        for stem, table in self._tables().items():
            if len(table) or stem in ("solo", "memory", *self.accelerators):
                write_table(_with_first(table, self.uses) if stem in MIXED else table, folder / f"{stem}.csv")
        if self.description:
            write_json(self.description.model_dump(mode="json"), folder / "nf.json")

    def on_cores(self, cores: int) -> NfProfile:
        """What was measured of it on this many cores; empty tables where nothing was. Its `description.cores` is that
        number. Co-locations with other numbers of cores are in `loads`."""
        if self.description is None or cores == self.description.cores:
            return self
        described = self.description.model_copy(update={"cores": cores})
        nothing = _nothing(COUNTER_COLUMNS)
        found = self.further.get(cores, NfProfile(self.name, None, nothing, nothing))
        return replace(found, description=described)

    def all_co_locations(self) -> pd.DataFrame:
        """`co_locations` followed by `loads`, as the file has them."""
        if not len(self.loads):
            return self.co_locations
        loads = self.loads.assign(
            **{
                RATE_COLUMN: self.loads[RATE_COLUMN].replace(np.inf, np.nan),
                CORES_COLUMN: _empty_where_default(self.loads[CORES_COLUMN]),
            }
        )
        return _join_tables([self.co_locations.reindex(columns=loads.columns), loads], ())

    def _tables(self) -> dict[str, pd.DataFrame]:
        """The tables by the names of their files, with the rows of every number of cores."""
        default = self.description.cores if self.description else 0

        def joined(table: pd.DataFrame, further: dict[int, pd.DataFrame]) -> pd.DataFrame:
            of_counts = {default: table, **further}
            tables = [rows.assign(**{CORES_COLUMN: count}) for count, rows in of_counts.items() if len(rows)]
            return _join_tables(tables, ()) if any(map(len, further.values())) else table

        counts = dict(sorted(self.further.items()))
        return {
            "solo": joined(self.solo, {count: nf.solo for count, nf in counts.items()}),
            "memory": joined(self.memory, {count: nf.memory for count, nf in counts.items()}),
            **{
                name: joined(table, {n: nf.accelerators[name] for n, nf in counts.items() if name in nf.accelerators})
                for name, table in sorted(self.accelerators.items())
            },
            "pattern": joined(self.pattern, {count: nf.pattern for count, nf in counts.items()}),
            "co-runs": joined(self.co_runs, {count: nf.co_runs for count, nf in counts.items()}),
            CO_LOCATIONS: self.all_co_locations(),
        }

    def outdated(self, directory: Path) -> list[Path]:
        """Files of an earlier write that `write_files` would not replace; co-runs.csv, which users add, is never one.
        Left in place, they would be read as measurements of this profile."""
        stems = [FORMER_CO_LOCATIONS]
        tables = self._tables()
        stems += [stem for stem in (CO_LOCATIONS, "pattern") if not len(tables[stem])]
        earlier = read_model(directory / "nf.json", NfDescription, [])
        stems += [name for name in (earlier.accelerators if earlier else ()) if name not in self.accelerators]
        return [directory / f"{stem}.csv" for stem in stems]


@dataclass(frozen=True)
class Profile:
    """A profile directory, read whole."""

    source: Path  # where it was read from
    testbed: TestbedDescription | None
    """The `describe` answer; None when the profile was written without one, and then no range is declared."""
    benches: pd.DataFrame
    """The benches alone: bench, its parameters, seven counters, throughput_kpps, `service_column` per accelerator."""
    nfs: dict[str, NfProfile]  # by name, sorted

    def default_traffic(self) -> TrafficProfile:
        """The testbed's default traffic, else the traffic most often measured."""
        import pandas as pd

        if self.testbed:
            return self.testbed.traffic
        rows = pd.concat(
            [
                table[TRAFFIC_COLUMNS]
                for nf in self.nfs.values()
                for table in (nf.memory, nf.solo, *nf.accelerators.values())
                if len(table)
            ]
        )
        flows, packet_size, mtbr = rows.value_counts().index[0]
        return TrafficProfile(flows, packet_size, mtbr)


def read_profile(directory: Path) -> Profile:
    """The profile in `directory`. Raises `InputError` with every fault of every file."""
    if not directory.is_dir():
        raise InputError.of(
            str(directory),
            "is not a profile directory",
            hint="`placer profile --testbed SPEC --out PROFILE` writes one",
        )
    faults: list[Fault] = []
    written = directory / "testbed.json"
    testbed = read_model(written, TestbedDescription, faults) if written.exists() else None
    benches = _no_table()
    if (directory / "benches.csv").exists():
        benches, wrong = read_table(directory / "benches.csv", ["bench"], text=["bench"])
        faults += wrong
    folders = sorted(path for path in directory.glob("[!.]*") if path.is_dir() and list(path.glob("*.csv")))
    described = {folder.name: _read_description(folder, faults) for folder in folders}
    defaults = {nf.name: nf.cores for nf in (*(testbed.nfs if testbed else ()), *filter(None, described.values()))}
    nfs = {folder.name: _read_nf(folder, described[folder.name], defaults, faults) for folder in folders}
    if not nfs and not faults:
        faults.append(Fault(str(directory), None, None, "contains no NF: no folder with memory*.csv or solo.csv in it"))
    if faults:
        raise InputError(faults)
    return Profile(directory, testbed, benches, nfs)


def write_json(value: object, path: Path) -> None:
    """Write JSON aside, then rename; the same value is the same bytes."""
    with file_aside(path) as aside:
        aside.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def _read_description(folder: Path, faults: list[Fault]) -> NfDescription | None:
    written = folder / "nf.json"
    return read_model(written, NfDescription, faults) if written.exists() else None


def _read_nf(
    folder: Path, description: NfDescription | None, default_cores: Mapping[str, int], faults: list[Fault]
) -> NfProfile:
    def table(path: Path, columns: Sequence[str], defaults: dict[str, float], text: Sequence[str] = ()) -> pd.DataFrame:
        required = [*columns, "flows", "packet_size", KPPS_COLUMN]
        read, wrong = read_table(
            path,
            required,
            {"mtbr": 0.0, **defaults, CORES_COLUMN: 0.0},
            text=text,
            positive=["flows", "packet_size", KPPS_COLUMN, RATE_COLUMN],
        )
        faults.extend(wrong or _check_cores(path, read, described=NF_COLUMN in text or description is not None))
        return read

    memory = [table(path, COUNTER_COLUMNS, {}) for path in sorted(folder.glob("memory*.csv"))]
    accelerators = {
        path.stem: table(path, [FIRST_SERVICE], {FIRST_RATE: np.nan})
        for path in sorted(folder.glob("*.csv"))
        if path.stem not in NOT_ACCELERATORS and not path.stem.startswith("memory")
    }
    uses = description.accelerators if description else tuple(accelerators)
    faults += [
        Fault(str(folder / f"{name}.csv"), None, None, f"nf.json names no accelerator {name}",
              f"add it to `accelerators` in {folder / 'nf.json'}, or remove the file")
        for name in accelerators
        if name not in uses
    ]  # fmt: skip
    current, former = folder / f"{CO_LOCATIONS}.csv", folder / f"{FORMER_CO_LOCATIONS}.csv"
    solo, co_locations = folder / "solo.csv", (former if former.exists() and not current.exists() else current)
    mixed = {
        stem: _without_first(table(folder / f"{stem}.csv", COUNTER_COLUMNS, _default_mixed(uses)), uses)
        for stem in MIXED
        if (folder / f"{stem}.csv").exists()
    }
    latency, wrong = read_latencies(folder / f"{LATENCY_FILE}.csv")
    faults += wrong
    together, loads = _no_table(), _no_table()
    if co_locations.exists():
        read = table(co_locations, [RUN_COLUMN, NF_COLUMN], {RATE_COLUMN: np.inf}, text=[RUN_COLUMN, NF_COLUMN])
        together, loads = _split_loads(read, default_cores) if NF_COLUMN in read else (read, loads)
    default = default_cores.get(folder.name, 0)
    nothing = _nothing(COUNTER_COLUMNS)

    def of_count(count: int, described: NfDescription | None) -> NfProfile:
        def rows(table: pd.DataFrame) -> pd.DataFrame:
            return _select_cores(table, count, default)

        return NfProfile(
            name=folder.name,
            description=described,
            solo=rows(alone),
            memory=_join_tables([rows(table) for table in memory], COUNTER_COLUMNS),
            accelerators={name: rows(table) for name, table in accelerators.items()},
            pattern=rows(mixed.get("pattern", nothing)),
            co_runs=rows(mixed.get("co-runs", nothing)),
        )

    alone = table(solo, COUNTER_COLUMNS, {}) if solo.exists() else nothing
    everything = [alone, *memory, *accelerators.values(), *mixed.values()]
    counts = {int(count) for read in everything if CORES_COLUMN in read for count in read[CORES_COLUMN]} - {0, default}
    further = {
        count: of_count(count, description.model_copy(update={"cores": count}))
        for count in sorted(counts)
        if description
    }
    return replace(of_count(default, description), co_locations=together, loads=loads, further=further, latency=latency)


def _check_cores(path: Path, read: pd.DataFrame, *, described: bool) -> Iterator[Fault]:
    """What is wrong with the numbers of cores in a table, which need a description of the default one."""
    for line, cores in zip(read.attrs["lines"], read[CORES_COLUMN], strict=True):
        if not (cores.is_integer() and cores <= MOST_CORES):
            yield Fault(str(path), line, CORES_COLUMN, f"{cores:g} is no number of cores")
        elif cores and not described:
            yield Fault(str(path), line, CORES_COLUMN, f"{cores:g}: there is no nf.json with the default number")


def _select_cores(table: pd.DataFrame, cores: int, default: int) -> pd.DataFrame:
    """The rows of that number of cores, without the column; those without a number are of the default one."""
    if CORES_COLUMN not in table:
        return table
    chosen = table[CORES_COLUMN].replace(0.0, default) == cores
    rows = table.drop(columns=CORES_COLUMN)
    return rows if chosen.all() else rows[chosen].reset_index(drop=True)


def _split_loads(read: pd.DataFrame, default_cores: Mapping[str, int]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The runs in which all NFs are saturated on their default numbers of cores, without these columns; all others."""
    cores = read[CORES_COLUMN].astype(int)
    read = read.assign(**{CORES_COLUMN: cores.where(cores != read[NF_COLUMN].map(default_cores), 0)})
    loaded = (read[RATE_COLUMN] < np.inf) | (read[CORES_COLUMN] > 0)
    of_loads = read[RUN_COLUMN].isin(read[RUN_COLUMN][loaded])
    plain = read.drop(columns=[RATE_COLUMN, CORES_COLUMN])
    if not of_loads.any():
        return plain, _no_table()
    return plain[~of_loads].reset_index(drop=True), read[of_loads].reset_index(drop=True)


def _no_table() -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame()


def _nothing(columns: Iterable[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({name: pd.Series(dtype=np.float64) for name in [*TRAFFIC_COLUMNS, *columns, KPPS_COLUMN]})


def _join_tables(tables: list[pd.DataFrame], columns: Iterable[str]) -> pd.DataFrame:
    import pandas as pd

    filled = [table for table in tables if len(table)]
    return pd.concat(filled, ignore_index=True) if filled else _nothing(columns)


def _empty_where_default(cores: pd.Series[int]) -> pd.Series[int]:
    return cores.astype("Int64").replace(0, None)


def _default_mixed(uses: Sequence[str]) -> dict[str, float]:
    """A missing service time means no demand on the accelerator; a missing rate, a competitor that saturates it."""
    defaults = {FIRST_SERVICE: 0.0, FIRST_RATE: np.nan}
    for accelerator in uses[1:]:
        defaults |= {service_column(accelerator): 0.0, rate_column(accelerator): np.nan}
    return defaults


def _first_names(uses: Sequence[str]) -> dict[str, str]:
    return {service_column(uses[0]): FIRST_SERVICE, rate_column(uses[0]): FIRST_RATE} if uses else {}


def _with_first(table: pd.DataFrame, uses: Sequence[str]) -> pd.DataFrame:
    """In files, the first accelerator's columns carry the contract's names."""
    return table.rename(columns=_first_names(uses))


def _without_first(table: pd.DataFrame, uses: Sequence[str]) -> pd.DataFrame:
    return table.rename(columns={short: long for long, short in _first_names(uses).items()})
