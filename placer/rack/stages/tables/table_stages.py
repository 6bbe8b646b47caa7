"""Stages as the packer of tables sees them: NFs on the switch are the tables of one program."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from placer.rack.chain import Chain, TableId
from placer.rack.rack import Rack, SwitchTable
from placer.rack.stages.tables import packing
from profiler.protocol.program import LONGEST_LINE, Program, shorten
from profiler.testbed import TestbedError
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

    `chains`: those that the indices of NFs count. Raises InputError for NFs that the switch can run and whose tables
    nobody gives.
    """

    def __init__(self, rack: Rack, chains: Sequence[Chain]) -> None:
        self.rack, self.chains = rack, chains
        self.tables_of = tables_of_nfs(rack, chains)
        self.known: dict[int, KnownVerdicts] = {}

    @abstractmethod
    def program_fits(self, program: packing.TableProgram, stages: int) -> bool:
        """Whether a program fits so many stages."""

    def fits(self, tables: frozenset[TableId]) -> bool:
        stages = self.rack.stages_left(len(tables), sum(len(chain.nfs) for chain in self.chains))
        if stages is None or not tables:
            return True
        known = self.known.setdefault(stages, KnownVerdicts())
        verdict = known.verdict(tables)
        if verdict is None:
            verdict = self.program_fits(packing.table_program(tables, self.chains, self.tables_of), stages)
            known.add(tables, verdict)
        return verdict


class TableStages(CheckedPrograms):
    """Stages that hold the tables of all NFs together, those of the library unless the rack gives others."""

    def __init__(self, rack: Rack, chains: Sequence[Chain]) -> None:
        super().__init__(rack, chains)
        self.memories = packing.Memories(rack.switch.tcam, rack.switch.sram)

    def program_fits(self, program: packing.TableProgram, stages: int) -> bool:
        return packing.TablePacking(program, self.memories).fits(stages)

    def packing(self, nfs: frozenset[TableId]) -> Mapping[str, list[tuple[int, int]]]:
        """By table of NFs that fit, the stages that hold rows of it, and how many."""
        stages = self.rack.stages_left(len(nfs), sum(len(chain.nfs) for chain in self.chains))
        if stages is None or not nfs:
            return {}
        program = packing.table_program(nfs, self.chains, self.tables_of)
        packed = packing.TablePacking(program, self.memories).pack(stages)
        assert packed is not None, "a plan fits the stages of its switch"
        return {table.name: sorted(rows.items()) for table, rows in zip(program.tables, packed, strict=True)}

    def blocks(self) -> Mapping[str, int]:
        """TCAM that each kind of NF takes at least."""
        return {
            nf: sum(
                need.columns * need.rows
                for table in tables
                if not (need := packing.table_need(table, self.memories)).memory
            )
            for nf, tables in self.tables_of.items()
        }


class StagesByWindows(TableStages):
    """NFs do not fit where windows of stages say so, as another program can check: all others count as if they did."""

    def program_fits(self, program: packing.TableProgram, stages: int) -> bool:
        return not packing.TablePacking(program, self.memories).is_impossible(stages)


def tables_of_nfs(rack: Rack, chains: Sequence[Chain]) -> Mapping[str, Sequence[SwitchTable]]:
    """The tables of each kind of NF of the chains that the switch can run.

    Raises InputError where nobody gives them.
    """
    found: dict[str, Sequence[SwitchTable]] = {}
    faults = []
    for nf in sorted({nf.nf for chain in chains for nf in chain.nfs}):
        costs = rack.costs[nf]
        if costs.switch_blocks is None:
            continue
        tables = costs.switch_tables if costs.switch_tables is not None else packing.TABLE_LIBRARY.get(nf)
        if tables is None:
            message = f"the tables of {nf} on the switch are not known"
            faults.append(Fault("--stages", None, None, message, TABLES_HINT.format(nf=nf)))
        else:
            found[nf] = tables
    if faults:
        raise InputError(faults)
    return found


# `exec:PROGRAM`: a vendor's compiler decides whether tables fit, in JSON lines over its stdin and stdout.
#
# A line to it is `{"id", "stages", "tcam", "sram", "tables": [{"name", "key", "match", "entries", "writes"}],
# "dependencies": [[before, after, kind]]}`, its answer `{"id", "fits"}`, perhaps with the `stages` that it takes.


ANSWER_S = 300.0  # a compiler may take so long


class CompilerError(TestbedError):
    """A compiler that failed; the message holds what it did and its last lines on stderr."""


class CompiledStages(CheckedPrograms):
    """Stages as a compiler sees them.

    `chains`: those that the indices of NFs count. `command`: as typed in a shell, but run without one. Raises
    InputError for NFs without tables, and a command that is none. Raises CompilerError when it cannot be started.
    """

    def __init__(self, rack: Rack, chains: Sequence[Chain], command: str) -> None:
        super().__init__(rack, chains)
        self.compiler = compiler_of(command)

    def program_fits(self, program: packing.TableProgram, stages: int) -> bool:
        return self.compiler.fits(compile_request(program, stages, self.rack))


def compile_request(program: packing.TableProgram, stages: int, rack: Rack) -> Mapping[str, object]:
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

    `timeout`: the longest time that an answer may take, seconds.
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
        """Its answer. Raises CompilerError when it gives none, or one that is not understood."""
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
