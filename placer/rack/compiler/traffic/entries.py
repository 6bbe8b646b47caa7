"""Traffic expressions as entries of a ternary table: of those that fit a packet, the first one decides.

A list of entries is complete: the last one fits every packet. Negation flips what entries say; `and`, `or` and a choice
among several expressions pair the entries of two lists, in the order of the first, then of the second.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError
from typing import Generic, TypeVar

from placer.rack.compiler.traffic.expression import (
    TCP,
    UDP,
    And,
    End,
    Everything,
    Expression,
    HasAddress,
    HasPort,
    HasProtocol,
    HasTag,
    IsIp,
    Not,
    Or,
)
from profiles import InputError

FIELD_WIDTHS: Mapping[str, int] = {
    "tagged": 8,
    "vlan": 16,
    "ip": 8,
    "source": 32,
    "destination": 32,
    "protocol": 8,
    "has_ports": 8,
    "source_port": 16,
    "destination_port": 16,
}
"""The fields of a key, with their bits; those that say whether something is there are 0 or 1."""
MOST_ENTRIES = 4096
TOO_MANY_ENTRIES = f"traffic expressions need more than {MOST_ENTRIES} table entries"
MOST_COMPARED_ENTRIES = 200  # of expressions that are compared with each other, as each entry meets all others

Verdict = TypeVar("Verdict")
One = TypeVar("One")
Other = TypeVar("Other")

Bits = Mapping[str, tuple[int, int]]
"""By field, a value and the mask under which a packet's must equal it; fields without one may be anything."""


class TooManyEntriesError(InputError):
    """Expressions that need more than `MOST_ENTRIES` entries."""


@dataclass(frozen=True)
class Entry(Generic[Verdict]):
    """What decides if a packet's fields equal `bits`."""

    bits: Bits
    verdict: Verdict


def entries_of(expressions: Sequence[Expression]) -> list[Entry[int | None]]:
    """Entries that say which expression is the first one that holds; None if none does. Raises TooManyEntriesError."""
    found: list[Entry[int | None]] = [Entry({}, None)]
    for at, expression in reversed(list(enumerate(expressions))):
        found = _pair_entries(_entries(expression), found, partial(_first, at))
    return found


def unmet_expressions(expressions: Sequence[Expression]) -> list[int]:
    """The numbers of expressions that come too late: whatever fits them fits an earlier one.

    All that equal an earlier one are found; those that earlier ones cover only if they need few entries, and that ports
    are those of TCP and UDP only counts with fewer.
    """
    equal = {at for at, expression in enumerate(expressions) if expression in expressions[:at]}
    if sum(map(_number_of_ways, expressions)) > MOST_COMPARED_ENTRIES:
        return sorted(equal)  # entries of thousands of tests take minutes
    try:
        compared = [_with_protocols(expression) for expression in expressions]
        if sum(map(len, map(_entries, compared))) > MOST_COMPARED_ENTRIES:
            compared = list(expressions)
        if sum(map(len, map(_entries, compared))) > MOST_COMPARED_ENTRIES:
            return sorted(equal)
        met = {entry.verdict for entry in entries_of(compared)}
    except TooManyEntriesError:
        return sorted(equal)
    return [at for at in range(len(expressions)) if at in equal or at not in met]


def _has_parts(expression: Expression) -> bool:
    return isinstance(expression, Everything | Not | And | Or)


def _number_of_ways(expression: Expression) -> int:
    """How many entries all tests of an expression have by themselves."""
    match expression:
        case Everything():
            return 1
        case Not(of):
            return _number_of_ways(of)
        case And(parts) | Or(parts):
            return sum(map(_number_of_ways, parts))
        case _:
            return sum(1 for _ in _test(expression))


def _with_protocols(expression: Expression) -> Expression:
    """The same expression, which also says that packets with ports are TCP or UDP: `port 80 and icmp` fits none."""
    match expression:
        case HasPort():
            return And((Or((HasProtocol(TCP), HasProtocol(UDP))), expression))
        case Not(of):
            return Not(_with_protocols(of))
        case And(parts):
            return And(tuple(map(_with_protocols, parts)))
        case Or(parts):
            return Or(tuple(map(_with_protocols, parts)))
        case _:
            return expression


def _first(at: int, holds: bool, later: int | None) -> int | None:
    return at if holds else later


def _entries(expression: Expression) -> list[Entry[bool]]:
    match expression:
        case Everything():
            return [Entry({}, True)]
        case Not(of):
            return [Entry(entry.bits, not entry.verdict) for entry in _entries(of)]
        case And(parts):
            return reduce(lambda a, b: _pair_entries(a, b, lambda x, y: x and y), map(_entries, parts))
        case Or(parts) if _number_of_ways(expression) > MOST_COMPARED_ENTRIES and not any(map(_has_parts, parts)):
            # in pairs, thousands of tests take minutes
            distinct = {tuple(bits.items()): bits for part in parts for bits in _test(part)}  # type: ignore[arg-type]
            if len(distinct) > MOST_ENTRIES:
                raise TooManyEntriesError.of("switch", TOO_MANY_ENTRIES)
            return [*(Entry(bits, True) for bits in distinct.values()), Entry({}, False)]
        case Or(parts):
            return reduce(lambda a, b: _pair_entries(a, b, lambda x, y: x or y), map(_entries, parts))
        case _:
            return [*(Entry(bits, True) for bits in _test(expression)), Entry({}, False)]


def _test(test: IsIp | HasTag | HasProtocol | HasAddress | HasPort) -> Iterator[Bits]:
    """Each way to pass a test."""
    match test:
        case IsIp():
            yield {"ip": (1, 0xFF)}
        case HasTag(vlan):
            yield {"tagged": (1, 0xFF)} if vlan is None else {"tagged": (1, 0xFF), "vlan": (vlan, 0xFFFF)}
        case HasProtocol(protocol):
            yield {"ip": (1, 0xFF), "protocol": (protocol, 0xFF)}
        case HasAddress(end, prefix, _):
            for name in _names(end):
                yield {"ip": (1, 0xFF), name: (prefix, test.mask)}
        case HasPort(end, low, high):
            for name in _names(end):
                for value, mask in prefixes_of(low, high):
                    yield {"has_ports": (1, 0xFF), f"{name}_port": (value, mask)}


def _names(end: End) -> tuple[str, ...]:
    return {End.SOURCE: ("source",), End.DESTINATION: ("destination",)}.get(end, ("source", "destination"))


def prefixes_of(low: int, high: int, bits: int = 16) -> list[tuple[int, int]]:
    """A range of numbers as the fewest prefixes, each a value and its mask."""
    full = (1 << bits) - 1
    found = []
    while low <= high:
        size = low & -low or 1 << bits
        while low + size - 1 > high:
            size >>= 1
        found.append((low, full & ~(size - 1)))
        low += size
    return found


def _pair_entries(
    ones: Sequence[Entry[One]], others: Sequence[Entry[Other]], verdict: Callable[[One, Other], Verdict]
) -> list[Entry[Verdict]]:
    """Entries for both lists at once, without those that an earlier one covers."""
    found: list[Entry[Verdict]] = []
    for first_entry in ones:
        for other in others:
            bits = _both(first_entry.bits, other.bits)
            if bits is None or any(_covers(earlier.bits, bits) for earlier in found):
                continue
            found.append(Entry(bits, verdict(first_entry.verdict, other.verdict)))
            if len(found) > MOST_ENTRIES:
                raise TooManyEntriesError.of("switch", TOO_MANY_ENTRIES)
    while len(found) > 1 and found[-2].verdict == found[-1].verdict:
        del found[-2]
    return found


def _both(one: Bits, other: Bits) -> Bits | None:
    """What fits both; None if nothing does."""
    if not one or not other:
        return one or other
    found = dict(one)
    for name, (value, mask) in other.items():
        before, before_mask = found.get(name, (0, 0))
        if (before ^ value) & before_mask & mask:
            return None
        found[name] = (before | value, before_mask | mask)
    return found


def _covers(one: Bits, other: Bits) -> bool:
    """Whether all that fits the other fits the one."""
    for name, (value, mask) in one.items():
        theirs, their_mask = other.get(name, (0, 0))
        if mask & ~their_mask or (value ^ theirs) & mask:
            return False
    return True


# Reads a traffic expression: a subset of pcap-filter(7), with shorthands for aggregates such as `10.1.0.0/16, udp`.
#
# expression := both {or both}          both := part {and part | , part}        part := [not] (test | ( expression ))
# test := any | other | ip | tcp | udp | icmp | proto N | vlan [N] | [END] host A | [END] net A/LEN | A[/LEN]
#         | [tcp | udp] [END] port N | [tcp | udp] [END] portrange A-B          END := src | dst | src or dst


PROTOCOL_NUMBERS = {"tcp": TCP, "udp": UDP, "icmp": 1}
END_WORDS = {"src": End.SOURCE, "dst": End.DESTINATION}
ALL_WORDS = ("any", "other", "")
DEEPEST_NESTING = 30
EXPRESSION_HINT = "as in `udp port 53`, `src net 10.0.0.0/8 and not tcp`, `vlan 7` or `other`"
EXPRESSION_TOKEN = re.compile(r"\s*(&&|\|\||[(),!]|[^\s(),!&|]+|.)")


class ExpressionError(Exception):
    """An expression that cannot be read: what is wrong, and at which character."""

    def __init__(self, at: int, message: str, hint: str = EXPRESSION_HINT) -> None:
        super().__init__(message)
        self.at = at
        self.message = message
        self.hint = hint


def parse(text: str) -> Expression:
    """The expression that a text describes; an empty one holds for each packet.

    Raises ExpressionError at the first word that does not belong there.
    """
    return Everything() if not text.strip() else _Parser(text).whole()


class _Parser:
    """Reads words from left to right; each method reads one part of the grammar."""

    def __init__(self, text: str) -> None:
        self.words = [
            (found[1].lower(), found.start(1)) for found in EXPRESSION_TOKEN.finditer(text) if found[1].strip()
        ]
        self.end = len(text)
        self.number = 0
        self.depth = 0

    @property
    def word(self) -> str | None:
        return self.words[self.number][0] if self.number < len(self.words) else None

    @property
    def at(self) -> int:
        return self.words[self.number][1] if self.number < len(self.words) else self.end

    def takes(self, *words: str) -> bool:
        """Whether the next word is one of these; then it is taken."""
        if self.word not in words:
            return False
        self.number += 1
        return True

    def take(self, what: str) -> str:
        word = self.word
        if word is None:
            raise ExpressionError(self.at, f"{what} is missing at the end")
        self.number += 1
        return word

    def whole(self) -> Expression:
        found = self.expression()
        if self.word is not None:
            raise ExpressionError(self.at, f"'{self.word}' does not belong here")
        return found

    def expression(self) -> Expression:
        parts = [self.both()]
        while self.takes("or", "||"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def both(self) -> Expression:
        parts = [self.part()]
        while self.takes("and", "&&", ","):
            parts.append(self.part())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def part(self) -> Expression:
        if self.takes("not", "!"):
            return Not(self.nest(self.part))
        at = self.at
        if not self.takes("("):
            return self.test()
        found = self.nest(self.expression)
        if not self.takes(")"):
            raise ExpressionError(at, "the '(' is not closed")
        return found

    def nest(self, read: Callable[[], Expression]) -> Expression:
        self.depth += 1
        if self.depth > DEEPEST_NESTING:
            raise ExpressionError(self.at, f"parts are nested deeper than {DEEPEST_NESTING}")
        found = read()
        self.depth -= 1
        return found

    def test(self) -> Expression:
        at, word = self.at, self.take("a test")
        if word in ALL_WORDS:
            return Everything()
        if word == "ip":
            return IsIp()
        if word == "vlan":
            return HasTag(self.count(4095, "a VLAN") if self.word is not None and self.word.isdigit() else None)
        if word == "proto":
            return HasProtocol(self.count(255, "a protocol"))
        if word in PROTOCOL_NUMBERS:
            return self.of_protocol(word)
        if word in (*END_WORDS, "host", "net", "port", "portrange"):
            self.number -= 1
            return self.of_end()
        if re.fullmatch(r"[0-9.]+(/[0-9]+)?", word) and "." in word:
            return self.prefix(word, at, End.EITHER)
        raise ExpressionError(at, f"'{word}' is no test")

    def of_protocol(self, word: str) -> Expression:
        """`tcp`, or `tcp dst port 80`."""
        protocol = HasProtocol(PROTOCOL_NUMBERS[word])
        if word == "icmp" or self.word not in (*END_WORDS, "port", "portrange"):
            return protocol
        at = self.at
        port = self.of_end()
        if not isinstance(port, HasPort):
            raise ExpressionError(at, f"behind {word} stands a port, or `and`")
        return And((protocol, port))

    def of_end(self) -> Expression:
        end = End.EITHER
        if self.word in END_WORDS:
            end = END_WORDS[self.take("an end")]
            if self.word == "or" and self.other_end(end):
                end = End.EITHER
                self.number += 2
        at, word = self.at, self.take("host, net, port or portrange")
        if word in ("host", "net"):
            at = self.at
            return self.prefix(self.take("an address"), at, end)
        if word == "port":
            port = self.count(65535, "a port")
            return HasPort(end, port, port)
        if word == "portrange":
            return self.range_of_ports(end)
        if re.fullmatch(r"[0-9.]+(/[0-9]+)?", word):
            return self.prefix(word, at, end)
        raise ExpressionError(at, f"'{word}' does not belong here")

    def other_end(self, end: End) -> bool:
        """Whether `or` and the other end follow: `src or dst`."""
        following = self.words[self.number + 1][0] if self.number + 1 < len(self.words) else None
        return following in END_WORDS and END_WORDS[following] != end

    def range_of_ports(self, end: End) -> HasPort:
        at, word = self.at, self.take("a range of ports")
        found = re.fullmatch(r"([0-9]{1,5})-([0-9]{1,5})", word)
        if not found or not int(found[1]) <= int(found[2]) <= 65535:
            raise ExpressionError(at, f"'{word}' is no range of ports", "as in portrange 1024-65535")
        return HasPort(end, int(found[1]), int(found[2]))

    def prefix(self, word: str, at: int, end: End) -> HasAddress:
        address, slash, _ = word.partition("/")
        try:
            network = IPv4Network(word) if slash else IPv4Network((int(IPv4Address(address)), 32))
        except (AddressValueError, NetmaskValueError):
            raise ExpressionError(at, f"'{word}' is no IPv4 address or prefix", "as in 10.1.0.0/16") from None
        except ValueError:
            raise ExpressionError(at, f"'{word}' has bits behind its prefix", f"{_network_of(word)}?") from None
        return HasAddress(end, int(network.network_address), network.prefixlen)

    def count(self, most: int, what: str) -> int:
        at, word = self.at, self.take(what)
        if not re.fullmatch(r"[0-9]{1,9}", word) or int(word) > most:
            raise ExpressionError(at, f"'{word}' is not {what}", f"a number from 0 to {most}")
        return int(word)


def _network_of(word: str) -> str:
    return str(IPv4Network(word, strict=False))
