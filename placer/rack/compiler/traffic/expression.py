"""What a traffic expression means: a formula over the header fields of a packet."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

TCP, UDP = 6, 17


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
