"""`.chains` files: chains of NFs and their SLOs as people write them (docs/formats/chains.md)."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from placer.rack.chain import UNBOUNDED_MBPS, Chain, Slo
from placer.rack.files.chain_graph import ChainGraph, parse_graph
from placer.rack.files.chain_text import TextError, TextFault
from placer.rack.files.json_twins import LARGEST_FILE, LARGEST_NUMBER, chains_of, parse_json
from placer.rack.files.sources import RecordedSource, SourceFile
from profiles import Fault, InputError
from profiles.faults import suggestion
from profiles.text import read_text

PACKET_SIZE = 1500
SECTION_KEYWORDS = {
    "chain": "chain voice: ACL -> NAT -> IPv4Fwd",
    "slo": "slo voice: 1 Gbps to 10 Gbps, at most 45 us",
    "packets": "packets voice: 500 B",
    "aggregate": "aggregate voice: 10.1.0.0/16, udp",
}
"""With an example of each."""
SECTION_HEAD = re.compile(r"\s*(?P<keyword>[^\s:]*)(?P<names>[^:\n]*)(?P<colon>:)?")
CHAIN_NAME = re.compile(r"[\w.-]{1,200}")


@dataclass(frozen=True)
class ChainsText:
    """What a file of chains holds.

    `places`: by chain and NF, its line and column, and those of its parameters (`NF.rules`), of matches behind it
    (`NF.branch 1`) and of the chain's aggregates (`aggregate.1`); empty for the JSON twin.
    `matches`: by chain and branch, what was written for its match, outer branches first, with the places
    `NF.branch 1.1` and so on; empty for the JSON twin.
    `sources`: the files that own data was read from, by the names that chains give them.
    """

    file: str
    chains: tuple[Chain, ...]
    places: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    matches: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    sources: Mapping[str, SourceFile] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where names of files in the chains begin."""
        return Path(self.file).parent

    @property
    def recorded(self) -> dict[str, RecordedSource]:
        """What a plan says of the sources."""
        return {name: RecordedSource(source.path, source.sha256) for name, source in self.sources.items()}

    def fault(self, chain: str, nf: str, message: str, hint: str | None = None, *, within: str = "") -> Fault:
        """A fault of an NF of a chain, at its place in the file. `within`: a parameter, or a part of one."""
        place = next(
            (self.places[chain, key] for key in _outward(f"{nf}.{within}") if (chain, key) in self.places), None
        )
        column = f"column {place[1]}" if place else ".".join(filter(None, (chain, nf, within)))
        return Fault(self.file, place[0] if place else None, column, message, hint)


def _outward(key: str) -> Iterator[str]:
    """A key of dotted parts, then what it is a part of."""
    while key:
        yield key
        key = key.rpartition(".")[0]


def read_chains_file(path: Path) -> ChainsText:
    """The chains of a file: `.chains`, or the JSON twin, which begins with a brace.

    Raises InputError with every fault.
    """
    text, file = read_text(path, LARGEST_FILE), str(path)
    if path.suffix.lower() == ".json" or text.lstrip().startswith("{"):
        return ChainsText(file, chains_of(parse_json(text, file), file))
    return chains_of_text(text, file)


def chains_of_text(text: str, file: str) -> ChainsText:
    """Chains as people write them; faults name `file`."""
    reading = _Reading(file)
    for statement in _statements(text):
        reading.read(statement)
    chains = reading.chains()
    if reading.faults:
        raise InputError(sorted(reading.faults, key=lambda one: one.line or 0))
    return ChainsText(file, chains, reading.places, reading.matches)


@dataclass(frozen=True)
class _Statement:
    """A line and the indented lines that continue it, without comments."""

    text: str
    lines: tuple[int, ...]
    starts: tuple[int, ...]

    def place(self, at: int) -> tuple[int, int]:
        """Line and column of a character, counted from 1."""
        number = bisect_right(self.starts, at) - 1
        return self.lines[number], at - self.starts[number] + 1


def _statements(text: str) -> Iterator[_Statement]:
    parts: list[str] = []
    lines: list[int] = []
    for number, raw in enumerate(text.split("\n"), start=1):
        line = _without_comment(raw.rstrip("\r"))
        if not line.strip():
            continue
        if parts and not line[0].isspace():
            yield _statement(parts, lines)
            parts, lines = [], []
        parts.append(line.rstrip())
        lines.append(number)
    if parts:
        yield _statement(parts, lines)


def _statement(parts: list[str], lines: list[int]) -> _Statement:
    starts = [0]
    for part in parts[:-1]:
        starts.append(starts[-1] + len(part) + 1)
    return _Statement("\n".join(parts), tuple(lines), tuple(starts))


def _without_comment(line: str) -> str:
    """What stands before a `#` that is not quoted."""
    quote = ""
    for at, one in enumerate(line):
        if quote:
            quote = "" if one == quote else quote
        elif one in "\"'":
            quote = one
        elif one == "#":
            return line[:at]
    return line


@dataclass(frozen=True)
class _Placed:
    """What was read, and where it stands."""

    line: int
    column: int


@dataclass(frozen=True)
class _Graph(_Placed):
    graph: ChainGraph


@dataclass(frozen=True)
class _Promise(_Placed):
    slo: Slo | None


@dataclass(frozen=True)
class _Size(_Placed):
    size: int


class _Reading:
    """Collects statements and faults of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.faults: list[Fault] = []
        self.places: dict[tuple[str, str], tuple[int, int]] = {}
        self.matches: dict[tuple[str, str], list[str]] = {}
        self.graphs: dict[str, _Graph] = {}
        self.slos: dict[str, _Promise] = {}
        self.sizes: dict[str, _Size] = {}
        self.aggregates: dict[str, list[str]] = {}
        self.named: list[tuple[str, str, int, int]] = []
        """Keyword, chain, line and column of each statement about a chain."""

    def read(self, statement: _Statement) -> None:
        head = SECTION_HEAD.match(statement.text)
        assert head is not None
        keyword = head["keyword"]
        if keyword not in SECTION_KEYWORDS:
            hint = suggestion(keyword, SECTION_KEYWORDS)
            self.fault(statement, head.start("keyword"), f"'{keyword}' does not begin a statement", hint)
            return
        if not head["colon"]:
            self.fault(statement, head.end(), f"'{keyword}' has no colon", f"as in {SECTION_KEYWORDS[keyword]}")
            return
        names = list(self.names(statement, keyword, head.start("names"), head["names"]))
        reader: Callable[[_Statement, str, list[tuple[str, int]], int], None] = getattr(self, f"read_{keyword}")
        try:
            reader(statement, statement.text[head.end() :], names, head.end())
        except TextError as error:
            self.text_fault(statement, head.end(), error.fault)

    def names(self, statement: _Statement, keyword: str, at: int, text: str) -> Iterator[tuple[str, int]]:
        """The chains that a statement is about, and where each is named."""
        if not text.strip():
            if keyword != "packets":
                self.fault(statement, at, f"'{keyword}' names no chain", f"as in {SECTION_KEYWORDS[keyword]}")
            return
        for found in re.finditer(r"[^,]+|,\s*(?=,|$)", text):
            name = found[0].strip()
            start = at + found.start() + len(found[0]) - len(found[0].lstrip())
            if not CHAIN_NAME.fullmatch(name):
                hint = "names have letters, digits, _ . and -; a comma between names"
                self.fault(statement, start, f"'{name}' is no name of a chain", hint)
                continue
            if keyword != "chain":
                self.named.append((keyword, name, *statement.place(start)))
            yield name, start

    def read_chain(self, statement: _Statement, text: str, names: list[tuple[str, int]], begin: int) -> None:
        if len(names) > 1:
            self.fault(statement, names[1][1], "a chain has one name", "write each chain by itself")
        name, at = names[0] if names else ("", 0)
        line, column = statement.place(at)
        self.refuse_twice(statement, name, at, self.graphs, "chain")
        if names:  # before the text is read: its SLO has a chain, whatever is wrong with it
            self.graphs[name] = _Graph(line, column, ChainGraph())
        graph = parse_graph(text)
        for fault in graph.faults:
            self.text_fault(statement, begin, fault)
        if not names:
            return
        self.graphs[name] = _Graph(line, column, graph)
        for nf, written in zip(graph.nfs, graph.texts, strict=True):
            self.places[name, nf.id] = statement.place(begin + written.at)
            for within, at in written.places.items():
                self.places[name, f"{nf.id}.{within}"] = statement.place(begin + at)
        for branch, matches in graph.matches.items():
            self.matches[name, branch] = [match for match, _ in matches]
            for number, (_, at) in enumerate(matches, 1):
                self.places[name, branch] = self.places[name, f"{branch}.{number}"] = statement.place(begin + at)

    def read_slo(self, statement: _Statement, text: str, names: list[tuple[str, int]], begin: int) -> None:
        for name, at in names:
            self.refuse_twice(statement, name, at, self.slos, "slo")
            self.slos[name] = _Promise(*statement.place(at), None)
        slo = parse_slo(text)
        for name, at in names:
            self.slos[name] = _Promise(*statement.place(at), slo)

    def read_packets(self, statement: _Statement, text: str, names: list[tuple[str, int]], begin: int) -> None:
        for name, at in names or [("", 0)]:
            self.refuse_twice(statement, name, at, self.sizes, "packets")
            self.sizes[name] = _Size(*statement.place(at), parse_packet_size(text))

    def read_aggregate(self, statement: _Statement, text: str, names: list[tuple[str, int]], begin: int) -> None:
        traffic = " ".join(text.split())
        if not traffic:
            raise TextError(len(text), "the aggregate is empty", f"as in {SECTION_KEYWORDS['aggregate']}")
        for name, _ in names:
            of = self.aggregates.setdefault(name, [])
            of.append(traffic)
            self.places[name, f"aggregate.{len(of)}"] = statement.place(begin + len(text) - len(text.lstrip()))

    def refuse_twice(
        self, statement: _Statement, name: str, at: int, known: Mapping[str, _Placed], keyword: str
    ) -> None:
        if name in known:
            what = f"'{keyword} {name}'".replace(" '", "'")
            self.fault(statement, at, f"duplicate {what}", f"it is in line {known[name].line}, too")

    def chains(self) -> tuple[Chain, ...]:
        """The chains; what does not belong together becomes a fault."""
        for keyword, name, line, column in self.named:
            if name not in self.graphs:
                hint = suggestion(name, self.graphs) if self.graphs else "write chain NAME: ..."
                message = f"'{keyword}' of {name}, which is no chain"
                self.faults.append(Fault(self.file, line, f"column {column}", message, hint))
        for name, one in self.graphs.items():
            if name not in self.slos:
                hint = f"write slo {name}: 1 Gbps to 10 Gbps"
                self.faults.append(Fault(self.file, one.line, f"column {one.column}", f"{name} has no SLO", hint))
        if not self.graphs and not self.faults:
            self.faults.append(Fault(self.file, None, None, "holds no chain", f"write {SECTION_KEYWORDS['chain']}"))
        return () if self.faults else tuple(self.chain(name) for name in self.graphs)

    def chain(self, name: str) -> Chain:
        size = self.sizes.get(name, self.sizes.get(""))
        graph, slo = self.graphs[name].graph, self.slos[name].slo
        assert slo is not None
        return Chain(
            name,
            size.size if size else PACKET_SIZE,
            slo,
            tuple(graph.nfs),
            tuple(graph.edges),
            tuple(self.aggregates.get(name, ())),
        )

    def text_fault(self, statement: _Statement, begin: int, fault: TextFault) -> None:
        self.fault(statement, begin + fault.at, fault.message, fault.hint)

    def fault(self, statement: _Statement, at: int, message: str, hint: str | None = None) -> None:
        line, column = statement.place(at)
        self.faults.append(Fault(self.file, line, f"column {column}", message, hint))


# Rates, times and sizes with their units, as in `1.1 Gbps to 100 Gbps, at most 45 us`.


MBPS_UNITS = {
    "bps": Fraction(1, 10**6),
    "kbps": Fraction(1, 10**3),
    "Mbps": Fraction(1),
    "Gbps": Fraction(10**3),
    "Tbps": Fraction(10**6),
}
"""Units of rates, in Mbps."""
TIME_UNITS = {
    "ns": Fraction(1, 10**3),
    "us": Fraction(1),
    "\N{MICRO SIGN}s": Fraction(1),
    "\N{GREEK SMALL LETTER MU}s": Fraction(1),
    "ms": Fraction(10**3),
    "s": Fraction(10**6),
}
"""Units of times, in us."""
BYTE_UNITS = {"B": Fraction(1), "byte": Fraction(1), "bytes": Fraction(1)}
LARGEST_PACKET = 65_535
SLO_WORD = re.compile(r"[0-9.]+|,|[^\s,0-9.]+")
SLO_NUMBER = re.compile(r"[0-9]{1,30}(\.[0-9]{1,30})?")
SLO_FORM = "as in 1.1 Gbps to 100 Gbps, at most 45 us, or exactly 2 Gbps"


class _Words:
    """Reads a text word by word."""

    def __init__(self, text: str) -> None:
        self.words = [(found[0], found.start()) for found in SLO_WORD.finditer(text)]
        self.end = len(text.rstrip())
        self.number = 0

    @property
    def at(self) -> int:
        return self.words[self.number][1] if self.number < len(self.words) else self.end

    @property
    def next(self) -> str:
        return self.words[self.number][0] if self.number < len(self.words) else ""

    def takes(self, *words: str) -> bool:
        """Whether these words come next; then they are taken."""
        upcoming = [word for word, _ in self.words[self.number : self.number + len(words)]]
        if upcoming != list(words):
            return False
        self.number += len(words)
        return True

    def quantity(self, what: str, units: Mapping[str, Fraction], hint: str) -> Fraction:
        at, text = self.at, self.next
        if not SLO_NUMBER.fullmatch(text):
            raise TextError(at, f"the {what} is missing here" if not text else f"'{text}' is no {what}", hint)
        self.number += 1
        unit_at, unit = self.at, self.next
        if unit in ("", ",", "to") or SLO_NUMBER.fullmatch(unit):
            raise TextError(unit_at, f"'{text}' has no unit", f"one of {', '.join(units)}")
        if unit not in units:
            raise TextError(unit_at, f"the unit '{unit}' is not known", suggestion(unit, units))
        self.number += 1
        value = Fraction(text) * units[unit]
        if value > LARGEST_NUMBER:
            raise TextError(at, f"'{text} {unit}' is too large")
        return value

    def end_here(self, hint: str) -> None:
        if self.next:
            raise TextError(self.at, f"'{self.next}' does not belong here", hint)


def parse_slo(text: str) -> Slo:
    """The SLO that a text is. Raises TextError at what is not understood."""
    words = _Words(text)
    if words.takes("exactly"):
        at = words.at
        least = largest = words.quantity("rate", MBPS_UNITS, SLO_FORM)
    else:
        at = words.at
        least = words.quantity("rate", MBPS_UNITS, SLO_FORM)
        if not words.takes("to"):
            raise TextError(words.at, "the largest useful rate is missing", SLO_FORM)
        if words.takes("unbounded"):
            largest = max(UNBOUNDED_MBPS, least)
        else:
            largest = words.quantity("rate", MBPS_UNITS, SLO_FORM)
    latency = None
    if words.takes(",", "at", "most"):
        latency_at = words.at
        latency = words.quantity("latency", TIME_UNITS, SLO_FORM)
        if latency == 0:
            raise TextError(latency_at, "a latency is above 0")
    words.end_here(SLO_FORM)
    if least > largest:
        raise TextError(at, "the least rate is above the largest", SLO_FORM)
    if largest == 0:
        raise TextError(at, "the largest rate is 0")
    return Slo(least, largest, latency)


def parse_packet_size(text: str) -> int:
    """The size of packets in bytes. Raises TextError at what is not understood."""
    words = _Words(text)
    hint = "as in 1500 B"
    at = words.at
    size = words.quantity("packet size", BYTE_UNITS, hint)
    words.end_here(hint)
    if size.denominator != 1 or not 1 <= size <= LARGEST_PACKET:
        raise TextError(at, f"a packet has a whole number of bytes from 1 to {LARGEST_PACKET:,}")
    return int(size)
