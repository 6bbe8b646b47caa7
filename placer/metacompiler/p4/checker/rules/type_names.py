"""Which type a piece of text names."""

from __future__ import annotations

from placer.metacompiler.p4.checker.rules.architecture import EXTERNS
from placer.metacompiler.p4.checker.rules.context import CheckContext
from placer.metacompiler.p4.checker.rules.types import (
    BOOL,
    ERROR,
    STRING,
    UNKNOWN,
    VOID,
    BitsType,
    ExternType,
    FieldsType,
    HeaderStackType,
    P4Type,
    TypedValue,
    VariableBitsType,
    is_header,
)
from placer.metacompiler.p4.checker.syntax import tree

MOST_BITS = 2048
BASE = {"bool": BOOL, "error": ERROR, "string": STRING, "void": VOID}


class TypeRules:
    """Finds the types that a program names; what is wrong goes to the context."""

    def __init__(self, context: CheckContext) -> None:
        self.context = context

    def value(self, of: tree.Expression) -> TypedValue:
        """The type and constant value of an expression that is read."""
        raise NotImplementedError

    def type_of(self, syntax: tree.TypeSyntax) -> P4Type:
        """The type that a piece of text names."""
        match syntax:
            case tree.SizedType():
                width = self.positive(syntax.width, "a width", MOST_BITS)
                if width is None:
                    return UNKNOWN
                return BitsType(width) if syntax.kind == "bit" else VariableBitsType(width)
            case tree.StackType():
                element = self.type_of(syntax.element)
                size = self.positive(syntax.size, "the size of a stack", 64)
                if not (isinstance(element, FieldsType) and is_header(element)):
                    if element != UNKNOWN:
                        self.context.fault(syntax.at, f"a stack holds headers, not {element}")
                    return UNKNOWN
                return UNKNOWN if size is None else HeaderStackType(element, size)
        if syntax.name in BASE:
            return BASE[syntax.name]
        if syntax.name in EXTERNS and EXTERNS[syntax.name].constructors:
            return self.extern_type(syntax)
        found = self.context.found(syntax.name, syntax.at, ("type",), "type")
        if found is not None and syntax.arguments:
            self.context.fault(syntax.at, f"{syntax.name} takes no types in <>")
        return UNKNOWN if found is None else found.type

    def extern_type(self, syntax: tree.NamedType) -> P4Type:
        """The type of a register, counter, hash or checksum."""
        wanted = len(EXTERNS[syntax.name].types)
        arguments = tuple(map(self.type_of, syntax.arguments))
        if len(arguments) != wanted:
            self.context.fault(syntax.at, f"{syntax.name} takes {wanted} types in <>, found {len(arguments)}")
            return UNKNOWN
        for one, text in zip(arguments, syntax.arguments, strict=True):
            if isinstance(one, ExternType | VariableBitsType) or one in (VOID, STRING):
                self.context.fault(text.at, f"{syntax.name} cannot hold {one}")
                return UNKNOWN
        return ExternType(syntax.name, arguments)

    def positive(self, of: tree.Expression, what: str, most: int | None = None) -> int | None:
        """The value of a constant that is at least 1; None, and a fault, otherwise."""
        found = self.value(of)
        if found.type == UNKNOWN:
            return None
        if not isinstance(found.constant, int) or isinstance(found.constant, bool):
            self.context.fault(of.at, f"{what} is a constant number")
            return None
        if found.constant < 1 or (most is not None and found.constant > most):
            limit = "at least 1" if most is None else f"1 to {most}"
            self.context.fault(of.at, f"{what} is {limit}, found {found.constant}")
            return None
        return found.constant
