"""What is known of a program while it is checked: faults so far, names in sight, headers made and used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from placer.metacompiler.p4.checker.faults import P4Fault, SourcePosition
from placer.metacompiler.p4.checker.rules.types import UNKNOWN, FieldsType, P4Type
from profiles.faults import suggestion

HeaderKey = tuple[str, str]
"""A header of the packet: the name of the struct that holds it, and its field there."""


@dataclass(slots=True)
class DeclaredName:
    """A name, and what it stands for.

    Parameters
    ----------
    kind
        `type`, `constant`, `variable`, `parameter`, `instance`, `action`, `table`, `parser`, `control`, `function`.
    at
        Where it is declared; None: by the architecture.
    constant
        The value, of a constant.
    writable
        It may stand left of an assignment.
    declaration
        The node of the syntax tree, of an action, table, parser or control.
    used, written
        It is read, or called, somewhere; it gets a value somewhere.
    """

    name: str
    kind: str
    type: P4Type
    at: SourcePosition | None = None
    constant: int | bool | str | None = None
    writable: bool = False
    declaration: Any = None
    used: bool = False
    written: bool = False


@dataclass(slots=True)
class FieldUses:
    """Which fields of structs, and which headers, a program uses.

    Parameters
    ----------
    mentioned
        (struct or header, field) that occur in an expression.
    fields_read, fields_written
        Those of which a value is read, and where first; those that get one.
    headers_read
        Headers of which a field is read, and where first.
    headers_made
        Headers that are extracted, set valid, or assigned, and where first.
    headers_emitted
        Headers that the deparser writes, in order.
    """

    mentioned: set[tuple[str, str]] = field(default_factory=set)
    fields_read: dict[tuple[str, str], SourcePosition] = field(default_factory=dict)
    fields_written: set[tuple[str, str]] = field(default_factory=set)
    headers_read: dict[HeaderKey, SourcePosition] = field(default_factory=dict)
    headers_made: dict[HeaderKey, SourcePosition] = field(default_factory=dict)
    headers_emitted: list[tuple[HeaderKey, SourcePosition]] = field(default_factory=list)


class CheckContext:
    """Faults and names of one program.

    Parameters
    ----------
    file
        The program's file as its user named it.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.faults: list[P4Fault] = []
        self.warnings: list[P4Fault] = []
        self.uses = FieldUses()
        self.role = ""
        self._scopes: list[dict[str, DeclaredName]] = [{}]

    def fault(self, at: SourcePosition, message: str, hint: str | None = None) -> None:
        """One more fault."""
        self.faults.append(P4Fault.at(self.file, at, message, hint))

    def warn(self, at: SourcePosition, message: str) -> None:
        """Something that is no fault, but probably not meant."""
        self.warnings.append(P4Fault.at(self.file, at, message))

    def known(self, name: str) -> DeclaredName | None:
        """What a name stands for here."""
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    def found(self, name: str, at: SourcePosition, kinds: Sequence[str], what: str) -> DeclaredName | None:
        """What a name stands for, if it is of one of these kinds; a fault otherwise. It counts as used."""
        known = self.known(name)
        if known is None:
            names = [one.name for scope in self._scopes for one in scope.values() if one.kind in kinds]
            self.fault(at, f"there is no {what} {name}", suggestion(name, names) if names else None)
            return None
        known.used = True
        if known.kind not in kinds:
            self.fault(at, f"{name} is {_article(known.kind)}, not {_article(what)}")
            return None
        return known

    def declare(self, one: DeclaredName) -> None:
        """Make a name known in the innermost scope; a fault if it is in sight already."""
        earlier = self.known(one.name)
        if earlier is not None and one.at is not None:
            where = "by the architecture" if earlier.at is None else f"in line {earlier.at.line}"
            self.fault(one.at, f"{one.name} is declared already, {where}")
            if one.name in self._scopes[-1]:
                return
        self._scopes[-1][one.name] = one

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names declared inside are forgotten behind it; those never used are warned of."""
        self._scopes.append({})
        try:
            yield
        finally:
            self.forget()

    def forget(self) -> None:
        """Leave the innermost scope."""
        for one in self._scopes.pop().values():
            if one.at is None:
                continue
            if one.kind == "variable" and one.used and not one.written:
                self.fault(one.at, f"variable {one.name} is read, but never gets a value")
            elif not one.used and one.kind not in ("parameter", "package"):
                self.warn(one.at, f"{one.kind} {one.name} is never used")

    @contextmanager
    def within(self, role: str) -> Iterator[None]:
        """Statements inside are those of a `parser`, `control`, `action` or `deparser`."""
        outer, self.role = self.role, role
        try:
            yield
        finally:
            self.role = outer

    def mention(self, holder: FieldsType, name: str) -> P4Type:
        """The type of a field that an expression names."""
        self.uses.mentioned.add((holder.name, name))
        return holder.fields.get(name, UNKNOWN)


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
