"""A match-action table of a switch program, and the memory of a stage that tables take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

OWN = "meta."
"""Begins the names of fields that belong to one NF alone; all other fields are those of the packet."""


class MatchKind(StrEnum):
    """How a table compares its key."""

    EXACT = "exact"
    TERNARY = "ternary"
    LPM = "lpm"


@dataclass(frozen=True)
class SwitchTable:
    """One table.

    Parameters
    ----------
    key
        Bits by field; a table without key always runs its action and takes no memory.
    match
        Exact tables lie in SRAM, the others in TCAM.
    writes
        The fields that its actions change.
    """

    name: str
    key: Mapping[str, int] = field(default_factory=dict)
    match: MatchKind = MatchKind.EXACT
    entries: int = 1
    writes: tuple[str, ...] = ()


@dataclass(frozen=True)
class StageMemory:
    """The blocks of one kind of memory in each stage, and the bits and entries of a block."""

    blocks: int
    bits: int
    entries: int

    def columns(self, bits: int) -> int:
        """Blocks beside one another, for keys of so many bits."""
        return -(-bits // self.bits)

    def rows(self, entries: int) -> int:
        """Blocks above one another, for so many entries; at least one."""
        return max(-(-entries // self.entries), 1)


TCAM = StageMemory(24, 44, 512)
SRAM = StageMemory(80, 80, 2000)
