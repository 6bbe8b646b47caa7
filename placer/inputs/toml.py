"""TOML files that people write."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic_core import ErrorDetails

from profiles import InputError

LARGEST_FILE = 10_000_000

WORDS = {
    "extra_forbidden": "unknown key",
    "missing": "is missing",
    "greater_than": "{input} is not above {gt}",
    "greater_than_equal": "{input} is below {ge}",
    "less_than": "{input} is not below {lt}",
    "less_than_equal": "{input} is above {le}",
    "finite_number": "{input} is not a finite number",
    "int_parsing_size": "the number is too large",
    "bool_type": "{input!r} is not true or false",
    "float_type": "{input!r} is not a number",
    "float_parsing": "{input!r} is not a number",
    "int_type": "{input!r} is not a whole number",
    "int_parsing": "{input!r} is not a whole number",
    "int_from_float": "{input} is not a whole number",
    "string_type": "{input!r} is not text",
    "string_too_short": "is empty",
    "tuple_type": "{input!r} is not a list",
    "too_short": "is too short: there must be {min_length}",
    "too_long": "is too long: there may be {max_length}",
}
"""What is wrong with a value, by pydantic's name of it."""


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a file, and its contents.

    Raises
    ------
    InputError
        When it cannot be read, is not UTF-8 (with or without byte order mark), or not TOML; with the line.
    """
    name = str(path)
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise InputError.of(name, f"is larger than {LARGEST_FILE:,} bytes")
        text = path.read_text(encoding="utf-8-sig")
        return text, tomllib.loads(text)
    except OSError as error:
        raise InputError.of(name, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise InputError.of(name, "is not UTF-8 text") from error
    except RecursionError as error:
        raise InputError.of(name, "is nested too deeply") from error
    except ValueError as error:  # a TOMLDecodeError, or a number of thousands of digits
        place = re.search(r"line (\d+)", str(error))
        raise InputError.of(name, f"is not TOML: {error}", line=int(place[1]) if place else None) from error


def worded(wrong: ErrorDetails) -> str:
    """What is wrong with a value, in words for the author of the file."""
    known = WORDS.get(wrong["type"])
    if known is None:
        return wrong["msg"].removeprefix("Value error, ")
    return known.format(input=wrong["input"], **wrong.get("ctx", {}))


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
