"""The oracles that decide whether NFs fit the stages of a switch, by name: what `--stages` may be.

`blocks` stands here: each NF is one table, in a stage after those of its predecessors there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Protocol

import numpy as np

from placer.rack.chain import Chain, TableId
from placer.rack.rack import Rack
from profiles import InputError
from profiles.arrays import Bools, Floats, Ints

ORACLE_NAMES = ("blocks", "tables", "exec:PROGRAM")


def stage_oracle(rack: Rack, chains: Sequence[Chain]) -> StageOracle:
    """The oracle of a rack.

    Raises InputError when there is no such oracle, or it lacks what it needs. Raises CompilerError when a compiler
    cannot be started.
    """
    name, colon, argument = rack.stage_oracle.partition(":")
    if rack.stage_oracle == "blocks" or rack.switch.stages is None:
        return BlockStages(rack, chains)
    if rack.stage_oracle == "tables":
        from placer.rack.stages.tables.table_stages import TableStages

        return TableStages(rack, chains)
    if name == "exec" and colon:
        from placer.rack.stages.tables.table_stages import CompiledStages

        return CompiledStages(rack, chains, argument)
    raise InputError.of("--stages", f"'{rack.stage_oracle}' is none", hint=f"one of {', '.join(ORACLE_NAMES)}")


def check_stages(rack: Rack, chains: Sequence[Chain], name: str) -> Rack:
    """The rack with an oracle of this name, and with the tables of the chains' NFs where the oracle looks at tables.

    Raises InputError, CompilerError as `stage_oracle`, and for a compiler where the rack has no number of stages.
    """
    if name.startswith("exec:") and rack.switch.stages is None:
        raise InputError.of("--stages", "exec: the rack has no number of stages", hint="stages = 12 in [switch]")
    bounded = replace(rack, stage_oracle=name, switch=replace(rack.switch, stages=rack.switch.stages or 0))
    stage_oracle(bounded, chains)
    if name == "blocks":
        return rack
    from placer.rack.stages.tables.table_stages import tables_of_nfs

    # a strategy may rename NFs (contention): they keep their costs, and tables with them
    found = {nf: tuple(tables) for nf, tables in tables_of_nfs(rack, chains).items()}
    costs = {nf: replace(one, switch_tables=found.get(nf)) for nf, one in rack.costs.items()}
    return replace(rack, stage_oracle=name, costs=costs)


def with_blocks_of(rack: Rack, chains: Sequence[Chain]) -> Rack:
    """The rack with blocks that no plan exceeds whose tables fit: what `fleet_bound` counts.

    For packed tables a block is one of TCAM. Of a compiler nothing is known beforehand: stages are without a bound.
    """
    if rack.stage_oracle == "blocks":
        return rack
    if rack.stage_oracle == "tables":
        from placer.rack.stages.tables.table_stages import TableStages

        blocks = TableStages(rack, chains).blocks()
        costs = {nf: replace(one, switch_blocks=blocks[nf]) if nf in blocks else one for nf, one in rack.costs.items()}
        return replace(rack, switch=replace(rack.switch, blocks_per_stage=rack.switch.tcam.blocks), costs=costs)
    return replace(rack, switch=replace(rack.switch, stages=None))


class StageOracle(Protocol):
    """Says whether a switch program fits."""

    def fits(self, tables: frozenset[TableId]) -> bool:
        """Whether these NFs fit together on the switch."""


@dataclass
class BlockStages:
    """Stages with blocks of table memory, where a table lies in one stage."""

    rack: Rack
    chains: Sequence[Chain]  # those that the indices of tables count

    def __post_init__(self) -> None:
        self.known: dict[frozenset[TableId], bool] = {}

    def fits(self, tables: frozenset[TableId]) -> bool:
        stages = self.rack.stages_left(len(tables), sum(len(chain.nfs) for chain in self.chains))
        if stages is None or not tables:
            return True
        if tables not in self.known:
            self.known[tables] = self._fit(tables, stages)
        return self.known[tables]

    def needs(self, chains: Sequence[Chain], tables: Sequence[Bools]) -> StageNeeds:
        """Blocks that lie between two stages, because as many stages at least come before them and after them.

        `tables`: per chain and option which NFs are on the switch; shape (options, NFs) each. A part of the stages
        that all options fit at once is left out. Not meant for a plan with all NFs on the switch.
        """
        stages = self.rack.stages_left(0, 1) or 0
        parts, all_blocks = [(0, 0)], []
        for chain, on_switch in zip(chains, tables, strict=True):
            blocks = np.array([self.rack.costs[nf.nf].switch_blocks or 0 for nf in chain.nfs])
            before, after = _tables_beside(chain, on_switch)
            longest = range(1 + before.max(initial=0)), range(1 + after.max(initial=0))
            parts += product(*longest)
            all_blocks.append((before, after, on_switch * blocks))
        parts = [(first, last) for first, last in sorted({*parts}) if first + last <= stages]
        needs = [
            np.stack([(own * ((before >= first) & (after >= last))).sum(axis=1) for first, last in parts], axis=1)
            for before, after, own in all_blocks
        ]
        room = np.array([(stages - first - last) * self.rack.switch.blocks_per_stage for first, last in parts])
        bounds = np.sum([own.max(axis=0, initial=0) for own in needs], axis=0) > room
        return StageNeeds([own[:, bounds].astype(np.float64) for own in needs], room[bounds].tolist())

    def _fit(self, tables: frozenset[TableId], stages: int) -> bool:
        blocks, before, most = {}, {}, self.rack.switch.blocks_per_stage
        for chain, nf in tables:
            needed = self.rack.costs[self.chains[chain].nfs[nf].nf].switch_blocks
            assert needed is not None
            blocks[chain, nf] = needed
            tails = [(chain, edge.tail) for edge in self.chains[chain].edges_into(nf)]
            before[chain, nf] = [tail for tail in tails if tail in tables]
        earliest = _earliest(before)
        if max(blocks.values()) > most or sum(blocks.values()) > most * stages or max(earliest.values()) >= stages:
            return False
        return _first_fit(blocks, before, earliest, stages, most) or _exact_fit(blocks, before, earliest, stages, most)


@dataclass(frozen=True)
class StageNeeds:
    """Parts of the stages: what they have room for, and what each option takes of them."""

    blocks: Sequence[Floats]  # per chain; shape (options, parts) each
    room: Sequence[int]  # blocks, per part


def _tables_beside(chain: Chain, on_switch: Bools) -> tuple[Ints, Ints]:
    """Per option and NF the length of the longest path of NFs on the switch that leads to it, and from it."""
    before, after = np.zeros(on_switch.shape, np.int64), np.zeros(on_switch.shape, np.int64)
    for lengths, order in ((before, chain.order), (after, chain.order[::-1])):
        for nf in order:
            for edge in chain.edges_from(nf) if lengths is before else chain.edges_into(nf):
                to = edge.head if lengths is before else edge.tail
                lengths[:, to] = np.maximum(lengths[:, to], np.where(on_switch[:, nf], lengths[:, nf] + 1, 0))
    return before, after


Numbers = dict[TableId, int]
Before = dict[TableId, list[TableId]]  # by table those of the NFs right before it


def _earliest(before: Before) -> Numbers:
    """Per table the first stage that its predecessors leave it."""
    earliest: Numbers = {}

    def of(table: TableId) -> int:
        if table not in earliest:
            earliest[table] = max((of(earlier_table) + 1 for earlier_table in before[table]), default=0)
        return earliest[table]

    for table in before:
        of(table)
    return earliest


def _first_fit(blocks: Numbers, before: Before, earliest: Numbers, stages: int, most: int) -> bool:
    """Whether it fits when each table takes the first stage that has room; large ones first."""
    free = [most] * stages
    stage_of: Numbers = {}
    for table in sorted(blocks, key=lambda one: (earliest[one], -blocks[one], one)):
        first = max((stage_of[earlier_table] + 1 for earlier_table in before[table]), default=0)
        stage = next((at for at in range(first, stages) if free[at] >= blocks[table]), None)
        if stage is None:
            return False
        stage_of[table] = stage
        free[stage] -= blocks[table]
    return True


def _exact_fit(blocks: Numbers, before: Before, earliest: Numbers, stages: int, most: int) -> bool:
    from ortools.sat.python import cp_model

    from placer.rack.stages.tables.packing import solve_model

    model = cp_model.CpModel()
    stage_of = {table: model.new_int_var(earliest[table], stages - 1, "") for table in blocks}
    for table, earlier in before.items():
        for earlier_table in earlier:
            model.add(stage_of[table] > stage_of[earlier_table])
    intervals = [model.new_fixed_size_interval_var(stage_of[table], 1, "") for table in blocks]
    model.add_cumulative(intervals, list(blocks.values()), most)
    return solve_model(model, f"whether {len(blocks)} tables fit {stages} stages") is not None


def conflict(oracle: StageOracle, tables: frozenset[TableId]) -> frozenset[TableId]:
    """A smallest part of tables that do not fit together, in the sense that none can be left out."""
    kept = tables
    for table in sorted(tables):
        if not oracle.fits(kept - {table}):
            kept = kept - {table}
    return kept
