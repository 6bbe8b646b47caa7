"""Types of P4 values, and which values of one type may stand where another is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class BitsType:
    """`bit<width>`."""

    width: int

    def __str__(self) -> str:
        return f"bit<{self.width}>"


@dataclass(frozen=True, slots=True)
class VariableBitsType:
    """`varbit<most>`."""

    most: int

    def __str__(self) -> str:
        return f"varbit<{self.most}>"


@dataclass(frozen=True, slots=True)
class PlainType:
    """A type without parts: `bool`, `string`, `error`, `void`, a constant whole number, or one that is not known
    because a fault was found in it."""

    name: str

    def __str__(self) -> str:
        return self.name


BOOL = PlainType("bool")
STRING = PlainType("string")
ERROR = PlainType("error")
VOID = PlainType("void")
WHOLE_NUMBER = PlainType("int")
UNKNOWN = PlainType("unknown")
STATE = PlainType("a parser state")
APPLY_RESULT = PlainType("the result of apply()")


@dataclass(frozen=True, slots=True)
class FieldsType:
    """A header or a struct.

    Parameters
    ----------
    word
        `header` or `struct`.
    """

    word: str
    name: str
    fields: Mapping[str, P4Type] = field(compare=False, hash=False, repr=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class HeaderStackType:
    """`element[size]`."""

    element: FieldsType
    size: int

    def __str__(self) -> str:
        return f"{self.element}[{self.size}]"


@dataclass(frozen=True, slots=True)
class EnumeratedType:
    """An enumeration of the architecture."""

    name: str
    members: tuple[str, ...] = field(compare=False, repr=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class DistinctType:
    """`type underlying name;`: mixes with no other type without a cast."""

    name: str
    underlying: P4Type = field(compare=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ListType:
    """The type of `{a, b}`."""

    items: tuple[P4Type, ...]

    def __str__(self) -> str:
        return f"{{{', '.join(map(str, self.items))}}}"


@dataclass(frozen=True, slots=True)
class ExternType:
    """An object of the architecture: `Register<bit<32>, bit<8>>`, `packet_in`."""

    name: str
    arguments: tuple[P4Type, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(str, self.arguments))}>" if self.arguments else self.name


P4Type: TypeAlias = (
    BitsType
    | VariableBitsType
    | PlainType
    | FieldsType
    | HeaderStackType
    | EnumeratedType
    | DistinctType
    | ListType
    | ExternType
)


@dataclass(frozen=True, slots=True)
class TypedValue:
    """What an expression is.

    Parameters
    ----------
    constant
        Its value, where it is known before any packet comes.
    target
        It may stand left of an assignment.
    """

    type: P4Type
    constant: int | bool | str | None = None
    target: bool = False


NO_VALUE = TypedValue(UNKNOWN)


def is_header(kind: P4Type) -> bool:
    """A header, not a struct."""
    return isinstance(kind, FieldsType) and kind.word == "header"


def bits_of(kind: P4Type) -> int | None:
    """Width in bits; None for what has no fixed width."""
    match kind:
        case BitsType():
            return kind.width
        case DistinctType():
            return bits_of(kind.underlying)
        case FieldsType():
            widths = [bits_of(one) for one in kind.fields.values()]
        case ListType():
            widths = [bits_of(one) for one in kind.items]
        case _:
            return 1 if kind == BOOL else None
    return None if None in widths else sum(width for width in widths if width is not None)


def mismatch(value: TypedValue, wanted: P4Type) -> str | None:
    """Why a value cannot stand where this type is wanted; None if it can.

    A constant whole number fits bits that are wide enough; a list fits a header, struct or list, item by item.
    """
    found = value.type
    if found == wanted or UNKNOWN in (found, wanted):
        return None
    if found == WHOLE_NUMBER and isinstance(wanted, BitsType):
        return unfit(value.constant, wanted.width)
    if isinstance(found, ListType):
        return _list_mismatch(found, wanted)
    if found == WHOLE_NUMBER and isinstance(wanted, DistinctType):
        return f"expected {wanted}, found a number; a cast is needed: ({wanted}) ..."
    if found == WHOLE_NUMBER:
        return f"expected {wanted}, found a number"
    return f"expected {wanted}, found {found}"


def unfit(constant: int | bool | str | None, width: int) -> str | None:
    """Why a constant does not fit bits of this width; None if it does, or is not known."""
    if isinstance(constant, int) and not 0 <= constant < 1 << width:
        return f"{constant} does not fit bit<{width}>"
    return None


def _list_mismatch(found: ListType, wanted: P4Type) -> str | None:
    if isinstance(wanted, FieldsType):
        parts = tuple(wanted.fields.values())
    elif isinstance(wanted, ListType):
        parts = wanted.items
    else:
        return f"expected {wanted}, found a list"
    if len(parts) != len(found.items):
        return f"expected {len(parts)} values for {wanted}, found {len(found.items)}"
    reasons = (mismatch(TypedValue(item), part) for item, part in zip(found.items, parts, strict=True))
    return next((reason for reason in reasons if reason), None)
