"""Predictions for people and programs who bring their own scenarios or contention."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError
from rich.console import Console
from rich.table import Table

from predictor import Models, Prediction
from profiles import ATTRIBUTES, COUNTERS, Fault, InputError, TrafficProfile, Workload
from profiles.profile import FIRST_SERVICE
from profiles.table import read_table

Say = Callable[[str], None]


class _WorkloadLine(BaseModel):
    model_config = ConfigDict(extra="ignore")

    name: str
    kind: Annotated[str, Field(pattern="^nf$")] = "nf"
    traffic: dict[str, FiniteFloat] = Field(default_factory=dict)


class _ScenarioLine(BaseModel):
    model_config = ConfigDict(extra="ignore")

    workloads: Annotated[list[_WorkloadLine], Field(min_length=1)]


def predict_scenarios(models: Models, predictor: str, path: Path, form: str, say: Say) -> str:
    """An answer a scenario, in order, as JSON Lines or as a table.

    Raises
    ------
    InputError
        With every fault of the file: an unknown NF, traffic outside the profiled range, a line that is no scenario.
    """
    companies = _read_scenarios(models, path)
    answers = models.predictors[predictor].predict(companies)
    if any(prediction.extrapolated for answer in answers for prediction in answer):
        say("some workloads are outside what was measured: their predictions are marked `extrapolated`")
    if form == "table":
        return _scenario_table(companies, answers)
    return "".join(json.dumps(_answer(answer)) + "\n" for answer in answers)


def predict_contention(models: Models, predictor: str, nf: str, path: Path, form: str, say: Say) -> str:
    """The file's rows with `predicted_kpps` added, as CSV or as a table.

    Raises
    ------
    InputError
        With every fault of the file, an unknown NF, traffic outside the profiled range.
    """
    try:
        rows, faults = read_table(path, ["flows", "packet_size", *COUNTERS], {"mtbr": 0.0, FIRST_SERVICE: 0.0},
                                  pass_through=True)  # fmt: skip
        written = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except OSError as error:
        raise InputError.of(str(path), error.strerror or str(error)) from error
    except (UnicodeDecodeError, pd.errors.ParserError) as error:
        raise InputError.of(str(path), f"is not CSV: {error}") from error
    traffic = rows[list(ATTRIBUTES)].to_numpy() if not faults else ()
    for line, values in enumerate(traffic, start=2):
        workload = Workload(nf, TrafficProfile(*map(float, values)))
        faults += [Fault(str(path), line, column, message) for column, message in models.check(workload)]
    if faults:
        raise InputError(faults)
    predicted = models.predictors[predictor].predict_contention(nf, rows)
    table = written.assign(predicted_kpps=[f"{value:.6g}" for value in predicted])
    if form == "table":
        return _render(list(table.columns), table.itertuples(index=False, name=None))
    return table.to_csv(index=False, lineterminator="\n")


def _read_scenarios(models: Models, path: Path) -> list[tuple[Workload, ...]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError.of(str(path), str(error)) from error
    companies, faults = [], []
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
        company = tuple(_workload(item, models) for item in scenario.workloads)
        for workload in dict.fromkeys(company):
            faults += [Fault(str(path), number, column, message) for column, message in models.check(workload)]
        faults += [
            Fault(str(path), number, "traffic", f"unknown attribute {name}")
            for item in scenario.workloads
            for name in item.traffic
            if name not in ATTRIBUTES
        ]
        companies.append(company)
    if not companies and not faults:
        faults.append(Fault(str(path), None, None, "holds no scenario"))
    if faults:
        raise InputError(faults)
    return companies


def _workload(item: _WorkloadLine, models: Models) -> Workload:
    return Workload(item.name, TrafficProfile.from_mapping({**models.default_traffic.as_dict(), **item.traffic}))


def _answer(answer: Sequence[Prediction]) -> dict[str, object]:
    return {
        "throughput_kpps": [float(f"{p.throughput_kpps:.6g}") for p in answer],
        "solo_kpps": [float(f"{p.solo_kpps:.6g}") for p in answer],
        "bottleneck": [p.bottleneck for p in answer],
        "drop_kpps": [{name: float(f"{drop:.6g}") for name, drop in p.drops.items()} for p in answer],
        "extrapolated": [p.extrapolated for p in answer],
    }


def _scenario_table(companies: Sequence[Sequence[Workload]], answers: Sequence[Sequence[Prediction]]) -> str:
    rows = [
        (str(number), workload.nf, *(f"{value:g}" for value in workload.traffic.as_tuple()),
         f"{p.throughput_kpps:.1f}", f"{p.solo_kpps:.1f}", f"{100 * (1 - p.throughput_kpps / p.solo_kpps):.1f}",
         p.bottleneck)
        for number, (company, answer) in enumerate(zip(companies, answers, strict=True), start=1)
        for workload, p in zip(company, answer, strict=True)
    ]  # fmt: skip
    return _render(["scenario", "nf", *ATTRIBUTES, "kpps", "solo kpps", "drop %", "bottleneck"], rows)


def _render(header: Sequence[str], rows: object) -> str:
    table = Table(box=None, pad_edge=False)
    for name in header:
        table.add_column(name, no_wrap=True)
    for row in rows:  # type: ignore[attr-defined]
        table.add_row(*map(str, row))
    console = Console(file=io.StringIO(), width=400, no_color=True)
    console.print(table)
    text = console.file.getvalue() if isinstance(console.file, io.StringIO) else ""
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
