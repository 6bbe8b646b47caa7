"""The line of each key of a TOML file, by its path, for messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

Key = str | int

PART = re.compile(r"""\s*(?:"([^"\n]*)"|'([^'\n]*)'|([\w-]+))\s*(\.)?""")


class TomlLines:
    """Where the keys of a TOML file stand.

    Parameters
    ----------
    text
        A valid file.
    """

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
    while found := PART.match(text, at):
        parts.append(next(part for part in found.groups()[:3] if part is not None))
        at = found.end()
        if not found[4]:
            break
    return parts if not assigned or text[at : at + 1] == "=" else []
