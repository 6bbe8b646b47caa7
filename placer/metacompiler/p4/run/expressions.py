"""Expressions of a P4 program, as functions of a packet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from placer.metacompiler.p4.checker.syntax import tree
from placer.metacompiler.p4.checker.syntax.printer import printed_expression
from placer.metacompiler.p4.run.operators import OPERATORS, width_of


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


Value = Callable[[PacketRun], int]
Step = Callable[[PacketRun], None]


class NotRun(Exception):
    """A part of the language that is not interpreted."""


def refusal(what: tree.SyntaxNode) -> NotRun:
    """The error that a part of a program is not interpreted."""
    return NotRun(f"line {what.at.line}: {type(what).__name__} is not interpreted here")


def type_name(kind: tree.TypeSyntax) -> str:
    assert isinstance(kind, tree.NamedType)
    return kind.name


class ExpressionRun:
    """Makes functions of expressions.

    Attributes
    ----------
    types
        Headers and structs by name.
    unset
        The bits of fields that nothing was written to.
    widths
        Bits of fields, by their path.
    arguments
        Bits of the arguments of the action that is read.
    registers
        Their numbers.
    """

    def __init__(self, types: Mapping[str, tree.FieldsDeclaration], unset: int) -> None:
        self.types = types
        self.unset = unset
        self.widths: dict[str, int] = {}
        self.arguments: dict[str, int] = {}
        self.registers: dict[str, list[int]] = {}

    def value(self, of: tree.Expression) -> tuple[Value, int | None]:
        """How to compute an expression, and its width; None: without one."""
        match of:
            case tree.NumberLiteral(value=value, width=width):
                return lambda packet: value, width
            case tree.NameUse(name=name) if name in self.arguments:
                return lambda packet: packet.arguments[name], self.arguments[name]
            case tree.MemberUse():
                return self._member(of)
            case tree.CallUse():
                return self._result(of)
            case tree.CastUse(type=kind, of=inner):
                width = width_of(kind)
                mask, value_of = (1 << width) - 1, self.value(inner)[0]
                return lambda packet: value_of(packet) & mask, width
            case tree.BinaryUse(sign=sign, left=left, right=right):
                return self._binary(sign, self.value(left), self.value(right))
        raise refusal(of)

    def _member(self, of: tree.MemberUse) -> tuple[Value, int | None]:
        path = printed_expression(of)
        if path == "istd.input_port":
            return lambda packet: packet.port, 32
        if path in self.widths:
            unset = self.unset & ((1 << self.widths[path]) - 1)
            return lambda packet: packet.fields.get(path, unset), self.widths[path]
        if isinstance(of.of, tree.CallUse) and printed_expression(of.of.function).endswith(".lookahead"):
            declared, name = self.types[type_name(of.of.types[0])], of.name

            def ahead(packet: PacketRun) -> int:
                self.read(packet, declared, "ahead.")
                return packet.fields[f"ahead.{name}"]

            return ahead, next(width_of(one.type) for one in declared.fields if one.name == name)
        raise refusal(of)

    def _result(self, call: tree.CallUse) -> tuple[Value, int | None]:
        base, _, method = printed_expression(call.function).rpartition(".")
        if method == "isValid":
            header = base.removeprefix("hdr.")
            return lambda packet: header in packet.valid, None
        if method == "read" and base in self.registers:
            numbers, place = self.registers[base], self.value(call.arguments[0].value)[0]
            return lambda packet: numbers[place(packet)], 64
        raise refusal(call)

    def _binary(
        self, sign: str, left: tuple[Value, int | None], right: tuple[Value, int | None]
    ) -> tuple[Value, int | None]:
        width = left[1] if sign in ("<<", ">>") else left[1] or right[1]
        mask = (1 << (width or 64)) - 1
        operation, one, other = OPERATORS[sign], left[0], right[0]
        if sign in ("==", "!=", "<", ">", "<=", ">=", "&&", "||"):
            return lambda packet: operation(one(packet), other(packet)), None
        return lambda packet: operation(one(packet), other(packet)) & mask, width

    def read(self, packet: PacketRun, declared: tree.FieldsDeclaration, prefix: str) -> int:
        """Reads the fields of a header that begins here; its bytes."""
        widths = [width_of(one.type) for one in declared.fields]
        left = sum(widths)
        wide = left // 8
        word = int.from_bytes(packet.frame[packet.at : packet.at + wide].ljust(wide, b"\0"), "big")
        for one, width in zip(declared.fields, widths, strict=True):
            left -= width
            packet.fields[prefix + one.name] = word >> left & ((1 << width) - 1)
        return wide
