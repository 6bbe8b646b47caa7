"""The graph of a chain from its text: NFs with names of their own, edges with shares and matches in their order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import groupby

from placer.rack.chain import ChainEdge, ChainNf
from placer.rack.files.chain_text import BranchesText, BranchText, NfText, TextFault, parse_path
from placer.rack.files.json_twins import SHARE_TOLERANCE

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
    matches: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """By `NF.branch 1`, the matches of that way as they are written, outer ones first, and where they stand."""
    faults: list[TextFault] = field(default_factory=list)

    @property
    def at(self) -> list[int]:
        """Per NF, where it stands in the text."""
        return [text.at for text in self.texts]


def parse_graph(text: str) -> ChainGraph:
    """The graph of a chain's text; with faults, the graph is not complete.

    Raises TextError at the first character that does not belong there.
    """
    path, graph = parse_path(text), ChainGraph()
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
                message = f"duplicate name {name!r}"
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
        branches = [[turn.branch for turn in self.turns[at] if turn.branch.match] for at in ordered]
        for slot, edge, match in zip(slots, edges, matches, strict=True):
            graph.edges[slot] = replace(edge, match=match)
        for number, of in enumerate(branches, 1):
            if of:
                written = [(branch.match, branch.match_at) for branch in of]
                graph.matches[f"{graph.nfs[tail].id}.branch {number}"] = written

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
        hint = "put an NF before these branches: it sorts its packets by itself"
        nested = [
            next((turn.fork.at for turn in way[depth + 1 :] if turn.branch.match), None)
            for at in without
            for way in groups[at][1]
        ]
        if len(without) > 1 and above:
            message = "packets are shared out behind a match, and no NF is between"
            self.graph.faults.append(TextFault(turns[0].fork.at, message, hint))
        elif not without and above:
            message = "nothing takes the packets that none of these matches holds for"
            hint = "leave out the last match, or add a branch without one"
            self.graph.faults.append(TextFault(turns[0].fork.at, message, hint))
        for inner in sorted({place for place in nested if place is not None and len(without) > 1}):
            message = "packets are shared out before a match is tried, and no NF is between"
            self.graph.faults.append(TextFault(inner, message, hint))
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
