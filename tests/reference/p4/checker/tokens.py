"""The tokens of an emitted P4 program, and a cursor over them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from placer.rack.compiler.p4.bodies import ALSO_NAMES, P4_KEYWORDS

Item = TypeVar("Item")

MAX_NESTING_DEPTH = 100
"""Expressions and statements may stand that deep in each other: a guard against the recursion limit."""

TOKEN_PATTERN = re.compile(
    r"""(?P<blank>\s+|//[^\n]*)
    |(?P<include>\#include\ <[^>\n]*>)
    |(?P<number>[0-9][0-9A-Za-z_]*)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<text>"[^"\n]*")
    |(?P<sign>&&&|==|!=|<<|>>|[-+&|^<>=:;,.(){}@])
    """,
    re.VERBOSE | re.ASCII,
)
NUMBER_PATTERN = re.compile(r"0x[0-9a-f]{1,32}|0|[1-9][0-9]{0,9}")


class SourcePosition(NamedTuple):
    """Line and column of a character, both from 1."""

    line: int
    column: int


class P4SyntaxError(Exception):
    """The text is no program that the compiler emits; reading stops there."""

    def __init__(self, position: SourcePosition, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.position = position
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class P4Token:
    """A word, number or sign, and where it stands.

    Parameters
    ----------
    kind
        `keyword`, `name`, `number`, `text`, `sign`, `include`, `end`.
    start, end
        Its characters in the text.
    """

    kind: str
    text: str
    at: SourcePosition
    start: int
    end: int


def split_tokens(text: str) -> list[P4Token]:
    """All tokens of a text, and one of kind `end` behind them.

    Raises
    ------
    P4SyntaxError
        At the first character that belongs to no token.
    """
    found: list[P4Token] = []
    start, line, line_start = 0, 1, 0
    while start < len(text):
        at = SourcePosition(line, start - line_start + 1)
        match = TOKEN_PATTERN.match(text, start)
        if match is None:
            what = {'"': "a text without closing quote on its line", "#": "this directive"}
            raise P4SyntaxError(at, what.get(text[start], f"'{text[start]}'") + " is not emitted")
        kind = str(match.lastgroup)
        if kind == "name" and match[0] in P4_KEYWORDS:
            kind = "keyword"
        if kind != "blank":
            found.append(P4Token(kind, match[0], at, start, match.end()))
        elif "\n" in match[0]:
            line, line_start = line + match[0].count("\n"), start + match[0].rindex("\n") + 1
        start = match.end()
    return [
        *found,
        P4Token("end", "the end of the program", SourcePosition(line, start - line_start + 1), start, start),
    ]


class TokenCursor:
    """Where the reader of a program stands."""

    def __init__(self, text: str) -> None:
        self._tokens = split_tokens(text)
        self._number = 0
        self._depth = 0

    @property
    def next(self) -> P4Token:
        """The token that is not read yet."""
        return self._tokens[self._number]

    @property
    def here(self) -> SourcePosition:
        """Where the next token begins."""
        return self.next.at

    def sees(self, *texts: str) -> bool:
        """Whether the next token is one of these words or signs."""
        return self.next.text in texts

    def sees_name(self) -> bool:
        """Whether the next token may be a name."""
        return self.next.kind == "name" or self.next.text in ALSO_NAMES

    def take(self) -> P4Token:
        """Read the next token."""
        token = self.next
        if token.kind != "end":
            self._number += 1
        return token

    def takes(self, text: str) -> bool:
        """Read the next token if it is this word or sign."""
        found = self.sees(text)
        self._number += found
        return found

    def expect(self, texts: str, where: str) -> None:
        """Read these words and signs, with blanks between them; `where` ends the sentence if one is not there."""
        for text in texts.split():
            if not self.takes(text):
                raise self.unexpected(f"'{text}' {where}")

    def name(self, owner: str) -> str:
        """Read a name; `owner` says whose."""
        if not self.sees_name():
            hint = f"'{self.next.text}' is a word of the language" if self.next.kind == "keyword" else None
            raise self.unexpected(f"the name of {owner}", hint)
        return self.take().text

    def number(self, what: str) -> int:
        """Read a number without width: `16`, `0x10`."""
        if self.next.kind != "number":
            raise self.unexpected(what)
        if not NUMBER_PATTERN.fullmatch(self.next.text):
            raise P4SyntaxError(self.here, f"{self.next.text} is not a number that is emitted", "as in 16 or 0x10")
        return int(self.take().text, 0)

    def quoted_name(self, owner: str) -> str:
        """Read a name in quotes."""
        if self.next.kind != "text":
            raise self.unexpected(f"the name of {owner} in quotes")
        return self.take().text.strip('"')

    def until(self, end: str, read: Callable[[], Item]) -> tuple[Item, ...]:
        """All that stands before a closing sign, and the sign."""
        found = []
        while not self.takes(end):
            found.append(read())
        return tuple(found)

    def listed(self, end: str, read: Callable[[], Item]) -> tuple[Item, ...]:
        """What stands between commas before a closing sign, and the sign; at least one."""
        found = [read()]
        while self.takes(","):
            found.append(read())
        self.expect(end, "or ',' behind the values")
        return tuple(found)

    def repeated(self, word: str, read: Callable[[], Item]) -> tuple[Item, ...]:
        """What stands behind each of several same words."""
        found = []
        while self.takes(word):
            found.append(read())
        return tuple(found)

    def unexpected(self, wanted: str, hint: str | None = None) -> P4SyntaxError:
        """The error that something else stands here."""
        found = self.next.text if self.next.kind == "end" else f"'{self.next.text}'"
        return P4SyntaxError(self.here, f"expected {wanted}, found {found}", hint)

    @contextmanager
    def nested(self) -> Iterator[None]:
        """What is read inside stands one level deeper."""
        self._depth += 1
        if self._depth > MAX_NESTING_DEPTH:
            raise P4SyntaxError(self.here, f"nested more than {MAX_NESTING_DEPTH} deep")
        yield
        self._depth -= 1
