"""Statements of actions, `apply` blocks and parser states."""

from __future__ import annotations

from collections.abc import Sequence

from placer.metacompiler.p4.checker.rules.calls import CallRules
from placer.metacompiler.p4.checker.rules.context import DeclaredName
from placer.metacompiler.p4.checker.rules.types import (
    BOOL,
    STRING,
    UNKNOWN,
    VOID,
    ExternType,
    P4Type,
    mismatch,
)
from placer.metacompiler.p4.checker.syntax import tree


class StatementRules(CallRules):
    """Checks statements."""

    def block(self, block: tree.BlockStatement) -> None:
        """Check statements in a scope of their own."""
        with self.context.scope():
            self.statements(block.statements)

    def statements(self, statements: Sequence[tree.Statement]) -> None:
        """Check statements one after the other."""
        left = False
        for one in statements:
            if left:
                self.context.warn(one.at, "this is never reached")
                left = False
            self._statement(one)
            left = isinstance(one, tree.LeaveStatement)

    def _statement(self, one: tree.Statement) -> None:
        match one:
            case tree.VariableDeclaration():
                self.variable(one)
            case tree.ConstantDeclaration():
                self.constant(one)
            case tree.Assignment():
                self._assignment(one)
            case tree.CallStatement():
                self.value(one.call)
            case tree.IfStatement():
                self._if(one)
            case tree.BlockStatement():
                self.block(one)
            case tree.LeaveStatement():
                if self.context.role == "parser":
                    self.context.fault(one.at, f"a parser state has no {one.word}", "use transition")

    def _if(self, one: tree.IfStatement) -> None:
        if self.context.role == "parser":
            self.context.fault(one.at, "a parser state has no if", "use transition select")
        self.wanted(one.condition, BOOL, "the condition of if")
        self._statement(one.yes)
        if one.no is not None:
            self._statement(one.no)

    def _assignment(self, one: tree.Assignment) -> None:
        found = self.value(one.value)
        kind = self.target(one.target)
        reason = mismatch(found, kind)
        if found.type == VOID:
            reason = "this call returns nothing"
        if reason:
            self.context.fault(one.value.at, reason)

    def variable(self, one: tree.VariableDeclaration) -> None:
        """Check and declare a local variable."""
        kind = self.type_of(one.type)
        if kind in (VOID, STRING) or isinstance(kind, ExternType):
            self.context.fault(one.at, f"a variable cannot be {kind}")
            kind = UNKNOWN
        if one.value is not None:
            self.wanted(one.value, kind, f"variable {one.name}")
        declared = DeclaredName(one.name, "variable", kind, one.at, writable=True, written=one.value is not None)
        self.context.declare(declared)

    def constant(self, one: tree.ConstantDeclaration) -> None:
        """Check and declare a constant."""
        kind = self.type_of(one.type)
        found = self.wanted(one.value, kind, f"constant {one.name}")
        if found.constant is None and found.type != UNKNOWN:
            self.context.fault(one.value.at, f"the value of constant {one.name} is not known before packets come")
        self.context.declare(DeclaredName(one.name, "constant", kind, one.at, found.constant))

    def instance(self, one: tree.InstanceDeclaration) -> None:
        """Check and declare a register, counter, hash or checksum."""
        kind: P4Type = self.type_of(one.type)
        size = None
        if isinstance(kind, ExternType) and kind.name == one.type.name:
            size = self.construct(kind, one)
        elif kind != UNKNOWN:
            self.context.fault(one.at, f"{one.type.name} has no instances")
            kind = UNKNOWN
        self.context.declare(DeclaredName(one.name, "instance", kind, one.at, size))

    def parameters(self, parameters: Sequence[tree.ParameterDeclaration]) -> None:
        """Declare the parameters of a parser, control or action."""
        for one in parameters:
            kind = self.type_of(one.type)
            writable = one.direction in ("out", "inout")
            self.context.declare(DeclaredName(one.name, "parameter", kind, one.at, writable=writable))
