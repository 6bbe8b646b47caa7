"""Tables of an open state, whatever it is kept in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

Row = tuple[object, ...]
Statement = tuple[str, Sequence[Row]]
"""A statement, and the rows that it is executed with."""


class Tables(Protocol):
    """An open database."""

    def execute(self, statement: str, /) -> Iterable[tuple[Any, ...]]:
        """The rows that a statement returns."""
