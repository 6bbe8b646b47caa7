"""Sweep files: what is varied, measured and fitted, in TOML (docs/formats/sweep.md)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from profiler.sweeps.spec import LONGEST_TESTBED, SweepSpec, spec_faults
from profiles import InputError
from profiles.faults import suggestion
from profiles.files.toml import TomlLines, WrongKey, locate_faults, parse_toml, read_toml, validate_toml

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
    """A sweep file. `name`, `text`: its path and its text. `spec`: what is measured. `x`, `y`: names of what is fitted:
    a varied key, and metrics. `select`: how segments are chosen."""

    name: str
    text: str
    spec: SweepSpec
    x: str
    y: tuple[str, ...]
    select: str

    def refuse(self, faults: Sequence[WrongKey]) -> None:
        """InputError when there are any, each with its line."""
        if faults:
            raise InputError(locate_faults(self.name, self.text, faults))


def read_sweep(path: Path, testbed: str | None = None) -> SweepFile:
    """The sweep in a file. `path`: the file. `testbed`: in place of that of the file; the text then names it. Raises
    `InputError` with every fault of the file."""
    if testbed is not None and not 0 < len(testbed) <= LONGEST_TESTBED:
        raise InputError.of("--testbed", f"has {len(testbed):,} characters, not 1 to {LONGEST_TESTBED:,}")
    name = str(path)
    text, document = read_toml(path)
    tables = validate_toml(SweepTables, name, text, document)
    faults = [*spec_faults(tables), *_of_fit(tables)]
    if tables.testbed is None and testbed is None:
        faults.append(WrongKey(("testbed",), "is missing", 'as in testbed = "host", or with --testbed'))
    if faults:
        raise InputError(locate_faults(name, text, faults))
    if testbed is not None and testbed != tables.testbed:
        text = _with_testbed(name, text, TomlLines(text), testbed)
        tables = tables.model_copy(update={"testbed": testbed})
    spec = SweepSpec.model_validate(tables.model_dump(by_alias=True, exclude={"fit"}, exclude_unset=True))
    y = tables.fit.y or spec.measure.metrics[0]
    return SweepFile(
        name, text, spec, tables.fit.x or spec.vary[0].key, (y,) if isinstance(y, str) else y, tables.fit.select
    )


def _of_fit(tables: SweepTables) -> list[WrongKey]:
    """Names in [fit] that are neither varied nor measured."""
    keys, metrics = [axis.key for axis in tables.vary], tables.measure.metrics
    faults = []
    if tables.fit.x is not None and tables.fit.x not in keys:
        faults.append(WrongKey(("fit", "x"), f"{tables.fit.x} is not varied", suggestion(tables.fit.x, keys)))
    y = tables.fit.y or ()
    wrong = [metric for metric in ((y,) if isinstance(y, str) else y) if metric not in metrics]
    return faults + [
        WrongKey(("fit", "y"), f"{metric} is not among the metrics", suggestion(metric, metrics)) for metric in wrong
    ]


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
    before, after = parse_toml(text, name), parse_toml(changed, name)
    if after != before | {"testbed": testbed}:
        raise InputError.of(name, "is not a text on one line", line=line, column="testbed")
    return changed
