"""The oracles that decide whether NFs fit the stages of a switch, by name: what `--stages` may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from placer.chains.chain import Chain
from placer.chains.rack import Rack
from placer.chains.stages.block_stages import BlockStages, StageOracle
from profiles import InputError

NAMES = ("blocks", "tables", "exec:PROGRAM")


def stage_oracle(rack: Rack, chains: Sequence[Chain]) -> StageOracle:
    """The oracle of a rack.

    Raises
    ------
    InputError
        When there is no such oracle, or it lacks what it needs.
    CompilerError
        When a compiler cannot be started.
    """
    name, colon, argument = rack.stage_oracle.partition(":")
    if rack.stage_oracle == "blocks" or rack.switch.stages is None:
        return BlockStages(rack, chains)
    if rack.stage_oracle == "tables":
        from placer.chains.stages.tables.table_stages import TableStages

        return TableStages(rack, chains)
    if name == "exec" and colon:
        from placer.chains.stages.tables.compiled_stages import CompiledStages

        return CompiledStages(rack, chains, argument)
    raise InputError.of("--stages", f"'{rack.stage_oracle}' is none", hint=f"one of {', '.join(NAMES)}")


def checked_stages(rack: Rack, chains: Sequence[Chain], name: str) -> Rack:
    """The rack with an oracle of this name, and with the tables of the chains' NFs where the oracle looks at tables.

    Raises
    ------
    InputError, CompilerError
        As `stage_oracle`, and for a compiler where the rack has no number of stages.
    """
    if name.startswith("exec:") and rack.switch.stages is None:
        raise InputError.of("--stages", "exec: the rack has no number of stages", hint="stages = 12 in [switch]")
    bounded = replace(rack, stage_oracle=name, switch=replace(rack.switch, stages=rack.switch.stages or 0))
    stage_oracle(bounded, chains)
    if name == "blocks":
        return rack
    from placer.chains.stages.tables.table_stages import tables_of_nfs

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
        from placer.chains.stages.tables.table_stages import TableStages

        blocks = TableStages(rack, chains).blocks()
        costs = {nf: replace(one, switch_blocks=blocks[nf]) if nf in blocks else one for nf, one in rack.costs.items()}
        return replace(rack, switch=replace(rack.switch, blocks_per_stage=rack.switch.tcam.blocks), costs=costs)
    return replace(rack, switch=replace(rack.switch, stages=None))
