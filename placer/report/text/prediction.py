"""Predictions for people and programs who bring their own scenarios or contention."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from placer.report.text.table import text_table
from predictor import Models, Prediction
from profiles import ATTRIBUTES, COUNTERS, Fault, InputError, TrafficProfile, Workload
from profiles.profile import FIRST_SERVICE
from profiles.table import read_table

Say = Callable[[str], None]

COVERAGE = 0.9
OUTSIDE = "some workloads are outside what was measured: their predictions are marked `extrapolated`"
EXTRAPOLATE = "--extrapolate answers traffic outside the profiled range, and marks it"


class _WorkloadLine(BaseModel):
    model_config = ConfigDict(extra="ignore")

    name: str
    kind: Annotated[str, Field(pattern="^nf$")] = "nf"
    traffic: dict[str, FiniteFloat] = Field(default_factory=dict)


class _ScenarioLine(BaseModel):
    model_config = ConfigDict(extra="ignore")

    workloads: Annotated[list[_WorkloadLine], Field(min_length=1)]


def predict_scenarios(
    models: Models,
    predictor: str,
    path: Path,
    form: str,
    say: Say,
    *,
    extrapolate: bool = False,
    coverage: float = COVERAGE,
) -> str:
    """An answer a scenario, in order, as JSON Lines or as a table.

    Parameters
    ----------
    models, predictor
        Who answers.
    path
        The scenarios, JSON Lines.
    form
        `json` or `table`.
    say
        Told what users should know of the answers.
    extrapolate
        Answer traffic outside the profiled range, too.
    coverage
        The share of throughputs that intervals are to hold.

    Raises
    ------
    InputError
        With every fault of the file: an unknown NF, traffic outside the profiled range, a line that is no scenario.
    """
    co_locations = _read_scenarios(models, path, extrapolate)
    answers = models.predictors[predictor].predict(co_locations, coverage=coverage)
    if any(prediction.extrapolated for answer in answers for prediction in answer):
        say(OUTSIDE)
    if form == "table":
        return _scenario_table(co_locations, answers, coverage)
    return "".join(json.dumps(_answer(answer)) + "\n" for answer in answers)


def predict_contention(
    models: Models,
    predictor: str,
    nf: str,
    path: Path,
    form: str,
    say: Say,
    *,
    extrapolate: bool = False,
    coverage: float = COVERAGE,
) -> str:
    """The file's rows with `predicted_kpps` added, as CSV or as a table; or each prediction taken apart, as JSON Lines.

    In CSV other columns pass through, and where the models declare no range of traffic, or it was overstepped on
    request, `extrapolated` is added, too. JSON Lines are as of scenarios of one NF.

    Parameters
    ----------
    models, predictor, nf
        Who answers, and of which NF.
    path
        Traffic and contention, CSV.
    form
        `csv`, `table` or `json`.
    say
        Told what users should know of the answers.
    extrapolate
        Answer traffic outside the profiled range, too.
    coverage
        The share of throughputs that intervals are to hold.

    Raises
    ------
    InputError
        With every fault of the file, an unknown NF, traffic outside the profiled range.
    """
    if nf not in models.nfs:
        raise InputError.of("--nf", f"'{nf}' is not profiled", hint=f"these models have {', '.join(models.nfs)}")
    required = ["flows", "packet_size", *COUNTERS]
    rows, faults = read_table(path, required, {"mtbr": 0.0, FIRST_SERVICE: 0.0}, positive=required[:2])
    if faults:
        raise InputError(faults)
    workloads = [_at(nf, values) for values in rows[list(ATTRIBUTES)].to_numpy().tolist()]
    for line, workload in zip(rows.attrs["lines"], workloads, strict=True):
        faults += _faults(models, workload, str(path), line, extrapolate)
    if faults:
        raise InputError(faults)
    written = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    told = models.predictors[predictor].contention_details(nf, rows, coverage=coverage)
    if any(one.extrapolated for one in told):
        say(OUTSIDE)
    if corrected := sum(one.calibrated for one in told):
        say(f"measured co-runs corrected {corrected} of {len(told)} predictions")
    if form == "json":
        return "".join(json.dumps(_answer([one])) + "\n" for one in told)
    table = written.assign(predicted_kpps=[f"{one.throughput_kpps:.6g}" for one in told])
    if extrapolate or models.testbed is None:
        table = table.assign(extrapolated=[str(one.extrapolated).lower() for one in told])
    if form == "csv":
        return table.to_csv(index=False, lineterminator="\n")
    table = table.assign(
        interval=["-" if one.low_kpps is None else f"{one.low_kpps:.0f} to {one.high_kpps:.0f}" for one in told],
        bottleneck=[one.bottleneck for one in told],
        calibrated=["yes" if one.calibrated else "no" for one in told],
    )
    return text_table(list(table.columns), table.itertuples(index=False, name=None))


def _at(nf: str, values: Sequence[float]) -> Workload:
    return Workload(nf, TrafficProfile(*map(float, values)))


def _faults(models: Models, workload: Workload, name: str, line: int, extrapolate: bool) -> list[Fault]:
    """What is wrong with a workload; traffic out of range is no fault when extrapolation was asked for."""
    return [
        Fault(name, line, column, message, EXTRAPOLATE if column in ATTRIBUTES else None)
        for column, message in models.check(workload)
        if not (extrapolate and column in ATTRIBUTES)
    ]


def _read_scenarios(models: Models, path: Path, extrapolate: bool) -> list[tuple[Workload, ...]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError.of(str(path), str(error)) from error
    co_locations, faults = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            scenario = _ScenarioLine.model_validate_json(line)
        except ValidationError as error:
            faults += [
                Fault(str(path), number, ".".join(map(str, wrong["loc"])) or None, wrong["msg"])
                for wrong in error.errors()
            ]
            continue
        co_location = tuple(_workload(item, models) for item in scenario.workloads)
        for workload in dict.fromkeys(co_location):
            faults += _faults(models, workload, str(path), number, extrapolate)
        faults += [
            Fault(str(path), number, "traffic", f"unknown attribute {name}")
            for item in scenario.workloads
            for name in item.traffic
            if name not in ATTRIBUTES
        ]
        co_locations.append(co_location)
    if not co_locations and not faults:
        faults.append(Fault(str(path), None, None, "holds no scenario"))
    if faults:
        raise InputError(faults)
    return co_locations


def _workload(item: _WorkloadLine, models: Models) -> Workload:
    return Workload(item.name, TrafficProfile.from_mapping({**models.default_traffic.as_dict(), **item.traffic}))


def _answer(answer: Sequence[Prediction]) -> dict[str, object]:
    return {
        "throughput_kpps": [float(f"{p.throughput_kpps:.6g}") for p in answer],
        "solo_kpps": [float(f"{p.solo_kpps:.6g}") for p in answer],
        "bottleneck": [p.bottleneck for p in answer],
        "drop_kpps": [{name: float(f"{drop:.6g}") for name, drop in p.drops.items()} for p in answer],
        "low_kpps": [None if p.low_kpps is None else float(f"{p.low_kpps:.6g}") for p in answer],
        "high_kpps": [None if p.high_kpps is None else float(f"{p.high_kpps:.6g}") for p in answer],
        "extrapolated": [p.extrapolated for p in answer],
        "calibrated": [p.calibrated for p in answer],
    }


def _scenario_table(
    co_locations: Sequence[Sequence[Workload]], answers: Sequence[Sequence[Prediction]], coverage: float
) -> str:
    rows = [
        (str(number), workload.nf, *(f"{value:g}" for value in workload.traffic.as_tuple()),
         f"{p.throughput_kpps:.1f}", f"{p.solo_kpps:.1f}", f"{100 * (1 - p.throughput_kpps / p.solo_kpps):.1f}",
         "-" if p.low_kpps is None else f"{p.low_kpps:.0f} to {p.high_kpps:.0f}", p.bottleneck,
         ", ".join(f"{name} {drop:.1f}" for name, drop in p.drops.items() if drop) or "-")
        for number, (co_location, answer) in enumerate(zip(co_locations, answers, strict=True), start=1)
        for workload, p in zip(co_location, answer, strict=True)
    ]  # fmt: skip
    return text_table(["scenario", "nf", *ATTRIBUTES, "kpps", "solo kpps", "drop %", f"{100 * coverage:g} % interval",
                    "bottleneck", "kpps lost to"], rows)  # fmt: skip
