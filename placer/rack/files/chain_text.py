"""The text of one chain, `A -> [1/2 B | 1/2 -] -> 3 x 1/3 (C -> D) -> E`, as a graph; every fault with its column."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import groupby

from placer.rack.chain import ChainEdge, ChainNf, OwnData, OwnRule
from placer.rack.files.json_twins import SHARE_TOLERANCE

DEEPEST_BRANCHES = 30
MOST_COPIES = 200
LONGEST_NAME = 200

CHAIN_TOKEN = re.compile(
    r"""(?P<blank>\s+)
    |(?P<arrow>->)
    |(?P<text>"[^"\n]*"|'[^'\n]*')
    |(?P<number>[0-9]+(?:\.[0-9]+)?(?:\s*/\s*[0-9]+)?)(?P<percent>\s*%)?
    |(?P<name>[^\W\d][\w.]*(?:-[\w.]+)*)
    |(?P<sign>[\[\](){}|=:,-])
    """,
    re.VERBOSE,
)
NF_WORD = "an NF"
RULE_FORM = '{"dst_ip": "10.0.0.0/8", "drop": false}'
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


@dataclass(frozen=True)
class BranchesText:
    """Branches side by side."""

    at: int
    branches: tuple[BranchText, ...]


def _parse_path(text: str) -> tuple[NfText | BranchesText, ...]:
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
            hint = 'a quoted text ends on its line, as in "udp port 53"' if text[at] in "\"'" else None
            raise TextError(at, f"'{text[at]}' does not belong here", hint)
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
            elif not self.sees(")"):
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
        if token is None or token.kind != "number" or not token.text.isdigit():
            hint = "a text, a whole number, true or false (True or False)"
            raise TextError(token.at if token else self.end(), "a value is missing here", hint)
        return int(self.take().text)

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


# The graph of a chain from its text: NFs with names of their own, edges with shares.


Path = tuple[NfText | BranchesText, ...]

MOST_NFS = 200
MOST_BRANCHES = 400


@dataclass(frozen=True)
class BranchTaken:
    """A branch that packets take: the number of it among the branches side by side, copies counted."""

    fork: BranchesText
    branch: BranchText
    number: int


@dataclass(frozen=True)
class OpenEnd:
    """Packets that have left an NF by these turns, and not yet reached the next."""

    nf: int
    share: Fraction
    turns: tuple[BranchTaken, ...] = ()


@dataclass
class ChainGraph:
    """NFs and edges of one chain, and what is wrong with it."""

    nfs: list[ChainNf] = field(default_factory=list)
    edges: list[ChainEdge] = field(default_factory=list)
    texts: list[NfText] = field(default_factory=list)  # per NF, what it was in the text
    faults: list[TextFault] = field(default_factory=list)

    @property
    def at(self) -> list[int]:
        """Per NF, where it stands in the text."""
        return [text.at for text in self.texts]


def parse_graph(text: str) -> ChainGraph:
    """The graph of a chain's text; with faults, the graph is not complete.

    Raises TextError at the first character that does not belong there.
    """
    path, graph = _parse_path(text), ChainGraph()
    if sum(_size(step)[0] for step in path) > MOST_NFS:
        graph.faults.append(TextFault(0, f"the chain has more than {MOST_NFS} NFs"))
    elif sum(_size(step)[1] for step in path) > MOST_BRANCHES:
        graph.faults.append(TextFault(0, f"the chain has more than {MOST_BRANCHES} branches"))
    elif not path or not isinstance(path[0], NfText):
        hint = "the NF that packets enter first decides where each goes: A -> [1/2 B | 1/2 -]"
        graph.faults.append(TextFault(path[0].at if path else 0, "a chain begins with one NF", hint))
    else:
        graph.faults += _wrong_shares(path)
        _Builder(graph, _Names(path)).build(path)
    return graph


def _size(one: NfText | BranchesText) -> tuple[int, int]:
    """NFs and branches, copies counted."""
    if isinstance(one, NfText):
        return 1, 1
    nfs = branches = 0
    for branch in one.branches:
        inside = [_size(part) for part in branch.path]
        nfs += branch.copies * sum(part[0] for part in inside)
        branches += branch.copies * max(sum(part[1] for part in inside), 1)
    return nfs, branches


def _wrong_shares(path: Path) -> Iterator[TextFault]:
    """Branches whose shares do not add up to 1."""
    for item in path:
        if isinstance(item, NfText):
            continue
        total = sum((branch.copies * branch.share for branch in item.branches), Fraction(0))
        if abs(total - 1) > SHARE_TOLERANCE:
            sums = " + ".join(_term(branch) for branch in item.branches)
            rounded = abs(total - 1) < Fraction(1, 20)
            hint = "write a third as 1/3" if rounded else "packets that take no branch need an empty one: 1/2 -"
            yield TextFault(item.at, f"the shares {sums} add up to {_number(total)}, not to 1", hint)
        for branch in item.branches:
            yield from _wrong_shares(branch.path)


def _term(branch: BranchText) -> str:
    return f"{branch.copies} x {_number(branch.share)}" if branch.copies > 1 else _number(branch.share)


def _number(value: Fraction | int) -> str:
    return str(value) if Fraction(value).denominator < 1000 else f"{float(value):g}"


def _write(path: Path, copies: int = 1) -> Iterator[tuple[NfText, int]]:
    """Each NF of the text, and how often it is copied."""
    for item in path:
        if isinstance(item, NfText):
            yield item, copies
        else:
            for branch in item.branches:
                yield from _write(branch.path, copies * branch.copies)


class _Names:
    """Gives each NF a name: its author's, or its kind; numbered where there are several."""

    def __init__(self, path: Path) -> None:
        written = list(_write(path))
        self.given = Counter(nf.name for nf, _ in written if nf.name is not None)
        self.copied = {nf.name for nf, copies in written if nf.name is not None and copies > 1}
        self.kinds: Counter[str] = Counter()
        for nf, copies in written:
            if nf.name is None:
                self.kinds[nf.kind] += copies
        self.numbers: Counter[str] = Counter()
        self.used: set[str] = {name for name in self.given if name not in self.copied}

    def of(self, nf: NfText) -> str:
        if nf.name is not None and nf.name not in self.copied:
            return nf.name
        base = nf.name or nf.kind
        if nf.name is None and self.kinds[base] == 1 and base not in self.used:
            self.used.add(base)
            return base
        while True:
            self.numbers[base] += 1
            name = f"{base}_{self.numbers[base]}"
            if name not in self.used:
                self.used.add(name)
                return name


class _Builder:
    def __init__(self, graph: ChainGraph, names: _Names) -> None:
        self.graph = graph
        self.names = names
        self.turns: list[tuple[BranchTaken, ...]] = []  # per edge, those behind its tail

    def build(self, path: Path) -> None:
        for name, times in self.names.given.items():
            if times > 1:
                places = [nf.at for nf, _ in _write(path) if nf.name == name]
                message = f"the name {name!r} is there twice"
                self.graph.faults.append(TextFault(places[1], message, "each NF of a chain has a name of its own"))
        for end in self.walk(path, []):
            if end.share != 1:
                at, nf = self.graph.at[end.nf], self.graph.nfs[end.nf].id
                hint = "let the branches meet in an NF behind them, or let none be empty"
                self.graph.faults.append(TextFault(at, f"a branch that leaves {nf} ends without an NF", hint))
        for tail in dict.fromkeys(edge.tail for edge in self.graph.edges):
            self.sort_edges(tail)
        self.refuse_parallel()

    def walk(self, path: Path, ends: Sequence[OpenEnd]) -> list[OpenEnd]:
        """Add a path behind open ends; the ends that it leaves open."""
        ends = list(ends)
        for item in path:
            ends = [self.add(item, ends)] if isinstance(item, NfText) else self.fork(item, ends)
        return ends

    def add(self, nf: NfText, ends: Sequence[OpenEnd]) -> OpenEnd:
        graph = self.graph
        head = len(graph.nfs)
        graph.nfs.append(ChainNf(self.names.of(nf), nf.kind, nf.parameters, nf.data))
        graph.texts.append(nf)
        graph.edges += [ChainEdge(end.nf, head, end.share) for end in ends]
        self.turns += [end.turns for end in ends]
        return OpenEnd(head, Fraction(1))

    def fork(self, branches: BranchesText, ends: Sequence[OpenEnd]) -> list[OpenEnd]:
        left: list[OpenEnd] = []
        number = 0
        for branch in branches.branches:
            for _ in range(branch.copies):
                turn, number = BranchTaken(branches, branch, number), number + 1
                entered = [OpenEnd(end.nf, end.share * branch.share, (*end.turns, turn)) for end in ends]
                left += self.walk(branch.path, entered)
                if len(left) > MOST_BRANCHES:
                    self.graph.faults.append(TextFault(branches.at, f"more than {MOST_BRANCHES} paths meet here"))
                    return left[:1]
        return left

    def sort_edges(self, tail: int) -> None:
        """Put the edges that leave an NF in the order of the text, in which matches are tried, with their matches."""
        graph = self.graph
        slots = [at for at, edge in enumerate(graph.edges) if edge.tail == tail]
        ordered = sorted(slots, key=lambda at: tuple(turn.number for turn in self.turns[at]))
        edges = [graph.edges[at] for at in ordered]
        matches = self.matches_of([self.turns[at] for at in ordered])
        for slot, edge, match in zip(slots, edges, matches, strict=True):
            graph.edges[slot] = replace(edge, match=match)

    def matches_of(
        self,
        ways: Sequence[tuple[BranchTaken, ...]],
        depth: int = 0,
        above: Sequence[str] = (),
        barred: Sequence[str] = (),
    ) -> Iterator[str]:
        """The match of each way behind an NF, ways with the same first turns together and in the order of the text.

        Branches inside of branches become one list of ways. A packet takes the first whose match holds, and others
        share what is left. Example: in `[1/2 [1/2 "b" B | 1/2 C] | 1/2 "d" D]`, B takes what is b and not d. `above`:
        the matches of the turns before; `barred`: matches of branches that come later in the text, and are tried
        before one without a match.
        """
        if len(ways[0]) == depth:
            parts = [*above, *(f"not {_bracket(match)}" for match in barred)] if above else []
            yield ", ".join(map(_bracket, parts)) if len(parts) > 1 else "".join(parts)
            return
        groups = [(key, list(of)) for key, of in groupby(ways, lambda way: way[depth].number)]
        turns = [of[0][depth] for _, of in groups]
        without = [at for at, turn in enumerate(turns) if not turn.branch.match]
        nested = any(turn.branch.match for at in without for way in groups[at][1] for turn in way[depth + 1 :])
        place, hint = turns[0].fork.at, "put an NF before these branches: it sorts its packets by itself"
        if len(without) > 1 and (above or nested):
            message = "packets are shared out " + ("behind a match" if above else "before a match is tried")
            self.graph.faults.append(TextFault(place, f"{message}, and no NF is between", hint))
        elif not without and above:
            message = "nothing takes the packets that none of these matches holds for"
            self.graph.faults.append(TextFault(place, message, "add a branch without a match"))
        for at, (_, of) in enumerate(groups):
            match = turns[at].branch.match
            later = [turn.branch.match for turn in turns[at + 1 :] if turn.branch.match]
            inside = ([*above, match], barred) if match else (above, [*barred, *later])
            yield from self.matches_of(of, depth + 1, *inside)

    def refuse_parallel(self) -> None:
        graph = self.graph
        pairs = Counter((edge.tail, edge.head, edge.match) for edge in graph.edges)
        for (tail, head, match), times in pairs.items():
            if times > 1:
                same = f" with the match {match!r}" if match else ""
                message = f"{times} empty branches lead from {graph.nfs[tail].id} to {graph.nfs[head].id}{same}"
                graph.faults.append(TextFault(graph.at[head], message, "write one with the sum of their shares"))


def _bracket(match: str) -> str:
    """The match as a part of a larger one: a comma and `not` bind closer than `or`, and `not` than a comma."""
    return f"({match})" if re.search(r",|\b(and|or)\b", match) else match
