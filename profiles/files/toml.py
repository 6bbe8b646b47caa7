"""TOML files that people write: their content, and the line of each key, for messages."""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from profiles import Fault, InputError
from profiles.faults import suggestion
from profiles.text import read_text
from profiles.validation import word_fault

LARGEST_FILE = 10_000_000


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a file, and its contents. Raises `InputError` when it cannot be read, is not UTF-8 (with or without
    byte order mark), or not TOML; with the line."""
    text = read_text(path, LARGEST_FILE)
    return text, parse_toml(text, str(path))


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """The contents of a file's text. Raises `InputError` when it is not TOML; with the line."""
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise InputError.of(name, "is nested too deeply") from error
    except ValueError as error:  # a TOMLDecodeError, or a number of thousands of digits
        place = re.search(r"line (\d+)", str(error))
        raise InputError.of(name, f"is not TOML: {error}", line=int(place[1]) if place else None) from error


def line_of(text: str, table: str, number: int, key: str) -> int | None:
    """The line of a key inside the number-th `[[table]]`, else that table's first line; 0 is the file's top level."""
    begun, header = 0, None
    for line, content in enumerate(text.splitlines(), start=1):
        if re.match(rf"\s*\[\[\s*{re.escape(table)}\s*\]\]", content):
            begun += 1
            header = line if begun == number else header
        named = rf"\s*[\"']?{re.escape(key)}[\"']?\s*=|\s*\[+\s*{re.escape(key)}\s*\]"
        if begun == number and re.match(named, content):
            return line
    return header


# What is wrong with the keys of a file, by pydantic's models of it or by what they mean together.


Key = str | int
AnyModel = TypeVar("AnyModel", bound=BaseModel)

ALTERNATIVE = re.compile(r"function-|tuple\[|list\[|constr|(?:int|float|str|bool)$")
"""Names that pydantic puts into a path for the alternatives of a type."""


@dataclass(frozen=True)
class WrongKey:
    """What is wrong with the key at a path; tables in arrays are counted from 0."""

    path: tuple[Key, ...]
    message: str
    hint: str | None = None


Reword = Callable[[tuple[Key, ...], ErrorDetails], WrongKey | None]
"""What is wrong in other words than pydantic's; None where those do."""


def validate_toml(
    model: type[AnyModel], name: str, text: str, document: object, reword: Reword = lambda path, reported: None
) -> AnyModel:
    """The document of a TOML file as a model. Raises `InputError` with every wrong key and its line."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        wrong: dict[WrongKey, None] = {}
        for reported in _without_consequences(error.errors(include_url=False)):
            path, known = _follow(model, reported)
            hint = suggestion(str(path[-1]), known) if reported["type"] == "extra_forbidden" else None
            wrong[reword(path, reported) or WrongKey(path, word_fault(reported), hint)] = None
        raise InputError(locate_faults(name, text, wrong)) from error


def locate_faults(name: str, text: str, wrong: Iterable[WrongKey]) -> list[Fault]:
    """The faults with the lines of their keys; in messages, tables in arrays are counted from 1."""
    lines = TomlLines(text)
    faults = []
    for key in wrong:
        shown = ".".join(str(part + 1) if isinstance(part, int) else part for part in key.path)
        faults.append(Fault(name, lines.of(key.path), shown or None, key.message, key.hint))
    return faults


def _without_consequences(reported: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """The errors; that a list is too short is left out where one of its items is faulty."""
    inside = {
        error["loc"][:end] for error in reported for end in (1, len(error["loc"]) - 1) if 0 < end < len(error["loc"])
    }
    return [error for error in reported if error["type"] != "too_short" or error["loc"] not in inside]


def _follow(model: type[BaseModel], reported: ErrorDetails) -> tuple[tuple[Key, ...], list[str]]:
    """The path of an error without the names of alternatives, and the keys of the table in which it ends."""
    path: list[Key] = []
    table: type[BaseModel] | None = model
    known: list[str] = []
    for part in reported["loc"]:
        if isinstance(part, int):
            path.append(part)
            continue
        fields = {} if table is None else {field.alias or key: field for key, field in table.model_fields.items()}
        if part not in fields and ALTERNATIVE.match(part):
            continue
        path.append(part)
        known = list(fields)
        table = _model_in(fields[part].annotation) if part in fields else None
    return tuple(path), known


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The model of a table, or of those in an array."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _model_in(inner))), None)


# The line of each key of a TOML file, by its path.


KEY_PART = re.compile(r"""\s*(?:"([^"\n]*)"|'([^'\n]*)'|([\w-]+))\s*(\.)?""")


class TomlLines:
    """Where the keys of a TOML file stand. `text`: a valid file."""

    def __init__(self, text: str) -> None:
        self._lines: dict[tuple[Key, ...], int] = {}
        arrays: Counter[tuple[Key, ...]] = Counter()
        table: tuple[Key, ...] = ()
        for number, line in enumerate(text.splitlines(), start=1):
            content = line.strip()
            if header := re.match(r"\[(\[?)([^\]]+)\]", content):
                table = self._resolved(_parts(header[2]), arrays)
                if header[1]:
                    arrays[table] += 1
                    table = (*table, arrays[table] - 1)
                self._lines.setdefault(table, number)
            elif keys := _parts(content, assigned=True):
                for end in range(1, len(keys) + 1):
                    self._lines.setdefault((*table, *keys[:end]), number)

    def of(self, path: Sequence[Key]) -> int | None:
        """The line of a path, else of the longest part of it that is there; tables in arrays are counted from 0."""
        for end in range(len(path), 0, -1):
            if tuple(path[:end]) in self._lines:
                return self._lines[tuple(path[:end])]
        return None

    @staticmethod
    def _resolved(keys: Sequence[str], arrays: Counter[tuple[Key, ...]]) -> tuple[Key, ...]:
        """The path of a header: inside arrays of tables, of the last one so far."""
        path: tuple[Key, ...] = ()
        for key in keys[:-1]:
            path = (*path, key)
            if arrays[path]:
                path = (*path, arrays[path] - 1)
        return (*path, *keys[-1:])


def _parts(text: str, *, assigned: bool = False) -> list[str]:
    """The parts of a dotted key; empty where the text is none, or no `=` follows and one should."""
    parts, at = [], 0
    while found := KEY_PART.match(text, at):
        parts.append(next(part for part in found.groups()[:3] if part is not None))
        at = found.end()
        if not found[4]:
            break
    return parts if not assigned or text[at : at + 1] == "=" else []
