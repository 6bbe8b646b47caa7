"""Actions: their parameters, their statements, and the entries they add to tables."""

from __future__ import annotations

from collections.abc import Iterator

from placer.metacompiler.p4.checker.rules.context import DeclaredName
from placer.metacompiler.p4.checker.rules.statements import StatementRules
from placer.metacompiler.p4.checker.rules.types import VOID, ExternType, is_header
from placer.metacompiler.p4.checker.syntax import tree


class ActionRules(StatementRules):
    """Checks actions."""

    def action(self, one: tree.ActionDeclaration) -> None:
        """Check and declare an action."""
        self._check_parameters(one)
        with self.context.within("action"), self.context.scope():
            self.parameters(one.parameters)
            self.statements(one.body.statements)
        self.context.declare(DeclaredName(one.name, "action", VOID, one.at, declaration=one))

    def _check_parameters(self, one: tree.ActionDeclaration) -> None:
        from_table = False
        for parameter in one.parameters:
            if parameter.direction and from_table:
                message = f"parameter {parameter.name} has a direction, but stands behind one without"
                self.context.fault(parameter.at, message)
            from_table = from_table or not parameter.direction
            kind = self.type_of(parameter.type)
            if isinstance(kind, ExternType) or (not parameter.direction and is_header(kind)):
                self.context.fault(parameter.at, f"an action takes no {kind}")


def entries_added(one: tree.ActionDeclaration) -> Iterator[tree.CallUse]:
    """The calls of add_entry in an action."""
    return (call for call in calls_in(one.body) if called_name(call) == "add_entry")


def called_name(call: tree.CallUse) -> str:
    """The name of the function that is called; empty for a method."""
    return call.function.name if isinstance(call.function, tree.NameUse) else ""


def calls_in(statement: tree.Statement) -> Iterator[tree.CallUse]:
    """Calls in a statement, those inside others too, in the order of the text."""
    match statement:
        case tree.BlockStatement():
            for one in statement.statements:
                yield from calls_in(one)
        case tree.IfStatement():
            yield from calls_of(statement.condition)
            yield from calls_in(statement.yes)
            if statement.no is not None:
                yield from calls_in(statement.no)
        case tree.Assignment():
            yield from calls_of(statement.value)
        case tree.CallStatement():
            yield from calls_of(statement.call)
        case tree.VariableDeclaration() if statement.value is not None:
            yield from calls_of(statement.value)


def calls_of(of: tree.Expression) -> Iterator[tree.CallUse]:
    """Calls in an expression, the innermost first."""
    for part in parts(of):
        yield from calls_of(part)
    if isinstance(of, tree.CallUse):
        yield of


def parts(of: tree.Expression) -> tuple[tree.Expression, ...]:
    """The expressions directly inside an expression."""
    match of:
        case tree.MemberUse() | tree.UnaryUse() | tree.CastUse():
            return (of.of,)
        case tree.IndexUse():
            return of.of, of.index
        case tree.SliceUse():
            return of.of, of.high, of.low
        case tree.BinaryUse():
            return of.left, of.right
        case tree.ConditionalUse():
            return of.condition, of.yes, of.no
        case tree.CallUse():
            return of.function, *(argument.value for argument in of.arguments)
        case tree.ListUse():
            return of.items
    return ()
