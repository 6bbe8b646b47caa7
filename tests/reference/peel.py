"""Takes off frames what contracts of NFs leave open: ciphers are opened, encoded payloads restored, endpoints blanked.

What is left is the same, whichever keys of a stream, references or ports an NF chose within its contract.
"""

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Protocol

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
from tests.reference.nfs.dedup import DedupModel
from tests.reference.nfs.esp import EspModel
from tests.reference.nfs.headers import (
    CHECKSUM_AT,
    ICMP,
    SOURCE,
    TAGS,
    TCP,
    Headers,
    addresses,
    end_of,
    ports,
    read_headers,
    split_value,
    with_end,
    word_at,
)
from tests.reference.nfs.model import Contract, FunctionModel
from tests.reference.nfs.nat import NatModel

Endpoint = tuple[int, int, int]  # protocol, address, and port or identifier


class Peeled(NamedTuple):
    """What is left of a frame, and the external endpoints of NATs that were taken off, the last NAT's first."""

    frame: bytes
    endpoints: tuple[Endpoint, ...] = ()


class PeelStep(Protocol):
    """Undoes one NF."""

    def peeled(self, of: Peeled) -> Peeled | None:
        """What is left; None if the frame cannot have passed that NF."""
        ...


@dataclass(frozen=True)
class OpenEsp:
    """Decrypts."""

    model: EspModel

    def peeled(self, of: Peeled) -> Peeled | None:
        opened = self.model.open_sent(of.frame)
        return None if opened is None else of._replace(frame=opened)


@dataclass(frozen=True)
class RestorePayload:
    """Replaces references to earlier payloads by their bytes."""

    model: DedupModel

    def peeled(self, of: Peeled) -> Peeled | None:
        return of._replace(frame=self.model.restore_sent(of.frame))


@dataclass(frozen=True)
class BlankEndpoint:
    """Blanks the external endpoint of a NAT; checksums change with it, so that a wrong one stays wrong."""

    model: NatModel

    def peeled(self, of: Peeled) -> Peeled | None:
        headers = read_headers(of.frame)
        if headers.kind != "ipv4" or headers.l4 == 0:
            return None
        address, port = end_of(of.frame, headers.l3, headers.l4, SOURCE)
        if not self.model.owns(address):
            return None
        blank = with_end(of.frame, headers.l3, headers.l4, SOURCE, (0, 0))
        return Peeled(_with_one_zero(blank, headers), (*of.endpoints, (headers.protocol, address, port)))


def peel_steps(models: Mapping[str, FunctionModel]) -> dict[str, PeelStep]:
    """By NF with a contract, `chain/nf`, what undoes it; `models` are those that ran."""
    found: dict[str, PeelStep] = {}
    for name, model in models.items():
        if isinstance(model, NatModel):
            found[name] = BlankEndpoint(model)
        elif isinstance(model, DedupModel):
            found[name] = RestorePayload(model)
        elif isinstance(model, EspModel) and model.contract is Contract.ESP:
            found[name] = OpenEsp(model)
    return found


def peel(frame: bytes, steps: Iterable[PeelStep]) -> Peeled | None:
    """What is left of a frame after all steps, the last NF first; None if it cannot have passed these NFs."""
    of: Peeled | None = Peeled(frame)
    for step in steps:
        of = None if of is None else step.peeled(of)
    return of


def _with_one_zero(frame: bytes, headers: Headers) -> bytes:
    """A frame in which checksums have one of the two zeros of ones' complement."""
    made = bytearray(frame)
    places = [headers.l3 + 10]
    if headers.protocol in (TCP, ICMP):
        places.append(headers.l4 + CHECKSUM_AT[headers.protocol])
    for at in places:
        if word_at(made, at) == 0xFFFF:
            made[at : at + 2] = b"\0\0"
    return bytes(made)


TYPE = 12  # where the type of a frame is, or its outer tag


@dataclass(frozen=True)
class PacketFields:
    """The fields of a packet that expressions look at. `source`, `destination`: addresses as numbers."""

    vlan: int | None = None  # VLAN of the outermost tag; None without a tag
    ip: bool = False  # whether it is IPv4, perhaps behind one tag or two; if not, the other fields are 0
    source: int = 0
    destination: int = 0
    protocol: int = 0
    ports: tuple[int, int] | None = None  # source and destination port; None unless it is UDP or TCP and no fragment


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
    shares: tuple[tuple[int, int], ...]  # targets, each with the split value below which it is chosen

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
