"""Stages as the packer of tables sees them: NFs on the switch are the tables of one program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from placer.rack.chain import Chain
from placer.rack.rack import Rack, SwitchTable
from placer.rack.stages.block_stages import TableId, stages_left
from placer.rack.stages.tables.packing import (
    TABLE_LIBRARY,
    Memories,
    TablePacking,
    TableProgram,
    table_need,
    table_program,
)
from profiles import Fault, InputError

TABLES_HINT = "tables = [...] beside blocks, in [nf.{nf}.switch] of the rack"


@dataclass
class KnownVerdicts:
    """Sets of NFs whose answer is known: parts of what fits fit, too, and what holds a misfit does not fit."""

    fitting: list[frozenset[TableId]] = field(default_factory=list)
    misfits: list[frozenset[TableId]] = field(default_factory=list)

    def verdict(self, nfs: frozenset[TableId]) -> bool | None:
        """None where it is not known."""
        if any(nfs <= fit for fit in self.fitting):
            return True
        return False if any(nfs >= misfit for misfit in self.misfits) else None

    def add(self, nfs: frozenset[TableId], fits: bool) -> None:
        """Note an answer."""
        (self.fitting if fits else self.misfits).append(nfs)


class CheckedPrograms(ABC):
    """Stages whose tables are checked as one program; each set of NFs is checked once.

    Parameters
    ----------
    chains
        Those that the indices of NFs count.

    Raises
    ------
    InputError
        For NFs that the switch can run and whose tables nobody gives.
    """

    def __init__(self, rack: Rack, chains: Sequence[Chain]) -> None:
        self.rack, self.chains = rack, chains
        self.tables_of = tables_of_nfs(rack, chains)
        self.known: dict[int, KnownVerdicts] = {}

    @abstractmethod
    def program_fits(self, program: TableProgram, stages: int) -> bool:
        """Whether a program fits so many stages."""

    def fits(self, tables: frozenset[TableId]) -> bool:
        stages = stages_left(tables, self.rack, self.chains)
        if stages is None or not tables:
            return True
        known = self.known.setdefault(stages, KnownVerdicts())
        verdict = known.verdict(tables)
        if verdict is None:
            verdict = self.program_fits(table_program(tables, self.chains, self.tables_of), stages)
            known.add(tables, verdict)
        return verdict


class TableStages(CheckedPrograms):
    """Stages that hold the tables of all NFs together, those of the library unless the rack gives others."""

    def __init__(self, rack: Rack, chains: Sequence[Chain]) -> None:
        super().__init__(rack, chains)
        self.memories = Memories(rack.switch.tcam, rack.switch.sram)

    def program_fits(self, program: TableProgram, stages: int) -> bool:
        return TablePacking(program, self.memories).fits(stages)

    def blocks(self) -> Mapping[str, int]:
        """TCAM that each kind of NF takes at least."""
        return {
            nf: sum(
                need.columns * need.rows for table in tables if not (need := table_need(table, self.memories)).memory
            )
            for nf, tables in self.tables_of.items()
        }


def tables_of_nfs(rack: Rack, chains: Sequence[Chain]) -> Mapping[str, Sequence[SwitchTable]]:
    """The tables of each kind of NF of the chains that the switch can run.

    Raises
    ------
    InputError
        Where nobody gives them.
    """
    found: dict[str, Sequence[SwitchTable]] = {}
    faults = []
    for nf in sorted({nf.nf for chain in chains for nf in chain.nfs}):
        costs = rack.costs[nf]
        if costs.switch_blocks is None:
            continue
        tables = costs.switch_tables if costs.switch_tables is not None else TABLE_LIBRARY.get(nf)
        if tables is None:
            message = f"the tables of {nf} on the switch are not known"
            faults.append(Fault("--stages", None, None, message, TABLES_HINT.format(nf=nf)))
        else:
            found[nf] = tables
    if faults:
        raise InputError(faults)
    return found
