"""`replay:PROFILE`: a testbed that answers from a recorded profile, for tests and for users without a card.

It answers `describe`, every recorded run of one NF or bench alone, every recorded co-location of NFs, and every
recorded co-run of an NF with benches. A profile does not name the benches of a co-run but sums their contention, so a
co-run is found by its traffic and by those sums: the seven counters, and per accelerator service demand and offered
rate, added up from each bench alone in benches.csv. Of co-runs only the NFs' throughputs are recorded; counters, and
the throughputs of benches, are those recorded alone, which is all that profiles use.

Everything else is refused, with the nearest recorded run."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profiler.contention import RATE_SETTING
from profiler.testbed import Measurement, Run, RunRefused, Testbed
from profiler.testbeds import TESTBEDS
from profiles import (
    COUNTERS,
    BenchLoad,
    ConfiguredWorkload,
    Counters,
    InputError,
    Load,
    TestbedDescription,
    TrafficProfile,
    Workload,
)
from profiles.profile import (
    CORES_COLUMN,
    FIRST_RATE,
    FIRST_SERVICE,
    KPPS_COLUMN,
    NF_COLUMN,
    RATE_COLUMN,
    RUN_COLUMN,
    NfProfile,
    Profile,
    rate_column,
    read_profile,
    service_column,
)

MATCHING_DIFFERENCE = 1e-6  # relative difference up to which sums are the same: files keep ten digits


@dataclass(frozen=True)
class RecordedCoRun:
    """A recorded co-run: the NF, its competitors' contention (as listed by `_contention`), and its throughput."""

    workload: Workload
    contention: NDArray[np.float64]
    throughput_kpps: float


class ReplayTestbed(Testbed):
    """Answers runs as they were recorded, with the noise of that time; `noise` and `seed` are ignored. `directory`: the
    profile directory. Raises `InputError` when it is not a profile, or has no testbed.json to describe itself with."""

    def __init__(self, directory: Path) -> None:
        profile = read_profile(directory)
        if profile.testbed is None:
            raise InputError.of("--testbed", f"{directory} has no testbed.json, so its measurements are not described")
        self._source = directory
        self._description = profile.testbed
        self._default_cores = {(nf.name, nf.cores) for nf in profile.testbed.nfs}
        self._accelerators = sorted({name for nf in profile.nfs.values() for name in nf.uses})
        self._demands = _bench_demands(profile, self._accelerators)
        self._recorded = _index_nfs(profile) | {load: _measurement(row) for load, row in _bench_rows(profile)}
        self._co_runs = _index_co_runs(profile, self._accelerators)
        self._co_locations = _index_co_locations(profile)

    @property
    def measured_by(self) -> str:
        return f"replay:{self._source.resolve()}"

    def describe(self) -> TestbedDescription:
        return self._description

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        if not loads:
            raise RunRefused("a run needs at least one workload")
        if unknown := [load for load in loads if not isinstance(load, Workload | BenchLoad)]:
            shown_loads = ", ".join(load.label for load in unknown)
            raise RunRefused(
                f"replay of {self._source}: {shown_loads}: neither chains nor NFs with parameters are replayed"
            )
        loads = [self._with_default_cores(load) for load in loads]
        if len(loads) == 1 and loads[0] in self._recorded:
            return Run((self._recorded[loads[0]],))
        if (kpps_of := self._co_locations.get(tuple(sorted(map(format_load, loads))))) is not None:
            return Run(tuple(replace(self._alone(load), throughput_kpps=kpps_of[load]) for load in loads))
        if len(loads) > 1 and (kpps := self._co_run_kpps(loads)) is not None:
            first, *others = loads
            competitors = (self._recorded.get(load, Measurement(kpps, Counters())) for load in others)
            return Run((replace(self._alone(first), throughput_kpps=kpps), *competitors))
        raise RunRefused(
            f"replay of {self._source}: {', '.join(map(format_load, loads))}: no such run is recorded; "
            f"{self._hint(loads)}"
        )

    def _with_default_cores(self, load: Load) -> Load:
        """The load, without its number of cores where that is the default: so it is recorded."""
        default = isinstance(load, Workload) and (load.nf, load.cores) in self._default_cores
        return replace(load, cores=0) if isinstance(load, Workload) and default else load

    def _alone(self, load: Load) -> Measurement:
        """The load as recorded alone; without throughput and counters where it was not."""
        return self._recorded.get(load, Measurement(math.nan, Counters()))

    def _co_run_kpps(self, loads: Sequence[Load]) -> float | None:
        """The recorded throughput of the first load with the others; None where there is none."""
        contention = self._contention(loads[1:])
        if contention is None or not isinstance(loads[0], Workload):
            return None
        for recorded in self._co_runs.get(loads[0].nf, ()):
            if recorded.workload == loads[0] and np.allclose(
                recorded.contention, contention, rtol=MATCHING_DIFFERENCE, atol=0, equal_nan=True
            ):
                return recorded.throughput_kpps
        return None

    def _contention(self, competitors: Sequence[Load]) -> NDArray[np.float64] | None:
        """The summed counters, then service demand and offered rate per accelerator; None unless all are benches."""
        demands = [self._demands.get(load) for load in competitors]
        known = [demand for demand in demands if demand is not None]
        if len(known) < len(demands):
            return None
        total = Counters.total(self._recorded[load].counters for load in competitors).as_array()
        for at in range(len(self._accelerators)):
            mine = [demand[:, at] for demand in known if demand[0, at] > 0]
            service, rate = np.sum(mine, axis=0) if mine else (0.0, np.nan)
            total = np.append(total, [service, rate])
        return total

    def _hint(self, loads: Sequence[Load]) -> str:
        """The most similar recorded run."""
        first, contention = loads[0], self._contention(loads[1:]) if len(loads) > 1 else None
        if isinstance(first, Workload) and contention is not None and (co_runs := self._co_runs.get(first.nf)):
            nearest = min(
                co_runs,
                key=lambda one: (
                    _distance(_values(one.workload), _values(first)),
                    float(np.nansum(np.abs(np.log1p(one.contention) - np.log1p(contention)))),
                ),
            )
            sums = zip((*COUNTERS, *self._demand_names()), nearest.contention.tolist(), strict=True)
            summed = ", ".join(f"{name} {value:.6g}" for name, value in sums if value > 0)
            return f"the nearest recorded is {format_load(nearest.workload)} with benches that sum up to {summed}"
        alone = self._nearest(first)
        return (
            f"the nearest recorded is {format_load(alone)} alone" if alone else f"nothing is recorded of {first.label}"
        )

    def _demand_names(self) -> list[str]:
        return [column for name in self._accelerators for column in (service_column(name), rate_column(name))]

    def _nearest(self, load: Load) -> Load | None:
        """The recorded load of the same NF or bench whose values differ by the smallest factors."""
        same = [other for other in self._recorded if type(other) is type(load) and other.label == load.label]
        return min(same, key=lambda one: _distance(_values(one), _values(load)), default=None)


@TESTBEDS.register("replay")
def open_replay(argument: str, timeout: float) -> Testbed:
    """The testbed of `replay:PROFILE`."""
    if not argument:
        raise InputError.of("--testbed", "replay: names no profile", hint="replay:PROFILE")
    return ReplayTestbed(Path(argument))


def format_load(load: Load) -> str:
    """A load as messages show it."""
    values = _values(load)
    if isinstance(load, Workload):
        values |= {"cores": load.cores} if load.cores else {}
        values |= {} if load.is_saturated else {RATE_COLUMN: load.rate_kpps}
    return f"{load.label} ({', '.join(f'{name} {value:g}' for name, value in values.items())})"


def _index_nfs(profile: Profile) -> dict[Load, Measurement]:
    return {
        Workload(nf.name, TrafficProfile.from_mapping(row), cores=cores): _measurement(row)
        for nf in profile.nfs.values()
        for cores, measured in _by_cores(nf)
        for row in _rows(measured.solo)
    }


def _by_cores(nf: NfProfile) -> list[tuple[int, NfProfile]]:
    """What was measured on each number of cores, 0 for the default."""
    return [(0, nf), *nf.further.items()]


def _bench_rows(profile: Profile) -> Iterator[tuple[BenchLoad, dict[str, float]]]:
    """Each setting of a described bench, with its row."""
    assert profile.testbed is not None
    for row in _rows(profile.benches):
        bench = profile.testbed.bench(str(row["bench"]))
        if bench is None:
            continue
        columns = {name: f"{bench.name}.{name}" if f"{bench.name}.{name}" in row else name for name in bench.parameters}
        yield BenchLoad.of(bench.name, {name: row[column] for name, column in columns.items()}), row


def _bench_demands(profile: Profile, accelerators: Sequence[str]) -> dict[Load, NDArray[np.float64]]:
    """Of each bench setting, service demand and offered rate per accelerator, shape (2, accelerators)."""
    demands: dict[Load, NDArray[np.float64]] = {}
    for load, row in _bench_rows(profile):
        service = [row.get(service_column(name), math.nan) for name in accelerators]
        rate = dict(load.parameters).get(RATE_SETTING, 0.0) or math.nan
        demands[load] = np.array([np.nan_to_num(service), [rate] * len(accelerators)])
    return demands


def _index_co_runs(profile: Profile, accelerators: Sequence[str]) -> dict[str, list[RecordedCoRun]]:
    """Per NF, every run with benches; accelerators without columns in a file were not loaded."""
    found: dict[str, list[RecordedCoRun]] = {}
    for nf in profile.nfs.values():
        tables = []
        for cores, measured in _by_cores(nf):
            tables += [(cores, measured.memory), (cores, measured.pattern)]
            for name, table in measured.accelerators.items():
                columns = {FIRST_SERVICE: service_column(name), FIRST_RATE: rate_column(name)}
                tables.append((cores, table.rename(columns=columns)))
        found[nf.name] = [
            RecordedCoRun(
                Workload(nf.name, TrafficProfile.from_mapping(row), cores=cores),
                np.array(
                    [row.get(name, 0.0) for name in COUNTERS]
                    + [v for name in accelerators for v in (row.get(service_column(name), 0.0), _rate(row, name))]
                ),
                float(row[KPPS_COLUMN]),
            )
            for cores, table in tables
            for row in _rows(table)
        ]
    return found


def _index_co_locations(profile: Profile) -> dict[tuple[str, ...], dict[Load, float]]:
    """The mean throughput of every NF in each recorded co-location, by its sorted loads as text."""
    found: dict[tuple[str, ...], dict[Load, list[float]]] = defaultdict(lambda: defaultdict(list))
    for nf in profile.nfs.values():
        together = (
            table
            for measured in (nf.co_locations, nf.loads)
            for _, table in (measured.groupby(RUN_COLUMN, sort=False) if len(measured) else ())
        )
        for table in together:
            rows = _rows(table)
            members = [
                Workload(
                    str(row[NF_COLUMN]),
                    TrafficProfile.from_mapping(row),
                    row.get(RATE_COLUMN, math.inf),
                    cores=int(row.get(CORES_COLUMN, 0)),
                )
                for row in rows
            ]
            co_location = found[tuple(sorted(map(format_load, members)))]
            for member, row in zip(members, rows, strict=True):
                co_location[member].append(float(row[KPPS_COLUMN]))
    return {key: {load: fmean(kpps) for load, kpps in co_location.items()} for key, co_location in found.items()}


def _rate(row: dict[str, float], accelerator: str) -> float:
    return row.get(rate_column(accelerator), math.nan)


def _rows(table: pd.DataFrame) -> list[dict[str, float]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _measurement(row: dict[str, float]) -> Measurement:
    return Measurement(float(row[KPPS_COLUMN]), Counters.from_mapping({name: row[name] for name in COUNTERS}))


def _values(load: Load) -> dict[str, float]:
    return dict(load.parameters) if isinstance(load, BenchLoad | ConfiguredWorkload) else load.traffic.as_dict()


def _distance(one: dict[str, float], other: dict[str, float]) -> float:
    return sum(abs(math.log1p(one.get(name, 0.0)) - math.log1p(other.get(name, 0.0))) for name in {*one, *other})
