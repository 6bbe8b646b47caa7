"""A program of a match-action switch: headers, a parser, tables, actions and a control flow.

It is written as P4-16 and as a DPDK pipeline. Values are names of fields or numbers: `h.ipv4.ttl` is a field of a
header, `m.node` metadata of a packet, `t.port` an argument of an action. All numbers are unsigned and wrap at the width
of the field that they are written to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from placer.rack.rack import MatchKind

Value = str | int


@dataclass(frozen=True)
class HeaderType:
    """A header.

    `most_bytes`: of a header without fields whose length follows from another one; 0: its length is that of its fields.
    """

    name: str
    fields: Mapping[str, int]  # bits by name, in the order on the wire
    most_bytes: int = 0


@dataclass(frozen=True)
class FieldTest:
    """Whether a field equals a value under a mask."""

    field: str
    value: int
    mask: int | None = None


@dataclass(frozen=True)
class ParserEdge:
    """From one state of the parser to another, if all tests hold; without tests: if no other edge applies."""

    source: str
    target: str
    tests: tuple[FieldTest, ...] = ()


class Operation(StrEnum):
    """What `Compute` does; the first operand is also the result."""

    ADD = "add"
    SUBTRACT = "sub"
    AND = "and"
    OR = "or"
    XOR = "xor"
    SHIFT_LEFT = "shl"
    SHIFT_RIGHT = "shr"


@dataclass(frozen=True)
class Assign:
    """Writes a value to a field."""

    to: str
    value: Value


@dataclass(frozen=True)
class Compute:
    """to = to OPERATION value."""

    operation: Operation
    to: str
    value: Value


@dataclass(frozen=True)
class UpdateChecksum:
    """A checksum after one of the fields that it covers changed (RFC 1624, equation 3).

    `before`, `after`: where the value is as it was and as it is, of 16 or 32 bits; `after` is not 0 where `before` is
    all ones.
    """

    checksum: str  # a field of a header
    before: str
    after: str
    never_zero: bool = False  # a result of 0 is written as all ones, as UDP wants it (RFC 768)


@dataclass(frozen=True)
class SetValid:
    """Puts a header into the packet, or takes it out."""

    header: str
    valid: bool = True


@dataclass(frozen=True)
class Count:
    """Adds 1 to a register."""

    registers: str
    index: Value


@dataclass(frozen=True)
class TakeNumber:
    """Reads a register, then adds 1 to it."""

    registers: str
    index: Value
    to: str


@dataclass(frozen=True)
class Learn:
    """Adds an entry to the table that missed, with the key that missed."""

    action: str
    arguments: tuple[str, ...]  # names of metadata, in the order of the action's arguments


@dataclass(frozen=True)
class Apply:
    """Looks a packet up in a table, and runs the action."""

    table: str


@dataclass(frozen=True)
class FieldComparison:
    """`left` == `right`, or another relation: ==, !=, < or >."""

    left: str
    relation: str
    right: Value


@dataclass(frozen=True)
class IsValid:
    """Whether a packet has a header."""

    header: str


@dataclass(frozen=True)
class IsOverRate:
    """Whether a packet is over the rate of its meter; one that is not over is counted by the meter."""

    meter: int  # in the order of the program's meters


Condition = FieldComparison | IsValid | IsOverRate


@dataclass(frozen=True)
class If:
    """Runs one of two bodies."""

    condition: Condition
    then: Body
    otherwise: Body = ()
    note: str = ""  # what the case is, for readers


Statement = Assign | Compute | UpdateChecksum | SetValid | Count | TakeNumber | Learn | Apply | If
Body = tuple[Statement, ...]


@dataclass(frozen=True)
class SwitchAction:
    """An action."""

    name: str
    body: Body
    arguments: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ActionCall:
    """An action with the values of its arguments."""

    action: str
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True)
class TableKey:
    """A field of a table's key."""

    field: str
    bits: int
    match: MatchKind = MatchKind.EXACT


@dataclass(frozen=True)
class MatchEntry:
    """An entry of a table. `key`: per field of the key its value, and the mask under which a packet's must equal it."""

    key: tuple[tuple[int, int], ...]
    call: ActionCall


@dataclass(frozen=True)
class MatchTable:
    """A table.

    `learns_for_s`: entries are learnt from packets that miss, and forgotten after this time without a hit, s; 0: they
    are given.
    """

    name: str
    keys: tuple[TableKey, ...]
    actions: tuple[str, ...]  # names of those that entries and default may run
    default: ActionCall
    entries: tuple[MatchEntry, ...] = ()  # of a ternary table, the first one that fits decides
    size: int = 0
    learns_for_s: int = 0
    of: str = ""  # the NF that it belongs to, for readers and for counting; empty: it steers packets


@dataclass(frozen=True)
class Registers:
    """Numbers that stay from packet to packet."""

    name: str
    size: int
    first: int = 0


@dataclass(frozen=True)
class ChainMeter:
    """Packets of a chain up to a rate: one passes if those before it are ahead of the rate by at most a burst."""

    chain: str
    mbps: Fraction
    burst_us: int


@dataclass(frozen=True)
class SwitchProgram:
    """A program."""

    headers: Sequence[HeaderType]  # in the order in which they stand in packets
    parser: Sequence[ParserEdge]  # states have the names of headers; `start` extracts none
    metadata: Mapping[str, int]
    registers: Sequence[Registers]
    actions: Sequence[SwitchAction]
    tables: Sequence[MatchTable]
    control: Body
    functions: Sequence[str]  # names of NFs, in the order of the registers `entered` and `sent`
    reasons: Sequence[str]  # why packets are dropped, in the order of the registers `reasons`
    rules: Sequence[tuple[str, int, int]] = ()  # NFs whose rules are counted: the first place in `rules`, and how many
    meters: Sequence[ChainMeter] = ()
    notes: Sequence[str] = ()  # for readers, one line each

    def table(self, name: str) -> MatchTable:
        return next(table for table in self.tables if table.name == name)
