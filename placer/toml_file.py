"""TOML files that people write."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from profiles import InputError


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a file, and what it says.

    Raises
    ------
    InputError
        When it cannot be read, is not UTF-8 (with or without byte order mark), or not TOML; with the line.
    """
    name = str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        return text, tomllib.loads(text)
    except OSError as error:
        raise InputError.of(name, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise InputError.of(name, "is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"line (\d+)", str(error))
        raise InputError.of(name, f"is not TOML: {error}", line=int(place[1]) if place else None) from error
