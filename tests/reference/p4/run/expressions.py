"""Expressions of a P4 program, as functions of a packet."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.reference.p4.checker import tree

REGISTER_BITS = 64
MAX_SHIFT = 4096
"""A shift by more is one by this: all bits are gone."""

COMPARISONS: Mapping[str, Callable[[int, int], int]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
OPERATORS: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": lambda value, by: value << min(by, MAX_SHIFT),
    ">>": lambda value, by: value >> min(by, MAX_SHIFT),
}


@dataclass
class PacketRun:
    """A packet on its way through the program."""

    frame: bytes
    port: int
    at: int = 0
    fields: dict[str, int] = field(default_factory=dict)
    varying: dict[str, bytes] = field(default_factory=dict)
    valid: set[str] = field(default_factory=set)
    arguments: Mapping[str, int] = field(default_factory=dict)
    missed: tuple[str, tuple[int, ...]] = ("", ())
    sent_to: int | None = None
    short: bool = False

    def read(self, declared: Sequence[tree.FieldDeclaration], prefix: str) -> int:
        """Read the fields of a header that begins here; its bytes."""
        left = sum(each.width for each in declared)
        size = left // 8
        word = int.from_bytes(self.frame[self.at : self.at + size].ljust(size, b"\0"), "big")
        for each in declared:
            left -= each.width
            self.fields[prefix + each.name] = word >> left & ((1 << each.width) - 1)
        return size


Value = Callable[[PacketRun], int]
Step = Callable[[PacketRun], None]


class ExpressionRun:
    """Makes functions of expressions.

    Attributes
    ----------
    types
        The fields of the types of headers.
    unset
        The bits of fields that nothing was written to.
    widths
        Bits of fields, by their path, and of the arguments of the action that is read.
    registers
        Their numbers.
    """

    def __init__(self, program: tree.P4Program, unset: int) -> None:
        self.types = {header_type.name: header_type.fields for header_type in program.header_types}
        self.unset = unset
        self.widths: dict[str, int] = {}
        self.registers = {register.name: [register.first.value] * register.size.value for register in program.registers}

    def value(self, of: tree.Expression) -> tuple[Value, int | None]:
        """How to compute an expression, and its width; None: without one."""
        match of:
            case tree.NumberLiteral(value=value):
                return lambda packet: value, None
            case tree.PathUse(path="istd.input_port"):
                return lambda packet: packet.port, 32
            case tree.PathUse(path=path):
                unset, width = self.unset & ((1 << self.widths[path]) - 1), self.widths[path]
                if "." not in path:
                    return lambda packet: packet.arguments[path], width
                return lambda packet: packet.fields.get(path, unset), width
            case tree.CastUse(width=width, operand=operand):
                mask, value_of = (1 << width) - 1, self.value(operand)[0]
                return lambda packet: value_of(packet) & mask, width
            case tree.BinaryUse(sign=sign, left=left, right=right):
                return self._binary(sign, self.value(left), self.value(right)[0])
            case tree.ValidityUse(header=header):
                return lambda packet: header in packet.valid, None
            case tree.RegisterRead(register=register, index=index):
                numbers, place = self.registers[register], self.value(index)[0]
                return lambda packet: numbers[place(packet)], REGISTER_BITS
            case tree.LookaheadUse():
                return self._lookahead(self.types[of.type], of.field)

    def _lookahead(self, declared: Sequence[tree.FieldDeclaration], name: str) -> tuple[Value, int]:
        def ahead(packet: PacketRun) -> int:
            packet.read(declared, "ahead.")
            return packet.fields[f"ahead.{name}"]

        return ahead, next(each.width for each in declared if each.name == name)

    def _binary(self, sign: str, left: tuple[Value, int | None], right: Value) -> tuple[Value, int | None]:
        left_value, width = left
        if sign in COMPARISONS:
            compare = COMPARISONS[sign]
            return lambda packet: compare(left_value(packet), right(packet)), None
        assert width is not None, "the left side of an operator has a width"
        mask, compute = (1 << width) - 1, OPERATORS[sign]
        return lambda packet: compute(left_value(packet), right(packet)) & mask, width


def fits(values: tree.ValueSet, value: int) -> bool:
    """Whether a value lies in a set."""
    return value == values.value if values.mask is None else value & values.mask == values.value
