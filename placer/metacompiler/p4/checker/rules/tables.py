"""Tables: keys, actions, default action, entries, properties."""

from __future__ import annotations

from placer.metacompiler.p4.checker.rules.actions import ActionRules, entries_added
from placer.metacompiler.p4.checker.rules.architecture import ENUMERATIONS, MATCH_KINDS
from placer.metacompiler.p4.checker.rules.context import DeclaredName
from placer.metacompiler.p4.checker.rules.entries import EntryFaults, KeyColumn, entry_faults
from placer.metacompiler.p4.checker.rules.types import (
    BOOL,
    UNKNOWN,
    VOID,
    WHOLE_NUMBER,
    BitsType,
    DistinctType,
    EnumeratedType,
    ListType,
    P4Type,
    mismatch,
)
from placer.metacompiler.p4.checker.syntax import tree
from profiles.faults import suggestion

TIMEOUT = "default_idle_timeout_for_data_plane_added_entries"
MOST_ENTRIES = (1 << 31) - 1
PROPERTIES = ("size", "add_on_miss", "idle_timeout_with_auto_delete", TIMEOUT, "pna_idle_timeout")


class TableRules(ActionRules):
    """Checks tables."""

    def table(self, one: tree.TableDeclaration) -> None:
        """Check and declare a table."""
        columns = [self._key(element) for element in one.key]
        if sum(column.match_kind == "lpm" for column in columns) > 1:
            self.context.fault(one.at, f"table {one.name} has more than one key of kind lpm")
        actions = self._actions(one)
        self._default(one, actions)
        if one.entries is not None:
            self._entries(one, columns, actions)
        size = self._properties(one)
        if size is not None and one.entries is not None and len(one.entries) > size:
            self.context.fault(one.at, f"table {one.name} of size {size} has {len(one.entries)} entries")
        self._added_entries(one, columns, actions)
        self.context.declare(DeclaredName(one.name, "table", VOID, one.at, declaration=one))

    def _key(self, element: tree.KeyElement) -> KeyColumn:
        found = self.value(element.expression)
        kind = element.match_kind
        if kind not in MATCH_KINDS:
            self.context.fault(element.at, f"there is no match kind {kind}", suggestion(kind, MATCH_KINDS))
        if found.type != UNKNOWN and not _may_be_key(found.type):
            self.context.fault(element.at, f"a key cannot be {found.type}")
            return KeyColumn(UNKNOWN, kind)
        if kind in ("lpm", "range") and not isinstance(found.type, BitsType) and found.type != UNKNOWN:
            self.context.fault(element.at, f"a key of kind {kind} needs bit<N>, found {found.type}")
        return KeyColumn(found.type, kind)

    def _actions(self, one: tree.TableDeclaration) -> dict[str, tree.ActionUse]:
        if not one.actions:
            self.context.fault(one.at, f"table {one.name} has no actions")
        found: dict[str, tree.ActionUse] = {}
        for use in one.actions:
            if use.name in found:
                self.context.fault(use.at, f"table {one.name} lists action {use.name} twice")
            found[use.name] = use
            action = self._action_named(use)
            if action is None:
                continue
            wanted = [parameter for parameter in action.parameters if parameter.direction]
            if len(wanted) != len(use.arguments):
                message = f"action {use.name} takes {len(wanted)} arguments here, found {len(use.arguments)}"
                self.context.fault(use.at, message, "those with a direction; the others come with the entry")
                continue
            for parameter, argument in zip(wanted, use.arguments, strict=True):
                self.action_argument(action, parameter, argument)
        return found

    def _action_named(self, use: tree.ActionUse) -> tree.ActionDeclaration | None:
        known = self.context.found(use.name, use.at, ("action",), "action")
        declaration = None if known is None else known.declaration
        return declaration if isinstance(declaration, tree.ActionDeclaration) else None

    def _chosen(self, use: tree.ActionUse, one: tree.TableDeclaration, actions: dict[str, tree.ActionUse]) -> None:
        """An action of an entry, or the default: listed, with a constant for each parameter without direction."""
        if use.name not in actions:
            hint = suggestion(use.name, actions) if actions else None
            self.context.fault(use.at, f"table {one.name} does not list action {use.name}", hint)
            return
        action = self._action_named(use)
        if action is None:
            return
        if len(use.arguments) != len(action.parameters):
            message = f"action {use.name} takes {len(action.parameters)} arguments, found {len(use.arguments)}"
            self.context.fault(use.at, message)
            return
        for parameter, argument in zip(action.parameters, use.arguments, strict=True):
            found = self.action_argument(action, parameter, argument)
            if not parameter.direction and found.constant is None and found.type != UNKNOWN:
                self.context.fault(argument.at, f"{parameter.name} of action {use.name}: expected a constant")

    def _default(self, one: tree.TableDeclaration, actions: dict[str, tree.ActionUse]) -> None:
        if one.default is None:
            self.context.fault(one.at, f"table {one.name} has no default_action")
            return
        self._chosen(one.default, one, actions)
        listed = actions.get(one.default.name)
        if listed is not None and any(note.name == "tableonly" for note in listed.annotations):
            self.context.fault(one.default.at, f"action {one.default.name} is @tableonly, but the default")

    def _entries(
        self, one: tree.TableDeclaration, columns: list[KeyColumn], actions: dict[str, tree.ActionUse]
    ) -> None:
        entries = one.entries or ()
        for entry in entries:
            self._chosen(entry.action, one, actions)
            listed = actions.get(entry.action.name)
            if listed is not None and any(note.name == "defaultonly" for note in listed.annotations):
                self.context.fault(entry.at, f"action {entry.action.name} is @defaultonly, but of an entry")
        faults: EntryFaults = entry_faults(self, columns, entries)
        for at, message in faults:
            self.context.fault(at, message)

    def _properties(self, one: tree.TableDeclaration) -> int | None:
        size = None
        for part in one.properties:
            if part.name not in PROPERTIES:
                hint = f"did you mean {TIMEOUT}?" if "timeout" in part.name else suggestion(part.name, PROPERTIES)
                self.context.fault(part.at, f"a table has no {part.name}", hint)
            elif part.name in ("size", TIMEOUT):
                value = self.positive(part.value, part.name, MOST_ENTRIES)
                size = value if part.name == "size" else size
            elif part.name == "pna_idle_timeout":
                self.wanted(part.value, ENUMERATIONS["PNA_IdleTimeout_t"], part.name)
            else:
                found = self.wanted(part.value, BOOL, part.name)
                if found.constant is None and found.type != UNKNOWN:
                    self.context.fault(part.at, f"{part.name} is true or false")
        return size

    def _added_entries(
        self, one: tree.TableDeclaration, columns: list[KeyColumn], actions: dict[str, tree.ActionUse]
    ) -> None:
        """Tables that learn: exact keys, and a default action that adds entries for an action of the table."""
        declared = {part.name: part for part in one.properties}
        learns = "add_on_miss" in declared and self.value(declared["add_on_miss"].value).constant is True
        adding = [(name, call) for name in actions for call in self._adds(name)]
        if not learns:
            if adding:
                self.context.fault(one.at, f"table {one.name} has no add_on_miss, but an action with add_entry")
            if TIMEOUT in declared:
                self.context.fault(declared[TIMEOUT].at, f"{TIMEOUT} needs add_on_miss = true")
            return
        if any(column.match_kind != "exact" for column in columns) or not columns:
            self.context.fault(one.at, f"table {one.name} has add_on_miss; its keys must be exact")
        if one.entries is not None:
            self.context.fault(one.at, f"table {one.name} has add_on_miss; it takes no const entries")
        if one.default is not None and not any(name == one.default.name for name, _ in adding):
            self.context.fault(one.at, f"table {one.name} has add_on_miss; its default action must call add_entry")
        for name, call in adding:
            if one.default is None or name != one.default.name:
                self.context.fault(one.at, f"action {name} calls add_entry, but is not the default of {one.name}")
            self._added(one, actions, call)

    def _adds(self, name: str) -> list[tree.CallUse]:
        known = self.context.known(name)
        declaration = None if known is None else known.declaration
        return list(entries_added(declaration)) if isinstance(declaration, tree.ActionDeclaration) else []

    def _added(self, one: tree.TableDeclaration, actions: dict[str, tree.ActionUse], call: tree.CallUse) -> None:
        """The action and its values that add_entry names; their types were found when its action was checked."""
        named = {argument.name: argument.value for argument in call.arguments}
        first, second = (
            (argument.value for argument in call.arguments[:2]) if len(call.arguments) >= 2 else (None, None)
        )
        text = named.get("action_name", first)
        if not isinstance(text, tree.TextLiteral):
            return
        if text.text not in actions:
            self.context.fault(text.at, f"table {one.name} does not list action {text.text}, which add_entry names")
            return
        known = self.context.known(text.text)
        values = named.get("action_params", second)
        if known is None or not isinstance(known.declaration, tree.ActionDeclaration) or values is None:
            return
        wanted = tuple(self.type_of(parameter.type) for parameter in known.declaration.parameters)
        found = self.added.get(call.at)
        if found is None:
            return
        expected: P4Type = ListType(wanted)
        reason = mismatch(found, wanted[0] if len(wanted) == 1 and not isinstance(found.type, ListType) else expected)
        if reason:
            self.context.fault(values.at, f"action_params of add_entry for {text.text}: {reason}")


def _may_be_key(kind: P4Type) -> bool:
    return isinstance(kind, BitsType | EnumeratedType | DistinctType) or kind in (BOOL, WHOLE_NUMBER)
