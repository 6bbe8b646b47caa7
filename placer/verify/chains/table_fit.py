"""Whether the tables of NFs fit the stages of a switch: a packing that is given is checked, and none is looked for.

That there is no packing follows where the tables that must lie within some stages are too many for them. Written for
the check alone: placing packs the same tables in other ways."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from placer.rack.chain import Chain
from placer.rack.rack import OWN_PREFIX, MatchKind, Rack, SwitchTable

Nf = tuple[int, int]
Packing = Mapping[str, Sequence[tuple[int, int]]]  # by table, the stages that hold rows of it, and how many
FLOW = {"ip.src": 32, "ip.dst": 32, "l4.ports": 32, "ip.protocol": 8}
STEERING = SwitchTable("steering", {**FLOW, "nsh.path": 32}, MatchKind.TERNARY, 512, ("nsh.path",))
CLASS = "meta.class"


@dataclass(frozen=True)
class _Placed:
    """A table of an NF; of none, if it steers packets. `columns`, `rows`: of blocks of its memory."""

    name: str
    nf: Nf | None
    table: SwitchTable
    columns: int
    rows: int

    @property
    def is_exact(self) -> bool:
        return self.table.match is MatchKind.EXACT


def blocks_by_tables(rack: Rack) -> Rack:
    """The rack with blocks of TCAM in place of those that NFs are said to take."""
    costs = {
        kind: replace(
            cost, switch_blocks=sum(columns * rows for columns, rows in _tcam_needs(cost.switch_tables or (), rack))
        )
        if cost.switch_blocks is not None
        else cost
        for kind, cost in rack.costs.items()
    }
    switch = replace(rack.switch, blocks_per_stage=rack.switch.tcam.blocks)
    return replace(rack, switch=switch, costs=costs, stage_oracle="tables")


def _tcam_needs(tables: Sequence[SwitchTable], rack: Rack) -> Iterator[tuple[int, int]]:
    yield from (_need(table, rack) for table in tables if table.match is not MatchKind.EXACT)


def _need(table: SwitchTable, rack: Rack) -> tuple[int, int]:
    """Columns for the bits of its key, and rows for its entries; a table without key takes no memory."""
    memory = rack.switch.sram if table.match is MatchKind.EXACT else rack.switch.tcam
    columns = -(-sum(table.key.values()) // memory.bits)
    return columns, max(-(-table.entries // memory.entries), 1) if columns else 1


class TableFit:
    """The tables of NFs on a switch of so many stages."""

    def __init__(self, chains: Sequence[Chain], rack: Rack, nfs: Collection[Nf], stages: int) -> None:
        self.chains, self.nfs, self.stages = chains, set(nfs), stages
        self.blocks = {True: rack.switch.sram.blocks, False: rack.switch.tcam.blocks}
        self.placed = [_Placed(STEERING.name, None, STEERING, *_need(STEERING, rack))] if nfs else []
        for chain, nf in sorted(self.nfs):
            own = list(rack.costs[chains[chain].nfs[nf].nf].switch_tables or ())
            if (ways := sum(edge.tail == nf for edge in chains[chain].edges)) > 1:
                by_class = any(CLASS in table.writes for table in own)
                key, match = ({CLASS: 16}, MatchKind.EXACT) if by_class else (FLOW, MatchKind.TERNARY)
                own.append(SwitchTable("split", key, match, ways))
            name = f"{chains[chain].name}/{chains[chain].nfs[nf].id}"
            self.placed += [_Placed(f"{name}/{table.name}", (chain, nf), table, *_need(table, rack)) for table in own]

    @cached_property
    def waits(self) -> list[tuple[int, int, int]]:
        """Which table waits for which: the first, the second, and by how many stages the second begins behind the end
        of the first."""
        found = []
        for first, before in enumerate(self.placed):
            for second, after in enumerate(self.placed):
                if first != second and (gap := self._gap(first, before, second, after)) is not None:
                    found.append((first, second, gap))
        return found

    def _gap(self, first: int, before: _Placed, second: int, after: _Placed) -> int | None:
        if before.nf is None or after.nf is None:
            return 1 if before.nf is None else None
        same = before.nf == after.nf
        if (first > second) if same else before.nf not in self._earlier[after.nf]:
            return None
        written, changed = (
            {field for field in table.writes if same or not field.startswith(OWN_PREFIX)}
            for table in (before.table, after.table)
        )
        if written & ({*after.table.key} | {*after.table.writes}):
            return 1
        is_split = before.table.name == "split" and not same
        return 0 if is_split or changed & {*before.table.key} else None

    @cached_property
    def _earlier(self) -> Mapping[Nf, set[Nf]]:
        """By NF those that packets pass before it without leaving the switch in between."""
        found: dict[Nf, set[Nf]] = {nf: set() for nf in self.nfs}
        for _ in self.nfs:
            for chain, nf in self.nfs:
                tails = {(chain, edge.tail) for edge in self.chains[chain].edges if edge.head == nf} & self.nfs
                found[chain, nf] |= tails.union(*(found[tail] for tail in tails))
        return found

    def faults(self, packing: Packing) -> Iterator[str]:
        """What is wrong with a packing, a sentence each."""
        if {*packing} != {placed.name for placed in self.placed}:
            yield "the packing is not of the tables of the NFs on the switch"
            return
        used: dict[tuple[int, bool], int] = {}
        for placed in self.placed:
            rows = dict(packing[placed.name])
            if sum(rows.values()) != placed.rows or min(rows.values()) < 1 or len(rows) < len(packing[placed.name]):
                yield f"table {placed.name} has {placed.rows} rows, and they are not packed each once"
            if not all(0 <= stage < self.stages for stage in rows):
                yield f"table {placed.name} is in a stage beyond the {self.stages} that there are"
            for stage, number in rows.items():
                key = stage, placed.is_exact
                used[key] = used.get(key, 0) + placed.columns * number
        for (stage, is_exact), blocks in sorted(used.items()):
            if blocks > self.blocks[is_exact]:
                memory = "SRAM" if is_exact else "TCAM"
                yield f"stage {stage} holds {blocks} blocks of {memory}, of {self.blocks[is_exact]}"
        for first, second, gap in self.waits:
            before, after = self.placed[first].name, self.placed[second].name
            if max(stage for stage, _ in packing[before]) + gap > min(stage for stage, _ in packing[after]):
                yield f"table {after} does not wait for {before}"

    def is_impossible(self) -> bool:
        """Whether tables must lie within some stages that do not hold them; no packing is looked for."""
        if any(placed.columns > self.blocks[placed.is_exact] for placed in self.placed):
            return True
        least = [
            -(-table.rows // (self.blocks[table.is_exact] // table.columns)) if table.columns else 1
            for table in self.placed
        ]
        first, behind = [0] * len(self.placed), [0] * len(self.placed)
        for _ in self.placed:
            for before, after, gap in self.waits:
                first[after] = max(first[after], first[before] + least[before] - 1 + gap)
                behind[before] = max(behind[before], behind[after] + least[after] - 1 + gap)
        ends = [self.stages - after for after in behind]
        if any(start + stages > end for start, stages, end in zip(first, least, ends, strict=True)):
            return True
        return any(
            sum(
                placed.columns * placed.rows
                for placed, start, end in zip(self.placed, first, ends, strict=True)
                if placed.is_exact == is_exact and begin <= start and end <= limit
            )
            > self.blocks[is_exact] * max(limit - begin, 0)
            for is_exact in (True, False)
            for begin in {*first}
            for limit in {*ends}
        )
