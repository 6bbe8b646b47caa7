"""Whether the tables of NFs fit the stages of a switch, by exact search from docs/formats/rack.md; no code of placing.

All NFs on the switch are one program. Only what its steering and splitting tables look like is taken from the library.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from typing import Any, TypeVar

from placer.rack.stages.tables.packing import STEERING_TABLE, splitting

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


Json = Mapping[str, Any]
Rows = tuple[int, ...]

MOST_STEPS = 20_000  # rows that are tried in stages; each takes some 10 to 30 microseconds


class TooLarge(Exception):
    """So many packings are possible that they are not tried."""


def fits_tables(chains: Sequence[Json], rack: Json, nfs: frozenset[tuple[int, str]], stages: int) -> bool:
    """Whether all NFs, by index of the chain and id, fit so many stages.

    Raises TooLarge when that is not found out in so many steps.
    """
    if not nfs:
        return True
    program = _Program(chains, rack, nfs)
    reached = {tuple(rows for _, _, rows in program.sizes)}
    if any(columns > program.blocks[memory] for memory, columns, _ in program.sizes):
        return False
    for _ in range(stages):
        reached = {after for left in reached for after in program.after_stage(left)}
        if any(not any(left) for left in reached):
            return True
    return False


class _Program:
    def __init__(self, chains: Sequence[Json], rack: Json, nfs: frozenset[tuple[int, str]]) -> None:
        self.chains, self.nfs = chains, nfs
        self.blocks = {memory: rack["switch"][memory]["blocks"] for memory in ("tcam", "sram")}
        self.tables: list[tuple[int, str, Json]] = [(-1, "", _as_json(STEERING_TABLE))]
        for at, nf in sorted(nfs):
            kind = next(one["nf"] for one in chains[at]["nfs"] if one["id"] == nf)
            own = rack["nfs"][kind]["switch"]["tables"]
            branches = sum(edge[0] == nf for edge in chains[at]["edges"])
            by_class = any("meta.class" in table["writes"] for table in own)
            split = [_as_json(splitting(by_class, branches))] if branches > 1 else []
            self.tables += [(at, nf, table) for table in [*own, *split]]
        self.sizes = [_size(table, rack["switch"]) for _, _, table in self.tables]
        self.steps = 0
        self.waits = [
            {other: strict for other in range(len(self.tables)) if (strict := self._wait(other, one)) is not None}
            for one in range(len(self.tables))
        ]

    def _wait(self, first: int, second: int) -> bool | None:
        """Whether the second table must begin after the first one ends (True), or may share its last stage (False)."""
        chain, nf, one = self.tables[first]
        other_chain, other_nf, other = self.tables[second]
        if first == second or (chain, first) == (-1, 0):
            return True if first != second else None
        same = (chain, nf) == (other_chain, other_nf)
        if chain != other_chain or not (first < second if same else self._passes(chain, nf, other_nf)):
            return None
        writes = {field for field in one["writes"] if same or not field.startswith("meta.")}
        if writes & {*other["key"], *other["writes"]}:
            return True
        if one["name"] == "split" and not same:
            return False
        reads = {field for field in one["key"] if same or not field.startswith("meta.")}
        return False if reads & {*other["writes"]} else None

    def _passes(self, chain: int, nf: str, other: str) -> bool:
        """Whether packets go from one NF to the other without leaving the switch."""
        heads = [head for tail, head, *_ in self.chains[chain]["edges"] if tail == nf and (chain, head) in self.nfs]
        return other in heads or any(self._passes(chain, head, other) for head in heads)

    def after_stage(self, left: Rows) -> Iterator[Rows]:
        """The rows that may be left after one more stage, which is filled until nothing more fits.

        A row that moves to an earlier stage where it may lie hinders nothing.
        """
        seen = set()
        waiting = [(left, (self.blocks["tcam"], self.blocks["sram"]))]
        while waiting:
            now, free = waiting.pop()
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise TooLarge
            more = list(self._rows_more(left, now, free))
            if not more:
                yield now
            for one in more:
                if one not in seen:
                    seen.add(one)
                    waiting.append(one)

    def _rows_more(self, begin: Rows, now: Rows, free: tuple[int, int]) -> Iterator[tuple[Rows, tuple[int, int]]]:
        for table, (memory, columns, _) in enumerate(self.sizes):
            at = ("tcam", "sram").index(memory)
            ready = all(not (begin if strict else now)[one] for one, strict in self.waits[table].items())
            if now[table] and ready and columns <= free[at]:
                rows = tuple(number - (one == table) for one, number in enumerate(now))
                yield rows, (free[0] - columns * (at == 0), free[1] - columns * (at == 1))


def _as_json(table: Any) -> Json:
    return {
        "name": table.name,
        "key": table.key,
        "match": table.match.value,
        "entries": table.entries,
        "writes": table.writes,
    }


def _size(table: Json, switch: Json) -> tuple[str, int, int]:
    """The memory of a table, and its blocks beside and above one another."""
    name = "sram" if table["match"] == "exact" else "tcam"
    bits, memory = sum(table["key"].values()), switch[name]
    columns = (bits + memory["bits"] - 1) // memory["bits"]
    rows = (table["entries"] + memory["entries"] - 1) // memory["entries"]
    return name, columns, rows if columns else 1
