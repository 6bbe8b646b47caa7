"""TOML files that people write."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from profiles import InputError
from profiles.text import read_text

LARGEST_FILE = 10_000_000


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a file, and its contents.

    Raises
    ------
    InputError
        When it cannot be read, is not UTF-8 (with or without byte order mark), or not TOML; with the line.
    """
    text = read_text(path, LARGEST_FILE)
    return text, parsed_toml(text, str(path))


def parsed_toml(text: str, name: str) -> dict[str, Any]:
    """The contents of a file's text.

    Raises
    ------
    InputError
        When it is not TOML; with the line.
    """
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
