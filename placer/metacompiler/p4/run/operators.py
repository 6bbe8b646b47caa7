"""Operators and sets of values, as the interpreter of P4 texts computes them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

from placer.metacompiler.p4.checker.rules.architecture import TYPES
from placer.metacompiler.p4.checker.rules.types import bits_of
from placer.metacompiler.p4.checker.syntax import tree

FARTHEST = 4096
"""A shift by more is one by this: all bits are gone."""

OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": lambda value, by: value << min(by, FARTHEST),
    ">>": lambda value, by: value >> min(by, FARTHEST),
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "&&": lambda one, other: bool(one) and bool(other),
    "||": lambda one, other: bool(one) or bool(other),
}


def width_of(kind: tree.TypeSyntax) -> int:
    """Bits of a type that is written with a number, or that the architecture names; 1 for bool, 0 for varbit."""
    match kind:
        case tree.SizedType(kind="bit", width=tree.NumberLiteral(value=width)):
            return width
        case tree.NamedType(name="bool"):
            return 1
        case tree.NamedType(name=name) if name in TYPES:
            return bits_of(TYPES[name]) or 0
    return 0


@dataclass(frozen=True)
class ValueTest:
    """`low <= value & mask <= high`.

    Parameters
    ----------
    bits
        Of the mask that are set: the length of a prefix.
    """

    low: int
    high: int
    mask: int
    bits: int

    @property
    def value(self) -> int:
        """The one value, of a key of kind exact."""
        return self.low

    def __call__(self, value: int) -> bool:
        return self.low <= value & self.mask <= self.high


def value_test(one: tree.ValueSet) -> ValueTest:
    """Whether a value lies in a set."""
    everything = (1 << 64) - 1
    match one:
        case tree.AnyValue():
            return ValueTest(0, 0, 0, 0)
        case tree.MaskedValue(value=tree.NumberLiteral(value=value), mask=tree.NumberLiteral(value=mask)):
            return ValueTest(value, value, mask, mask.bit_count())
        case tree.ValueRange(low=tree.NumberLiteral(value=low), high=tree.NumberLiteral(value=high)):
            return ValueTest(low, high, everything, 64)
        case tree.NumberLiteral(value=value):
            return ValueTest(value, value, everything, 64)
    raise AssertionError(one)
