"""From measurements to the profile directory (docs/formats/profile.md)."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from profiler.contention import BenchLevels, Contention, OperatingPoint
from profiler.journal.journal import Journal, RecordedRun
from profiler.runs.nf_runs import NfRuns, least_work
from profiler.testbed import Measurement, Run, TestbedError
from profiles import COUNTERS, InputError, NfDescription, TestbedDescription, TrafficProfile, Workload
from profiles.aside import files_aside
from profiles.best_effort import BEST_EFFORT, BEST_EFFORT_COLUMNS, best_effort_summary
from profiles.cycles import CYCLES_FILE, MeasuredCycles, write_cycles
from profiles.profile import (
    CO_LOCATIONS,
    CORES_COLUMN,
    COUNTER_COLUMNS,
    FIRST_RATE,
    FIRST_SERVICE,
    KPPS_COLUMN,
    NF_COLUMN,
    NOT_ACCELERATORS,
    RATE_COLUMN,
    RUN_COLUMN,
    TRAFFIC_COLUMNS,
    NfProfile,
    rate_column,
    service_column,
    write_json,
)
from profiles.table import SIGNIFICANT_DIGITS, write_table

_Measured = tuple[TrafficProfile, Contention, Sequence[Measurement]]


def export(
    out: Path,
    description: TestbedDescription,
    benches: BenchLevels,
    profiles: Sequence[NfProfile],
    best_efforts: pd.DataFrame,
    cycles: MeasuredCycles | None = None,
) -> None:
    """Write the profile directory. NFs that were profiled into it before stay, and so do all files of the user.
    `best_efforts` are the runs of `best-effort.csv`; without any, there is no such file."""
    outdated = [out / BEST_EFFORT, *(path for profile in profiles for path in profile.outdated(out / profile.name))]
    with files_aside(out, outdated) as aside:
        write_best_efforts(best_efforts, aside)
        write_json(description.model_dump(mode="json"), aside / "testbed.json")
        write_table(bench_table(benches), aside / "benches.csv")
        for profile in profiles:
            profile.write_files(aside / profile.name)
        if cycles:
            write_cycles(cycles, description, aside / CYCLES_FILE, out / CYCLES_FILE)


def refuse_taken(out: Path, journal: Path) -> None:
    """InputError when `out` holds something that no profiling with this journal has written."""
    if out.exists() and not out.is_dir():
        raise InputError.of("--out", f"{out} is a file", hint="name a directory; it is created when it does not exist")
    if out.exists() and any(out.iterdir()) and not journal.exists():
        raise InputError.of(
            "--out", f"{out} exists, without {journal.name} next to it", hint="remove it or choose another"
        )


def refuse_unwritable(description: TestbedDescription) -> None:
    """TestbedError when an accelerator has the name of another file of an NF."""
    for nf in description.nfs:
        for name in nf.accelerators:
            if name in NOT_ACCELERATORS or name.startswith("memory"):
                raise TestbedError(
                    f"testbed {description.name} has an accelerator named {name}; {name}.csv has another meaning"
                )


def nf_profile(description: TestbedDescription, runs: NfRuns) -> NfProfile:
    """The tables of one NF, from its runs; repeated runs become their mean. An accelerator whose bench does not exist,
    or does not fit with the NF, gets the solo runs as its table."""
    measured, nf = runs.all(), runs.nf
    fewest = least_work(description, nf).mtbr

    def is_memory(one: _Measured) -> bool:
        traffic, contention, _ = one
        return not contention.accelerators and (not nf.accelerators or traffic.mtbr == fewest)

    def is_accelerator(one: _Measured) -> bool:
        return len(one[1].accelerators) == 1 and not one[1].loads_memory

    solo = [run for run in measured if not run[1].levels]
    accelerators = {}
    for name in nf.accelerators:
        loaded = [run for run in measured if is_accelerator(run) and name in run[1].accelerators]
        accelerators[name] = _table(loaded or solo, _demand_on(name))
    mixed = [run for run in measured if run[1].levels and not is_memory(run) and not is_accelerator(run)]
    return NfProfile(
        name=nf.name,
        description=nf,
        solo=_table(solo, _own_counters),
        memory=_table([run for run in measured if is_memory(run)], _competitors_counters),
        accelerators=accelerators,
        pattern=_table(mixed, _demand_on_all(nf)) if mixed else pd.DataFrame(),
        co_locations=_co_location_table(_record(runs)),
    )


def with_co_locations(profiles: Sequence[NfProfile], runs: Iterable[RecordedRun]) -> list[NfProfile]:
    """The profiles with further runs of co-locations, each in the folder of its first NF that is among them. A run that
    is there already is not added again."""
    found: dict[str, list[RecordedRun]] = {profile.name: [] for profile in profiles}
    for co_location, kpps in runs:
        if folder := next((workload.nf for workload in co_location if workload.nf in found), None):
            found[folder].append((co_location, kpps))
    return [_with_co_locations(profile, found[profile.name]) for profile in profiles]


def with_loads(nf: NfProfile, runs: Sequence[RecordedRun]) -> NfProfile:
    """The profile with runs of co-locations at rates or on further numbers of cores."""
    rows = [
        {RATE_COLUMN: workload.rate_kpps, CORES_COLUMN: workload.cores}
        for co_location, _ in runs
        for workload in co_location
    ]
    table = _co_location_table(runs, next_run(nf))
    return (
        replace(nf, loads=table.assign(**{RUN_COLUMN: table[RUN_COLUMN].astype(str)}).join(pd.DataFrame(rows)))
        if runs
        else nf
    )


def next_run(nf: NfProfile) -> int:
    """The first number that no run of an NF's co-locations has."""
    names = {str(name) for table in (nf.co_locations, nf.loads) if len(table) for name in table[RUN_COLUMN].unique()}
    return 1 + max((int(name) for name in names if name.isdecimal()), default=-1)


def write_co_locations(out: Path, profiles: Sequence[NfProfile], best_efforts: pd.DataFrame) -> None:
    """Write `co-locations.csv` of each NF, and `best-effort.csv`, into `out`; all other files stay."""
    with files_aside(out) as aside:
        write_best_efforts(best_efforts, aside)
        for profile in profiles:
            write_table(profile.all_co_locations(), aside / profile.name / f"{CO_LOCATIONS}.csv")


def write_best_efforts(best_efforts: pd.DataFrame, folder: Path) -> None:
    """Write `best-effort.csv` into `folder`, if there are any such runs."""
    if len(best_efforts):
        write_table(best_efforts, folder / BEST_EFFORT)


def _with_co_locations(nf: NfProfile, runs: Sequence[RecordedRun]) -> NfProfile:
    known = nf.co_locations
    there = set(read_recorded_runs(nf)) if runs else set()
    new = [run for run in runs if (run[0], round_kpps(run[1])) not in there]
    if not new:
        return nf
    joined = pd.concat([known, _co_location_table(new, next_run(nf))], ignore_index=True)
    return replace(
        nf, co_locations=joined.assign(**{RUN_COLUMN: joined[RUN_COLUMN].astype(str)})
    )  # users may name runs


def read_recorded_runs(nf: NfProfile) -> Iterator[RecordedRun]:
    """The runs in an NF's `co-locations.csv`, rounded as they are written."""
    for _, rows in nf.co_locations.groupby(RUN_COLUMN, sort=False) if len(nf.co_locations) else ():
        traffics = rows[TRAFFIC_COLUMNS].to_numpy(dtype=float).tolist()
        workloads = (
            Workload(str(name), TrafficProfile(*traffic))
            for name, traffic in zip(rows[NF_COLUMN], traffics, strict=True)
        )
        yield tuple(workloads), round_kpps(rows[KPPS_COLUMN])


def round_kpps(kpps: Iterable[float]) -> tuple[float, ...]:
    """Throughputs as files have them."""
    return tuple(float(SIGNIFICANT_DIGITS % rate) for rate in kpps)


def memory_table(points: Iterable[OperatingPoint]) -> pd.DataFrame:
    """The columns of memory.csv that are known before a run: traffic and the competitors' summed counters."""
    return pd.DataFrame([{**traffic.as_dict(), **contention.counters.as_dict()} for traffic, contention in points])


def bench_table(benches: BenchLevels) -> pd.DataFrame:
    """`benches.csv`: each setting measured alone. A parameter named like another column gets its bench's name, too."""
    levels = benches.all()
    taken = {"bench", *COUNTERS, KPPS_COLUMN, *(service_column(name) for name in benches.accelerators)}
    rows: list[dict[str, object]] = []
    for level in levels:
        name = level.load.name
        parameters = {key if key not in taken else f"{name}.{key}": value for key, value in level.load.parameters}
        demand = {service_column(name): level.service_ms for name in [level.accelerator] if name}
        rows.append(
            {"bench": name, **parameters, **level.counters.as_dict(), KPPS_COLUMN: level.throughput_kpps, **demand}
        )
    settings = dict.fromkeys(key for row in rows for key in row if key not in taken)
    services = [service_column(name) for name in benches.accelerators]
    return pd.DataFrame(rows, columns=["bench", *settings, *COUNTER_COLUMNS, KPPS_COLUMN, *services])


def report_runs(
    journal: Journal, notify: Callable[[str], None], *, outliers: int = 0, known: int | None = None
) -> pd.DataFrame:
    """The best-effort runs in a journal; users are notified of what they should know of all runs. `journal`: of a
    profiling that has ended. `notify`: called with each message. `outliers`: runs that repeats replaced. `known`: runs
    that the journal had before, where users should be notified that nothing was measured."""
    if outliers:
        notify(f"{outliers} runs were outliers: their repeats did not confirm them and replace them")
    if len(journal) == known:
        notify(f"nothing to measure: {known:,} runs are recorded")
    best_efforts = best_effort_table(journal.best_efforts())
    if len(best_efforts):
        notify(best_effort_summary(best_efforts, len(journal)))
    return best_efforts


def best_effort_table(runs: Iterable[tuple[str, str, Run]]) -> pd.DataFrame:
    """`best-effort.csv`, from purpose, request (JSON) and answer of each run, best effort all. Throughputs are as the
    testbed answered, before any correction for drift."""
    rows = [
        [number, purpose.strip("/"), *row]
        for number, (purpose, request, run) in enumerate(runs)
        for row in _best_effort_rows(json.loads(request)["workloads"], run)
    ]
    return pd.DataFrame(rows, columns=BEST_EFFORT_COLUMNS)


def _record(runs: NfRuns) -> Iterator[RecordedRun]:
    for co_location, run in runs.co_locations:
        yield co_location, tuple(measurement.throughput_kpps for measurement in run.measurements)


def _co_location_table(runs: Iterable[RecordedRun], first: int = 0) -> pd.DataFrame:
    """`co-locations.csv`: a row per NF of each run; runs are numbered from `first`."""
    rows = [
        {RUN_COLUMN: number, NF_COLUMN: workload.nf, **workload.traffic.as_dict(), KPPS_COLUMN: one}
        for number, (co_location, kpps) in enumerate(runs, first)
        for workload, one in zip(co_location, kpps, strict=True)
    ]
    return pd.DataFrame(rows)


_Columns = Callable[[_Measured], dict[str, float]]


def _table(measured: Sequence[_Measured], contention_columns: _Columns) -> pd.DataFrame:
    """Traffic, `contention_columns`, throughput."""
    rows = [
        {
            **measured_run[0].as_dict(),
            **contention_columns(measured_run),
            KPPS_COLUMN: _mean([run.throughput_kpps for run in measured_run[2]]),
        }
        for measured_run in measured
    ]
    return pd.DataFrame(rows, columns=list(rows[0]) if rows else [*TRAFFIC_COLUMNS, *COUNTER_COLUMNS, KPPS_COLUMN])


def _own_counters(one: _Measured) -> dict[str, float]:
    runs = [run.counters for run in one[2]]
    return {name: _mean([getattr(counters, name) for counters in runs]) for name in COUNTERS}


def _competitors_counters(one: _Measured) -> dict[str, float]:
    return one[1].counters.as_dict()


def _demand_on(accelerator: str) -> _Columns:
    """The competitor's demand on one accelerator; its counters go into optional columns."""
    return lambda one: {
        FIRST_SERVICE: one[1].service_ms(accelerator),
        FIRST_RATE: one[1].rate_kpps(accelerator),
        **_competitors_counters(one),
    }


def _demand_on_all(nf: NfDescription) -> _Columns:
    def columns(one: _Measured) -> dict[str, float]:
        demand = _competitors_counters(one)
        for name in nf.accelerators:
            demand[service_column(name)] = one[1].service_ms(name)
            demand[rate_column(name)] = one[1].rate_kpps(name)
        return demand

    return columns


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _best_effort_rows(loads: Iterable[Mapping[str, Any]], run: Run) -> Iterator[list[object]]:
    assert run.best_effort is not None
    errors, disturbed = run.best_effort.standard_error_pct, run.best_effort.disturbed_pct
    for load, measured, error in zip(loads, run.measurements, errors, strict=True):
        name = load.get("name") or ",".join(stage["name"] for stage in load.get("stages", ()))
        yield [load["kind"], name, _settings(load), measured.throughput_kpps, error, disturbed]


def _settings(load: Mapping[str, Any]) -> str:
    """Traffic and parameters of a workload as in a request; of a chain also cores, shares and offered load."""
    of_chain = {name: load[name] for name in ("cores", "shares", "rate_kpps") if name in load}
    settings = {**load.get("traffic", {}), **load.get("parameters", {}), **of_chain}
    return " ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in settings.items()
    )
