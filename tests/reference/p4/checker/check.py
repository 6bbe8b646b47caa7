"""Whether a text is a program that the compiler may emit: its declarations in order, then what only the whole shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from profiles.faults import Fault, printable, suggestion
from tests.reference.p4.checker import tree
from tests.reference.p4.checker.paths import HeaderPairs, check_control_paths, check_parser_paths
from tests.reference.p4.checker.reader import P4SyntaxError, SourcePosition, parse_program
from tests.reference.p4.checker.tables import check_statements, check_table, check_value_lists, expect_type, find_type

Declaration = TypeVar("Declaration")

MAX_BITS = 2048
"""Of a type."""


@dataclass(frozen=True, slots=True)
class ValueType:
    """The type of a value.

    Parameters
    ----------
    name
        As messages name it.
    width
        Bits; of `varbit`, at most.
    """

    name: str
    width: int

    def __str__(self) -> str:
        return self.name

    @property
    def is_bits(self) -> bool:
        """Whether it is `bit<N>`, with which numbers and operators go."""
        return self == bits(self.width)


def bits(width: int) -> ValueType:
    """`bit<width>`."""
    return ValueType(f"bit<{width}>", width)


BOOL = ValueType("bool", 1)
PORT = ValueType("PortId_t", 32)
"""Mixes with no other type without a cast."""
REGISTER, INDEX = bits(64), bits(32)
"""The numbers of a register, and their indexes."""
NUMBER = ValueType("a number", 0)
UNKNOWN = ValueType("unknown", 0)
"""What is wrong with such a value was said before."""

_PNA_WIDTHS = """
    ClassOfService ExpireTimeProfileId FlowId InterfaceId MirrorSessionId MirrorSlotId MulticastGroup MulticastInstance
    PacketLength PassNumber PortId SecurityAssocId Timestamp
"""
_PNA_OTHERS = """
    Counter Hash InternetChecksum NoAction PNA_CounterType_t PNA_Direction_t PNA_HashAlgorithm_t PNA_IdleTimeout_t
    PNA_NIC PNA_PacketPath_t ParserError_t Register add_entry allocate_flow_id drop_packet packet_in packet_out
    pna_main_input_metadata_t pna_main_output_metadata_t pna_main_parser_input_metadata_t pna_pre_input_metadata_t
    pna_pre_output_metadata_t recirculate restart_expire_timer send_to_port set_entry_expire_time verify
"""
PNA_NAMES = frozenset(_PNA_OTHERS.split()) | {
    name + suffix for name in _PNA_WIDTHS.split() for suffix in ("_t", "Uint_t")
}
"""What core.p4 and pna.p4 declare (PNA in the variant for DPDK)."""

_COMMON = "hdr meta istd ostd packet main MainParser PreControl MainControl MainDeparser headers_t metadata_t"
COMMON_NAMES = frozenset(_COMMON.split())
"""What every emitted program declares."""


@dataclass(frozen=True, slots=True)
class P4Fault(Fault):
    """One thing that is wrong in a P4 program; its text is `FILE:LINE:COLUMN: what is wrong`."""

    def __str__(self) -> str:
        return printable(f"{self.file}:{self.line}:{self.column}: {self.message}")


@dataclass(slots=True)
class ProgramScope:
    """What is known of a program while it is checked.

    Parameters
    ----------
    file
        The program's file as its user named it.
    declared
        Where each name was declared.
    used
        Names that something else names.
    header_types
        The fields of the types of headers.
    headers
        The fields of each header of the packet; None for one of a type that is not known.
    arguments
        Those of the action that is checked.
    fields_read, headers_read
        Fields of the metadata, and headers, of which a value is read, and where first.
    fields_written, headers_made
        Fields of the metadata that get a value; headers that are extracted or set valid, and where first.
    """

    file: str
    faults: list[P4Fault] = field(default_factory=list)
    declared: dict[str, SourcePosition] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    header_types: dict[str, dict[str, ValueType]] = field(default_factory=dict)
    headers: dict[str, dict[str, ValueType] | None] = field(default_factory=dict)
    metadata: dict[str, ValueType] = field(default_factory=dict)
    registers: dict[str, tree.RegisterDeclaration] = field(default_factory=dict)
    actions: dict[str, tree.ActionDeclaration] = field(default_factory=dict)
    tables: dict[str, tree.TableDeclaration] = field(default_factory=dict)
    arguments: dict[str, ValueType] = field(default_factory=dict)
    fields_read: dict[str, SourcePosition] = field(default_factory=dict)
    fields_written: set[str] = field(default_factory=set)
    headers_read: dict[str, SourcePosition] = field(default_factory=dict)
    headers_made: dict[str, SourcePosition] = field(default_factory=dict)

    def fault(self, at: SourcePosition, message: str, hint: str | None = None) -> None:
        """Add a fault."""
        self.faults.append(P4Fault(self.file, at.line, str(at.column), message, hint))

    def declare(self, name: str, at: SourcePosition) -> None:
        """Make a name known; a fault if it stands for something already."""
        self.check_new(name, at)
        self.declared.setdefault(name, at)

    def check_new(self, name: str, at: SourcePosition) -> None:
        """A fault if a name stands for something already."""
        if name in self.declared:
            self.fault(at, f"{name} is declared already, in line {self.declared[name].line}")
        elif name in PNA_NAMES or name in COMMON_NAMES:
            where = "by the architecture" if name in PNA_NAMES else "by every program"
            self.fault(at, f"{name} is declared already, {where}")

    def find(self, known: Mapping[str, Declaration], name: str, at: SourcePosition, what: str) -> Declaration | None:
        """What a name stands for, which counts as used; None, and a fault, if it is not known."""
        self.used.add(name)
        if name not in known:
            self.fault(at, f"there is no {what} {name}", suggestion(name, known) if known else None)
        return known.get(name)

    def resolve_width(self, width: int, at: SourcePosition) -> ValueType:
        """`bit<width>`; a fault if there is none."""
        if 1 <= width <= MAX_BITS:
            return bits(width)
        self.fault(at, f"a width is 1 to {MAX_BITS}, found {width}")
        return UNKNOWN

    def resolve_fields(self, owner: str, fields: Sequence[tree.FieldDeclaration]) -> dict[str, ValueType]:
        """The types of declared fields; a fault for each that is there twice."""
        found: dict[str, ValueType] = {}
        for declared in fields:
            if declared.name in found:
                self.fault(declared.at, f"{owner} has field {declared.name} twice")
            kind = self.resolve_width(declared.width, declared.at)
            found[declared.name] = ValueType(f"var{kind}", kind.width) if declared.varies else kind
        return found


ACCEPT = "accept"
"""The state of every parser in which it ends."""


def check(text: str, file: str) -> list[P4Fault]:
    """All that is wrong in a program, in the order of its lines; empty if it is accepted.

    A syntax error ends reading: it is then the only fault.
    """
    scope = ProgramScope(file)
    try:
        program = parse_program(text)
    except P4SyntaxError as error:
        scope.fault(error.position, error.message, error.hint)
        return scope.faults
    for header_type in program.header_types:
        _declare_header_type(scope, header_type)
    _declare_structs(scope, program)
    pairs = _check_parser(scope, program.states)
    _check_control(scope, program)
    _check_headers(scope, program, pairs)
    _check_uses(scope, program)
    return sorted(dict.fromkeys(scope.faults), key=lambda fault: (fault.line, int(fault.column or 0)))


def _declare_header_type(scope: ProgramScope, header: tree.HeaderTypeDeclaration) -> None:
    fields = scope.resolve_fields(f"header {header.name}", header.fields)
    varying = [kind for kind in fields.values() if kind.name.startswith("varbit")]
    total = sum(kind.width for kind in fields.values() if kind not in varying)
    if not fields:
        scope.fault(header.at, f"header {header.name} has no fields")
    if len(varying) > 1:
        scope.fault(header.at, f"header {header.name} has more than one varbit field")
    if UNKNOWN not in fields.values() and (total % 8 or any(kind.width % 8 for kind in varying)):
        scope.fault(header.at, f"header {header.name} has {total} bits: not a whole number of bytes")
    scope.declare(header.name, header.at)
    scope.header_types[header.name] = fields


def _declare_structs(scope: ProgramScope, program: tree.P4Program) -> None:
    scope.metadata = scope.resolve_fields("struct metadata_t", program.metadata)
    for header in program.headers:
        fields = scope.find(scope.header_types, header.type, header.at, "type")
        if header.name in scope.headers:
            scope.fault(header.at, f"struct headers_t has field {header.name} twice")
        scope.headers[header.name] = fields


def _check_parser(scope: ProgramScope, states: tuple[tree.StateDeclaration, ...]) -> HeaderPairs:
    by_name: dict[str, tree.StateDeclaration] = {}
    for state in states:
        if state.name in (ACCEPT, "reject"):
            scope.fault(state.at, f"{state.name} is a state of every parser")
        elif state.name in by_name:
            scope.fault(state.at, f"state {state.name} is declared already, in line {by_name[state.name].at.line}")
        by_name[state.name] = state
    for state in states:
        _check_state(scope, state, by_name)
    if "start" in by_name:
        return check_parser_paths(scope, by_name)
    scope.fault(states[0].at if states else SourcePosition(1, 1), "the parser has no state start")
    return set()


def _check_state(scope: ProgramScope, state: tree.StateDeclaration, states: dict[str, tree.StateDeclaration]) -> None:
    if state.extract is not None:
        _check_extract(scope, state.extract)
    columns: list[tuple[ValueType, str]] = []
    for key in state.keys:
        kind = find_type(scope, key)
        if not kind.is_bits and kind != UNKNOWN:
            scope.fault(key.at, f"a key of select cannot be {kind}")
        columns.append((kind if kind.is_bits else UNKNOWN, ""))
    check_value_lists(scope, state.cases, columns, "case")
    for case in state.cases:
        if all(values.mask == 0 for values in case.values):
            scope.fault(case.at, "no packet comes behind this case: it takes all")
    for target, at in ((state.otherwise, state.at), *((case.state, case.at) for case in state.cases)):
        if target not in states and target != ACCEPT:
            scope.fault(at, f"there is no state {target}", suggestion(target, (*states, ACCEPT)))


def _check_extract(scope: ProgramScope, extract: tree.HeaderExtract) -> None:
    fields = scope.find(scope.headers, extract.header, extract.at, "header")
    varies = any(kind.name.startswith("varbit") for kind in (fields or {}).values())
    scope.headers_made.setdefault(extract.header, extract.at)
    if extract.length is not None:
        expect_type(scope, extract.length, bits(32), "the length of extract")
    if fields is not None and varies != (extract.length is not None):
        reason = "has a varbit field; its length in bits is a second argument" if varies else "has no varbit field"
        scope.fault(extract.at, f"header {extract.header} {reason}")


def _check_control(scope: ProgramScope, program: tree.P4Program) -> None:
    for register in program.registers:
        scope.declare(register.name, register.at)
        scope.registers[register.name] = register
        if register.size.value < 1:
            scope.fault(register.size.at, f"register {register.name} has no elements")
        expect_type(scope, register.size, INDEX, f"the size of {register.name}")
        expect_type(scope, register.first, REGISTER, f"the first number of {register.name}")
    for action in program.actions:
        scope.declare(action.name, action.at)
        scope.actions[action.name] = action
    for table in program.tables:
        scope.declare(table.name, table.at)
        scope.tables[table.name] = table
    for action in program.actions:
        for parameter in action.parameters:
            scope.check_new(parameter.name, parameter.at)
        scope.arguments = scope.resolve_fields(f"action {action.name}", action.parameters)
        check_statements(scope, action.body, in_action=True)
    scope.arguments = {}
    for table in program.tables:
        check_table(scope, table)
    check_statements(scope, program.body, in_action=False)
    check_control_paths(scope, program.tables, program.body)


def _check_headers(scope: ProgramScope, program: tree.P4Program, pairs: HeaderPairs) -> None:
    """Headers that are read but never valid, that are never written out, or written in another order."""
    for header, at in scope.headers_read.items():
        if header not in scope.headers_made:
            scope.fault(at, f"header {header} is read, but nothing extracts it or sets it valid")
    emitted: list[str] = []
    for emit in program.emits:
        header = emit.header
        scope.find(scope.headers, header, emit.at, "header")
        if header in emitted:
            scope.fault(emit.at, f"header {header} is emitted twice")
        for other in emitted:
            if (header, other) in pairs and (other, header) not in pairs:
                scope.fault(emit.at, f"header {header} is emitted behind {other}, but extracted before it")
        if header not in scope.headers_made:
            scope.fault(emit.at, f"header {header} is emitted, but never valid")
        emitted.append(header)
    for header, at in scope.headers_made.items():
        if header not in emitted:
            scope.fault(at, f"header {header} is never emitted: its bytes would be lost")


def _check_uses(scope: ProgramScope, program: tree.P4Program) -> None:
    """Metadata that is read but never written; declarations that nothing names."""
    for member in program.metadata:
        if member.name in scope.fields_read.keys() - scope.fields_written:
            message = f"field {member.name} of struct metadata_t is read, but nothing gives it a value"
            scope.fault(scope.fields_read[member.name], message)
        elif member.name not in scope.fields_written:
            scope.fault(member.at, f"field {member.name} of struct metadata_t is never used")
    for name, at in scope.declared.items():
        if name not in scope.used:
            scope.fault(at, f"{name} is never used")
