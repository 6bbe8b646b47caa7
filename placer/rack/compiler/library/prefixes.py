"""Prefixes of IPv4 addresses, and those that generated data is about."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

from placer.rack.compiler.library.nf_kind import SplitMix
from profiles.files.table_lines import TableWord


@dataclass(frozen=True)
class Prefix:
    """A prefix: its first address, and its length in bits."""

    address: int
    length: int

    @property
    def mask(self) -> int:
        return ~((1 << 32 - self.length) - 1) & 0xFFFFFFFF

    def __str__(self) -> str:
        return f"{IPv4Address(self.address)}/{self.length}"

    def within(self, random: SplitMix, length: int) -> Prefix:
        """A random prefix of a length that lies in this one, or this one if it is longer."""
        length = max(length, self.length)
        inner = random.next() & ~self.mask & 0xFFFFFFFF
        return prefix_of(self.address | inner, length)


def prefix_of(address: int, length: int) -> Prefix:
    return Prefix(address & ~((1 << 32 - length) - 1) & 0xFFFFFFFF, length)


def table_prefix(word: TableWord) -> Prefix:
    """The prefix that a word of a file is. Raises WordError where it is none."""
    return Prefix(*word.prefix())


def parse_prefix(text: str) -> Prefix:
    address, _, length = text.partition("/")
    return prefix_of(int(IPv4Address(address)), int(length))


ANY_PREFIX = Prefix(0, 0)
INSIDE_PREFIX = parse_prefix("10.0.0.0/8")  # where clients are
OUTSIDE_PREFIXES = tuple(parse_prefix(text) for text in ("192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24"))
"""Where servers are: networks for documentation and benchmarks (RFC 5737, RFC 2544). That of a NAT is another one."""
