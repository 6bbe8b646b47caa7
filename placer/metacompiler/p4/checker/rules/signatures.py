"""Calls against what the architecture declares: arity, directions, type variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from placer.metacompiler.p4.checker.faults import SourcePosition
from placer.metacompiler.p4.checker.rules.architecture import Signature, SignatureParameter, SignatureType, TypeVariable
from placer.metacompiler.p4.checker.rules.context import CheckContext
from placer.metacompiler.p4.checker.rules.expressions import ExpressionRules
from placer.metacompiler.p4.checker.rules.types import (
    NO_VALUE,
    UNKNOWN,
    WHOLE_NUMBER,
    FieldsType,
    HeaderStackType,
    P4Type,
    TypedValue,
    VariableBitsType,
    bits_of,
    is_header,
    mismatch,
)
from placer.metacompiler.p4.checker.syntax import tree

WHERE = {"state": "a parser state"}


@dataclass(slots=True)
class OneCall:
    """A call while it is checked.

    Parameters
    ----------
    what
        As messages name it: `extract`, `send_to_port`.
    bound
        The type variables that are known so far.
    """

    what: str
    at: SourcePosition
    bound: dict[TypeVariable, P4Type] = field(default_factory=dict)

    def type(self, of: SignatureType) -> P4Type | None:
        """A type of the signature; None for a variable that is not known yet."""
        return self.bound.get(of) if isinstance(of, TypeVariable) else of


class SignatureRules(ExpressionRules):
    """Checks a call against the signatures of one name.

    Attributes
    ----------
    added
        What each call of add_entry hands to the action, by the position of the call.
    """

    def __init__(self, context: CheckContext) -> None:
        super().__init__(context)
        self.added: dict[SourcePosition, TypedValue] = {}

    def call_signature(
        self,
        call: OneCall,
        signatures: Sequence[Signature],
        types: Sequence[tree.TypeSyntax],
        arguments: Sequence[tree.CallArgument],
    ) -> TypedValue:
        """The result of a call to the one of these signatures that takes so many arguments."""
        fitting = [one for one in signatures if len(one.parameters) == len(arguments)]
        if not fitting:
            counts = " or ".join(str(len(one.parameters)) for one in signatures)
            self.context.fault(call.at, f"{call.what} takes {counts} arguments, found {len(arguments)}")
            return NO_VALUE
        signature = fitting[0]
        self._check_place(call, signature)
        if types and not self._bind(call, signature, types):
            return NO_VALUE
        for parameter, argument in self.paired(call, signature.parameters, arguments):
            self._check_argument(call, parameter, argument)
        result = call.type(signature.result)
        if result is None:
            self.context.fault(call.at, f"{call.what} needs the type it returns, in <>")
            return NO_VALUE
        self._check_result(call, result)
        return TypedValue(result)

    def _check_result(self, call: OneCall, result: P4Type) -> None:
        if call.what == "lookahead" and result != UNKNOWN and bits_of(result) is None:
            self.context.fault(call.at, f"lookahead needs a type of fixed width, found {result}")

    def _check_place(self, call: OneCall, signature: Signature) -> None:
        role = self.context.role
        if role and signature.within and role not in signature.within:
            where = " or ".join(sorted(f"{'an' if one[0] in 'aeiou' else 'a'} {one}" for one in signature.within))
            self.context.fault(call.at, f"{call.what} stands only in {where}")

    def _bind(self, call: OneCall, signature: Signature, types: Sequence[tree.TypeSyntax]) -> bool:
        found = [self.type_of(one) for one in types]
        if len(found) != len(signature.types):
            self.context.fault(call.at, f"{call.what} takes {len(signature.types)} types in <>, found {len(found)}")
            return False
        call.bound.update(zip(signature.types, found, strict=True))
        return True

    def paired(
        self, call: OneCall, parameters: Sequence[SignatureParameter], arguments: Sequence[tree.CallArgument]
    ) -> list[tuple[SignatureParameter, tree.CallArgument]]:
        """Parameters with their arguments, by position or by name."""
        if not any(one.name for one in arguments):
            return list(zip(parameters, arguments, strict=True))
        by_name = {one.name: one for one in parameters}
        pairs = []
        for one in arguments:
            if one.name not in by_name:
                what = "a value without a name" if one.name is None else one.name
                self.context.fault(one.at, f"{call.what} has no parameter for {what}, or has it already")
                return []
            pairs.append((by_name.pop(one.name), one))
        return pairs

    def _check_argument(self, call: OneCall, parameter: SignatureParameter, argument: tree.CallArgument) -> None:
        if parameter.direction in ("out", "inout"):
            found = TypedValue(self.target(argument.value))
        else:
            found = self.value(argument.value)
        if parameter.name == "action_params":
            self.added[call.at] = found
        wanted = call.type(parameter.type)
        if wanted is None and isinstance(parameter.type, TypeVariable):
            if found.type == WHOLE_NUMBER:
                message = f"{parameter.name} of {call.what}: the width of this number is not known"
                self.context.fault(argument.at, message, "write it with its width, as in 16w5")
                return
            call.bound[parameter.type] = wanted = found.type
        reason = None if wanted is None else mismatch(found, wanted)
        if reason is None and parameter.direction == "" and found.constant is None and found.type != UNKNOWN:
            reason = "expected a constant"
        reason = reason or self._unwanted(parameter.wants, found.type)
        if reason:
            self.context.fault(argument.at, f"{parameter.name} of {call.what}: {reason}")
        elif parameter.wants == "emitted":
            self._emit(argument.value, found.type)

    def _unwanted(self, wants: str, found: P4Type) -> str | None:
        if not wants or found == UNKNOWN:
            return None
        if wants in ("header", "varbit header"):
            if not (isinstance(found, FieldsType) and is_header(found)):
                return f"expected a header, found {found}"
            variable = sum(isinstance(one, VariableBitsType) for one in found.fields.values())
            if wants == "header" and variable:
                return f"header {found} has a varbit field; its length in bits is a second argument"
            return None if wants == "header" or variable else f"header {found} has no varbit field"
        if wants == "emitted":
            return None if _emittable(found) else f"expected a header, found {found}"
        bits = bits_of(found)
        if bits is None:
            return f"expected values of fixed width, found {found}"
        if wants == "words" and bits % 16:
            return f"expected whole words of 16 bits, found {bits} bits"
        return None

    def _emit(self, of: tree.Expression, kind: P4Type) -> None:
        key = self.header_key(of)
        if key is not None:
            self.context.uses.headers_emitted.append((key, of.at))
        elif isinstance(kind, FieldsType) and kind.word == "struct":
            for name in kind.fields:
                self.context.mention(kind, name)
                self.context.uses.headers_emitted.append(((kind.name, name), of.at))


def _emittable(kind: P4Type) -> bool:
    if isinstance(kind, FieldsType) and kind.word == "struct":
        return all(map(_emittable, kind.fields.values()))
    return is_header(kind) or isinstance(kind, HeaderStackType)
