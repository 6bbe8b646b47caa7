"""The text of one chain, `A -> [1/2 B | 1/2 -] -> 3 x 1/3 (C -> D) -> E`, read word by word; faults have columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from placer.rack.chain import OwnData, OwnRule
from profiles.faults import suggestion

DEEPEST_BRANCHES = 30
MOST_COPIES = 200
LONGEST_NAME = 200

CHAIN_TOKEN = re.compile(
    r"""(?P<blank>\s+)
    |(?P<arrow>->)
    |(?P<text>"[^"\n]*"|'[^'\n]*')
    |(?P<hex>0x[0-9A-Fa-f]+)
    |(?P<number>[0-9]+(?:\.[0-9]+)?(?:\s*/\s*[0-9]+)?)(?P<percent>\s*%)?
    |(?P<name>[^\W\d][\w.]*(?:-[\w.]+)*)
    |(?P<sign>[\[\](){}|=:,-])
    """,
    re.VERBOSE,
)
NF_WORD = "an NF"
RULE_FORM = '{"dst_ip": "10.0.0.0/8", "drop": false}'
VALUE_FORM = 'a number, a text in quotes as in rules = "edge.acl", or rules: [{"dst_ip": "10.0.0.0/8", "drop": false}]'
BRANCH_FORM = "as in [{'vlan_tag': 0x1, Encrypt}]"
ADDRESS_FORM = r"[0-9.]+(/[0-9]+)?"
PORT_FORM = "[0-9]+(-[0-9]+)?"
SIGN_HINTS = {
    **dict.fromkeys("\"'", 'a quoted text ends on its line, as in "udp port 53"'),
    **dict.fromkeys("\N{LEFT DOUBLE QUOTATION MARK}\N{LEFT SINGLE QUOTATION MARK}", "quotes are straight: \" or '"),
    "\N{RIGHTWARDS ARROW}": "NFs are joined by ->",
    "\\": "an indented line goes on with the one before",
}
"""For characters that no word begins with."""
CONDITIONS = {
    "vlan_tag": ("[0-9]+", ("vlan {}", "")),
    "src_ip": (ADDRESS_FORM, ("src host {}", "src net {}")),
    "dst_ip": (ADDRESS_FORM, ("dst host {}", "dst net {}")),
    "src_port": (PORT_FORM, ("src port {}", "src portrange {}")),
    "dst_port": (PORT_FORM, ("dst port {}", "dst portrange {}")),
    "ip_proto": ("[0-9]+|tcp|udp|icmp", ("proto {}", "{}")),
}
"""Keys of a branch as Lemur writes it: the form of a value, and the traffic expression of one, and of a prefix, a range
or a name."""
TRUTHS = {"true": True, "True": True, "false": False, "False": False}


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
    """An NF: its name, if its author gave one, its kind and parameters.

    `data`: own data by parameter. `places`: where parameters stand, and what is inside of them: `rules.1.dst_ip`.
    """

    at: int
    kind: str
    name: str | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)
    data: Mapping[str, OwnData] = field(default_factory=dict)
    places: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class BranchText:
    """A branch: the share of packets, what matches them, and a path that may be empty."""

    at: int
    share: Fraction
    path: tuple[NfText | BranchesText, ...]
    match: str = ""
    copies: int = 1  # equal branches, each with this share
    match_at: int = 0


@dataclass(frozen=True)
class BranchesText:
    """Branches side by side."""

    at: int
    branches: tuple[BranchText, ...]


def parse_path(text: str) -> tuple[NfText | BranchesText, ...]:
    """The path that a text describes. Raises TextError at the first character that does not belong there."""
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
            raise TextError(at, f"'{text[at]}' does not belong here", SIGN_HINTS.get(text[at]))
        if found.lastgroup != "blank":
            kind = "number" if found["number"] else str(found.lastgroup)
            yield Token(kind, found[0], at)
        at = found.end()


def _hint_for(text: str) -> str | None:
    return {
        "]": "there is no [ for it",
        ")": "there is no ( for it",
        "}": "there is no { for it",
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
        first, name = self.name(), None
        kind = first.text
        if self.sees("="):
            self.take()
            name, kind = first.text, self.name("the kind of NF").text
        numbers: dict[str, float] = {}
        data: dict[str, OwnData] = {}
        places: dict[str, int] = {}
        self.parameters(numbers, data, places)
        return NfText(first.at, kind, name, numbers, data, places)

    def name(self, what: str = NF_WORD) -> Token:
        if self.next is None or self.next.kind != "name":
            raise TextError(self.next.at if self.next else self.end(), f"{what} is missing here")
        token = self.take()
        if len(token.text) > LONGEST_NAME:
            raise TextError(token.at, f"the name is longer than {LONGEST_NAME} characters")
        return token

    def parameters(self, numbers: dict[str, float], data: dict[str, OwnData], places: dict[str, int]) -> None:
        """Parameters in parentheses, if there are any: numbers, and own data."""
        if not self.sees("("):
            return
        opened = self.take()
        while not self.sees(")"):
            name = self.name("a parameter")
            if name.text in places:
                raise TextError(name.at, f"the parameter {name.text} is given twice")
            if not self.sees("="):
                raise TextError(name.at, f"the parameter {name.text} has no value", f"as in {name.text}=1024")
            self.take()
            places[name.text] = self.next.at if self.next else self.end()
            if self.next is not None and self.next.kind == "text":
                data[name.text] = self.text_value()
            elif self.sees("["):
                data[name.text] = self.rules(name.text, places)
            else:
                numbers[name.text] = float(self.value())
            if self.sees(","):
                self.take()
            elif self.next is not None and not self.sees(")"):
                raise TextError(self.next.at, f"'{self.next.text}' does not belong here", "a comma between parameters")
            elif self.next is None:
                break
        self.expect(")", opened)

    def text_value(self) -> str:
        token = self.take()
        if not token.text[1:-1].strip():
            raise TextError(token.at, "the text is empty", 'the name of a file, as in rules = "edge.acl"')
        return token.text[1:-1]

    def rules(self, name: str, places: dict[str, int]) -> tuple[OwnRule, ...]:
        """Rules as Lemur writes them, in the spelling of JSON or Python: `[{"dst_ip": "10.0.0.0/8", "drop": false}]`"""
        opened, found = self.take(), list[OwnRule]()
        while self.sees("{"):
            places[f"{name}.{len(found)}"] = self.next.at if self.next else self.end()
            found.append(self.rule(f"{name}.{len(found)}", places))
            if not self.sees(","):
                break
            self.take()
        self.expect("]", opened)
        return tuple(found)

    def rule(self, within: str, places: dict[str, int]) -> OwnRule:
        opened, found = self.take(), dict[str, str | int | bool]()
        while self.next is not None and self.next.kind == "text":
            key = self.take()
            if key.text[1:-1] in found:
                raise TextError(key.at, f"the key {key.text} is given twice")
            if not self.sees(":"):
                raise TextError(key.at, f"the key {key.text} has no value", f"as in {RULE_FORM}")
            self.take()
            places[f"{within}.{key.text[1:-1]}"] = self.next.at if self.next else self.end()
            found[key.text[1:-1]] = self.rule_value()
            if not self.sees(","):
                break
            self.take()
        self.expect("}", opened)
        return found

    def rule_value(self) -> str | int | bool:
        token = self.next
        if token is not None and token.kind == "text":
            return self.text_value()
        if token is not None and token.kind == "name" and token.text in TRUTHS:
            return TRUTHS[self.take().text]
        if token is None or not (token.kind == "hex" or (token.kind == "number" and token.text.isdigit())):
            hint = "a text, a whole number, true or false (True or False)"
            raise TextError(token.at if token else self.end(), "a value is missing here", hint)
        return int(self.take().text, 16 if token.kind == "hex" else 10)

    def value(self) -> Fraction:
        """A number, with a minus sign or without."""
        sign = -1 if self.sees("-") else 1
        if sign < 0:
            self.take()
        if self.next is None or self.next.kind != "number":
            raise TextError(self.next.at if self.next else self.end(), "a value is missing here", VALUE_FORM)
        return sign * fraction_of(self.take())

    def branches(self, depth: int) -> BranchesText:
        opened = self.take()
        if self.sees("{"):
            return self.conditions(opened, depth)
        found = [self.branch(depth)]
        while self.sees("|"):
            self.take()
            found.append(self.branch(depth))
        self.expect("]", opened)
        return BranchesText(opened.at, tuple(found))

    def conditions(self, opened: Token, depth: int) -> BranchesText:
        """Branches as Lemur writes them, `[{'vlan_tag': 0x1, Encrypt}]`: other packets pass by; shares are equal."""
        found: list[BranchText] = []
        while self.sees("{"):
            at = self.take()
            matches: list[str] = []
            while self.next is not None and self.next.kind == "text":
                matches.append(self.condition())
                if not self.sees(","):
                    raise TextError(
                        self.next.at if self.next else self.end(), "the NFs of the branch are missing here", BRANCH_FORM
                    )
                self.take()
            if not matches:
                raise TextError(at.at, "the branch has no condition", BRANCH_FORM)
            found.append(BranchText(at.at, Fraction(1), self.path(depth + 1), ", ".join(matches), match_at=at.at))
            self.expect("}", at)
            if not self.sees(",", "|"):
                break
            self.take()
        self.expect("]", opened)
        share = Fraction(1, len(found) + 1)
        return BranchesText(
            opened.at, tuple(replace(one, share=share) for one in [*found, BranchText(opened.at, share, ())])
        )

    def condition(self) -> str:
        """A key and its value as a traffic expression."""
        key = self.take()
        if not self.sees(":"):
            raise TextError(key.at, f"the key {key.text} has no value", BRANCH_FORM)
        self.take()
        at = self.next.at if self.next else self.end()
        name, value = key.text[1:-1], self.rule_value()
        if name not in CONDITIONS:
            raise TextError(key.at, f"a branch has no condition '{name}'", suggestion(name, CONDITIONS))
        form, words = CONDITIONS[name]
        if isinstance(value, bool) or not re.fullmatch(form, str(value)):
            raise TextError(at, f"'{value}' is no {name}", BRANCH_FORM)
        one, other = words
        return (other if "/" in str(value) or "-" in str(value) or str(value).isalpha() else one).format(value)

    def branch(self, depth: int) -> BranchText:
        """One branch inside brackets, with its share."""
        head = self.head()
        return replace(head, path=self.path(depth + 1))

    def repeated(self, depth: int) -> BranchesText:
        """`3 x 1/3 NAT` or `3 x 1/3 (A -> B)` without brackets."""
        head = self.head()
        if self.sees("("):
            opened = self.take()
            path = self.path(depth + 1)
            self.expect(")", opened)
        else:
            path = (self.nf(),)
        if head.copies == 1 and head.share != 1:
            hint = "branches stand in brackets: [1/2 A | 1/2 -]; equal ones are repeated: 3 x 1/3 A"
            raise TextError(head.at, "a share stands outside of brackets", hint)
        return BranchesText(head.at, (replace(head, path=path),))

    def head(self) -> BranchText:
        """A branch before its path: its copies, its share and its match."""
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
        at = self.next.at if self.next is not None else self.end()
        match = self.take().text[1:-1] if self.next is not None and self.next.kind == "text" else ""
        if not 0 < share <= 1:
            raise TextError(first.at, "a share is above 0 and at most 1", "as in 1/2, 0.5 or 50 %")
        if match and copies > 1:
            message = "copies of a branch with a match: only the first would get packets"
            raise TextError(at, message, "write the branch once, with the sum of the shares")
        return BranchText(first.at, share, (), match, copies, at)


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
