"""How many stages a program takes: its tables and their dependencies, packed by our packer.

What stands between tables counts as a table without a key: one stage computes it, however many operations it has. A
condition shares the stage of what decides it. Scratch metadata of one NF is not that of the next NF. This is an
estimate; no compiler of a vendor has seen the program.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from placer.rack.compiler.branch_counts import WAY_SIGN
from placer.rack.compiler.switch.headers import FLOW_BITS
from placer.rack.compiler.switch.program import (
    Apply,
    Assign,
    Body,
    Compute,
    Count,
    FieldComparison,
    If,
    IsValid,
    Learn,
    MatchTable,
    SetValid,
    Statement,
    SwitchProgram,
    TakeNumber,
    Value,
)
from placer.rack.rack import SRAM_MEMORY, TCAM_MEMORY, SwitchTable
from placer.rack.stages.tables import packing

SHARED_FIELDS = {f"m.{name}" for name in ("node", "label", "path", "port", "drop", "found", "shared", *FLOW_BITS)}
"""Metadata that NFs have in common; all other is scratch of one NF."""
STAGE_MEMORIES = packing.Memories(TCAM_MEMORY, SRAM_MEMORY)


@dataclass
class _Unit:
    """A table, or statements between tables."""

    name: str
    table: SwitchTable
    cases: tuple[tuple[int, bool], ...]  # the conditions around it: the number of each, and which of its bodies
    decided_by: frozenset[str]  # the fields of these conditions
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)


def stages_of(program: SwitchProgram, memories: packing.Memories = STAGE_MEMORIES) -> int | None:
    """The fewest stages that hold a program; None where a key is wider than a stage."""
    # the tables of a program, and which of them wait for which
    units = _Walk(program).units()
    tables = tuple(packing.PlacedTable(unit.name, unit.table) for unit in units)
    dependencies = []
    for after, unit in enumerate(units):
        for before, earlier in enumerate(units[:after]):
            if not _exclusive(earlier, unit) and (kind := _kind(earlier, unit)):
                dependencies.append(packing.TableDependency(before, after, kind))
    return packing.fewest_stages(packing.TableProgram(tables, tuple(dependencies)), memories)


class _Walk:
    """Goes through the control flow in its order."""

    def __init__(self, program: SwitchProgram) -> None:
        self.program = program
        self.tables = {table.name: table for table in program.tables}
        self.actions = {action.name: action for action in program.actions}
        self.cases = 0
        self.nf = ""
        self.found: list[_Unit] = []

    def units(self) -> list[_Unit]:
        self.body(self.program.control, (), frozenset())
        return self.found

    def body(self, body: Body, cases: tuple[tuple[int, bool], ...], decided_by: frozenset[str]) -> None:
        between: list[Statement] = []
        for statement in body:
            match statement:
                case Apply(name):
                    self.put(between, cases, decided_by)
                    self.table(self.tables[name], cases, decided_by)
                    between = []
                case If() if any(isinstance(inner, Apply) for inner in _inside(statement)):
                    self.put(between, cases, decided_by)
                    self.case(statement, cases, decided_by)
                    between = []
                case Count("entered", int(at)) if self.program.functions and WAY_SIGN not in self.program.functions[at]:
                    self.put(between, cases, decided_by)
                    self.nf, between = self.program.functions[at], []
                case Count():
                    continue
                case _:
                    between.append(statement)
        self.put(between, cases, decided_by)

    def case(self, one: If, cases: tuple[tuple[int, bool], ...], decided_by: frozenset[str]) -> None:
        self.cases += 1
        number, fields = self.cases, decided_by | self.named(_condition(one))
        self.body(one.then, (*cases, (number, True)), fields)
        self.body(one.otherwise, (*cases, (number, False)), fields)

    def named(self, fields: set[str]) -> set[str]:
        """Scratch metadata with the name of its NF."""
        return {field if field in SHARED_FIELDS or field.startswith("h.") else f"{self.nf}:{field}" for field in fields}

    def put(
        self, statements: Sequence[Statement], cases: tuple[tuple[int, bool], ...], decided_by: frozenset[str]
    ) -> None:
        if not statements:
            return
        name = f"{self.nf}/{len(self.found)}"
        unit = _Unit(name, SwitchTable(name), cases, decided_by)
        written: set[str] = set()
        for statement in _flat(tuple(statements)):
            unit.reads |= self.named(_reads(statement)) - written
            written |= self.named(_writes(statement))
        unit.writes = written
        self.found.append(unit)

    def table(self, table: MatchTable, cases: tuple[tuple[int, bool], ...], decided_by: frozenset[str]) -> None:
        key = {key.field: key.bits for key in table.keys}
        entries = max(len(table.entries), table.size)
        shown = SwitchTable(table.name, key, table.keys[0].match, entries)
        unit = _Unit(table.name, shown, cases, decided_by, self.named(set(key)))
        for name in table.actions:
            for statement in _flat(self.actions[name].body):
                unit.reads |= {
                    field for field in self.named(_reads(statement)) if not field.startswith("t.")
                } - unit.writes
                unit.writes |= self.named(_writes(statement))
        self.found.append(replace(unit, table=replace(shown, writes=tuple(sorted(unit.writes)))))


def _kind(before: _Unit, after: _Unit) -> packing.DependencyKind | None:
    """The strictest dependency between two units that one packet may pass both; None without any."""
    if before.writes & after.reads:
        return packing.DependencyKind.MATCH
    if (before.writes & after.writes) - {"m.drop"}:
        return packing.DependencyKind.ACTION
    if before.writes & after.decided_by:
        return packing.DependencyKind.SUCCESSOR
    return packing.DependencyKind.REVERSE_MATCH if before.reads & after.writes else None


def _exclusive(one: _Unit, other: _Unit) -> bool:
    """Whether no packet passes both."""
    taken = dict(one.cases)
    return any(number in taken and taken[number] is not then for number, then in other.cases)


def _inside(one: If) -> Iterator[Statement]:
    for body in (one.then, one.otherwise):
        for inner in body:
            yield inner
            if isinstance(inner, If):
                yield from _inside(inner)


def _flat(body: Body) -> Iterator[Statement]:
    for statement in body:
        yield statement
        if isinstance(statement, If):
            yield from _inside(statement)


def _condition(one: If) -> set[str]:
    match one.condition:
        case IsValid(header):
            return {f"h.{header}"}
        case FieldComparison(left, _, right):
            return _fields(left, right)
    return set()


def _fields(*values: Value) -> set[str]:
    return {value for value in values if isinstance(value, str)}


def _reads(one: Statement) -> set[str]:
    match one:
        case Assign(_, value):
            return _fields(value)
        case Compute(_, to, value):
            return _fields(to, value)
        case TakeNumber(_, index, _):
            return _fields(index)
        case Learn(_, arguments):
            return set(arguments)
        case If(FieldComparison() | IsValid(), _, _):
            return _condition(one)
        case _:
            return set()


def _writes(one: Statement) -> set[str]:
    match one:
        case Assign(to, _) | Compute(_, to, _) | TakeNumber(_, _, to):
            return {to}
        case SetValid(header, _):
            return {f"h.{header}"}
        case _:
            return set()
