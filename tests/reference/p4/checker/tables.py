"""Tables: keys, actions, default action, entries, and what a table learns; and the values of a parser's cases."""

from __future__ import annotations

from collections.abc import Sequence

from profiles.faults import suggestion
from tests.reference.p4.checker import tree
from tests.reference.p4.checker.scope import UNKNOWN, ProgramScope, ValueType
from tests.reference.p4.checker.tokens import SourcePosition
from tests.reference.p4.checker.values import check_arguments, check_fits, find_type

MATCH_KINDS = ("exact", "ternary", "lpm")
MAX_TABLE_SIZE = (1 << 31) - 1

KeyColumn = tuple[ValueType, str]
"""Type and match kind of a key; the kind of a key of `select` is empty."""


def check_table(scope: ProgramScope, table: tree.TableDeclaration) -> None:
    """Check a table whose actions are declared."""
    columns = [_check_key(scope, element) for element in table.key]
    if sum(kind == "lpm" for _, kind in columns) > 1:
        scope.fault(table.at, f"table {table.name} has more than one key of kind lpm")
    _check_actions(scope, table)
    for call in (table.default, *(entry.action for entry in table.entries)):
        _check_call(scope, table, call)
    check_value_lists(scope, table.entries, columns, "entry")
    if not 1 <= table.size.value <= MAX_TABLE_SIZE:
        scope.fault(table.size.at, f"size is 1 to {MAX_TABLE_SIZE}, found {table.size.value}")
    elif len(table.entries) > table.size.value:
        scope.fault(table.at, f"table {table.name} of size {table.size.value} has {len(table.entries)} entries")
    _check_learning(scope, table, columns)


def _check_key(scope: ProgramScope, element: tree.KeyElement) -> KeyColumn:
    found = find_type(scope, element.field)
    if element.match_kind not in MATCH_KINDS:
        hint = suggestion(element.match_kind, MATCH_KINDS)
        scope.fault(element.at, f"there is no match kind {element.match_kind}", hint)
    if not found.is_bits and found != UNKNOWN:
        scope.fault(element.at, f"a key cannot be {found}")
        found = UNKNOWN
    return found, element.match_kind


def _check_actions(scope: ProgramScope, table: tree.TableDeclaration) -> None:
    """A table that learns says of each action whether it is the default or what it learns; no other does."""
    if not table.actions:
        scope.fault(table.at, f"table {table.name} has no actions")
    seen: set[str] = set()
    for listed in table.actions:
        scope.find(scope.actions, listed.name, listed.at, "action")
        if listed.name in seen:
            scope.fault(listed.at, f"table {table.name} lists action {listed.name} twice")
        seen.add(listed.name)
        wanted = ("defaultonly" if listed.name == table.default.name else "tableonly") if table.learns else ""
        if listed.note != wanted:
            expected, found = (f"@{note}" if note else "no annotation" for note in (wanted, listed.note))
            message = f"action {listed.name} of table {table.name}: expected {expected}, found {found}"
            scope.fault(listed.at, message)


def _check_call(scope: ProgramScope, table: tree.TableDeclaration, call: tree.ActionCall) -> None:
    """The action of an entry, or the default, is listed, and gets a number for each parameter."""
    names = [listed.name for listed in table.actions]
    if call.name not in names:
        hint = suggestion(call.name, names) if names else None
        scope.fault(call.at, f"table {table.name} does not list action {call.name}", hint)
    elif call.name in scope.actions:
        check_arguments(scope, call.at, scope.actions[call.name], call.arguments)


def _check_learning(scope: ProgramScope, table: tree.TableDeclaration, columns: Sequence[KeyColumn]) -> None:
    """A table learns by exact keys, and its default action, no other, adds the entries, for an action of the table."""
    names = [listed.name for listed in table.actions]
    adding = {
        name: statement
        for name in names
        if name in scope.actions
        for statement in tree.walk_statements(scope.actions[name].body)
        if isinstance(statement, tree.EntryLearning)
    }
    if not table.learns:
        if adding:
            scope.fault(table.at, f"table {table.name} has no add_on_miss, but an action with add_entry")
        return
    if not columns or any(kind != "exact" for _, kind in columns):
        scope.fault(table.at, f"table {table.name} has add_on_miss; its keys must be exact")
    if table.default.name not in adding:
        scope.fault(table.at, f"table {table.name} has add_on_miss; its default action must call add_entry")
    for name, statement in adding.items():
        if name != table.default.name:
            scope.fault(table.at, f"action {name} calls add_entry, but is not the default of {table.name}")
        if statement.action not in names:
            message = f"table {table.name} does not list action {statement.action}, which add_entry names"
            scope.fault(statement.at, message)


def check_value_lists(
    scope: ProgramScope,
    lists: Sequence[tree.TableEntry] | Sequence[tree.SelectCase],
    columns: Sequence[KeyColumn],
    what: str,
) -> None:
    """The values of entries or cases: one set for each key, that fits it, and no two lists with the same sets."""
    seen: dict[tuple[tuple[int, int | None], ...], SourcePosition] = {}
    for line in lists:
        if len(line.values) != len(columns):
            scope.fault(line.at, f"expected {len(columns)} values, one for each key, found {len(line.values)}")
            continue
        for values, column in zip(line.values, columns, strict=True):
            _check_value_set(scope, values, *column)
        sets = tuple((values.value, values.mask) for values in line.values)
        if sets in seen:
            scope.fault(line.at, f"the {what} in line {seen[sets].line} has the same values")
        seen.setdefault(sets, line.at)


def _check_value_set(scope: ProgramScope, values: tree.ValueSet, kind: ValueType, match_kind: str) -> None:
    check_fits(scope, values.at, values.value, kind)
    if values.mask is None:
        return
    check_fits(scope, values.at, values.mask, kind)
    if match_kind == "exact":
        scope.fault(values.at, "a key of kind exact needs one value, and takes no mask")
    if values.value & ~values.mask:
        message = f"the value {values.value:#x} has bits outside its mask {values.mask:#x}: no packet matches"
        scope.fault(values.at, message)
    inverse = ~values.mask & ((1 << kind.width) - 1)
    if match_kind == "lpm" and inverse & (inverse + 1):
        scope.fault(values.at, f"{values.mask:#x} is not the mask of a prefix")
