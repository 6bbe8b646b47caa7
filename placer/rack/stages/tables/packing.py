"""Packs tables into stages: whether they fit so many, and the fewest that hold them.

A table may be split over stages, by whole rows of blocks; it begins in its first stage and ends in its last one. What
list scheduling does not place is decided by a proof from windows of stages, or else by CP-SAT.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from placer.rack.chain import Chain, TableId
from placer.rack.rack import OWN_PREFIX, MatchKind, StageMemory, SwitchTable

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

CLASS_FIELD = "meta.class"
Tables = Mapping[str, Sequence[SwitchTable]]  # by kind of NF


class DependencyKind(StrEnum):
    """Why a table waits for another one."""

    MATCH = "match"
    ACTION = "action"
    SUCCESSOR = "successor"
    REVERSE_MATCH = "reverse match"

    @property
    def is_strict(self) -> bool:
        """Whether the two may not share a stage."""
        return self in (DependencyKind.MATCH, DependencyKind.ACTION)


@dataclass(frozen=True)
class PlacedTable:
    """A table of a program, with the name `chain/NF/table`."""

    name: str
    table: SwitchTable


@dataclass(frozen=True)
class TableDependency:
    """The table with the second index waits for that with the first."""

    before: int
    after: int
    kind: DependencyKind


@dataclass(frozen=True)
class TableProgram:
    """Tables, in an order that their dependencies allow."""

    tables: tuple[PlacedTable, ...]
    dependencies: tuple[TableDependency, ...]


def table_program(
    nfs: frozenset[TableId], chains: Sequence[Chain], tables_of: Tables, *, branches_share: bool = True
) -> TableProgram:
    """The program that runs these NFs; empty without any.

    `branches_share`: False: NFs follow one another as if each packet passed all of them, and each checks its branch in
    its key, as in a program that is generated NF by NF (Lemur, section 4.2).
    """
    return _Building(nfs, chains, tables_of, branches_share).program() if nfs else TableProgram((), ())


class _Building:
    def __init__(
        self, nfs: frozenset[TableId], chains: Sequence[Chain], tables_of: Tables, branches_share: bool
    ) -> None:
        self.chains, self.branches_share = chains, branches_share
        self.nfs = [(at, nf) for at in sorted({at for at, _ in nfs}) for nf in chains[at].order if (at, nf) in nfs]
        self.tables = [PlacedTable(STEERING_TABLE.name, STEERING_TABLE)]
        self.own: dict[TableId, list[int]] = {}
        for at, nf in self.nfs:
            one = chains[at].nfs[nf]
            placed = [PlacedTable(f"{chains[at].name}/{one.id}/{each.name}", each) for each in tables_of[one.nf]]
            branches = len(chains[at].edges_from(nf))
            if branches > 1:
                by_class = any(CLASS_FIELD in each.table.writes for each in placed)
                split = splitting(by_class, branches)
                placed.append(PlacedTable(f"{chains[at].name}/{one.id}/{split.name}", split))
            self.own[at, nf] = list(range(len(self.tables), len(self.tables) + len(placed)))
            self.tables += placed

    def program(self) -> TableProgram:
        found = [TableDependency(0, number, DependencyKind.MATCH) for number in range(1, len(self.tables))]
        for nf, before in self._pairs():
            found += self._between(before, nf)
        return TableProgram(tuple(self.tables), tuple(found))

    def _pairs(self) -> Iterator[tuple[TableId, TableId]]:
        """Each NF with itself and with all that packets pass before it, without leaving the switch in between."""
        earlier: dict[TableId, set[TableId]] = {}
        for at, nf in self.nfs:
            tails = [(at, edge.tail) for edge in self.chains[at].edges_into(nf)] if self.branches_share else [*earlier]
            direct = {tail for tail in tails if tail in self.own}
            earlier[at, nf] = direct.union(*(earlier[tail] for tail in direct))
            for before in sorted({*earlier[at, nf], (at, nf)}):
                yield (at, nf), before

    def _between(self, first: TableId, second: TableId) -> Iterator[TableDependency]:
        for before in self.own[first]:
            for after in self.own[second]:
                if before < after and (kind := self._kind(before, after, first == second)):
                    yield TableDependency(before, after, kind)

    def _kind(self, before: int, after: int, same_nf: bool) -> DependencyKind | None:
        """The strictest dependency between two tables; None without any."""
        one, other = self.tables[before].table, self.tables[after].table
        fields = [field for field in one.writes if same_nf or not field.startswith(OWN_PREFIX)]
        if any(field in other.key for field in fields):
            return DependencyKind.MATCH
        if any(field in other.writes for field in fields):
            return DependencyKind.ACTION
        if one.name == "split" and not same_nf:
            return DependencyKind.SUCCESSOR if self.branches_share else DependencyKind.MATCH
        if any(field in one.key and (same_nf or not field.startswith(OWN_PREFIX)) for field in other.writes):
            return DependencyKind.REVERSE_MATCH
        return None


# The tables of the NFs that Lemur runs on its switch (Yen et al., table 3), for racks that give none.
#
# Keys and entries are those of plain P4 programs; the NAT is that of the P4 consortium's `simple_nat`, whose key of 99
# bits holds 2,000 entries. A rack file replaces them (`tables` beside `blocks`).


ADDRESS_FIELDS = {"ip.src": 32, "ip.dst": 32}
FLOW_FIELDS = {**ADDRESS_FIELDS, "l4.ports": 32, "ip.protocol": 8}
VLAN_FIELDS = ("vlan.valid", "vlan.id")

STEERING_TABLE = SwitchTable("steering", {**FLOW_FIELDS, "nsh.path": 32}, MatchKind.TERNARY, 512, ("nsh.path",))
"""Finds the chain of a packet and its place there, also of packets that come back from servers (section 4.2)."""


def splitting(by_class: bool, branches: int) -> SwitchTable:
    """What decides on the branch behind an NF: by the class that the NF found, or else by rules of its own (A.2.2)."""
    if by_class:
        return SwitchTable("split", {"meta.class": 16}, MatchKind.EXACT, branches)
    return SwitchTable("split", FLOW_FIELDS, MatchKind.TERNARY, branches)


TABLE_LIBRARY: Mapping[str, tuple[SwitchTable, ...]] = {
    "ACL": (SwitchTable("rules", FLOW_FIELDS, MatchKind.TERNARY, 1024, ("meta.drop",)),),
    "Detunnel": (SwitchTable("pop", {"vlan.valid": 1, "vlan.id": 12}, MatchKind.EXACT, 256, VLAN_FIELDS),),
    "IPv4Fwd": (
        SwitchTable("routes", {"ip.dst": 32}, MatchKind.LPM, 4096, ("meta.next_hop", "ip.ttl")),
        SwitchTable("next_hops", {"meta.next_hop": 32}, MatchKind.EXACT, 1024, ("eth.dst", "port.out")),
        SwitchTable("own_address", {"port.out": 9}, MatchKind.EXACT, 256, ("eth.src",)),
    ),
    "LB": (
        SwitchTable("services", {"ip.dst": 32, "l4.ports": 32}, MatchKind.EXACT, 256, ("meta.bucket",)),
        SwitchTable("servers", {"meta.bucket": 16}, MatchKind.EXACT, 4096, ("ip.dst", "l4.ports")),
    ),
    "Match": (SwitchTable("classes", FLOW_FIELDS, MatchKind.TERNARY, 512, ("meta.class",)),),
    "NAT": (
        SwitchTable("interface", {"port.in": 9}, MatchKind.EXACT, 64, ("meta.side",)),
        SwitchTable(
            "translations", {**ADDRESS_FIELDS, "l4.ports": 32, "meta.side": 3}, MatchKind.TERNARY, 2000, ("meta.found",)
        ),
        SwitchTable("rewrite", {"meta.found": 1}, MatchKind.EXACT, 2, ("ip.src", "ip.dst", "l4.ports")),
    ),
    "Tunnel": (SwitchTable("push", {"ip.dst": 32}, MatchKind.EXACT, 256, VLAN_FIELDS),),
}
"""By kind of NF, in the order in which packets meet them."""


MOST_STAGES = 10_000
MOST_SECONDS = 60.0


@dataclass(frozen=True)
class Memories:
    """What each stage has."""

    tcam: StageMemory
    sram: StageMemory


@dataclass(frozen=True)
class TableNeed:
    """What a table needs: so many rows of blocks, each as wide as its key; no width without a key."""

    memory: int  # 0 TCAM, 1 SRAM
    columns: int
    rows: int

    def span(self, blocks: int) -> int:
        """The fewest stages that hold it, each with so many blocks of its memory."""
        return -(-self.rows // (blocks // self.columns)) if self.columns else 1


def table_need(table: SwitchTable, memories: Memories, *, by_field: bool = False) -> TableNeed:
    """The blocks of a table.

    `by_field`: whether each field of the key begins a block of its own: an estimate that is known to be too large.
    """
    exact = table.match is MatchKind.EXACT
    memory = memories.sram if exact else memories.tcam
    parts = table.key.values() if by_field else [sum(table.key.values())]
    columns = sum(memory.columns(bits) for bits in parts)
    return TableNeed(int(exact), columns, memory.rows(table.entries) if columns else 1)


class TablePacking:
    """Tables with their needs and dependencies."""

    def __init__(self, program: TableProgram, memories: Memories, *, by_field: bool = False) -> None:
        self.blocks = (memories.tcam.blocks, memories.sram.blocks)
        self.needs = [table_need(table.table, memories, by_field=by_field) for table in program.tables]
        self.too_wide = any(need.columns > self.blocks[need.memory] for need in self.needs)
        self.before: list[list[tuple[int, int]]] = [[] for _ in self.needs]
        for wait in program.dependencies:
            self.before[wait.after].append((wait.before, int(wait.kind.is_strict)))
        self.after: list[list[tuple[int, int]]] = [[] for _ in self.needs]
        for table, earlier in enumerate(self.before):
            for one, strict in earlier:
                self.after[one].append((table, strict))
        if not self.too_wide:
            self.spans = [need.span(self.blocks[need.memory]) for need in self.needs]
            self.heads = self._heads()
            self.tails = self._tails()

    def _heads(self) -> list[int]:
        """Per table the first stage that its predecessors leave it."""
        heads: list[int] = []
        for earlier in self.before:
            heads.append(max((heads[one] + self.spans[one] - 1 + strict for one, strict in earlier), default=0))
        return heads

    def _tails(self) -> list[int]:
        """Per table how many stages must follow its last one."""
        tails = [0] * len(self.needs)
        for table in range(len(self.needs) - 1, -1, -1):
            later = self.after[table]
            tails[table] = max((tails[one] + self.spans[one] - 1 + strict for one, strict in later), default=0)
        return tails

    def fits(self, stages: int) -> bool:
        """Whether so many stages hold all tables. Raises TimeoutError when that is not decided in `MOST_SECONDS`."""
        if not self.needs:
            return True
        if self.is_impossible(stages):
            return False
        return self.pack(stages) is not None

    def pack(self, stages: int) -> list[dict[int, int]] | None:
        """Per table how many of its rows are in which stage; None where there is no packing, as far as that is known.

        Raises TimeoutError as `fits`.
        """
        return self._pack_by_list(stages) or self._pack_by_solver(stages)

    def fewest(self) -> int | None:
        """The fewest stages that hold all tables; None where none do."""
        if self.too_wide:
            return None
        return next(stages for stages in range(MOST_STAGES) if self.fits(stages))

    def is_impossible(self, stages: int) -> bool:
        """Whether the tables that must lie within some window of stages are too many for it."""
        if self.too_wide:
            return True
        windows = []
        for need, head, tail, span in zip(self.needs, self.heads, self.tails, self.spans, strict=True):
            if head + span > stages - tail:
                return True
            windows.append((head, stages - tail, need))
        for memory, blocks in enumerate(self.blocks):
            own = [(first, last, need.columns * need.rows) for first, last, need in windows if need.memory == memory]
            for begin in {first for first, _, _ in own}:
                for end in {last for _, last, _ in own}:
                    inside = sum(size for first, last, size in own if first >= begin and last <= end)
                    if inside > blocks * max(end - begin, 0):
                        return True
        return False

    def _pack_by_list(self, stages: int) -> list[dict[int, int]] | None:
        """A packing stage by stage: first the tables that most must follow, each as soon as it may begin."""
        packed: list[dict[int, int]] = [{} for _ in self.needs]
        left = [need.rows for need in self.needs]
        order = sorted(range(len(left)), key=lambda one: (-self.tails[one] - self.spans[one], self.heads[one], one))
        last: dict[int, int] = {}
        for stage in range(stages):
            free = list(self.blocks)
            placed = True
            while placed:
                placed = False
                for table in order:
                    if table in last or not all(
                        last.get(one, stages) + strict <= stage for one, strict in self.before[table]
                    ):
                        continue
                    need = self.needs[table]
                    rows = min(left[table], free[need.memory] // need.columns) if need.columns else left[table]
                    if rows:
                        left[table] -= rows
                        packed[table][stage] = rows
                        free[need.memory] -= rows * need.columns
                        placed = True
                    if not left[table]:
                        last[table] = stage
            order = [table for table in order if table not in last]
            if not order:
                return packed
        return None

    def fits_by_solver(self, stages: int) -> bool:
        """Whether it fits, by CP-SAT alone; each table must have a stage that its predecessors and successors leave."""
        return self._pack_by_solver(stages) is not None

    def _pack_by_solver(self, stages: int) -> list[dict[int, int]] | None:
        from ortools.sat.python import cp_model

        model = cp_model.CpModel()
        ends = [(head, stages - tail - 1) for head, tail in zip(self.heads, self.tails, strict=True)]
        starts = [model.new_int_var(low, high, "") for low, high in ends]
        lasts = [model.new_int_var(low, high, "") for low, high in ends]
        packed: list[dict[int, cp_model.IntVar]] = []
        used: list[tuple[list[cp_model.LinearExprT], list[cp_model.LinearExprT]]] = [([], []) for _ in range(stages)]
        for table, (need, (low, high)) in enumerate(zip(self.needs, ends, strict=True)):
            rows = [model.new_int_var(0, need.rows, "") for _ in range(low, high + 1)]
            model.add(sum(rows) == need.rows)
            packed.append(dict(enumerate(rows, low)))
            for stage, number in enumerate(rows, low):
                used[stage][need.memory].append(need.columns * number)
                here = model.new_bool_var("")
                model.add(number == 0).only_enforce_if(~here)
                model.add(starts[table] <= stage).only_enforce_if(here)
                model.add(lasts[table] >= stage).only_enforce_if(here)
            for one, strict in self.before[table]:
                model.add(starts[table] >= lasts[one] + strict)
        for of_stage in used:
            for sizes, blocks in zip(of_stage, self.blocks, strict=True):
                model.add(sum(sizes) <= blocks)
        solver = solve_model(model, f"whether {len(self.needs)} tables fit {stages} stages")
        if solver is None:
            return None
        rows_of = [{stage: solver.value(rows) for stage, rows in of.items()} for of in packed]
        return [{stage: rows for stage, rows in of.items() if rows} for of in rows_of]


def fewest_stages(program: TableProgram, memories: Memories, *, by_field: bool = False) -> int | None:
    """The fewest stages that hold a program; None where a key is wider than a stage."""
    return TablePacking(program, memories, by_field=by_field).fewest()


def solve_model(model: cp_model.CpModel, question: str) -> cp_model.CpSolver | None:
    """The solver with a solution of a model; None if it has none.

    Raises TimeoutError when that is not decided in `MOST_SECONDS`; the message names the question.
    """
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = MOST_SECONDS
    status = solver.solve(model)
    if status == cp_model.UNKNOWN:
        raise TimeoutError(f"{question} was not decided in {MOST_SECONDS:g} s")
    return solver if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None
