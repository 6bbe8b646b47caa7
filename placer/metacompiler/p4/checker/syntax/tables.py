"""Tables, read from tokens."""

from __future__ import annotations

from placer.metacompiler.p4.checker.faults import P4SyntaxError
from placer.metacompiler.p4.checker.syntax import tree
from placer.metacompiler.p4.checker.syntax.statements import StatementReader

Annotations = tuple[tree.Annotation, ...]


class TableReader(StatementReader):
    """Reads `table name { ... }`."""

    def table(self, annotations: Annotations) -> tree.TableDeclaration:
        """A table; each part may stand once."""
        self.take()
        at = self.here
        name = self.name("a table")
        self.expect("{", f"before the parts of table {name}")
        parts = _TableParts()
        while not self.takes("}"):
            if self.next.kind == "end":
                raise self.unexpected(f"'}}' behind table {name}")
            self._part(parts)
        return tree.TableDeclaration(
            at,
            name,
            parts.key or (),
            parts.actions or (),
            parts.default,
            parts.constant_default,
            parts.entries,
            tuple(parts.properties),
            annotations,
        )

    def _part(self, parts: _TableParts) -> None:
        at = self.here
        constant = self.takes("const")
        name = self.name("a part of a table")
        if name in parts.seen:
            raise P4SyntaxError(at, f"the table has {name} twice")
        parts.seen.add(name)
        if constant and name in ("key", "actions"):
            raise P4SyntaxError(at, f"{name} is never const")
        self.expect("=", f"behind {name}")
        if name == "key":
            parts.key = self._key()
        elif name == "actions":
            parts.actions = self._actions()
        elif name == "entries":
            if not constant:
                raise P4SyntaxError(at, "entries of a program are const", "write const entries = { ... }")
            parts.entries = self._entries()
        elif name == "default_action":
            parts.default = self._action_use()
            parts.constant_default = constant
            self.expect(";", "behind the default action")
        else:
            parts.properties.append(tree.TableProperty(at, name, constant, self.expression()))
            self.expect(";", f"behind {name}")

    def _key(self) -> tuple[tree.KeyElement, ...]:
        self.expect("{", "before the key")
        found = []
        while not self.takes("}"):
            at = self.here
            expression = self.expression()
            self.expect(":", "and a match kind behind a key")
            kind = self.name("a match kind")
            annotations = self.annotations()
            self.expect(";", "behind the match kind")
            found.append(tree.KeyElement(at, expression, kind, annotations))
        return tuple(found)

    def _actions(self) -> tuple[tree.ActionUse, ...]:
        self.expect("{", "before the actions")
        found = []
        while not self.takes("}"):
            found.append(self._action_use())
            self.expect(";", "behind an action")
        return tuple(found)

    def _action_use(self) -> tree.ActionUse:
        annotations = self.annotations()
        at = self.here
        name = self.name("an action")
        arguments = self.arguments() if self.sees("(") else ()
        return tree.ActionUse(at, name, arguments, annotations)

    def _entries(self) -> tuple[tree.TableEntry, ...]:
        self.expect("{", "before the entries")
        found = []
        while not self.takes("}"):
            at = self.here
            values = self.value_sets()
            self.expect(":", "and an action behind the values of an entry")
            action = self._action_use()
            annotations = self.annotations()
            self.expect(";", "behind an entry")
            found.append(tree.TableEntry(at, values, action, annotations))
        return tuple(found)


class _TableParts:
    """What was read of a table so far."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.key: tuple[tree.KeyElement, ...] | None = None
        self.actions: tuple[tree.ActionUse, ...] | None = None
        self.default: tree.ActionUse | None = None
        self.constant_default = False
        self.entries: tuple[tree.TableEntry, ...] | None = None
        self.properties: list[tree.TableProperty] = []
