"""Whether tables fit the stages of a switch, by exact search over the sets of tables that k stages can hold."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Set
from typing import TypeVar

Table = TypeVar("Table", bound=Hashable)


def fits_stages(blocks: Mapping[Table, int], before: Mapping[Table, Set[Table]], stages: int, most: int) -> bool:
    """Whether each table finds a stage after those of the tables before it, with at most `most` blocks in a stage.

    A stage is filled until no other table that may lie there fits: a table never lies worse in an earlier stage.
    """
    if sum(blocks.values()) > most * stages or any(need > most for need in blocks.values()):
        return False
    reached = {frozenset[Table]()}
    for _ in range(stages):
        reached = {held | filled for held in reached for filled in _fillings(held, blocks, before, most)}
        if any(len(held) == len(blocks) for held in reached):
            return True
    return not blocks


def _fillings(
    held: frozenset[Table], blocks: Mapping[Table, int], before: Mapping[Table, Set[Table]], most: int
) -> Iterator[frozenset[Table]]:
    """The largest sets of tables for the next stage: those whose tables before them are all held."""
    ready = [table for table in blocks if table not in held and before[table] <= held]

    def extend(at: int, filled: frozenset[Table], free: int) -> Iterator[frozenset[Table]]:
        if at == len(ready):
            if all(blocks[table] > free for table in ready if table not in filled):
                yield filled
            return
        if blocks[ready[at]] <= free:
            yield from extend(at + 1, filled | {ready[at]}, free - blocks[ready[at]])
        yield from extend(at + 1, filled, free)

    return extend(0, frozenset(), most)
