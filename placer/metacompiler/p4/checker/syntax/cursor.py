"""Tokens read from left to right."""

from __future__ import annotations

from placer.metacompiler.p4.checker.faults import P4SyntaxError, SourcePosition
from placer.metacompiler.p4.checker.syntax.lexer import ALSO_NAMES, P4Token, SourceText

DEEPEST = 100
"""Expressions and statements may stand that deep in each other: a guard against the recursion limit."""


class TokenCursor:
    """Where the reader of a program stands."""

    def __init__(self, text: str) -> None:
        self.source = SourceText(text)
        self.tokens = self.source.tokens()
        self.number = 0
        self.depth = 0

    @property
    def next(self) -> P4Token:
        """The token that is not read yet."""
        return self.tokens[self.number]

    @property
    def here(self) -> SourcePosition:
        """Where the next token begins."""
        return self.source.position(self.next.start)

    def ahead(self, count: int) -> P4Token:
        """The token that stands `count` behind the next one."""
        return self.tokens[min(self.number + count, len(self.tokens) - 1)]

    def sees(self, *texts: str) -> bool:
        """The next token is one of these words or signs."""
        return self.next.kind in ("keyword", "sign") and self.next.text in texts

    def sees_name(self, ahead: int = 0) -> bool:
        """The token there may be a name."""
        token = self.ahead(ahead)
        return token.kind == "name" or (token.kind == "keyword" and token.text in ALSO_NAMES)

    def take(self) -> P4Token:
        """Read the next token."""
        token = self.next
        if token.kind != "end":
            self.number += 1
        return token

    def takes(self, text: str) -> bool:
        """Read the next token if it is this word or sign."""
        if self.sees(text):
            self.number += 1
            return True
        return False

    def expect(self, text: str, where: str) -> P4Token:
        """Read this word or sign; `where` ends the sentence if it is not there."""
        if not self.sees(text):
            raise self.unexpected(f"'{text}' {where}")
        return self.take()

    def name(self, of: str) -> str:
        """Read a name; `of` says whose."""
        if not self.sees_name():
            word = self.next.kind == "keyword"
            hint = f"'{self.next.text}' is a word of the language" if word else None
            raise self.unexpected(f"the name of {of}", hint)
        return self.take().text

    def unexpected(self, wanted: str, hint: str | None = None) -> P4SyntaxError:
        """The error that something else stands here."""
        found = self.next.text if self.next.kind == "end" else f"'{self.next.text}'"
        return P4SyntaxError(self.here, f"expected {wanted}, found {found}", hint)

    def deeper(self) -> None:
        """One more level of nesting, until `depth` is taken down again."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise P4SyntaxError(self.here, f"nested more than {DEEPEST} deep")
