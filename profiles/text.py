"""Reading text and numbers that people and other programs write, within limits."""

import math
from pathlib import Path

from profiles.faults import InputError


def read_text(path: Path, largest: int) -> str:
    """The text of a file, with or without byte order mark. `path`: a file, a pipe or a device: it is read up to the
    limit. `largest`: most bytes. Raises `InputError` when it cannot be read, is larger, or is not UTF-8."""
    name = str(path)
    try:
        with path.open("rb") as file:
            raw = file.read(largest + 1)
    except OSError as error:
        raise InputError.of(name, error.strerror or str(error)) from error
    if len(raw) > largest:
        raise InputError.of(name, f"is larger than {largest:,} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError.of(name, "is not UTF-8 text", line=line, hint="save the file as UTF-8") from error


def number_of(text: str) -> float | None:
    """The finite number that a text is; None for all else, `1_0` and digits of other scripts included."""
    try:
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None
