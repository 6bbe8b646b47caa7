"""Whether NFs fit the stages of a switch: each is one table, in a stage after those of its predecessors there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from placer.rack.chain import Chain
from placer.rack.rack import Rack

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel

TableId = tuple[int, int]
"""Index of the chain, index of its NF."""
MOST_SECONDS = 60.0


class StageOracle(Protocol):
    """Says whether a switch program fits."""

    def fits(self, tables: frozenset[TableId]) -> bool:
        """Whether these NFs fit together on the switch."""


def stages_left(tables: frozenset[TableId], rack: Rack, chains: Sequence[Chain]) -> int | None:
    """Those that tables may use, fewer where packets cross to servers at all; None without a bound."""
    usable = rack.switch.usable_stages
    if usable is None:
        return None
    nfs = sum(len(chain.nfs) for chain in chains)
    return max(usable - (rack.overheads.stages if len(tables) < nfs else 0), 0)


@dataclass
class BlockStages:
    """Stages with blocks of table memory, where a table lies in one stage.

    Parameters
    ----------
    chains
        Those that the indices of tables count.
    """

    rack: Rack
    chains: Sequence[Chain]

    def __post_init__(self) -> None:
        self.known: dict[frozenset[TableId], bool] = {}

    def fits(self, tables: frozenset[TableId]) -> bool:
        stages = stages_left(tables, self.rack, self.chains)
        if stages is None or not tables:
            return True
        if tables not in self.known:
            self.known[tables] = self._fit(tables, stages)
        return self.known[tables]

    def _fit(self, tables: frozenset[TableId], stages: int) -> bool:
        blocks = {table: self._blocks(table) for table in tables}
        before = {table: self._predecessors(table, tables) for table in tables}
        most = self.rack.switch.blocks_per_stage
        earliest = _earliest(before)
        if any(need > most for need in blocks.values()) or sum(blocks.values()) > most * stages:
            return False
        if max(earliest.values()) >= stages:
            return False
        return _first_fit(blocks, before, earliest, stages, most) or _exact_fit(blocks, before, earliest, stages, most)

    def _blocks(self, table: TableId) -> int:
        chain, nf = table
        blocks = self.rack.costs[self.chains[chain].nfs[nf].nf].switch_blocks
        assert blocks is not None
        return blocks

    def _predecessors(self, table: TableId, tables: frozenset[TableId]) -> list[TableId]:
        chain, nf = table
        return [(chain, edge.tail) for edge in self.chains[chain].edges_into(nf) if (chain, edge.tail) in tables]


def _earliest(before: dict[TableId, list[TableId]]) -> dict[TableId, int]:
    """Per table the first stage that its predecessors leave it."""
    earliest: dict[TableId, int] = {}

    def of(table: TableId) -> int:
        if table not in earliest:
            earliest[table] = max((of(earlier_table) + 1 for earlier_table in before[table]), default=0)
        return earliest[table]

    for table in before:
        of(table)
    return earliest


def _first_fit(
    blocks: dict[TableId, int],
    before: dict[TableId, list[TableId]],
    earliest: dict[TableId, int],
    stages: int,
    most: int,
) -> bool:
    """Whether it fits when each table takes the first stage that has room; large ones first."""
    free = [most] * stages
    stage_of: dict[TableId, int] = {}
    for table in sorted(blocks, key=lambda one: (earliest[one], -blocks[one], one)):
        first = max((stage_of[earlier_table] + 1 for earlier_table in before[table]), default=0)
        stage = next((at for at in range(first, stages) if free[at] >= blocks[table]), None)
        if stage is None:
            return False
        stage_of[table] = stage
        free[stage] -= blocks[table]
    return True


def _exact_fit(
    blocks: dict[TableId, int],
    before: dict[TableId, list[TableId]],
    earliest: dict[TableId, int],
    stages: int,
    most: int,
) -> bool:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    stage_of = {table: model.new_int_var(earliest[table], stages - 1, "") for table in blocks}
    for table, earlier in before.items():
        for earlier_table in earlier:
            model.add(stage_of[table] > stage_of[earlier_table])
    intervals = [model.new_fixed_size_interval_var(stage_of[table], 1, "") for table in blocks]
    model.add_cumulative(intervals, list(blocks.values()), most)
    return is_solved(model, f"whether {len(blocks)} tables fit {stages} stages")


def is_solved(model: CpModel, question: str) -> bool:
    """Whether a model has a solution.

    Raises
    ------
    TimeoutError
        When that is not decided in `MOST_SECONDS`; the message names the question.
    """
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = MOST_SECONDS
    status = solver.solve(model)
    if status == cp_model.UNKNOWN:
        raise TimeoutError(f"{question} was not decided in {MOST_SECONDS:g} s")
    return bool(status in (cp_model.OPTIMAL, cp_model.FEASIBLE))


def conflict(oracle: StageOracle, tables: frozenset[TableId]) -> frozenset[TableId]:
    """A smallest part of tables that do not fit together, in the sense that none can be left out."""
    kept = tables
    for table in sorted(tables):
        if not oracle.fits(kept - {table}):
            kept = kept - {table}
    return kept
