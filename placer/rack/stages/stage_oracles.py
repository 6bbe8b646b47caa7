"""The oracles that decide whether NFs fit the stages of a switch, by name: what `--stages` may be."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from placer.rack.chain import Chain
from placer.rack.rack import Rack
from placer.rack.stages.block_stages import BlockStages, StageOracle
from placer.rack.stages.tables.packing import TableProgram
from placer.rack.stages.tables.table_stages import CheckedPrograms
from profiler.protocol.program import LONGEST_LINE, Program, shorten
from profiler.testbed import TestbedError
from profiles import InputError

ORACLE_NAMES = ("blocks", "tables", "exec:PROGRAM")


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
        from placer.rack.stages.tables.table_stages import TableStages

        return TableStages(rack, chains)
    if name == "exec" and colon:
        return CompiledStages(rack, chains, argument)
    raise InputError.of("--stages", f"'{rack.stage_oracle}' is none", hint=f"one of {', '.join(ORACLE_NAMES)}")


def check_stages(rack: Rack, chains: Sequence[Chain], name: str) -> Rack:
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


# `exec:PROGRAM`: a vendor's compiler decides whether tables fit, in JSON lines over its stdin and stdout.
#
# A line to it is `{"id", "stages", "tcam", "sram", "tables": [{"name", "key", "match", "entries", "writes"}],
# "dependencies": [[before, after, kind]]}`, its answer `{"id", "fits"}`, perhaps with the `stages` that it takes.


ANSWER_S = 300.0
"""A compiler may take so long."""


class CompilerError(TestbedError):
    """A compiler that failed; the message holds what it did and its last lines on stderr."""


class CompiledStages(CheckedPrograms):
    """Stages as a compiler sees them.

    Parameters
    ----------
    chains
        Those that the indices of NFs count.
    command
        As typed in a shell, but run without one.

    Raises
    ------
    InputError
        For NFs without tables, and a command that is none.
    CompilerError
        When it cannot be started.
    """

    def __init__(self, rack: Rack, chains: Sequence[Chain], command: str) -> None:
        super().__init__(rack, chains)
        self.compiler = compiler_of(command)

    def program_fits(self, program: TableProgram, stages: int) -> bool:
        return self.compiler.fits(compile_request(program, stages, self.rack))


def compile_request(program: TableProgram, stages: int, rack: Rack) -> Mapping[str, object]:
    """What a compiler is asked, but for the `id`."""
    names = [table.name for table in program.tables]
    return {
        "stages": stages,
        "tcam": vars(rack.switch.tcam),
        "sram": vars(rack.switch.sram),
        "tables": [
            {
                "name": table.name,
                "key": dict(table.table.key),
                "match": table.table.match.value,
                "entries": table.table.entries,
                "writes": list(table.table.writes),
            }
            for table in program.tables
        ],
        "dependencies": [
            [names[dependency.before], names[dependency.after], dependency.kind.value]
            for dependency in program.dependencies
        ],
    }


class StageCompiler:
    """A compiler that runs; the first answer that is late, missing or wrong ends it.

    Parameters
    ----------
    timeout
        The longest time that an answer may take, seconds.
    """

    def __init__(self, command: str, timeout: float = ANSWER_S) -> None:
        self.command, self.timeout = command, timeout
        self.number = 0
        self.answers: dict[str, bool] = {}
        if not command.strip():
            raise InputError.of("--stages", "exec: names no program", hint="exec:PROGRAM, such as exec:./p4-stages")
        try:
            self.program = Program(command)
        except InputError as error:
            raise InputError.of("--stages", error.faults[0].message) from None
        except TestbedError as error:
            raise CompilerError(str(error).replace("testbed", "compiler", 1)) from None

    def fits(self, request: Mapping[str, object]) -> bool:
        """Its answer.

        Raises
        ------
        CompilerError
            When it gives none, or one that is not understood.
        """
        asked = json.dumps(request)
        if asked not in self.answers:
            self.answers[asked] = self._answer(request)
        return self.answers[asked]

    def _answer(self, request: Mapping[str, object]) -> bool:
        number, self.number = self.number, self.number + 1
        self.program.send(json.dumps({"id": number, **request}))
        try:
            line = self.program.receive(self.timeout)
        except TimeoutError:
            raise self._failed(f"gave no answer within {self.timeout:g} s") from None
        if line is None:
            raise self._failed("ended without an answer")
        if len(line) > LONGEST_LINE:
            raise self._failed(f"answered with a line of more than {LONGEST_LINE:,} characters")
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            raise self._failed(f"answered with what is not JSON: {shorten(line)}") from None
        if not isinstance(answer, dict) or type(answer.get("id")) is not int or answer["id"] != number:
            raise self._failed(f"did not answer with an object whose id is {number}: {shorten(line)}")
        if not isinstance(answer.get("fits"), bool):
            raise self._failed(f"answered without `fits` true or false: {shorten(line)}")
        return bool(answer["fits"])

    def _failed(self, what: str) -> CompilerError:
        status = self.program.end(polite=False)
        compiler_of.cache_clear()
        ended = "" if status is None else f" (exit status {status})"
        lines = "".join(f"\n  {line}" for line in self.program.last_lines)
        return CompilerError(f"compiler `{self.command}` {what}{ended}" + (f"; on stderr:{lines}" if lines else ""))


@cache
def compiler_of(command: str) -> StageCompiler:
    """The compiler of a command, started once; it ends with this process."""
    return StageCompiler(command)
