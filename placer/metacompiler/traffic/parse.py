"""Reads a traffic expression: a subset of pcap-filter(7), with shorthands for aggregates such as `10.1.0.0/16, udp`.

expression := both {or both}          both := part {and part | , part}        part := [not] (test | ( expression ))
test := any | other | ip | tcp | udp | icmp | proto N | vlan [N] | [END] host A | [END] net A/LEN | A[/LEN]
        | [tcp | udp] [END] port N | [tcp | udp] [END] portrange A-B          END := src | dst | src or dst
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError

from placer.metacompiler.traffic.expression import (
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

PROTOCOLS = {"tcp": TCP, "udp": UDP, "icmp": 1}
ENDS = {"src": End.SOURCE, "dst": End.DESTINATION}
ALL = ("any", "other", "")
DEEPEST = 30
HINT = "as in `udp port 53`, `src net 10.0.0.0/8 and not tcp`, `vlan 7` or `other`"
TOKEN = re.compile(r"\s*(&&|\|\||[(),!]|[^\s(),!&|]+|.)")


class ExpressionError(Exception):
    """An expression that cannot be read: what is wrong, and at which character."""

    def __init__(self, at: int, message: str, hint: str = HINT) -> None:
        super().__init__(message)
        self.at = at
        self.message = message
        self.hint = hint


def parsed(text: str) -> Expression:
    """The expression that a text describes; an empty one holds for each packet.

    Raises
    ------
    ExpressionError
        At the first word that does not belong there.
    """
    return Everything() if not text.strip() else _Parser(text).whole()


class _Parser:
    """Reads words from left to right; each method reads one part of the grammar."""

    def __init__(self, text: str) -> None:
        self.words = [(found[1].lower(), found.start(1)) for found in TOKEN.finditer(text) if found[1].strip()]
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
            return Not(self.nested(self.part))
        at = self.at
        if not self.takes("("):
            return self.test()
        found = self.nested(self.expression)
        if not self.takes(")"):
            raise ExpressionError(at, "the '(' is not closed")
        return found

    def nested(self, read: Callable[[], Expression]) -> Expression:
        self.depth += 1
        if self.depth > DEEPEST:
            raise ExpressionError(self.at, f"parts are nested deeper than {DEEPEST}")
        found = read()
        self.depth -= 1
        return found

    def test(self) -> Expression:
        at, word = self.at, self.take("a test")
        if word in ALL:
            return Everything()
        if word == "ip":
            return IsIp()
        if word == "vlan":
            return HasTag(self.count(4095, "a VLAN") if self.word is not None and self.word.isdigit() else None)
        if word == "proto":
            return HasProtocol(self.count(255, "a protocol"))
        if word in PROTOCOLS:
            return self.of_protocol(word)
        if word in (*ENDS, "host", "net", "port", "portrange"):
            self.number -= 1
            return self.of_end()
        if re.fullmatch(r"[0-9.]+(/[0-9]+)?", word) and "." in word:
            return self.prefix(word, at, End.EITHER)
        raise ExpressionError(at, f"'{word}' is no test")

    def of_protocol(self, word: str) -> Expression:
        """`tcp`, or `tcp dst port 80`."""
        protocol = HasProtocol(PROTOCOLS[word])
        if word == "icmp" or self.word not in (*ENDS, "port", "portrange"):
            return protocol
        at = self.at
        port = self.of_end()
        if not isinstance(port, HasPort):
            raise ExpressionError(at, f"behind {word} stands a port, or `and`")
        return And((protocol, port))

    def of_end(self) -> Expression:
        end = End.EITHER
        if self.word in ENDS:
            end = ENDS[self.take("an end")]
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
        return following in ENDS and ENDS[following] != end

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
