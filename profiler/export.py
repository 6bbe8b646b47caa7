"""From measurements to the profile directory (docs/formats.md)."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pandas as pd

from profiler.contention import BenchLevels, Contention
from profiler.nf_runs import CoLocation, NfRuns, least_work
from profiler.testbed import Measurement, TestbedError
from profiles import COUNTERS, InputError, NfDescription, TestbedDescription, TrafficProfile
from profiles.aside import directory_aside
from profiles.profile import (
    COUNTER_COLUMNS,
    FIRST_RATE,
    FIRST_SERVICE,
    NOT_ACCELERATORS,
    THROUGHPUT,
    TRAFFIC_COLUMNS,
    NfProfile,
    rate_column,
    service_column,
    write_json,
)
from profiles.table import write_table

Measured = tuple[TrafficProfile, Contention, Sequence[Measurement]]


def export(out: Path, description: TestbedDescription, benches: BenchLevels, profiles: Iterable[NfProfile]) -> None:
    """Write the profile directory whole.

    NFs that were profiled into it before stay, and so do files that people put beside an NF's measurements.
    """
    with directory_aside(out) as aside:
        write_json(description.model_dump(mode="json"), aside / "testbed.json")
        write_table(bench_table(benches), aside / "benches.csv")
        for one in profiles:
            one.write(aside / one.name)
        for old in sorted(out.glob("*/*")):
            kept = aside / old.relative_to(out)
            if old.is_file() and not kept.exists():
                kept.parent.mkdir(exist_ok=True)
                shutil.copyfile(old, kept)


def refuse_taken(out: Path, journal: Path) -> None:
    """InputError when `out` holds what no profiling with this journal has written."""
    if out.exists() and not out.is_dir():
        raise InputError.of("--out", f"{out} is a file", hint="name a directory; it is made when it is not there")
    if out.exists() and any(out.iterdir()) and not journal.exists():
        raise InputError.of(
            "--out", f"{out} is there already, without {journal.name} beside it", hint="remove it or choose another"
        )


def refuse_unwritable(description: TestbedDescription) -> None:
    """TestbedError when an accelerator is called like another file of an NF."""
    for nf in description.nfs:
        for name in nf.accelerators:
            if name in NOT_ACCELERATORS or name.startswith("memory"):
                raise TestbedError(f"testbed {description.name} calls an accelerator {name}; {name}.csv means another")


def nf_profile(description: TestbedDescription, runs: NfRuns) -> NfProfile:
    """The tables of one NF, from its runs; repeated runs become their mean.

    An accelerator whose bench does not exist, or does not fit beside the NF, is known from the solo runs.
    """
    measured, nf = runs.all(), runs.nf
    fewest = least_work(description, nf).mtbr

    def is_memory(one: Measured) -> bool:
        traffic, contention, _ = one
        return not contention.accelerators and (not nf.accelerators or traffic.mtbr == fewest)

    def is_accelerator(one: Measured) -> bool:
        return len(one[1].accelerators) == 1 and not one[1].loads_memory

    solo = [one for one in measured if not one[1].levels]
    accelerators = {}
    for name in nf.accelerators:
        beside = [one for one in measured if is_accelerator(one) and name in one[1].accelerators]
        accelerators[name] = _table(beside or solo, _demand_on(name))
    mixed = [one for one in measured if one[1].levels and not is_memory(one) and not is_accelerator(one)]
    return NfProfile(
        name=nf.name,
        description=nf,
        solo=_table(solo, _own_counters),
        memory=_table([one for one in measured if is_memory(one)], _exerted),
        accelerators=accelerators,
        pattern=_table(mixed, _demand_on_all(nf)) if mixed else pd.DataFrame(),
        co_locations=_co_location_table(runs),
    )


def memory_table(co_locations: Iterable[CoLocation]) -> pd.DataFrame:
    """What memory.csv would tell of companies before they are run: traffic and the competitors' summed counters."""
    return pd.DataFrame([{**traffic.as_dict(), **beside.counters.as_dict()} for traffic, beside in co_locations])


def bench_table(benches: BenchLevels) -> pd.DataFrame:
    """`benches.csv`: each setting measured alone. A parameter named as another column is, gets its bench's name too."""
    levels = benches.all()
    taken = {"bench", *COUNTERS, THROUGHPUT, *(service_column(name) for name in benches.accelerators)}
    rows: list[dict[str, object]] = []
    for level in levels:
        name = level.load.name
        parameters = {key if key not in taken else f"{name}.{key}": value for key, value in level.load.parameters}
        demand = {service_column(one): level.service_ms for one in [level.accelerator] if one}
        rows.append(
            {"bench": name, **parameters, **level.counters.as_dict(), THROUGHPUT: level.throughput_kpps, **demand}
        )
    settings = dict.fromkeys(key for row in rows for key in row if key not in taken)
    services = [service_column(name) for name in benches.accelerators]
    return pd.DataFrame(rows, columns=["bench", *settings, *COUNTER_COLUMNS, THROUGHPUT, *services])


def _co_location_table(runs: NfRuns) -> pd.DataFrame:
    """`companies.csv`: a row per NF of each run."""
    rows = [
        {"run": number, "nf": workload.nf, **workload.traffic.as_dict(), THROUGHPUT: measured.throughput_kpps}
        for number, (co_location, run) in enumerate(runs.co_locations)
        for workload, measured in zip(co_location, run.measurements, strict=True)
    ]
    return pd.DataFrame(rows)


Columns = Callable[[Measured], dict[str, float]]


def _table(measured: Sequence[Measured], between: Columns) -> pd.DataFrame:
    """Traffic, the columns that `between` tells, throughput."""
    rows = [
        {**one[0].as_dict(), **between(one), THROUGHPUT: _mean([run.throughput_kpps for run in one[2]])}
        for one in measured
    ]
    return pd.DataFrame(rows, columns=list(rows[0]) if rows else [*TRAFFIC_COLUMNS, *COUNTER_COLUMNS, THROUGHPUT])


def _own_counters(one: Measured) -> dict[str, float]:
    runs = [run.counters for run in one[2]]
    return {name: _mean([getattr(counters, name) for counters in runs]) for name in COUNTERS}


def _exerted(one: Measured) -> dict[str, float]:
    return one[1].counters.as_dict()


def _demand_on(accelerator: str) -> Columns:
    """The competitor's demand on one accelerator; what it exerts on memory as well goes into optional columns."""
    return lambda one: {
        FIRST_SERVICE: one[1].service_ms(accelerator),
        FIRST_RATE: one[1].rate_kpps(accelerator),
        **_exerted(one),
    }


def _demand_on_all(nf: NfDescription) -> Columns:
    def columns(one: Measured) -> dict[str, float]:
        demand = _exerted(one)
        for name in nf.accelerators:
            demand[service_column(name)] = one[1].service_ms(name)
            demand[rate_column(name)] = one[1].rate_kpps(name)
        return demand

    return columns


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
