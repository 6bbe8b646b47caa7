"""Declarations, and whole programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from placer.metacompiler.p4.checker.syntax.tree.statements import (
    BlockStatement,
    ConstantDeclaration,
    Statement,
    VariableDeclaration,
)
from placer.metacompiler.p4.checker.syntax.tree.values import (
    Annotation,
    CallArgument,
    Expression,
    NamedType,
    SyntaxNode,
    TypeSyntax,
    ValueSet,
)


@dataclass(frozen=True, slots=True)
class IncludeLine(SyntaxNode):
    """`#include <file>`."""

    file: str


@dataclass(frozen=True, slots=True)
class TypeDeclaration(SyntaxNode):
    """`typedef type name;`, another name of a type, or `type type name;`, a type of its own."""

    word: str
    type: TypeSyntax
    name: str
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldDeclaration(SyntaxNode):
    """`type name;` of a header or struct."""

    type: TypeSyntax
    name: str
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldsDeclaration(SyntaxNode):
    """`header name { ... }` or `struct name { ... }`."""

    word: str
    name: str
    fields: tuple[FieldDeclaration, ...]
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class ParameterDeclaration(SyntaxNode):
    """`direction type name`; direction is `in`, `out`, `inout` or empty."""

    direction: str
    type: TypeSyntax
    name: str
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class InstanceDeclaration(SyntaxNode):
    """`type(arguments) name;`: a register, a counter, or the package."""

    type: NamedType
    arguments: tuple[CallArgument, ...]
    name: str
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class SelectCase(SyntaxNode):
    """`(values): state;`."""

    values: tuple[ValueSet, ...]
    state: str


@dataclass(frozen=True, slots=True)
class Transition(SyntaxNode):
    """`transition state;`, or by `select(keys) { cases }`.

    Parameters
    ----------
    state
        Where to go; None for a `select`.
    """

    state: str | None
    keys: tuple[Expression, ...] = ()
    cases: tuple[SelectCase, ...] = ()


@dataclass(frozen=True, slots=True)
class StateDeclaration(SyntaxNode):
    """`state name { statements transition }`; without a transition a state rejects."""

    name: str
    statements: tuple[Statement, ...]
    transition: Transition | None
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class ParserDeclaration(SyntaxNode):
    """`parser name(parameters) { locals states }`."""

    name: str
    parameters: tuple[ParameterDeclaration, ...]
    locals: tuple[VariableDeclaration | ConstantDeclaration | InstanceDeclaration, ...]
    states: tuple[StateDeclaration, ...]
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class ActionDeclaration(SyntaxNode):
    """`action name(parameters) { ... }`."""

    name: str
    parameters: tuple[ParameterDeclaration, ...]
    body: BlockStatement
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyElement(SyntaxNode):
    """`expression: match kind;`."""

    expression: Expression
    match_kind: str
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class ActionUse(SyntaxNode):
    """`name` or `name(arguments)`, of a table's actions, its default action or an entry."""

    name: str
    arguments: tuple[CallArgument, ...] = ()
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class TableEntry(SyntaxNode):
    """`(values): action(arguments);`."""

    values: tuple[ValueSet, ...]
    action: ActionUse
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class TableProperty(SyntaxNode):
    """`name = value;`, constant or not."""

    name: str
    constant: bool
    value: Expression


@dataclass(frozen=True, slots=True)
class TableDeclaration(SyntaxNode):
    """`table name { ... }`.

    Parameters
    ----------
    properties
        Everything but key, actions, default action and entries: size, add_on_miss, ...
    constant_default
        The control plane may not change the default action.
    """

    name: str
    key: tuple[KeyElement, ...]
    actions: tuple[ActionUse, ...]
    default: ActionUse | None
    constant_default: bool
    entries: tuple[TableEntry, ...] | None
    properties: tuple[TableProperty, ...]
    annotations: tuple[Annotation, ...] = ()


ControlLocal: TypeAlias = (
    VariableDeclaration | ConstantDeclaration | InstanceDeclaration | ActionDeclaration | TableDeclaration
)


@dataclass(frozen=True, slots=True)
class ControlDeclaration(SyntaxNode):
    """`control name(parameters) { locals apply { ... } }`."""

    name: str
    parameters: tuple[ParameterDeclaration, ...]
    locals: tuple[ControlLocal, ...]
    body: BlockStatement
    annotations: tuple[Annotation, ...] = ()


Declaration: TypeAlias = (
    IncludeLine
    | ConstantDeclaration
    | TypeDeclaration
    | FieldsDeclaration
    | ParserDeclaration
    | ControlDeclaration
    | ActionDeclaration
    | InstanceDeclaration
)


@dataclass(frozen=True, slots=True)
class P4Program(SyntaxNode):
    """All declarations, in order."""

    declarations: tuple[Declaration, ...]
