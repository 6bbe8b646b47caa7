"""Types and constant values of operators (specification, section 8)."""

from __future__ import annotations

import operator
from collections.abc import Callable

from placer.metacompiler.p4.checker.rules.types import (
    BOOL,
    ERROR,
    NO_VALUE,
    UNKNOWN,
    WHOLE_NUMBER,
    BitsType,
    DistinctType,
    EnumeratedType,
    FieldsType,
    P4Type,
    TypedValue,
    mismatch,
    unfit,
)

Computed = TypedValue | str
"""A value, or why there is none."""

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "/": operator.floordiv,
    "%": operator.mod,
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
MOST_SHIFTED = 4096
"""A constant whole number is never shifted further left: a guard against numbers of any size."""


def unary(sign: str, of: TypedValue) -> Computed:
    """`!of`, `~of`, `-of`."""
    if of.type == UNKNOWN:
        return NO_VALUE
    if sign == "!":
        if of.type != BOOL:
            return f"'!' needs bool, found {of.type}"
        return TypedValue(BOOL, None if of.constant is None else not of.constant)
    if of.type == WHOLE_NUMBER and sign == "-":
        return TypedValue(WHOLE_NUMBER, -_number(of.constant))
    if not isinstance(of.type, BitsType):
        return f"'{sign}' needs bit<N>, found {of.type}"
    if of.constant is None:
        return TypedValue(of.type)
    mask = (1 << of.type.width) - 1
    return TypedValue(of.type, (~_number(of.constant) if sign == "~" else -_number(of.constant)) & mask)


def binary(sign: str, left: TypedValue, right: TypedValue) -> Computed:
    """`left sign right`."""
    if UNKNOWN in (left.type, right.type):
        return TypedValue(BOOL if sign in ("==", "!=", "&&", "||", *_COMPARISONS) else UNKNOWN)
    if sign in ("&&", "||"):
        return _logic(sign, left, right)
    if sign in ("<<", ">>"):
        return _shift(sign, left, right)
    if sign == "++":
        return _concatenation(left, right)
    if sign in ("==", "!="):
        return _equality(sign, left, right)
    return _arithmetic(sign, left, right)


def _logic(sign: str, left: TypedValue, right: TypedValue) -> Computed:
    for side in (left, right):
        if side.type != BOOL:
            return f"'{sign}' needs bool on both sides, found {side.type}"
    if left.constant is None or right.constant is None:
        return TypedValue(BOOL)
    both = bool(left.constant), bool(right.constant)
    return TypedValue(BOOL, all(both) if sign == "&&" else any(both))


def _shift(sign: str, left: TypedValue, right: TypedValue) -> Computed:
    if not isinstance(left.type, BitsType) and left.type != WHOLE_NUMBER:
        return f"'{sign}' shifts bit<N>, found {left.type}"
    if not isinstance(right.type, BitsType) and right.type != WHOLE_NUMBER:
        return f"'{sign}' shifts by bit<N> or a number, found {right.type}"
    if right.constant is None:
        return "a number without width is shifted by a constant only" if left.type == WHOLE_NUMBER else left_of(left)
    by = _number(right.constant)
    if by < 0:
        return f"shifts by {by}"
    if isinstance(left.type, BitsType) and by >= left.type.width:
        return f"{left.type} shifted by {by} is always 0"
    if by > MOST_SHIFTED:
        return f"shifts by {by}, more than {MOST_SHIFTED}"
    if left.constant is None:
        return left_of(left)
    value = _number(left.constant)
    return _cut(left.type, value << by if sign == "<<" else value >> by)


def left_of(left: TypedValue) -> TypedValue:
    """A value of the same type that is not known."""
    return TypedValue(left.type)


def _concatenation(left: TypedValue, right: TypedValue) -> Computed:
    if not (isinstance(left.type, BitsType) and isinstance(right.type, BitsType)):
        return f"'++' needs bit<N> on both sides, found {left.type} and {right.type}"
    kind = BitsType(left.type.width + right.type.width)
    if left.constant is None or right.constant is None:
        return TypedValue(kind)
    return TypedValue(kind, _number(left.constant) << right.type.width | _number(right.constant))


def _equality(sign: str, left: TypedValue, right: TypedValue) -> Computed:
    kind = common_type(left, right)
    if isinstance(kind, str):
        return kind or f"'{sign}' compares {left.type} with {right.type}"
    comparable = isinstance(kind, BitsType | EnumeratedType | DistinctType | FieldsType)
    if not comparable and kind not in (BOOL, ERROR, WHOLE_NUMBER):
        return f"'{sign}' does not compare {kind}"
    if left.constant is None or right.constant is None:
        return TypedValue(BOOL)
    return TypedValue(BOOL, (left.constant == right.constant) == (sign == "=="))


def _arithmetic(sign: str, left: TypedValue, right: TypedValue) -> Computed:
    kind = common_type(left, right)
    if isinstance(kind, str):
        return kind or f"'{sign}' needs the same type on both sides, found {left.type} and {right.type}"
    if not isinstance(kind, BitsType) and kind != WHOLE_NUMBER:
        return f"'{sign}' needs bit<N>, found {kind}"
    known = left.constant is not None and right.constant is not None
    if sign in ("/", "%"):
        if not known:
            return f"'{sign}' needs constants: a switch does not divide"
        if _number(right.constant) <= 0 or _number(left.constant) < 0:
            return f"'{sign}' needs positive constants"
    if not known:
        return TypedValue(BOOL if sign in _COMPARISONS else kind)
    numbers = _number(left.constant), _number(right.constant)
    if sign in _COMPARISONS:
        return TypedValue(BOOL, _COMPARISONS[sign](*numbers))
    return _cut(kind, _ARITHMETIC[sign](*numbers))


def common_type(left: TypedValue, right: TypedValue) -> P4Type | str:
    """The type both sides have once a plain number took the width of the other; else why not, `""` if they differ."""
    for one, other in ((left, right), (right, left)):
        if one.type == WHOLE_NUMBER and isinstance(other.type, BitsType):
            return unfit(one.constant, other.type.width) or other.type
    if left.type == right.type:
        return left.type
    return ""


def cast(kind: P4Type, of: TypedValue) -> Computed:
    """`(kind) of`: between widths, bit<1> and bool, a type and the one it is made from."""
    if UNKNOWN in (kind, of.type):
        return TypedValue(kind)
    if kind == of.type:
        return TypedValue(kind, of.constant)
    if isinstance(kind, DistinctType):
        inner = kind.underlying
        reason = mismatch(of, inner)
        return f"cannot cast {of.type} to {kind}: {reason}" if reason else TypedValue(kind, of.constant)
    if isinstance(of.type, DistinctType):
        if kind == of.type.underlying:
            return TypedValue(kind, of.constant)
        return f"cannot cast {of.type} to {kind}; cast it to {of.type.underlying} first"
    if isinstance(kind, BitsType) and of.type == WHOLE_NUMBER:
        return unfit(of.constant, kind.width) or TypedValue(kind, of.constant)
    if isinstance(kind, BitsType) and isinstance(of.type, BitsType):
        return TypedValue(kind) if of.constant is None else _cut(kind, _number(of.constant))
    if (kind, of.type) == (BitsType(1), BOOL):
        return TypedValue(kind, None if of.constant is None else int(of.constant))
    if (kind, of.type) == (BOOL, BitsType(1)):
        return TypedValue(kind, None if of.constant is None else bool(of.constant))
    return f"cannot cast {of.type} to {kind}"


def _cut(kind: P4Type, value: int) -> TypedValue:
    return TypedValue(kind, value & ((1 << kind.width) - 1) if isinstance(kind, BitsType) else value)


def _number(constant: int | bool | str | None) -> int:
    return int(constant) if isinstance(constant, int) else 0
