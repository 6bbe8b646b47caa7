"""Fleet files: which NICs are available, in TOML (docs/formats.md)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError
from pydantic_core import ErrorDetails

from placer.inputs.toml import line_of, read_toml
from profiles import Fault, InputError
from profiles.validation import worded

TABLE = "nic"
MOST_NICS = 1_000_000_000
MOST_COST = 1e9
MOST_CORES = 1024
MOST_TABLES = 10_000


class NicTable(BaseModel):
    """One `[[nic]]` table, as written."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    model: Annotated[str, Field(min_length=1)]
    count: Annotated[int, Field(ge=0, le=MOST_NICS)] | None = None
    cost: Annotated[FiniteFloat, Field(ge=1 / MOST_COST, le=MOST_COST)] = 1.0
    cores: Annotated[int, Field(gt=0, le=MOST_CORES)] | None = None
    models: str | None = None
    device: str | None = None
    testbed: str | None = None


def read_fleet(path: Path) -> list[NicTable]:
    """The `[[nic]]` tables of a fleet file, equal ones as one with their counts added up.

    `models` folders and `device` files are resolved against the file's own folder.

    Raises
    ------
    InputError
        With every fault of the file.
    """
    name = str(path)
    text, document = read_toml(path)
    faults = [
        Fault(name, line_of(text, TABLE, 0, key), key, "unknown key", "a fleet file holds [[nic]] tables")
        for key in document
        if key != "nic"
    ]
    tables = document.get("nic", [])
    if not isinstance(tables, list) or not tables:
        faults.append(Fault(name, None, "nic", "no [[nic]] table", "write [[nic]], then model = ..."))
        raise InputError(faults)
    if len(tables) > MOST_TABLES:
        hint = "write equal NICs as one table with a count"
        raise InputError.of(name, f"{len(tables):,} tables are more than {MOST_TABLES:,}", column=TABLE, hint=hint)
    nics = []
    for number, table in enumerate(tables, start=1):
        try:
            nics.append(NicTable.model_validate(table))
        except ValidationError as error:
            faults += [_fault(name, text, number, wrong) for wrong in error.errors()]
            continue
        if nics[-1].device is not None and nics[-1].models is not None:
            message, hint = "is given beside models", "a GPU is described by one of the two"
            faults.append(Fault(name, line_of(text, TABLE, number, "device"), "device", message, hint))
    if nics and not faults and all(nic.count == 0 for nic in nics):
        line = line_of(text, TABLE, 1, "count")
        faults.append(Fault(name, line, "count", "the fleet has no NIC: every count is 0"))
    if faults:
        raise InputError(faults)
    return _merged(
        [
            nic.model_copy(update={"models": _relative(path, nic.models), "device": _relative(path, nic.device)})
            for nic in nics
        ]
    )


def _merged(nics: Sequence[NicTable]) -> list[NicTable]:
    """Tables that differ only in their count become one: what takes time is the number of kinds, not of NICs."""
    counts: dict[NicTable, list[int | None]] = {}
    for nic in nics:
        counts.setdefault(nic.model_copy(update={"count": None}), []).append(nic.count)
    return [
        nic.model_copy(update={"count": None if None in these else sum(filter(None, these))})
        for nic, these in counts.items()
    ]


def _fault(name: str, text: str, number: int, wrong: ErrorDetails) -> Fault:
    key = str(wrong["loc"][0]) if wrong["loc"] else TABLE
    keys = f"; keys are {', '.join(NicTable.model_fields)}" if wrong["type"] == "extra_forbidden" else ""
    return Fault(name, line_of(text, TABLE, number, key), key, worded(wrong) + keys)


def _relative(path: Path, folder: str | None) -> str | None:
    return None if folder is None else str(path.parent / folder)
