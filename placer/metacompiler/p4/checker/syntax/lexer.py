"""Characters of a P4 program to tokens."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from placer.metacompiler.p4.checker.faults import P4SyntaxError, SourcePosition

_WORDS = """
    abstract action actions apply bit bool const control default else entries enum error exit extern false header
    header_union if in inout int key match_kind out package parser return select state string struct switch table
    this transition true tuple type typedef varbit valueset void _
"""
KEYWORDS = frozenset(_WORDS.split())
"""Reserved words of the language, and those of a table's parts; `actions`, `apply`, `entries`, `key`, `state` and
`type` may also be names."""

ALSO_NAMES = frozenset({"actions", "apply", "entries", "key", "state", "type"})

_PATTERN = re.compile(
    r"""(?P<blank>[ \t\r\n\f]+|//[^\n]*|/\*.*?\*/)
    |(?P<include>\#[ \t]*include[ \t]*<[^>\n]*>)
    |(?P<pragma>@pragma[ \t]+[^\n]*)
    |(?P<number>[0-9][0-9A-Za-z_]*)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<text>"(?:[^"\\\n]|\\.)*")
    |(?P<sign>&&&|\.\.|&&|\|\||==|!=|<=|>=|<<|\+\+|/(?!\*)|[-+*%&|^~!<>=?:;,.(){}\[\]@])
    """,
    re.VERBOSE | re.DOTALL,
)

_NUMBER = re.compile(
    r"(?:(?P<width>[0-9]+)(?P<sort>[ws]))?(?P<digits>0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:0[dD])?[0-9][0-9_]*)"
)
_BASES = {"x": 16, "b": 2, "o": 8, "d": 10}


@dataclass(frozen=True, slots=True)
class P4Token:
    """A word, number or sign, and where it begins.

    Parameters
    ----------
    kind
        `keyword`, `name`, `number`, `text`, `sign`, `include`, `pragma`, `end`.
    start, end
        Its characters in the text.
    """

    kind: str
    text: str
    start: int
    end: int


class SourceText:
    """A program's characters, and the lines they stand on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]

    def position(self, at: int) -> SourcePosition:
        """Line and column of a character."""
        line = bisect_right(self._lines, at)
        return SourcePosition(line, at - self._lines[line - 1] + 1)

    def tokens(self) -> list[P4Token]:
        """All tokens, and one of kind `end` behind them.

        Raises
        ------
        P4SyntaxError
            At the first character that belongs to no token.
        """
        found: list[P4Token] = []
        at = 0
        while at < len(self.text):
            match = _PATTERN.match(self.text, at)
            if match is None:
                raise P4SyntaxError(self.position(at), *self._strange(at))
            kind = str(match.lastgroup)
            if kind == "name" and match[0] in KEYWORDS:
                kind = "keyword"
            if kind != "blank":
                found.append(P4Token(kind, match[0], at, match.end()))
            at = match.end()
        found.append(P4Token("end", "the end of the program", at, at))
        return found

    def _strange(self, at: int) -> tuple[str, str | None]:
        if self.text.startswith("/*", at):
            return "this comment has no end", None
        if self.text[at] == '"':
            return "this text has no closing quote on its line", None
        if self.text[at] == "#":
            return "a directive that is not of the subset", "only #include <core.p4> and #include <pna.p4>"
        return f"'{self.text[at]}' is no character of a P4 program", None


def number_of(text: str) -> tuple[int, int | None] | str:
    """Value and width (None: of no fixed width) of a number's text, or what is wrong with it."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return f"{text} is not a number"
    if found["sort"] == "s":
        return f"{text} is signed; the subset has only unsigned numbers"
    digits = found["digits"].replace("_", "")
    base = _BASES.get(digits[1:2].lower(), 10)
    value = int(digits[2:], base) if digits[1:2].isalpha() else int(digits)
    if found["width"] is None:
        return value, None
    width = int(found["width"])
    if width == 0:
        return f"{text} has no bits"
    return (value, width) if value < 1 << width else f"{text} does not fit {width} bits"
