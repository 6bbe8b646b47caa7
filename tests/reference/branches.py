"""Which way a packet goes: for which packets an expression holds, and the ways behind an NF of a chain."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from fractions import Fraction

from placer.rack.chain import Chain
from placer.rack.compiler.traffic.entries import parse
from placer.rack.compiler.traffic.expression import (
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
from tests.reference.nfs.headers import TAGS, addresses, ports, read_headers, split_value, word_at

TYPE = 12
"""Where the type of a frame is, or its outer tag."""


@dataclass(frozen=True)
class PacketFields:
    """The fields of a packet that expressions look at.

    Parameters
    ----------
    vlan
        VLAN of the outermost tag; None without a tag.
    ip
        Whether it is IPv4, perhaps behind one tag or two; if not, the other fields are 0.
    source, destination
        Addresses as numbers.
    ports
        Source and destination port; None unless it is UDP or TCP and no fragment.
    """

    vlan: int | None = None
    ip: bool = False
    source: int = 0
    destination: int = 0
    protocol: int = 0
    ports: tuple[int, int] | None = None


def fields_of(frame: bytes) -> PacketFields:
    """What traffic expressions look at in a frame."""
    headers = read_headers(frame)
    tagged = len(frame) >= 18 and word_at(frame, TYPE) in TAGS
    vlan = word_at(frame, TYPE + 2) & 0xFFF if tagged else None
    if headers.kind != "ipv4":
        return PacketFields(vlan)
    ends = ports(frame, headers) if headers.has_ports and not headers.fragment else None
    return PacketFields(vlan, True, *addresses(frame, headers), headers.protocol, ends)


def split_key(frame: bytes) -> bytes:
    """The flow that the split hash sees: frames with one are never dealt out to several cores. Empty: not IPv4."""
    headers = read_headers(frame)
    if headers.kind != "ipv4":
        return b""
    ends = frame[headers.l4 : headers.l4 + 4] if headers.has_ports and not headers.fragment else b""
    return frame[headers.l3 + 12 : headers.l3 + 20] + bytes((headers.protocol,)) + ends


def holds(expression: Expression, packet: PacketFields) -> bool:
    """Whether an expression holds for a packet."""
    match expression:
        case Everything():
            return True
        case IsIp():
            return packet.ip
        case HasTag(vlan):
            return packet.vlan is not None and vlan in (None, packet.vlan)
        case HasProtocol(protocol):
            return packet.ip and packet.protocol == protocol
        case HasAddress(end, prefix, _):
            return packet.ip and any(
                address & expression.mask == prefix for address in _of_end((packet.source, packet.destination), end)
            )
        case HasPort(end, low, high):
            return packet.ports is not None and any(low <= port <= high for port in _of_end(packet.ports, end))
        case Not(of):
            return not holds(of, packet)
        case And(parts):
            return all(holds(part, packet) for part in parts)
        case Or(parts):
            return any(holds(part, packet) for part in parts)


def _of_end(values: tuple[int, int], end: End) -> tuple[int, ...]:
    return {End.SOURCE: values[:1], End.DESTINATION: values[1:], End.EITHER: values}[end]


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
    """The ways behind an NF; shares are of the 65,536 split values, limits rounded down, the last is all."""
    edges = chain.edges_from(at)
    matches = tuple((parse(edge.match), edge.head) for edge in edges if edge.match)
    others = [edge for edge in edges if not edge.match]
    total, shares, reached = sum(edge.share for edge in others), list[tuple[int, int]](), Fraction(0)
    for edge in others:
        reached += edge.share
        shares.append((int(65536 * reached / total), edge.head))
    return Branches(zlib.crc32(f"{chain.name}/{chain.nfs[at].id}".encode()), matches, tuple(shares))


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
