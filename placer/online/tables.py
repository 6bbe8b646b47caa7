"""Tables, as the code sees them that reads states of every kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol


class Tables(Protocol):
    """An open database."""

    def execute(self, statement: str, /) -> Iterable[tuple[Any, ...]]:
        """The rows that a statement returns."""
