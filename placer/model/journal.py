"""A journal of a fleet: changes that can be taken back, because another agent was faster."""

from __future__ import annotations

from collections.abc import Callable

Undo = Callable[[], object]


class FleetJournal:
    """How to take back every change since it began, the last one first."""

    def __init__(self) -> None:
        self._undos: list[Undo] = []

    def __len__(self) -> int:
        return len(self._undos)

    def note(self, undo: Undo) -> None:
        """Remember how to take back a change that was just made."""
        self._undos.append(undo)

    def take_back(self) -> None:
        """Take back every change."""
        while self._undos:
            self._undos.pop()()
