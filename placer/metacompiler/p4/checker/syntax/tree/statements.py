"""Statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from placer.metacompiler.p4.checker.syntax.tree.values import Annotation, CallUse, Expression, SyntaxNode, TypeSyntax


@dataclass(frozen=True, slots=True)
class VariableDeclaration(SyntaxNode):
    """`type name = value;`."""

    type: TypeSyntax
    name: str
    value: Expression | None
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class ConstantDeclaration(SyntaxNode):
    """`const type name = value;`."""

    type: TypeSyntax
    name: str
    value: Expression
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment(SyntaxNode):
    """`target = value;`."""

    target: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class CallStatement(SyntaxNode):
    """A call, its result unused."""

    call: CallUse


@dataclass(frozen=True, slots=True)
class IfStatement(SyntaxNode):
    """`if (condition) yes else no`."""

    condition: Expression
    yes: Statement
    no: Statement | None


@dataclass(frozen=True, slots=True)
class BlockStatement(SyntaxNode):
    """`{ ... }`."""

    statements: tuple[Statement, ...]
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class LeaveStatement(SyntaxNode):
    """`return;` or `exit;`."""

    word: str


@dataclass(frozen=True, slots=True)
class EmptyStatement(SyntaxNode):
    """`;`."""


Statement: TypeAlias = (
    VariableDeclaration
    | ConstantDeclaration
    | Assignment
    | CallStatement
    | IfStatement
    | BlockStatement
    | LeaveStatement
    | EmptyStatement
)
