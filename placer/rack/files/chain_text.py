"""The text of one chain, `A -> [1/2 B | 1/2 -] -> 3 x 1/3 (C -> D) -> E`, as a tree; every fault with its column."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

DEEPEST_BRANCHES = 30
MOST_COPIES = 200
LONGEST_NAME = 200

CHAIN_TOKEN = re.compile(
    r"""(?P<blank>\s+)
    |(?P<arrow>->)
    |(?P<text>"[^"\n]*")
    |(?P<number>[0-9]+(?:\.[0-9]+)?(?:\s*/\s*[0-9]+)?)(?P<percent>\s*%)?
    |(?P<name>[^\W\d][\w.]*(?:-[\w.]+)*)
    |(?P<sign>[\[\]()|=,-])
    """,
    re.VERBOSE,
)
NF_WORD = "an NF"


@dataclass(frozen=True)
class Token:
    """A word, number or sign, and where it begins."""

    kind: str
    text: str
    at: int


@dataclass(frozen=True)
class TextFault:
    """What is wrong, and at which character."""

    at: int
    message: str
    hint: str | None = None


class TextError(Exception):
    """Text that cannot be read further."""

    def __init__(self, at: int, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.fault = TextFault(at, message, hint)


@dataclass(frozen=True)
class NfText:
    """An NF: its name, if its author gave one, its kind and parameters."""

    at: int
    kind: str
    name: str | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class BranchText:
    """A branch: the share of packets, what matches them, and a path that may be empty.

    Parameters
    ----------
    copies
        Equal branches, each with this share.
    """

    at: int
    share: Fraction
    path: tuple[NfText | BranchesText, ...]
    match: str = ""
    copies: int = 1


@dataclass(frozen=True)
class BranchesText:
    """Branches side by side."""

    at: int
    branches: tuple[BranchText, ...]


def parse_path(text: str) -> tuple[NfText | BranchesText, ...]:
    """The path that a text describes.

    Raises
    ------
    TextError
        At the first character that does not belong there.
    """
    parser = _Parser(text)
    path = parser.path(0)
    if parser.next is not None:
        raise TextError(parser.next.at, f"'{parser.next.text}' does not belong here", _hint_for(parser.next.text))
    return path


def tokens(text: str) -> Iterator[Token]:
    """Words, numbers and signs of a text."""
    at = 0
    while at < len(text):
        found = CHAIN_TOKEN.match(text, at)
        if found is None:
            hint = 'a quoted text ends on its line, as in "udp port 53"' if text[at] == '"' else None
            raise TextError(at, f"'{text[at]}' does not belong here", hint)
        if found.lastgroup != "blank":
            kind = "number" if found["number"] else str(found.lastgroup)
            yield Token(kind, found[0], at)
        at = found.end()


def _hint_for(text: str) -> str | None:
    return {
        "]": "there is no [ for it",
        ")": "there is no ( for it",
        "|": "branches stand in brackets: [1/2 A | 1/2 B]",
    }.get(text, "NFs are joined by ->")


class _Parser:
    """Reads tokens from left to right; each method reads one part of the grammar."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(tokens(text))
        self.number = 0

    @property
    def next(self) -> Token | None:
        return self.tokens[self.number] if self.number < len(self.tokens) else None

    def sees(self, *texts: str) -> bool:
        return self.next is not None and self.next.text in texts and self.next.kind != "text"

    def take(self) -> Token:
        token = self.next
        assert token is not None
        self.number += 1
        return token

    def expect(self, text: str, opened: Token) -> None:
        if self.sees(text):
            self.take()
            return
        if self.next is None:
            raise TextError(opened.at, f"the '{opened.text}' is not closed", f"write {text} where it ends")
        raise TextError(self.next.at, f"'{self.next.text}' does not belong here", _hint_for(self.next.text))

    def end(self) -> int:
        return len(self.text.rstrip())

    def path(self, depth: int) -> tuple[NfText | BranchesText, ...]:
        """Items joined by arrows, or `-` for none."""
        if depth > DEEPEST_BRANCHES:
            raise TextError(
                self.next.at if self.next else self.end(), f"branches are nested deeper than {DEEPEST_BRANCHES}"
            )
        if self.sees("-"):
            self.take()
            return ()
        items = [self.item(depth)]
        while self.sees("->"):
            self.take()
            items.append(self.item(depth))
        return tuple(items)

    def item(self, depth: int) -> NfText | BranchesText:
        token = self.next
        if token is None:
            raise TextError(self.end(), "an NF is missing at the end")
        if token.text == "[":
            return self.branches(depth)
        if token.kind == "number":
            return self.repeated(depth)
        if token.kind == "name":
            return self.nf()
        hint = "an empty branch is a whole branch: 1/2 -" if token.text == "-" else None
        raise TextError(token.at, f"an NF is missing before '{token.text}'", hint)

    def nf(self) -> NfText:
        first = self.name()
        if self.sees("="):
            self.take()
            return NfText(first.at, self.name("the kind of NF").text, first.text, self.parameters())
        return NfText(first.at, first.text, None, self.parameters())

    def name(self, what: str = NF_WORD) -> Token:
        if self.next is None or self.next.kind != "name":
            raise TextError(self.next.at if self.next else self.end(), f"{what} is missing here")
        token = self.take()
        if len(token.text) > LONGEST_NAME:
            raise TextError(token.at, f"the name is longer than {LONGEST_NAME} characters")
        return token

    def parameters(self) -> dict[str, float]:
        found: dict[str, float] = {}
        if not self.sees("("):
            return found
        opened = self.take()
        while not self.sees(")"):
            name = self.name("a parameter")
            if name.text in found:
                raise TextError(name.at, f"the parameter {name.text} is given twice")
            if not self.sees("="):
                raise TextError(name.at, f"the parameter {name.text} has no value", f"as in {name.text}=1024")
            self.take()
            found[name.text] = float(self.value())
            if self.sees(","):
                self.take()
            elif not self.sees(")"):
                break
        self.expect(")", opened)
        return found

    def value(self) -> Fraction:
        """A number, with a minus sign or without."""
        sign = -1 if self.sees("-") else 1
        if sign < 0:
            self.take()
        if self.next is None or self.next.kind != "number":
            raise TextError(self.next.at if self.next else self.end(), "a number is missing here")
        return sign * fraction_of(self.take())

    def branches(self, depth: int) -> BranchesText:
        opened = self.take()
        found = [self.branch(depth)]
        while self.sees("|"):
            self.take()
            found.append(self.branch(depth))
        self.expect("]", opened)
        return BranchesText(opened.at, tuple(found))

    def branch(self, depth: int) -> BranchText:
        """One branch inside brackets, with its share."""
        at, copies, share, match = self.head()
        return BranchText(at, share, self.path(depth + 1), match, copies)

    def repeated(self, depth: int) -> BranchesText:
        """`3 x 1/3 NAT` or `3 x 1/3 (A -> B)` without brackets."""
        at, copies, share, match = self.head()
        if self.sees("("):
            opened = self.take()
            path = self.path(depth + 1)
            self.expect(")", opened)
        else:
            path = (self.nf(),)
        if copies == 1 and share != 1:
            hint = "branches stand in brackets: [1/2 A | 1/2 -]; equal ones are repeated: 3 x 1/3 A"
            raise TextError(at, "a share stands outside of brackets", hint)
        return BranchesText(at, (BranchText(at, share, path, match, copies),))

    def head(self) -> tuple[int, int, Fraction, str]:
        """Where a branch begins, its copies, its share and its match."""
        first = self.next
        if first is None or first.kind != "number":
            at = first.at if first else self.end()
            raise TextError(at, "the branch has no share", "as in [1/2 A | 1/2 -]; `-` is an empty branch")
        self.take()
        copies = 1
        if self.sees("x"):
            copies = _whole(first)
            self.take()
            if self.next is None or self.next.kind != "number":
                at = self.next.at if self.next else self.end()
                raise TextError(at, "the branches have no share", f"as in {copies} x 1/{copies} NAT")
            share = fraction_of(self.take())
        else:
            share = fraction_of(first)
        match = self.take().text[1:-1] if self.next is not None and self.next.kind == "text" else ""
        if not 0 < share <= 1:
            raise TextError(first.at, "a share is above 0 and at most 1", "as in 1/2, 0.5 or 50 %")
        return first.at, copies, share, match


def _whole(token: Token) -> int:
    number = fraction_of(token)
    if number.denominator != 1 or not 1 <= number <= MOST_COPIES:
        raise TextError(token.at, f"'{token.text}' is not a whole number from 1 to {MOST_COPIES}")
    return int(number)


def fraction_of(token: Token) -> Fraction:
    """The number that a token is: `1/3`, `0.25` or `25 %`."""
    text = "".join(token.text.split())
    if len(text) > 40:
        raise TextError(token.at, "the number is too long")
    try:
        value = Fraction(text.rstrip("%"))
    except ZeroDivisionError:
        raise TextError(token.at, f"'{token.text}' divides by 0") from None
    return value / 100 if text.endswith("%") else value
