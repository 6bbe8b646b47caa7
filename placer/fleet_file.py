"""Fleet files: which NICs can be had, in TOML (docs/formats.md)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from placer.toml_file import read_toml
from profiles import Fault, InputError


class NicTable(BaseModel):
    """One `[[nic]]` table, as written."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    model: Annotated[str, Field(min_length=1)]
    count: Annotated[int, Field(ge=0)] | None = None
    cost: Annotated[FiniteFloat, Field(gt=0)] = 1.0
    cores: Annotated[int, Field(gt=0)] | None = None
    models: str | None = None
    testbed: str | None = None


def read_fleet(path: Path) -> list[NicTable]:
    """The `[[nic]]` tables of a fleet file; `models` folders are resolved against the file's own folder.

    Raises
    ------
    InputError
        With every fault of the file.
    """
    name = str(path)
    text, document = read_toml(path)
    faults = [
        Fault(name, _line_of(text, 0, key), key, "unknown key", "a fleet file holds [[nic]] tables")
        for key in document
        if key != "nic"
    ]
    tables = document.get("nic", [])
    if not isinstance(tables, list) or not tables:
        faults.append(Fault(name, None, "nic", "no [[nic]] table", "write [[nic]], then model = ..."))
        raise InputError(faults)
    nics = []
    for number, table in enumerate(tables, start=1):
        try:
            nics.append(NicTable.model_validate(table))
        except ValidationError as error:
            faults += [_fault(name, text, number, wrong["loc"], wrong["msg"]) for wrong in error.errors()]
    if faults:
        raise InputError(faults)
    return [nic.model_copy(update={"models": _beside(path, nic.models)}) for nic in nics]


def _fault(name: str, text: str, number: int, location: tuple[int | str, ...], message: str) -> Fault:
    key = str(location[0]) if location else "nic"
    told = {
        "Extra inputs are not permitted": f"unknown key; keys are {', '.join(NicTable.model_fields)}",
        "Field required": "is missing",
    }
    return Fault(name, _line_of(text, number, key), key, told.get(message, message))


def _line_of(text: str, number: int, key: str) -> int | None:
    """The line of a key inside the number-th [[nic]] table, else that table's first line; 0 is the file's top level."""
    begun, header = 0, None
    for line, content in enumerate(text.splitlines(), start=1):
        if re.match(r"\s*\[\[\s*nic\s*\]\]", content):
            begun += 1
            header = line if begun == number else header
        if begun == number and re.match(
            rf"\s*[\"']?{re.escape(key)}[\"']?\s*=|\s*\[+\s*{re.escape(key)}\s*\]", content
        ):
            return line
    return header


def _beside(path: Path, folder: str | None) -> str | None:
    return None if folder is None else str(path.parent / folder)
