"""Tables of NFs and memory of stages as a rack's JSON twin writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from placer.rack.rack import MatchKind, StageMemory, SwitchTable

Name = Annotated[str, Field(min_length=1, max_length=200)]
Most = Annotated[int, Field(ge=0, le=1_000_000)]
AtLeastOne = Annotated[int, Field(ge=1, le=1_000_000)]


class _Twin(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class MemoryTwin(_Twin):
    """The blocks of one kind of memory in a stage."""

    blocks: Most
    bits: AtLeastOne
    entries: AtLeastOne

    def memory(self) -> StageMemory:
        """What it stands for."""
        return StageMemory(self.blocks, self.bits, self.entries)


class TableTwin(_Twin):
    """A table of an NF."""

    name: Name
    key: dict[Name, Annotated[int, Field(ge=1, le=100_000)]] = {}
    match: Literal["exact", "ternary", "lpm"] = "exact"
    entries: Annotated[int, Field(ge=1, le=10**9)] = 1
    writes: list[Name] = []

    def table(self) -> SwitchTable:
        """What it stands for."""
        return SwitchTable(self.name, self.key, MatchKind(self.match), self.entries, tuple(self.writes))


def _names_differ(tables: Sequence[TableTwin]) -> Sequence[TableTwin]:
    names = [table.name for table in tables]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the name {name!r} is there twice")
    return tables


TableTwins = Annotated[list[TableTwin], Field(max_length=100), AfterValidator(_names_differ)]
