"""The files of `placer predict`: scenarios as JSON Lines, and the contention of one NF as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from placer.model.nic_kind import kpps_of
from profiles import ATTRIBUTES, COUNTERS, Fault, InputError, TrafficProfile, Workload
from profiles.description import MOST_CORES
from profiles.faults import suggestion
from profiles.text import read_text
from profiles.validation import faults_of

if TYPE_CHECKING:
    import pandas as pd

    from predictor import Models

LARGEST_FILE = 100_000_000  # bytes
LARGEST_VALUE = 1e15  # above every measurement; arithmetic with larger numbers overflows
EXTRAPOLATE_TRAFFIC = "--extrapolate predicts traffic outside the profiled range, and marks it"
EXTRAPOLATE_CORES = "--extrapolate predicts co-locations that the NIC has too few cores for"

Model = TypeVar("Model", bound=BaseModel)
Value = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=LARGEST_VALUE)]


class _WorkloadLine(BaseModel):
    model_config = ConfigDict(extra="ignore")

    name: str
    kind: Annotated[str, Field(pattern="^nf$")] = "nf"
    traffic: dict[str, Value] = Field(default_factory=dict)
    rate_kpps: Value = 0.0
    rate_gbps: Value = 0.0
    cores: Annotated[int, Field(strict=True, ge=1, le=MOST_CORES)] | None = None


class _ScenarioLine(BaseModel):
    model_config = ConfigDict(extra="ignore")

    workloads: Annotated[list[_WorkloadLine], Field(min_length=1)]


@dataclass(frozen=True)
class Scenarios:
    """What a scenarios file holds. `co_locations`: one per scenario. `overfull`: lines whose co-locations need more
    cores than the NIC has."""

    co_locations: tuple[tuple[Workload, ...], ...]
    overfull: tuple[int, ...]


@dataclass(frozen=True)
class ContentionFile:
    """What a contention file holds. `rows`: numbers: traffic and contention. `written`: the same rows with all columns
    as they were written."""

    rows: pd.DataFrame
    written: pd.DataFrame


def read_scenarios(models: Models, path: Path, *, extrapolate: bool = False) -> Scenarios:
    """The scenarios in `path`, JSON Lines. `models`: of the NFs. `path`: the file. `extrapolate`: accept traffic
    outside the profiled range, and co-locations that the NIC has too few cores for. Raises `InputError` with every
    fault of the file: a line that is no scenario, an unknown NF, traffic outside the profiled range, a co-location that
    the NIC has too few cores for."""
    co_locations, overfull, faults = [], [], list[Fault]()
    for number, scenario in parse_lines(path, _ScenarioLine, faults):
        co_location = tuple(_workload(item, models) for item in scenario.workloads)
        faults += [
            Fault(str(path), number, *wrong)
            for wrong in unknown_attributes(item.traffic for item in scenario.workloads)
        ]
        wrong_workloads = [
            fault
            for workload in dict.fromkeys(co_location)
            for fault in _faults(models, workload, path, number, extrapolate)
        ]
        faults += wrong_workloads
        if any(item.rate_kpps and item.rate_gbps for item in scenario.workloads):
            faults.append(Fault(str(path), number, "rate_gbps", "two rates", "give rate_kpps or rate_gbps"))
        excess = None if wrong_workloads else models.excess_cores(co_location)
        if excess and extrapolate:
            overfull.append(number)
        elif excess:
            faults.append(Fault(str(path), number, "workloads", excess, EXTRAPOLATE_CORES))
        co_locations.append(co_location)
    refuse_scenarios(path, co_locations, faults)
    return Scenarios(tuple(co_locations), tuple(overfull))


def refuse_loads(scenarios: Scenarios, path: Path, predictor: str, others: Sequence[str]) -> None:
    """Refuse rates and numbers of cores, for a predictor that knows none. Raises `InputError` where a workload has a
    rate or a number of cores."""
    workloads = [workload for co_location in scenarios.co_locations for workload in co_location]
    given = {
        "rate_kpps": not all(workload.is_saturated for workload in workloads),
        "cores": any(workload.cores for workload in workloads),
    }
    if names := [name for name, is_given in given.items() if is_given]:
        hint = f"predict with {' or '.join(others)}" if others else "leave them out"
        raise InputError.of(str(path), f"{predictor} predicts no {' and no '.join(names)}", hint=hint)


def read_contention(models: Models, nf: str, path: Path, *, extrapolate: bool = False) -> ContentionFile:
    """The contention that `nf` meets, CSV: traffic, the competitors' summed counters and service times. Raises
    `InputError` with every fault of the file, an unknown NF, traffic outside the profiled range."""
    import pandas as pd

    from profiles.profile import FIRST_SERVICE
    from profiles.table import read_table

    if nf not in models.nfs:
        raise InputError.of("--nf", f"'{nf}' is not profiled", hint=suggestion(nf, models.nfs))
    required = ["flows", "packet_size", *COUNTERS]
    rows, faults = read_table(path, required, {"mtbr": 0.0, FIRST_SERVICE: 0.0}, positive=required[:2])
    if faults:
        raise InputError(faults)
    for position, line in enumerate(rows.attrs["lines"]):
        row = rows.iloc[position]
        faults += [
            Fault(str(path), line, name, f"{row[name]:g} is above {LARGEST_VALUE:g}")
            for name in [*required, "mtbr", FIRST_SERVICE]
            if row[name] > LARGEST_VALUE
        ]
        traffic = TrafficProfile(*(float(row[name]) for name in ATTRIBUTES))
        faults += _faults(models, Workload(nf, traffic), path, line, extrapolate)
    if faults:
        raise InputError(faults)
    return ContentionFile(rows, pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig"))


def parse_lines(path: Path, model: type[Model], faults: list[Fault]) -> Iterator[tuple[int, Model]]:
    """The lines that are not empty, with their numbers from 1; what is wrong with a line is added to `faults`."""
    for number, line in enumerate(read_text(path, LARGEST_FILE).split("\n"), start=1):
        if line.strip():
            try:
                yield number, model.model_validate_json(line)
            except ValidationError as error:
                faults += faults_of(error, str(path), number)


def refuse_scenarios(path: Path, found: Sequence[object], faults: list[Fault]) -> None:
    """Raises `InputError` when there are faults, or nothing was found."""
    if faults or not found:
        raise InputError(faults or [Fault(str(path), None, None, "holds no scenario")])


def _workload(item: _WorkloadLine, models: Models) -> Workload:
    traffic = TrafficProfile.from_mapping({**models.default_traffic.as_dict(), **item.traffic})
    rate = item.rate_kpps or kpps_of(item.rate_gbps, traffic.packet_size)
    return Workload(item.name, traffic, rate or inf, cores=item.cores or 0)


def unknown_attributes(traffics: Iterable[Iterable[str]]) -> Iterator[tuple[str, str, str]]:
    """Column, message and hint of every attribute that traffic does not have."""
    for name in chain.from_iterable(traffics):
        if name not in ATTRIBUTES:
            yield "traffic", f"unknown attribute {name}", suggestion(name, ATTRIBUTES)


def _faults(models: Models, workload: Workload, path: Path, line: int, extrapolate: bool) -> list[Fault]:
    """What is wrong with a workload; with `extrapolate`, traffic outside the profiled range is not."""
    values = workload.traffic.as_dict()
    empty = [name for name in ("flows", "packet_size") if values[name] <= 0]
    wrong = [Fault(str(path), line, name, f"{values[name]:g} is not above 0") for name in empty]
    return wrong + [
        Fault(str(path), line, column, message, EXTRAPOLATE_TRAFFIC if column in ATTRIBUTES else None)
        for column, message in models.check(workload)
        if not (column in empty or (extrapolate and column in ATTRIBUTES))
    ]
