"""Annotations: which there are, where they stand, and what they take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Any, get_args

from placer.metacompiler.p4.checker.rules.context import CheckContext
from placer.metacompiler.p4.checker.syntax import tree
from profiles.faults import suggestion

ANYWHERE = ("",)
KNOWN: dict[str, tuple[str, tuple[type, ...]]] = {
    "name": ("one text", ()),
    "hidden": ("nothing", ()),
    "pragma": ("words", ()),
    "tableonly": ("nothing", (tree.ActionUse,)),
    "defaultonly": ("nothing", (tree.ActionUse,)),
    "priority": ("one number", (tree.TableEntry,)),
    "mutually_exclusive": ("texts", (tree.TableDeclaration,)),
}
"""What each annotation takes, and before or behind what it stands; empty: anything."""


EXPRESSIONS = get_args(tree.Expression)


class AnnotationRules:
    """Checks the annotations of a program."""

    def __init__(self, context: CheckContext) -> None:
        self.context = context

    def check(self, program: tree.P4Program) -> None:
        """Faults of all annotations."""
        for owner in _owners(program):
            seen: set[str] = set()
            for note in owner.annotations:
                self._annotation(note, type(owner))
                if note.name in seen and note.name != "pragma":
                    self.context.fault(note.at, f"@{note.name} stands here twice")
                seen.add(note.name)

    def _annotation(self, note: tree.Annotation, owner: type) -> None:
        if note.name not in KNOWN:
            self.context.fault(note.at, f"there is no annotation @{note.name}", suggestion(note.name, KNOWN))
            return
        takes, owners = KNOWN[note.name]
        if owners and owner not in owners:
            self.context.fault(note.at, f"@{note.name} does not stand here")
        arguments = note.arguments or ()
        kind = tree.NumberLiteral if takes == "one number" else tree.TextLiteral
        fits = {
            "nothing": not arguments,
            "words": bool(note.pragma),
            "texts": bool(arguments) and all(isinstance(one, kind) for one in arguments),
        }.get(takes, len(arguments) == 1 and isinstance(arguments[0], kind))
        if not fits:
            self.context.fault(note.at, f"@{note.name} takes {takes}")


def _owners(node: Any) -> Iterator[Any]:
    """Nodes that may have annotations, in the order of the text."""
    if isinstance(node, tuple):
        for one in node:
            yield from _owners(one)
    elif isinstance(node, tree.SyntaxNode):
        if getattr(node, "annotations", ()):
            yield node
        kind: Any = type(node)
        for name in _parts(kind):
            value = getattr(node, name)
            if isinstance(value, tuple | tree.SyntaxNode):
                yield from _owners(value)


@cache
def _parts(kind: type[tree.SyntaxNode]) -> tuple[str, ...]:
    """Fields that may hold nodes with annotations; expressions hold none."""
    if issubclass(kind, EXPRESSIONS):
        return ()
    return tuple(one.name for one in fields(kind) if one.name not in ("at", "annotations", "name"))
