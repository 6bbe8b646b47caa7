"""Which way a packet goes behind an NF: by matches of the edges, tried in their order, else by the split hash."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from placer.chains.chain import Chain
from placer.metacompiler.library.headers import (
    ETHERNET,
    TAG,
    FrameType,
    destination_of,
    is_tag,
    ports_of,
    read_headers,
    source_of,
    split_value,
    word_at,
)
from placer.metacompiler.traffic.expression import (
    And,
    End,
    Expression,
    HasAddress,
    HasPort,
    Not,
    Or,
    PacketFields,
    holds,
)
from placer.metacompiler.traffic.parse import parsed

WHOLE = 65536
"""Values of the split hash."""
TYPE = ETHERNET - 2


@dataclass(frozen=True)
class Branches:
    """The ways behind an NF: those with a match are tried first, the others deal frames out by the split hash."""

    salt: int
    matches: tuple[tuple[Expression, int], ...]
    shares: tuple[tuple[int, int], ...]
    """Targets, each with the split value below which it is chosen."""

    def target(self, frame: bytes) -> int | None:
        """The next NF of a frame; None if there is none for it."""
        if self.matches:
            fields = fields_of(frame)
            for expression, target in self.matches:
                if holds(expression, fields):
                    return target
        value = split_value(frame, read_headers(frame), self.salt) if len(self.shares) > 1 else 0
        return next((target for limit, target in self.shares if value < limit), None)

    @property
    def look_at_source(self) -> bool:
        """Whether the choice depends on where a packet comes from."""
        return len(self.shares) > 1 or any(_looks_at_source(expression) for expression, _ in self.matches)


def branches_behind(chain: Chain, at: int) -> Branches:
    edges = chain.edges_from(at)
    matches = tuple((parsed(edge.match), edge.head) for edge in edges if edge.match)
    others = [edge for edge in edges if not edge.match]
    limits = split_limits([edge.share for edge in others])
    heads = [edge.head for edge in others]
    salt = zlib.crc32(f"{chain.name}/{chain.nfs[at].id}".encode())
    return Branches(salt, matches, tuple(zip(limits, heads, strict=True)))


def split_limits(shares: Sequence[Fraction]) -> list[int]:
    """Per way the split value below which it, or one before it, is chosen; the last one is all."""
    total, limits = sum(shares, Fraction(0)), list[int]()
    for at in range(1, len(shares) + 1):
        cumulative = sum(shares[:at], Fraction(0))
        limits.append(WHOLE if at == len(shares) else int(WHOLE * cumulative / total))
    return limits


def _looks_at_source(expression: Expression) -> bool:
    match expression:
        case HasAddress(end, _, _) | HasPort(end, _, _):
            return end is not End.DESTINATION
        case Not(of):
            return _looks_at_source(of)
        case And(parts) | Or(parts):
            return any(map(_looks_at_source, parts))
        case _:
            return False


def fields_of(frame: bytes) -> PacketFields:
    """What traffic expressions look at in a frame."""
    headers = read_headers(frame)
    tagged = len(frame) >= ETHERNET + TAG and is_tag(word_at(frame, TYPE))
    vlan = word_at(frame, ETHERNET) & 0xFFF if tagged else None
    if headers.type is not FrameType.IPV4:
        return PacketFields(vlan)
    ports = ports_of(frame, headers) if headers.has_ports and not headers.fragment else None
    source, destination = source_of(frame, headers), destination_of(frame, headers)
    return PacketFields(vlan, True, source, destination, headers.protocol, ports)


def split_key(frame: bytes) -> bytes:
    """The flow that the split hash sees: frames with one are never dealt out to several cores. Empty: not IPv4."""
    headers = read_headers(frame)
    if headers.type is not FrameType.IPV4:
        return b""
    ports = frame[headers.l4 : headers.l4 + 4] if headers.has_ports and not headers.fragment else b""
    return frame[headers.l3 + 12 : headers.l3 + 20] + bytes((headers.protocol,)) + ports
