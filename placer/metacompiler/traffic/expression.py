"""What a traffic expression means: a formula over the header fields of a packet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

TCP, UDP = 6, 17


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


class End(StrEnum):
    """Which of two addresses or ports a test looks at."""

    SOURCE = "src"
    DESTINATION = "dst"
    EITHER = "either"


@dataclass(frozen=True)
class Everything:
    """Holds for each packet."""


@dataclass(frozen=True)
class IsIp:
    """Holds for IPv4."""


@dataclass(frozen=True)
class HasTag:
    """Holds for packets with a VLAN tag; of one VLAN, if it names one."""

    vlan: int | None = None


@dataclass(frozen=True)
class HasProtocol:
    """Holds for IPv4 of a protocol."""

    protocol: int


@dataclass(frozen=True)
class HasAddress:
    """Holds for IPv4 from, to, or from or to a prefix."""

    end: End
    prefix: int
    length: int

    @property
    def mask(self) -> int:
        return 0xFFFFFFFF << (32 - self.length) & 0xFFFFFFFF


@dataclass(frozen=True)
class HasPort:
    """Holds for UDP and TCP that is no fragment, with a port in a range; `low` and `high` belong to it."""

    end: End
    low: int
    high: int


@dataclass(frozen=True)
class Not:
    """Holds where another expression does not."""

    of: Expression


@dataclass(frozen=True)
class And:
    """Holds where all of its parts do."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Or:
    """Holds where one of its parts does."""

    parts: tuple[Expression, ...]


Expression = Everything | IsIp | HasTag | HasProtocol | HasAddress | HasPort | Not | And | Or


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
            return packet.ip and any(one & expression.mask == prefix for one in _of_end(packet, end))
        case HasPort(end, low, high):
            return packet.ports is not None and any(low <= one <= high for one in _ports_of_end(packet.ports, end))
        case Not(of):
            return not holds(of, packet)
        case And(parts):
            return all(holds(part, packet) for part in parts)
        case Or(parts):
            return any(holds(part, packet) for part in parts)


def first_that_holds(expressions: Sequence[Expression], packet: PacketFields) -> int | None:
    """The number of the first expression that holds for a packet; None if none does."""
    return next((at for at, one in enumerate(expressions) if holds(one, packet)), None)


def _of_end(packet: PacketFields, end: End) -> tuple[int, ...]:
    return _ports_of_end((packet.source, packet.destination), end)


def _ports_of_end(values: tuple[int, int], end: End) -> tuple[int, ...]:
    return {End.SOURCE: values[:1], End.DESTINATION: values[1:], End.EITHER: values}[end]
