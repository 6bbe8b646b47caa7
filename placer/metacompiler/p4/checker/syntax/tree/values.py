"""Types, expressions, sets of values and annotations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from placer.metacompiler.p4.checker.faults import SourcePosition


@dataclass(frozen=True, slots=True)
class SyntaxNode:
    """Anything that stands somewhere in the text."""

    at: SourcePosition = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NamedType(SyntaxNode):
    """`bool`, `ethernet_t`, `Register<bit<32>, bit<16>>`."""

    name: str
    arguments: tuple[TypeSyntax, ...] = ()


@dataclass(frozen=True, slots=True)
class SizedType(SyntaxNode):
    """`bit<16>`, `varbit<320>`; `bit` alone is `bit<1>`."""

    kind: str
    width: Expression


@dataclass(frozen=True, slots=True)
class StackType(SyntaxNode):
    """`vlan_t[2]`: a stack of headers."""

    element: NamedType
    size: Expression


TypeSyntax: TypeAlias = NamedType | SizedType | StackType


@dataclass(frozen=True, slots=True)
class NumberLiteral(SyntaxNode):
    """`16`, `0x10`, `16w0x10`.

    Parameters
    ----------
    width
        Bits, where the number states them.
    spelling
        As the program writes it.
    """

    value: int
    width: int | None = None
    spelling: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class TruthLiteral(SyntaxNode):
    """`true` or `false`."""

    value: bool


@dataclass(frozen=True, slots=True)
class TextLiteral(SyntaxNode):
    """A quoted text, without its quotes."""

    text: str


@dataclass(frozen=True, slots=True)
class NameUse(SyntaxNode):
    """A name that was declared elsewhere."""

    name: str


@dataclass(frozen=True, slots=True)
class MemberUse(SyntaxNode):
    """`of.name`."""

    of: Expression
    name: str


@dataclass(frozen=True, slots=True)
class IndexUse(SyntaxNode):
    """`of[index]`: an element of a stack."""

    of: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class SliceUse(SyntaxNode):
    """`of[high:low]`: bits, both ends inclusive."""

    of: Expression
    high: Expression
    low: Expression


@dataclass(frozen=True, slots=True)
class CastUse(SyntaxNode):
    """`(type) of`."""

    type: TypeSyntax
    of: Expression


@dataclass(frozen=True, slots=True)
class UnaryUse(SyntaxNode):
    """`-of`, `~of`, `!of`."""

    sign: str
    of: Expression


@dataclass(frozen=True, slots=True)
class BinaryUse(SyntaxNode):
    """`left sign right`."""

    sign: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class ConditionalUse(SyntaxNode):
    """`condition ? yes : no`."""

    condition: Expression
    yes: Expression
    no: Expression


@dataclass(frozen=True, slots=True)
class CallArgument(SyntaxNode):
    """`value` or `name = value`."""

    name: str | None
    value: Expression


@dataclass(frozen=True, slots=True)
class CallUse(SyntaxNode):
    """`function<types>(arguments)`."""

    function: Expression
    types: tuple[TypeSyntax, ...]
    arguments: tuple[CallArgument, ...]


@dataclass(frozen=True, slots=True)
class ListUse(SyntaxNode):
    """`{a, b}`."""

    items: tuple[Expression, ...]


Expression: TypeAlias = (
    NumberLiteral
    | TruthLiteral
    | TextLiteral
    | NameUse
    | MemberUse
    | IndexUse
    | SliceUse
    | CastUse
    | UnaryUse
    | BinaryUse
    | ConditionalUse
    | CallUse
    | ListUse
)


@dataclass(frozen=True, slots=True)
class AnyValue(SyntaxNode):
    """`_`, or `default` of a `select`."""

    word: str


@dataclass(frozen=True, slots=True)
class MaskedValue(SyntaxNode):
    """`value &&& mask`."""

    value: Expression
    mask: Expression


@dataclass(frozen=True, slots=True)
class ValueRange(SyntaxNode):
    """`low .. high`, both inclusive."""

    low: Expression
    high: Expression


ValueSet: TypeAlias = AnyValue | MaskedValue | ValueRange | Expression


@dataclass(frozen=True, slots=True)
class Annotation(SyntaxNode):
    """`@name(arguments)`, or `@pragma name words`."""

    name: str
    arguments: tuple[Expression, ...] | None = None
    pragma: str | None = None
