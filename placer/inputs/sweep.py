"""Sweep files: what is varied, measured and fitted, in TOML (docs/formats/sweep.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from profiler.sweeps.spec import (
    Competitor,
    MeasureTable,
    SpecFault,
    SweepSpec,
    SweptWorkload,
    VariedKey,
    spec_faults,
)
from profiles import Fault, InputError
from profiles.faults import suggestion
from profiles.files.toml import TomlLines, parsed_toml, read_toml
from profiles.validation import worded

Name = Annotated[str, Field(strict=True, min_length=1)]


class FitTable(BaseModel):
    """Which curves are fitted, and how: `y` over `x`, at each setting of the other varied keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    x: Name | None = None
    y: Name | tuple[Name, ...] | None = None
    select: Literal["bic", "tum"] = "bic"


class SweepTables(SweepSpec):
    """A whole file."""

    fit: FitTable = FitTable()


@dataclass(frozen=True)
class SweepFile:
    """A sweep file.

    Parameters
    ----------
    name, text
        Its path and its text.
    spec
        What is measured.
    x, y
        Names of what is fitted: a varied key, and metrics.
    select
        How segments are chosen.
    """

    name: str
    text: str
    spec: SweepSpec
    x: str
    y: tuple[str, ...]
    select: str

    def refuse(self, faults: Sequence[SpecFault]) -> None:
        """InputError when there are any, each with its line."""
        if faults:
            lines = TomlLines(self.text)
            raise InputError([_locate_fault(self.name, lines, fault) for fault in faults])


def read_sweep(path: Path, testbed: str | None = None) -> SweepFile:
    """The sweep in a file.

    Parameters
    ----------
    path
        The file.
    testbed
        In place of that of the file; the text then names it.

    Raises
    ------
    InputError
        With every fault of the file.
    """
    name = str(path)
    text, document = read_toml(path)
    lines = TomlLines(text)
    try:
        tables = SweepTables.model_validate(document)
    except ValidationError as error:
        wrong = [_of_validation(reported) for reported in _without_consequences(error.errors(include_url=False))]
        raise InputError([_locate_fault(name, lines, fault) for fault in dict.fromkeys(wrong)]) from error
    faults = [*spec_faults(tables), *_of_fit(tables)]
    if tables.testbed is None and testbed is None:
        faults.append(SpecFault(("testbed",), "is missing", 'as in testbed = "host", or with --testbed'))
    if faults:
        raise InputError([_locate_fault(name, lines, fault) for fault in faults])
    if testbed is not None and testbed != tables.testbed:
        text = _with_testbed(name, text, lines, testbed)
        tables = tables.model_copy(update={"testbed": testbed})
    spec = SweepSpec.model_validate(tables.model_dump(by_alias=True, exclude={"fit"}, exclude_unset=True))
    y = tables.fit.y or spec.measure.metrics[0]
    return SweepFile(
        name, text, spec, tables.fit.x or spec.vary[0].key, (y,) if isinstance(y, str) else y, tables.fit.select
    )


def _of_fit(tables: SweepTables) -> list[SpecFault]:
    """Names in [fit] that are neither varied nor measured."""
    keys, metrics = [axis.key for axis in tables.vary], tables.measure.metrics
    faults = []
    if tables.fit.x is not None and tables.fit.x not in keys:
        faults.append(SpecFault(("fit", "x"), f"{tables.fit.x} is not varied", suggestion(tables.fit.x, keys)))
    y = tables.fit.y or ()
    wrong = [metric for metric in ((y,) if isinstance(y, str) else y) if metric not in metrics]
    return faults + [
        SpecFault(("fit", "y"), f"{metric} is not among the metrics", suggestion(metric, metrics)) for metric in wrong
    ]


def _without_consequences(wrong: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """The errors; that a list is too short is left out where one of its items is faulty."""
    inside = {fault["loc"][:-1] for fault in wrong} | {fault["loc"][:1] for fault in wrong if len(fault["loc"]) > 1}
    return [fault for fault in wrong if fault["type"] != "too_short" or fault["loc"] not in inside]


def _of_validation(wrong: ErrorDetails) -> SpecFault:
    """A fault of one key, without the names that the validation library gives to alternatives."""
    path = tuple(
        part for part in wrong["loc"] if not (isinstance(part, str) and re.match(r"function|tuple\[|constr", part))
    )
    hint = None
    if wrong["type"] == "extra_forbidden":
        hint = suggestion(str(path[-1]), _keys_of(path))
    return SpecFault(path, worded(wrong), hint)


def _keys_of(path: Sequence[str | int]) -> list[str]:
    """The keys of the table in which a key stands."""
    of_tables: dict[tuple[str, ...], type[BaseModel]] = {
        (): SweepTables,
        ("workload",): SweptWorkload,
        ("workload", "competitors"): Competitor,
        ("vary",): VariedKey,
        ("measure",): MeasureTable,
        ("fit",): FitTable,
    }
    table = of_tables[tuple(part for part in path[:-1] if isinstance(part, str))]
    return [field.alias or name for name, field in table.model_fields.items()]


def _locate_fault(name: str, lines: TomlLines, fault: SpecFault) -> Fault:
    """The fault with the line of its key; tables in arrays are counted from 1 where there may be several."""
    shown = ".".join(str(part + 1) if isinstance(part, int) else part for part in fault.path)
    return Fault(name, lines.of(fault.path), shown or None, fault.message, fault.hint)


def _with_testbed(name: str, text: str, lines: TomlLines, testbed: str) -> str:
    """The text with this testbed in place of its own."""
    entry = f"testbed = {json.dumps(testbed)}"
    line = lines.of(("testbed",))
    if line is None:
        changed = f"{entry}\n{text}"
    else:
        rows = text.splitlines()
        rows[line - 1] = entry
        changed = "\n".join(rows) + "\n"
    before, after = parsed_toml(text, name), parsed_toml(changed, name)
    if after != before | {"testbed": testbed}:
        raise InputError.of(name, "is not a text on one line", line=line, column="testbed")
    return changed
