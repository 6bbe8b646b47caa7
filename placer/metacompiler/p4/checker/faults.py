"""Faults in a P4 program, each with the line and column where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from profiles.faults import Fault, printable


class SourcePosition(NamedTuple):
    """Line and column of a character, both from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class P4Fault(Fault):
    """One thing that is wrong in a P4 program; its text is `FILE:LINE:COLUMN: what is wrong`."""

    def __str__(self) -> str:
        return printable(f"{self.file}:{self.line}:{self.column}: {self.message}")

    @classmethod
    def at(cls, file: str, position: SourcePosition, message: str, hint: str | None = None) -> P4Fault:
        """A fault at a position of a file."""
        return cls(file, position.line, str(position.column), message, hint)

    @property
    def position(self) -> SourcePosition:
        """Where it stands."""
        return SourcePosition(self.line or 0, int(self.column or 0))


class P4SyntaxError(Exception):
    """Text that is not a program of the subset; reading stops there."""

    def __init__(self, position: SourcePosition, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.position = position
        self.message = message
        self.hint = hint
