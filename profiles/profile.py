"""The profile directory (docs/formats/profile.md): everything that was measured of the NFs of one testbed.

Users may write the files from their own measurements; what a file leaves out has a meaning, given at each reader.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from profiles.aside import file_aside, files_aside
from profiles.counters import COUNTERS
from profiles.description import NfDescription, TestbedDescription
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
CO_LOCATIONS, FORMER_CO_LOCATIONS = "co-locations", "companies"
"""The file of measured co-locations, and its name in profiles written by earlier versions."""
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
    solo: pd.DataFrame
    """Alone on the NIC: the NF's own seven counters."""
    memory: pd.DataFrame
    """Under memory contention only: the competitors' summed seven counters."""
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
        write_table(self.solo, folder / "solo.csv")
        write_table(self.memory, folder / "memory.csv")
        for accelerator, table in sorted(self.accelerators.items()):
            write_table(table, folder / f"{accelerator}.csv")
        if len(self.pattern):
            write_table(_with_first(self.pattern, self.uses), folder / "pattern.csv")
        if len(self.co_runs):
            write_table(_with_first(self.co_runs, self.uses), folder / "co-runs.csv")
        if len(self.co_locations):
            write_table(self.co_locations, folder / f"{CO_LOCATIONS}.csv")
        if self.description:
            write_json(self.description.model_dump(mode="json"), folder / "nf.json")

    def outdated(self, directory: Path) -> list[Path]:
        """Files of an earlier write that `write_files` would not replace; co-runs.csv, which users add, is never one.

        Left in place, they would be read as measurements of this profile.
        """
        stems = [FORMER_CO_LOCATIONS]
        stems += [CO_LOCATIONS] if not len(self.co_locations) else []
        stems += ["pattern"] if not len(self.pattern) else []
        earlier = read_model(directory / "nf.json", NfDescription, [])
        stems += [name for name in (earlier.accelerators if earlier else ()) if name not in self.accelerators]
        return [directory / f"{stem}.csv" for stem in stems]


@dataclass(frozen=True)
class Profile:
    """A profile directory, read whole."""

    source: Path
    """Where it was read from."""
    testbed: TestbedDescription | None
    """The `describe` answer; None when the profile was written without one, and then no range is declared."""
    benches: pd.DataFrame
    """The benches alone: bench, its parameters, seven counters, throughput_kpps, `service_column` per accelerator."""
    nfs: dict[str, NfProfile]
    """By name, sorted."""

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
    described = directory / "testbed.json"
    testbed = read_model(described, TestbedDescription, faults) if described.exists() else None
    benches = _no_table()
    if (directory / "benches.csv").exists():
        benches, wrong = read_table(directory / "benches.csv", ["bench"], text=["bench"])
        faults += wrong
    folders = sorted(path for path in directory.glob("[!.]*") if path.is_dir() and list(path.glob("*.csv")))
    nfs = {folder.name: _read_nf(folder, faults) for folder in folders}
    if not nfs and not faults:
        faults.append(Fault(str(directory), None, None, "contains no NF: no folder with memory*.csv or solo.csv in it"))
    if faults:
        raise InputError(faults)
    return Profile(directory, testbed, benches, nfs)


def write_json(value: object, path: Path) -> None:
    """Write JSON aside, then rename; the same value is the same bytes."""
    with file_aside(path) as aside:
        aside.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def _read_nf(folder: Path, faults: list[Fault]) -> NfProfile:
    described = folder / "nf.json"
    description = read_model(described, NfDescription, faults) if described.exists() else None

    def table(path: Path, columns: Sequence[str], defaults: dict[str, float], text: Sequence[str] = ()) -> pd.DataFrame:
        required = [*columns, "flows", "packet_size", KPPS_COLUMN]
        read, wrong = read_table(
            path, required, {"mtbr": 0.0, **defaults}, text=text, positive=["flows", "packet_size", KPPS_COLUMN]
        )
        faults.extend(wrong)
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
        for stem in ("pattern", "co-runs")
        if (folder / f"{stem}.csv").exists()
    }
    latency, wrong = read_latencies(folder / f"{LATENCY_FILE}.csv")
    faults += wrong
    return NfProfile(
        name=folder.name,
        description=description,
        solo=table(solo, COUNTER_COLUMNS, {}) if solo.exists() else _nothing(COUNTER_COLUMNS),
        memory=_join_tables(memory, COUNTER_COLUMNS),
        accelerators=accelerators,
        pattern=mixed.get("pattern", _nothing(COUNTER_COLUMNS)),
        co_runs=mixed.get("co-runs", _nothing(COUNTER_COLUMNS)),
        co_locations=table(co_locations, [RUN_COLUMN, NF_COLUMN], {}, text=[RUN_COLUMN, NF_COLUMN])
        if co_locations.exists()
        else _no_table(),
        latency=latency,
    )


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
