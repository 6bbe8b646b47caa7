"""The syntax tree of an emitted P4 program: a node for each construct that the compiler writes, and no other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tests.reference.p4.checker.tokens import SourcePosition


@dataclass(frozen=True, slots=True)
class SyntaxNode:
    """Anything that stands somewhere in the text."""

    at: SourcePosition


@dataclass(frozen=True, slots=True)
class FieldDeclaration(SyntaxNode):
    """`bit<16> name` or, if it `varies`, `varbit<320> name`: of a header, the metadata, or an action's parameters."""

    width: int
    varies: bool
    name: str


@dataclass(frozen=True, slots=True)
class HeaderTypeDeclaration(SyntaxNode):
    """`header name { fields }`."""

    name: str
    fields: tuple[FieldDeclaration, ...]


@dataclass(frozen=True, slots=True)
class HeaderDeclaration(SyntaxNode):
    """`type name;` in the struct of headers."""

    type: str
    name: str


# Expressions


@dataclass(frozen=True, slots=True)
class NumberLiteral(SyntaxNode):
    """`16` or `0x10`."""

    value: int


@dataclass(frozen=True, slots=True)
class PathUse(SyntaxNode):
    """`hdr.ipv4.ttl`, `meta.port`, `istd.input_port`, or an argument of the action."""

    path: str


@dataclass(frozen=True, slots=True)
class CastUse(SyntaxNode):
    """`(bit<width>) operand`."""

    width: int
    operand: Expression


@dataclass(frozen=True, slots=True)
class BinaryUse(SyntaxNode):
    """`left sign right`."""

    sign: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class ValidityUse(SyntaxNode):
    """`hdr.header.isValid()`."""

    header: str


@dataclass(frozen=True, slots=True)
class RegisterRead(SyntaxNode):
    """`register.read(index)`."""

    register: str
    index: Expression


@dataclass(frozen=True, slots=True)
class LookaheadUse(SyntaxNode):
    """`packet.lookahead<type>().field`."""

    type: str
    field: str


Expression: TypeAlias = NumberLiteral | PathUse | CastUse | BinaryUse | ValidityUse | RegisterRead | LookaheadUse


# Statements


@dataclass(frozen=True, slots=True)
class Assignment(SyntaxNode):
    """`target = value;`."""

    target: PathUse
    value: Expression


@dataclass(frozen=True, slots=True)
class ValidityChange(SyntaxNode):
    """`hdr.header.setValid();` or `hdr.header.setInvalid();`."""

    header: str
    valid: bool


@dataclass(frozen=True, slots=True)
class RegisterWrite(SyntaxNode):
    """`register.write(index, value);`."""

    register: str
    index: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class EntryLearning(SyntaxNode):
    """`add_entry(action_name = "action", action_params = {values}, ...);`."""

    action: str
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class TableApply(SyntaxNode):
    """`table.apply();`."""

    table: str


@dataclass(frozen=True, slots=True)
class PacketDrop(SyntaxNode):
    """`drop_packet();`."""


@dataclass(frozen=True, slots=True)
class PacketSend(SyntaxNode):
    """`send_to_port((PortId_t) port);`."""

    port: PathUse


@dataclass(frozen=True, slots=True)
class IfStatement(SyntaxNode):
    """`if (condition) { yes } else { no }`; an `else if` is the only statement of `no`."""

    condition: Expression
    yes: Body
    no: Body


Statement: TypeAlias = (
    Assignment | ValidityChange | RegisterWrite | EntryLearning | TableApply | PacketDrop | PacketSend | IfStatement
)
Body: TypeAlias = tuple[Statement, ...]


def walk_statements(body: Sequence[Statement]) -> Iterator[Statement]:
    """All statements of a body, those inside others too, in the order of the text."""
    for statement in body:
        yield statement
        if isinstance(statement, IfStatement):
            yield from walk_statements((*statement.yes, *statement.no))


# Parser, tables and the whole


@dataclass(frozen=True, slots=True)
class ValueSet(SyntaxNode):
    """The values for one key: `0x800`, `0x4 &&& 0xc` or `_`.

    Parameters
    ----------
    mask
        None for one value; 0 for any value.
    """

    value: int
    mask: int | None

    @property
    def prefix_length(self) -> int:
        """Bits that decide, of a mask that is a prefix."""
        return 64 if self.mask is None else self.mask.bit_count()


@dataclass(frozen=True, slots=True)
class SelectCase(SyntaxNode):
    """`(values): state;`."""

    values: tuple[ValueSet, ...]
    state: str


@dataclass(frozen=True, slots=True)
class HeaderExtract(SyntaxNode):
    """`packet.extract(hdr.header);`, with the length in bits of a header that varies."""

    header: str
    length: Expression | None


@dataclass(frozen=True, slots=True)
class StateDeclaration(SyntaxNode):
    """`state name { extract transition select(keys) { cases default: otherwise; } }`.

    Parameters
    ----------
    otherwise
        Where packets go that match no case; without cases, all packets.
    """

    name: str
    extract: HeaderExtract | None
    keys: tuple[Expression, ...]
    cases: tuple[SelectCase, ...]
    otherwise: str

    @property
    def targets(self) -> tuple[str, ...]:
        """The states that may follow."""
        return *(case.state for case in self.cases), self.otherwise


@dataclass(frozen=True, slots=True)
class RegisterDeclaration(SyntaxNode):
    """`Register<bit<64>, bit<32>>(size, first) name;`."""

    size: NumberLiteral
    first: NumberLiteral
    name: str


@dataclass(frozen=True, slots=True)
class ActionDeclaration(SyntaxNode):
    """`action name(parameters) { body }`."""

    name: str
    parameters: tuple[FieldDeclaration, ...]
    body: Body


@dataclass(frozen=True, slots=True)
class KeyElement(SyntaxNode):
    """`field: match kind;`."""

    field: PathUse
    match_kind: str


@dataclass(frozen=True, slots=True)
class ListedAction(SyntaxNode):
    """`name;` among the actions of a table; `note` is `tableonly`, `defaultonly` or empty."""

    name: str
    note: str


@dataclass(frozen=True, slots=True)
class ActionCall(SyntaxNode):
    """`name(arguments)` of an entry or as the default action."""

    name: str
    arguments: tuple[NumberLiteral, ...]


@dataclass(frozen=True, slots=True)
class TableEntry(SyntaxNode):
    """`(values): action(arguments);`."""

    values: tuple[ValueSet, ...]
    action: ActionCall


@dataclass(frozen=True, slots=True)
class TableName(SyntaxNode):
    """A name in `@mutually_exclusive("name", ...)`."""

    name: str


@dataclass(frozen=True, slots=True)
class TableDeclaration(SyntaxNode):
    """`table name { ... }`.

    Parameters
    ----------
    exclusive
        The tables of which a packet that meets this one meets none.
    learns
        `add_on_miss = true`, with the timeout that follows it.
    """

    name: str
    exclusive: tuple[TableName, ...]
    key: tuple[KeyElement, ...]
    actions: tuple[ListedAction, ...]
    default: ActionCall
    learns: bool
    entries: tuple[TableEntry, ...]
    size: NumberLiteral


@dataclass(frozen=True, slots=True)
class HeaderEmit(SyntaxNode):
    """`packet.emit(hdr.header);`."""

    header: str


@dataclass(frozen=True, slots=True)
class P4Program:
    """A whole program; what is the same in all of them is not in the tree.

    Parameters
    ----------
    headers, metadata
        The fields of the structs `headers_t` and `metadata_t`.
    body
        What `apply` of the main control does.
    """

    header_types: tuple[HeaderTypeDeclaration, ...]
    headers: tuple[HeaderDeclaration, ...]
    metadata: tuple[FieldDeclaration, ...]
    states: tuple[StateDeclaration, ...]
    registers: tuple[RegisterDeclaration, ...]
    actions: tuple[ActionDeclaration, ...]
    tables: tuple[TableDeclaration, ...]
    body: Body
    emits: tuple[HeaderEmit, ...]
