"""Paths through a control: no table is applied twice on one, and exclusive tables never meet on one.

A table of a pipeline cannot be revisited (Lemur, section 4.2), so two `if` behind each other count as one path even if
their conditions never hold together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from placer.metacompiler.p4.checker.faults import SourcePosition
from placer.metacompiler.p4.checker.rules.actions import calls_in, calls_of
from placer.metacompiler.p4.checker.syntax import tree
from placer.metacompiler.p4.checker.syntax.printer import printed_expression

Located = tuple[SourcePosition, str]
EXCLUSIVE = "mutually_exclusive"


def applied_twice(control: tree.ControlDeclaration) -> Iterator[Located]:
    """Tables that some path applies a second time."""
    tables = {one.name for one in control.locals if isinstance(one, tree.TableDeclaration)}
    found: list[Located] = []
    _walk(control.body, frozenset(), tables, found)
    yield from found


def _walk(one: tree.Statement, before: frozenset[str], tables: set[str], found: list[Located]) -> frozenset[str] | None:
    """Tables applied up to the end of a statement; None if no path goes on behind it."""
    match one:
        case tree.BlockStatement():
            reached: frozenset[str] | None = before
            for inner in one.statements:
                if reached is None:
                    break
                reached = _walk(inner, reached, tables, found)
            return reached
        case tree.IfStatement():
            asked = _apply(calls_of(one.condition), before, tables, found)
            yes = _walk(one.yes, asked, tables, found)
            no = asked if one.no is None else _walk(one.no, asked, tables, found)
            return no if yes is None else yes if no is None else yes | no
        case tree.LeaveStatement():
            return None
    return _apply(calls_in(one), before, tables, found)


def _apply(
    calls: Iterator[tree.CallUse], before: frozenset[str], tables: set[str], found: list[Located]
) -> frozenset[str]:
    for call in calls:
        name = _applied(call, tables)
        if name in before:
            found.append((call.at, f"table {name} is applied a second time on this path"))
        before = before | {name} if name else before
    return before


def _applied(call: tree.CallUse, tables: set[str]) -> str:
    method = call.function
    plain = isinstance(method, tree.MemberUse) and method.name == "apply" and isinstance(method.of, tree.NameUse)
    name = method.of.name if plain and isinstance(method, tree.MemberUse) else ""  # type: ignore[union-attr]
    return name if name in tables else ""


@dataclass(frozen=True, slots=True)
class BranchGuard:
    """A condition that holds where something stands: `field == value`, or not.

    Parameters
    ----------
    branch
        The `if`, and which of its branches.
    moment
        Number of the event at which the condition is looked at.
    """

    field: str
    value: str
    holds: bool
    branch: SourcePosition
    moment: int


class ExclusiveTables:
    """Finds out whether tables that are declared exclusive are so."""

    def __init__(self, control: tree.ControlDeclaration) -> None:
        self.tables = {one.name: one for one in control.locals if isinstance(one, tree.TableDeclaration)}
        self.actions = {one.name: one for one in control.locals if isinstance(one, tree.ActionDeclaration)}
        self.applied: dict[str, list[tuple[BranchGuard, ...]]] = {}
        self.writes: list[tuple[int, str]] = []
        self._moment = 0
        self._inside: list[str] = []
        self._collect(control.body, ())

    def faults(self) -> Iterator[Located]:
        """Tables declared exclusive that are not there, or that one packet may reach both."""
        for table in self.tables.values():
            for note in table.annotations:
                if note.name == EXCLUSIVE:
                    yield from self._annotation_faults(table, note)

    def _annotation_faults(self, table: tree.TableDeclaration, note: tree.Annotation) -> Iterator[Located]:
        for argument in note.arguments or ():
            other = argument.text if isinstance(argument, tree.TextLiteral) else ""
            if other not in self.tables or other == table.name:
                yield argument.at, f"there is no other table {other or printed_expression(argument)}"
            elif not self._exclusive(table.name, other):
                yield (
                    argument.at,
                    f"tables {table.name} and {other} are declared exclusive, but one packet may reach both",
                )

    def _exclusive(self, one: str, other: str) -> bool:
        pairs = product(self.applied.get(one, ()), self.applied.get(other, ()))
        return all(any(self._excludes(*both) for both in product(a, b)) for a, b in pairs)

    def _excludes(self, one: BranchGuard, other: BranchGuard) -> bool:
        if one.branch == other.branch:
            return one.holds != other.holds
        earlier, later = (one, other) if one.moment < other.moment else (other, one)
        if earlier.field != later.field or not earlier.field:
            return False
        differ = (earlier.holds and later.holds and earlier.value != later.value) or (
            earlier.holds != later.holds and earlier.value == later.value
        )
        return differ and not any(
            earlier.moment < moment < later.moment and earlier.field == target for moment, target in self.writes
        )

    def _collect(self, one: tree.Statement, guards: tuple[BranchGuard, ...]) -> None:
        self._moment += 1
        match one:
            case tree.BlockStatement():
                for inner in one.statements:
                    self._collect(inner, guards)
            case tree.IfStatement():
                self._calls(calls_of(one.condition), guards)
                moment = self._moment
                conditions = list(_equalities(one.condition))
                whole = BranchGuard("", "", True, one.at, moment)
                holding = [BranchGuard(field, value, True, one.at, moment) for field, value in conditions]
                failing = [BranchGuard("", "", False, one.at, moment)]
                if isinstance(one.condition, tree.BinaryUse) and one.condition.sign == "==":
                    failing += [BranchGuard(field, value, False, one.at, moment) for field, value in conditions]
                self._collect(one.yes, (*guards, whole, *holding))
                if one.no is not None:
                    self._collect(one.no, (*guards, *failing))
            case _:
                self._calls(calls_in(one), guards)
                self._write(one)

    def _calls(self, calls: Iterator[tree.CallUse], guards: tuple[BranchGuard, ...]) -> None:
        for call in calls:
            self._moment += 1
            name = _applied(call, set(self.tables))
            if name:
                self.applied.setdefault(name, []).append(guards)
                for use in self.tables[name].actions:
                    self._action(use.name)
            elif isinstance(call.function, tree.NameUse):
                self._action(call.function.name)

    def _action(self, name: str) -> None:
        """What an action writes; one that calls itself was refused before."""
        if name in self.actions and name not in self._inside:
            self._inside.append(name)
            self._write(self.actions[name].body)
            self._inside.pop()

    def _write(self, one: tree.Statement) -> None:
        match one:
            case tree.BlockStatement():
                for inner in one.statements:
                    self._write(inner)
            case tree.IfStatement():
                for branch in (one.yes, one.no):
                    if branch is not None:
                        self._write(branch)
            case tree.Assignment():
                self.writes.append((self._moment, printed_expression(one.target)))
            case tree.CallStatement() if isinstance(one.call.function, tree.NameUse):
                self._action(one.call.function.name)


def _equalities(condition: tree.Expression) -> Iterator[tuple[str, str]]:
    """`field == value` that hold whenever a condition holds."""
    if not isinstance(condition, tree.BinaryUse):
        return
    if condition.sign == "&&":
        yield from _equalities(condition.left)
        yield from _equalities(condition.right)
    elif condition.sign == "==" and isinstance(condition.right, tree.NumberLiteral):
        yield printed_expression(condition.left), str(condition.right.value)
