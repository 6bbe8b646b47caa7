"""Traffic expressions as entries of a ternary table: of those that fit a packet, the first one decides.

A list of entries is complete: the last one fits every packet. Negation flips what entries say; `and`, `or` and a choice
among several expressions pair the entries of two lists, in the order of the first, then of the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Generic, TypeVar

from placer.metacompiler.traffic.expression import (
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
    PacketFields,
)

WIDTHS: Mapping[str, int] = {
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

Verdict = TypeVar("Verdict")
One = TypeVar("One")
Other = TypeVar("Other")

Bits = Mapping[str, tuple[int, int]]
"""By field, a value and the mask under which a packet's must equal it; fields without one may be anything."""


class TooManyEntriesError(Exception):
    """Expressions that need more than `MOST_ENTRIES` entries."""


@dataclass(frozen=True)
class Entry(Generic[Verdict]):
    """What decides if a packet's fields equal `bits`."""

    bits: Bits
    verdict: Verdict


def key_of(packet: PacketFields) -> dict[str, int]:
    """The key by which a table looks a packet up."""
    source_port, destination_port = packet.ports or (0, 0)
    return {
        "tagged": int(packet.vlan is not None),
        "vlan": packet.vlan or 0,
        "ip": int(packet.ip),
        "source": packet.source,
        "destination": packet.destination,
        "protocol": packet.protocol,
        "has_ports": int(packet.ports is not None),
        "source_port": source_port,
        "destination_port": destination_port,
    }


def looked_up(entries: Sequence[Entry[Verdict]], key: Mapping[str, int]) -> Verdict:
    """What the first entry that fits a key says."""
    return next(
        one.verdict for one in entries if all(key[name] & mask == value for name, (value, mask) in one.bits.items())
    )


def entries_of(expressions: Sequence[Expression]) -> list[Entry[int | None]]:
    """Entries that say which expression is the first one that holds; None if none does.

    Raises
    ------
    TooManyEntriesError
    """
    found: list[Entry[int | None]] = [Entry({}, None)]
    for at, expression in reversed(list(enumerate(expressions))):
        found = _paired(_entries(expression), found, partial(_first, at))
    return found


def _first(at: int, holds: bool, later: int | None) -> int | None:
    return at if holds else later


def _entries(expression: Expression) -> list[Entry[bool]]:
    match expression:
        case Everything():
            return [Entry({}, True)]
        case Not(of):
            return [Entry(one.bits, not one.verdict) for one in _entries(of)]
        case And(parts):
            return reduce(lambda a, b: _paired(a, b, lambda x, y: x and y), map(_entries, parts))
        case Or(parts):
            return reduce(lambda a, b: _paired(a, b, lambda x, y: x or y), map(_entries, parts))
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


def _paired(
    ones: Sequence[Entry[One]], others: Sequence[Entry[Other]], verdict: Callable[[One, Other], Verdict]
) -> list[Entry[Verdict]]:
    """Entries for both lists at once, without those that an earlier one covers."""
    found: list[Entry[Verdict]] = []
    for one in ones:
        for other in others:
            bits = _both(one.bits, other.bits)
            if bits is None or any(_covers(earlier.bits, bits) for earlier in found):
                continue
            found.append(Entry(bits, verdict(one.verdict, other.verdict)))
            if len(found) > MOST_ENTRIES:
                raise TooManyEntriesError(f"more than {MOST_ENTRIES} table entries")
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
