"""The type, and the constant value, of every expression."""

from __future__ import annotations

from placer.metacompiler.p4.checker.faults import SourcePosition
from placer.metacompiler.p4.checker.rules import values
from placer.metacompiler.p4.checker.rules.architecture import ERRORS
from placer.metacompiler.p4.checker.rules.context import CheckContext, DeclaredName, HeaderKey
from placer.metacompiler.p4.checker.rules.type_names import TypeRules
from placer.metacompiler.p4.checker.rules.types import (
    APPLY_RESULT,
    BOOL,
    ERROR,
    NO_VALUE,
    STRING,
    UNKNOWN,
    WHOLE_NUMBER,
    BitsType,
    EnumeratedType,
    FieldsType,
    HeaderStackType,
    ListType,
    P4Type,
    TypedValue,
    is_header,
    mismatch,
)
from placer.metacompiler.p4.checker.syntax import tree
from profiles.faults import suggestion

VALUES = ("constant", "variable", "parameter")


class ExpressionRules(TypeRules):
    """Gives every expression its type; what is wrong goes to the context."""

    def __init__(self, context: CheckContext) -> None:
        super().__init__(context)
        self._written: tree.Expression | None = None

    def value(self, of: tree.Expression) -> TypedValue:
        """The type and constant value of an expression that is read."""
        match of:
            case tree.NumberLiteral():
                return TypedValue(WHOLE_NUMBER if of.width is None else BitsType(of.width), of.value)
            case tree.TruthLiteral():
                return TypedValue(BOOL, of.value)
            case tree.TextLiteral():
                return TypedValue(STRING, of.text)
            case tree.NameUse():
                return self._named(of)
            case tree.MemberUse():
                return self._member(of)
            case tree.CallUse():
                return self.call(of)
            case tree.ListUse():
                return TypedValue(ListType(tuple(self.value(item).type for item in of.items)))
        return self._operator(of)

    def _operator(self, of: tree.Expression) -> TypedValue:
        match of:
            case tree.UnaryUse():
                return self._computed(of.at, values.unary(of.sign, self.value(of.of)))
            case tree.BinaryUse():
                return self._computed(of.at, values.binary(of.sign, self.value(of.left), self.value(of.right)))
            case tree.CastUse():
                kind = self.type_of(of.type)
                return self._computed(of.at, values.cast(kind, self.value(of.of)))
            case tree.ConditionalUse():
                return self._conditional(of)
            case tree.SliceUse():
                return self._slice(of)
            case tree.IndexUse():
                return self._element(of)
        raise AssertionError(of)

    def _computed(self, at: SourcePosition, result: values.Computed) -> TypedValue:
        if isinstance(result, str):
            self.context.fault(at, result)
            return NO_VALUE
        return result

    def call(self, of: tree.CallUse) -> TypedValue:
        """The result of a call."""
        raise NotImplementedError

    def wanted(self, of: tree.Expression, kind: P4Type, what: str) -> TypedValue:
        """The value of an expression that must have this type; `what` begins the sentence if it has not."""
        found = self.value(of)
        reason = mismatch(found, kind)
        if reason:
            self.context.fault(of.at, f"{what}: {reason}")
        return found

    def _named(self, of: tree.NameUse) -> TypedValue:
        found = self.context.found(of.name, of.at, VALUES, "value")
        if found is None:
            return NO_VALUE
        return TypedValue(found.type, found.constant, found.writable)

    def _member(self, of: tree.MemberUse) -> TypedValue:
        if isinstance(of.of, tree.NameUse):
            named = self._member_of_type(of, of.of)
            if named is not None:
                return named
        base = self.value(of.of)
        match base.type:
            case FieldsType():
                return self._field(of, base, base.type)
            case HeaderStackType():
                return self._stack_member(of, base, base.type)
        if base.type == APPLY_RESULT and of.name in ("hit", "miss"):
            return TypedValue(BOOL)
        if base.type != UNKNOWN:
            self.context.fault(of.at, f"{base.type} has no member {of.name}")
        return NO_VALUE

    def _member_of_type(self, of: tree.MemberUse, base: tree.NameUse) -> TypedValue | None:
        """`error.NoMatch` or `PNA_Direction_t.NET_TO_HOST`; None for what is no type."""
        if base.name == "error":
            members, kind = ERRORS, ERROR
        else:
            known = self.context.known(base.name)
            if known is None or not isinstance(known.type, EnumeratedType) or known.kind != "type":
                return None
            known.used = True
            members, kind = known.type.members, known.type  # type: ignore[assignment]
        if of.name not in members:
            self.context.fault(of.at, f"{base.name} has no member {of.name}", suggestion(of.name, members))
            return NO_VALUE
        return TypedValue(kind, of.name)

    def _field(self, of: tree.MemberUse, base: TypedValue, holder: FieldsType) -> TypedValue:
        if of.name not in holder.fields:
            message = f"{holder.word} {holder.name} has no field {of.name}"
            self.context.fault(of.at, message, suggestion(of.name, holder.fields) if holder.fields else None)
            return NO_VALUE
        if of is self._written:
            self.context.uses.fields_written.add((holder.name, of.name))
        else:
            self.context.uses.fields_read.setdefault((holder.name, of.name), of.at)
            key = self.header_key(of.of) if is_header(holder) else None
            if key is not None:
                self.context.uses.headers_read.setdefault(key, of.at)
        return TypedValue(self.context.mention(holder, of.name), None, base.target)

    def _stack_member(self, of: tree.MemberUse, base: TypedValue, stack: HeaderStackType) -> TypedValue:
        if of.name in ("next", "last") and self.context.role != "parser":
            self.context.fault(of.at, f".{of.name} of a stack stands only in a parser")
            return NO_VALUE
        if of.name == "next":
            return TypedValue(stack.element, None, base.target)
        if of.name == "last":
            return TypedValue(stack.element)
        if of.name == "lastIndex":
            return TypedValue(BitsType(32))
        self.context.fault(of.at, f"a stack has no member {of.name}", suggestion(of.name, ("next", "last")))
        return NO_VALUE

    def header_key(self, of: tree.Expression) -> HeaderKey | None:
        """Which header of the packet an expression names: the struct, and its field; of a stack, the stack."""
        if isinstance(of, tree.IndexUse) or (isinstance(of, tree.MemberUse) and of.name in ("next", "last")):
            return self.header_key(of.of)
        if not (isinstance(of, tree.MemberUse) and isinstance(of.of, tree.NameUse)):
            return None
        known = self.context.known(of.of.name)
        if known is None or not isinstance(known.type, FieldsType) or known.kind == "type":
            return None
        return known.type.name, of.name

    def _conditional(self, of: tree.ConditionalUse) -> TypedValue:
        self.wanted(of.condition, BOOL, "the condition of '?'")
        yes, no = self.value(of.yes), self.value(of.no)
        if UNKNOWN in (yes.type, no.type):
            return NO_VALUE
        kind = values.common_type(yes, no)
        if isinstance(kind, str):
            reason = kind or f"'?' chooses between {yes.type} and {no.type}"
            self.context.fault(of.at, reason)
            return NO_VALUE
        return TypedValue(kind)

    def _slice(self, of: tree.SliceUse) -> TypedValue:
        base = self.value(of.of)
        high, low = self._bit_number(of.high), self._bit_number(of.low)
        if base.type == UNKNOWN or high is None or low is None:
            return NO_VALUE
        if not isinstance(base.type, BitsType):
            self.context.fault(of.at, f"a slice needs bit<N>, found {base.type}")
            return NO_VALUE
        if not low <= high < base.type.width:
            self.context.fault(of.at, f"[{high}:{low}] is no slice of {base.type}: high bit first, below the width")
            return NO_VALUE
        width = high - low + 1
        known = isinstance(base.constant, int)
        constant = (int(base.constant or 0) >> low) & ((1 << width) - 1) if known else None
        return TypedValue(BitsType(width), constant, base.target)

    def _bit_number(self, of: tree.Expression) -> int | None:
        found = self.value(of)
        if isinstance(found.constant, int) and not isinstance(found.constant, bool) and found.constant >= 0:
            return found.constant
        if found.type != UNKNOWN:
            self.context.fault(of.at, "the ends of a slice are constant bit numbers")
        return None

    def _element(self, of: tree.IndexUse) -> TypedValue:
        base, index = self.value(of.of), self.value(of.index)
        if UNKNOWN in (base.type, index.type):
            return NO_VALUE
        if not isinstance(base.type, HeaderStackType):
            self.context.fault(of.at, f"{base.type} has no elements")
            return NO_VALUE
        if not isinstance(index.constant, int):
            self.context.fault(of.index.at, "the index of a stack is a constant number")
        elif not 0 <= index.constant < base.type.size:
            self.context.fault(of.index.at, f"{base.type} has no element {index.constant}")
        return TypedValue(base.type.element, None, base.target)

    def target(self, of: tree.Expression) -> P4Type:
        """The type of what stands left of an assignment, or is filled by a call."""
        root = self.root(of)
        used = root.used if root is not None else False
        self._written = of
        while isinstance(self._written, tree.SliceUse):
            self._written = self._written.of
        found = self.value(of)
        self._written = None
        if root is not None:
            root.used = used or root.kind == "parameter"
            root.written = True
        if found.type != UNKNOWN and not found.target:
            what = f"{root.kind} {root.name}" if root is not None else "this"
            self.context.fault(of.at, f"{what} cannot be written here")
        if is_header(found.type) or isinstance(found.type, HeaderStackType):
            self.make(of)
        elif isinstance(found.type, FieldsType):
            self.context.uses.fields_written |= {(found.type.name, name) for name in found.type.fields}
        return found.type

    def make(self, of: tree.Expression) -> None:
        """A header of the packet may be valid from here on."""
        key = self.header_key(of)
        if key is not None:
            self.context.uses.headers_made.setdefault(key, of.at)

    def root(self, of: tree.Expression) -> DeclaredName | None:
        """The variable or parameter that an expression is a part of."""
        while isinstance(of, tree.MemberUse | tree.IndexUse | tree.SliceUse):
            of = of.of
        return self.context.known(of.name) if isinstance(of, tree.NameUse) else None
