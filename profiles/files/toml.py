"""TOML files that people write: their content, and the line of each key, for messages."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from profiles import InputError
from profiles.text import read_text

LARGEST_FILE = 10_000_000


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a file, and its contents. Raises `InputError` when it cannot be read, is not UTF-8 (with or without
    byte order mark), or not TOML; with the line.
    """
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


# The line of each key of a TOML file, by its path, for messages.


Key = str | int

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
