"""Fleet files: which NICs are available, in TOML (docs/formats/fleet.md)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, ValidationError
from pydantic_core import ErrorDetails

from placer.model.groups import BETWEEN_POOLS
from placer.model.nic import NUMBERED_NIC_ID
from profiles import Fault, InputError
from profiles.files.toml import line_of, read_toml
from profiles.validation import word_fault

FLEET_TABLE = "nic"
MOST_NICS = 1_000_000_000
MOST_COST = 1e9
MOST_CORES = 1024
MOST_TABLES = 10_000
MOST_NAMES = 1_000_000
LONGEST_NAME = 256


def _usable_name(name: str) -> str:
    """The name of a NIC, if plans, events and traces can use it as it is; else ValueError."""
    if not name.strip():
        raise ValueError("a name is empty")
    if not name.isprintable():
        raise ValueError(f"{name!r} has a line break or another control character")
    if name != name.strip():
        raise ValueError(f"{name!r} has blanks around it")
    if NUMBERED_NIC_ID.fullmatch(name):
        raise ValueError(f"'{name}' is reserved for NICs without a name: choose another")
    return name


Name = Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(_usable_name)]


def _usable_group(name: str) -> str:
    """The name of a pool or a domain, if traces can use it as it is; else ValueError."""
    if BETWEEN_POOLS in name or name != name.strip() or not name or not name.isprintable():
        raise ValueError(f"{name!r} is empty, or has blanks around it, a control character, or '{BETWEEN_POOLS}'")
    return name


GroupName = Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(_usable_group)]


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
    name: Name | None = None
    names: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_NAMES, strict=False)] | None = None
    owned: Annotated[int, Field(ge=0, le=MOST_NICS)] | None = None
    pool: GroupName | None = None
    domain: GroupName | None = None

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names of its NICs."""
        return (self.names or ()) if self.name is None else (self.name,)

    @property
    def key_of_names(self) -> str:
        """The key that gives them."""
        return "names" if self.name is None else "name"

    @property
    def number(self) -> int | None:
        """How many NICs it describes; None for any number."""
        return self.count if self.name is None else 1


FaultAt = Callable[[str, str, str | None], Fault]  # makes a fault of a table: of a key, what is wrong, and a hint

Check = Callable[[NicTable, FaultAt], Iterable[Fault]]
"""Further faults of a table, which only its models and its testbed show."""


def read_fleet(path: Path, check: Check = lambda table, at: ()) -> list[NicTable]:
    """The `[[nic]]` tables of a fleet file; those that differ only in how many NICs there are and their names are one.
    `models` folders and `device` files are resolved against the file's own folder. Every table that keeps the rules of
    the format is also checked by `check`. Raises `InputError` with every fault of the file."""
    name = str(path)
    text, document = read_toml(path)
    faults = [
        Fault(name, line_of(text, FLEET_TABLE, 0, key), key, "unknown key", "a fleet file holds [[nic]] tables")
        for key in document
        if key != "nic"
    ]
    tables = document.get("nic", [])
    if not isinstance(tables, list) or not tables:
        faults.append(Fault(name, None, "nic", "no [[nic]] table", "write [[nic]], then model = ..."))
        raise InputError(faults)
    if len(tables) > MOST_TABLES:
        hint = "write equal NICs as one table with a count"
        raise InputError.of(
            name, f"{len(tables):,} tables are more than {MOST_TABLES:,}", column=FLEET_TABLE, hint=hint
        )
    nics = []
    table_of_name: dict[str, tuple[int, str]] = {}
    for number, table in enumerate(tables, start=1):
        try:
            nics.append(NicTable.model_validate(table))
        except ValidationError as error:
            faults += [_fault(name, text, number, wrong) for wrong in error.errors()]
            continue
        if nics[-1].device is not None and nics[-1].models is not None:
            message, hint = "is given together with models", "a GPU is described by one of the two"
            faults.append(Fault(name, line_of(text, FLEET_TABLE, number, "device"), "device", message, hint))
        faults += check(_resolve(path, nics[-1]), partial(_fault_at, name, text, number))
        wrong_names = _find_duplicate_names(nics[-1], table_of_name, partial(line_of, text, FLEET_TABLE))
        for key, message in (*_find_wrong_counts(nics[-1]), *wrong_names):
            faults.append(Fault(name, line_of(text, FLEET_TABLE, number, key), key, message))
        table_of_name |= dict.fromkeys(nics[-1].all_names, (number, nics[-1].key_of_names))
    if nics and not faults and all(nic.count == 0 for nic in nics):
        line = line_of(text, FLEET_TABLE, 1, "count")
        faults.append(Fault(name, line, "count", "the fleet has no NIC: every count is 0"))
    if faults:
        raise InputError([*dict.fromkeys(faults)])
    return _merge([_resolve(path, nic) for nic in nics])


def _find_wrong_counts(nic: NicTable) -> Iterator[tuple[str, str]]:
    """Keys of a table that contradict how many NICs there are, and how."""
    if nic.name is not None and nic.names is not None:
        yield "name", "is given together with names: give one of the two"
    elif nic.name is not None and nic.count not in (None, 1):
        yield "count", f"{nic.count} NICs cannot all be called '{nic.name}': give their names as a list, names"
    elif nic.count is not None and len(nic.all_names) > nic.count:
        yield "names", f"{len(nic.all_names):,} names are more than the {nic.count:,} NICs of `count`"
    if nic.owned is not None and nic.number is not None and nic.owned > nic.number:
        yield "owned", f"{nic.owned:,} are more than the {nic.number:,} NICs that there are"


def _find_duplicate_names(
    nic: NicTable, table_of_name: Mapping[str, tuple[int, str]], line: Callable[[int, str], int | None]
) -> Iterator[tuple[str, str]]:
    """Names of the table that another NIC has, in it or in a table before, whose number and key are known."""
    for name, times in Counter(nic.all_names).items():
        if name in table_of_name:
            yield nic.key_of_names, f"'{name}' is already the name of a NIC on line {line(*table_of_name[name])}"
        elif times > 1:
            yield nic.key_of_names, f"'{name}' is the name of {times} NICs"


def _merge(nics: Sequence[NicTable]) -> list[NicTable]:
    """Tables that differ only in the number and the names of their NICs become one: each kind takes time, not each NIC.
    A table that does not say how many of its NICs are owned has none, if another one does."""
    alike: dict[NicTable, list[NicTable]] = {}
    for nic in nics:
        alone = nic.model_copy(update={"count": None, "name": None, "names": None, "owned": None})
        alike.setdefault(alone, []).append(nic)
    merged = []
    for alone, these in alike.items():
        counts, owned = [nic.number for nic in these], [nic.owned for nic in these if nic.owned is not None]
        numbers = {
            "count": None if None in counts else sum(filter(None, counts)),
            "names": tuple(name for nic in these for name in nic.all_names) or None,
            "owned": sum(owned) if owned else None,
        }
        merged.append(alone.model_copy(update=numbers))
    return merged


def _fault(name: str, text: str, number: int, wrong: ErrorDetails) -> Fault:
    key = str(wrong["loc"][0]) if wrong["loc"] else FLEET_TABLE
    keys = f"; keys are {', '.join(NicTable.model_fields)}" if wrong["type"] == "extra_forbidden" else ""
    return Fault(name, line_of(text, FLEET_TABLE, number, key), key, word_fault(wrong) + keys)


def _fault_at(name: str, text: str, number: int, key: str, message: str, hint: str | None) -> Fault:
    return Fault(name, line_of(text, FLEET_TABLE, number, key), key, message, hint)


def _resolve(path: Path, nic: NicTable) -> NicTable:
    """The table with paths that do not depend on where the fleet file is."""
    paths = {"models": nic.models, "device": nic.device}
    return nic.model_copy(
        update={key: None if name is None else str(path.parent / name) for key, name in paths.items()}
    )
