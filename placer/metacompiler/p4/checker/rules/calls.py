"""Calls: methods of headers, tables and objects of the architecture, functions, and actions."""

from __future__ import annotations

from collections.abc import Sequence

from placer.metacompiler.p4.checker.rules.architecture import EXTERNS, FUNCTIONS, Signature
from placer.metacompiler.p4.checker.rules.context import DeclaredName
from placer.metacompiler.p4.checker.rules.signatures import OneCall, SignatureRules
from placer.metacompiler.p4.checker.rules.types import (
    APPLY_RESULT,
    BOOL,
    NO_VALUE,
    UNKNOWN,
    VOID,
    ExternType,
    FieldsType,
    HeaderStackType,
    P4Type,
    TypedValue,
    is_header,
    mismatch,
)
from placer.metacompiler.p4.checker.syntax import tree
from profiles.faults import suggestion

FUNCTION_NAMES = frozenset(one.name for one in FUNCTIONS)
HEADER_METHODS = ("isValid", "setValid", "setInvalid")


class CallRules(SignatureRules):
    """Checks calls."""

    def call(self, of: tree.CallUse) -> TypedValue:
        """The result of a call."""
        if isinstance(of.function, tree.NameUse):
            return self._function(of, of.function)
        if isinstance(of.function, tree.MemberUse):
            return self._method(of, of.function)
        self.context.fault(of.at, "this cannot be called")
        return NO_VALUE

    def _function(self, of: tree.CallUse, function: tree.NameUse) -> TypedValue:
        known = self.context.known(function.name)
        if known is not None and known.kind == "action":
            known.used = True
            self._call_action(of, known.declaration)
            return TypedValue(VOID)
        found = self.context.found(function.name, of.at, ("function", "action"), "function")
        if found is None:
            return NO_VALUE
        signatures = [one for one in FUNCTIONS if one.name == function.name]
        return self.call_signature(OneCall(function.name, of.at), signatures, of.types, of.arguments)

    def _call_action(self, of: tree.CallUse, action: tree.ActionDeclaration) -> None:
        if self.context.role not in ("control", "action"):
            self.context.fault(of.at, "an action is called only in a control, or in an action")
        if len(of.arguments) != len(action.parameters):
            message = f"action {action.name} takes {len(action.parameters)} arguments, found {len(of.arguments)}"
            self.context.fault(of.at, message)
            return
        for parameter, argument in zip(action.parameters, of.arguments, strict=True):
            self.action_argument(action, parameter, argument)

    def action_argument(
        self, action: tree.ActionDeclaration, parameter: tree.ParameterDeclaration, argument: tree.CallArgument
    ) -> TypedValue:
        """Check one argument of an action; what it is."""
        if argument.name is not None and argument.name != parameter.name:
            self.context.fault(argument.at, f"action {action.name} has no parameter {argument.name} here")
        kind = self.type_of(parameter.type)
        writes = parameter.direction in ("out", "inout")
        found = TypedValue(self.target(argument.value)) if writes else self.value(argument.value)
        reason = mismatch(found, kind)
        if reason:
            self.context.fault(argument.at, f"{parameter.name} of action {action.name}: {reason}")
        return found

    def _method(self, of: tree.CallUse, method: tree.MemberUse) -> TypedValue:
        if isinstance(method.of, tree.NameUse):
            known = self.context.known(method.of.name)
            if known is not None and known.kind in ("table", "instance"):
                known.used = True
                if known.kind == "table":
                    return self._apply(of, method)
                self._check_index(of, known)
                return self._extern(of, method, known.type)
        base = self.value(method.of)
        match base.type:
            case ExternType():
                return self._extern(of, method, base.type)
            case FieldsType() if is_header(base.type):
                return self._header_method(of, method, base)
            case HeaderStackType() if method.name in ("push_front", "pop_front"):
                self.target(method.of)
                if len(of.arguments) != 1:
                    self.context.fault(of.at, f"{method.name} takes 1 argument")
                elif self.positive(of.arguments[0].value, f"the count of {method.name}") is None:
                    return NO_VALUE
                return TypedValue(VOID)
        if base.type != UNKNOWN:
            self.context.fault(of.at, f"{base.type} has no method {method.name}")
        return NO_VALUE

    def _apply(self, of: tree.CallUse, method: tree.MemberUse) -> TypedValue:
        name = method.of.name if isinstance(method.of, tree.NameUse) else ""
        if method.name != "apply":
            self.context.fault(of.at, f"table {name} has no method {method.name}", "did you mean apply?")
            return NO_VALUE
        if of.arguments or of.types:
            self.context.fault(of.at, "apply() of a table takes no arguments")
        if self.context.role != "control":
            where = {"action": "an action applies no tables", "deparser": "a deparser applies no tables"}
            self.context.fault(of.at, where.get(self.context.role, "a table is applied only in a control"))
        return TypedValue(APPLY_RESULT)

    def _header_method(self, of: tree.CallUse, method: tree.MemberUse, base: TypedValue) -> TypedValue:
        if method.name not in HEADER_METHODS:
            self.context.fault(of.at, f"a header has no method {method.name}", suggestion(method.name, HEADER_METHODS))
            return NO_VALUE
        if of.arguments or of.types:
            self.context.fault(of.at, f"{method.name} takes no arguments")
        if method.name == "isValid":
            return TypedValue(BOOL)
        if not base.target:
            self.context.fault(of.at, f"{method.name} changes a header that cannot be written here")
        elif method.name == "setValid":
            self.make(method.of)
        return TypedValue(VOID)

    def _check_index(self, of: tree.CallUse, instance: DeclaredName) -> None:
        """A constant index of a register or counter lies within its size."""
        if not isinstance(instance.constant, int) or not of.arguments:
            return
        index = of.arguments[0].value
        if isinstance(index, tree.NumberLiteral | tree.NameUse):
            constant = self.value(index).constant
            if isinstance(constant, int) and constant >= instance.constant:
                self.context.fault(index.at, f"{instance.name} has {instance.constant} elements, but no {constant}")

    def _extern(self, of: tree.CallUse, method: tree.MemberUse, kind: P4Type) -> TypedValue:
        if not isinstance(kind, ExternType):
            return NO_VALUE
        declared = EXTERNS[kind.name]
        signatures = [one for one in declared.methods if one.name == method.name]
        if not signatures:
            names = sorted({one.name for one in declared.methods})
            self.context.fault(of.at, f"{kind.name} has no method {method.name}", suggestion(method.name, names))
            return NO_VALUE
        call = OneCall(method.name, of.at, dict(zip(declared.types, kind.arguments, strict=True)))
        return self.call_signature(call, signatures, of.types, of.arguments)

    def construct(self, kind: ExternType, one: tree.InstanceDeclaration) -> int | None:
        """Check the arguments of a declared register, counter, hash or checksum; the size of the first two."""
        declared = EXTERNS[kind.name]
        call = OneCall(kind.name, one.at, dict(zip(declared.types, kind.arguments, strict=True)))
        constructors: Sequence[Signature] = declared.constructors
        self.call_signature(call, constructors, (), one.arguments)
        if kind.name in ("Register", "Counter") and one.arguments:
            size = self.value(one.arguments[0].value)
            if isinstance(size.constant, int) and size.constant < 1:
                self.context.fault(one.arguments[0].at, f"{kind.name} {one.name} has no elements")
            return size.constant if isinstance(size.constant, int) else None
        return None
