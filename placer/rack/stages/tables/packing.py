"""Packs tables into stages: whether they fit so many, and the fewest that hold them.

A table may be split over stages, by whole rows of blocks; it begins in its first stage and ends in its last one. What
list scheduling does not place is decided by a proof from windows of stages, or else by CP-SAT.
"""

from __future__ import annotations

from dataclasses import dataclass

from placer.rack.rack import MatchKind, StageMemory, SwitchTable
from placer.rack.stages.block_stages import is_solved
from placer.rack.stages.tables.program import TableProgram

MOST_STAGES = 10_000


@dataclass(frozen=True)
class Memories:
    """What each stage has."""

    tcam: StageMemory
    sram: StageMemory


@dataclass(frozen=True)
class TableNeed:
    """What a table needs: so many rows of blocks, each as wide as its key; no width without a key.

    Parameters
    ----------
    memory
        0 TCAM, 1 SRAM.
    """

    memory: int
    columns: int
    rows: int

    def span(self, blocks: int) -> int:
        """The fewest stages that hold it, each with so many blocks of its memory."""
        return -(-self.rows // (blocks // self.columns)) if self.columns else 1


def table_need(table: SwitchTable, memories: Memories, *, by_field: bool = False) -> TableNeed:
    """The blocks of a table.

    Parameters
    ----------
    by_field
        Whether each field of the key begins a block of its own: an estimate that is known to be too large.
    """
    exact = table.match is MatchKind.EXACT
    memory = memories.sram if exact else memories.tcam
    parts = table.key.values() if by_field else [sum(table.key.values())]
    columns = sum(memory.columns(bits) for bits in parts)
    return TableNeed(int(exact), columns, memory.rows(table.entries) if columns else 1)


class TablePacking:
    """Tables with their needs and dependencies.

    Parameters
    ----------
    by_field
        As for `table_need`.
    """

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
        """Whether so many stages hold all tables.

        Raises
        ------
        TimeoutError
            When that is not decided in `stages.MOST_SECONDS`.
        """
        if not self.needs:
            return True
        if self.too_wide or self._windows_full(stages):
            return False
        return self._fits_by_list(stages) or self.fits_by_solver(stages)

    def fewest(self) -> int | None:
        """The fewest stages that hold all tables; None where none do."""
        if self.too_wide:
            return None
        return next(stages for stages in range(MOST_STAGES) if self.fits(stages))

    def _windows_full(self, stages: int) -> bool:
        """Whether the tables that must lie within some window of stages are too many for it."""
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

    def _fits_by_list(self, stages: int) -> bool:
        """Whether it fits stage by stage: first the tables that most must follow, each as soon as it may begin."""
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
                        free[need.memory] -= rows * need.columns
                        placed = True
                    if not left[table]:
                        last[table] = stage
            order = [table for table in order if table not in last]
            if not order:
                return True
        return False

    def fits_by_solver(self, stages: int) -> bool:
        """Whether it fits, by CP-SAT alone; each table must have a stage that its predecessors and successors leave."""
        from ortools.sat.python import cp_model

        model = cp_model.CpModel()
        ends = [(head, stages - tail - 1) for head, tail in zip(self.heads, self.tails, strict=True)]
        starts = [model.new_int_var(low, high, "") for low, high in ends]
        lasts = [model.new_int_var(low, high, "") for low, high in ends]
        used: list[tuple[list[cp_model.LinearExprT], list[cp_model.LinearExprT]]] = [([], []) for _ in range(stages)]
        for table, (need, (low, high)) in enumerate(zip(self.needs, ends, strict=True)):
            rows = [model.new_int_var(0, need.rows, "") for _ in range(low, high + 1)]
            model.add(sum(rows) == need.rows)
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
        return is_solved(model, f"whether {len(self.needs)} tables fit {stages} stages")


def fewest_stages(program: TableProgram, memories: Memories, *, by_field: bool = False) -> int | None:
    """The fewest stages that hold a program; None where a key is wider than a stage."""
    return TablePacking(program, memories, by_field=by_field).fewest()
