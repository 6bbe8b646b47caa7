"""What a network function on a server needs per packet, and what it does to the packets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from profiler.simulated.card import HEADER_BYTES
from profiles import TrafficProfile

FLOWS = "flows"
ENTRIES, DENIED, REDUNDANCY = "entries", "denied_pct", "redundancy_pct"
"""Parameters with one meaning for every NF: the most flows of its table, packets that it denies, repeated payload."""
LEAST_PACKET = 64.0


@dataclass(frozen=True, slots=True)
class NfParameter:
    """Range and default of a parameter."""

    low: float
    high: float
    default: float


@dataclass(frozen=True, slots=True)
class Table:
    """A data structure that an NF keeps to itself; each line is as likely to be touched as the next.

    Parameters
    ----------
    accesses, accesses_per_byte, accesses_each
        Accesses that miss the L1 cache: per packet, per byte of payload, and per entry.
    fixed_bytes, bytes_each
        Its size, which may grow with the number of entries.
    of
        What it has an entry for: `flows`, or the parameter that is their number.
    """

    accesses: float = 0.0
    accesses_per_byte: float = 0.0
    accesses_each: float = 0.0
    fixed_bytes: float = 0.0
    bytes_each: float = 0.0
    of: str = FLOWS
    writes: float = 0.0
    overlap: float = 1.0


@dataclass(frozen=True, slots=True)
class StageSpec:
    """A network function of a server.

    Parameters
    ----------
    instructions, instructions_per_byte, instructions_per_match
        Per packet, per payload byte, and per match of its patterns in the payload.
    instructions_each
        Per unit of a parameter, as per rule.
    ipc
        Instructions per cycle while every access hits the L1 cache.
    payload_touches, payload_writes
        How often each line of the payload is touched, and the share that writes.
    code_bytes
        What it executes per batch; NFs of one core compete for its instruction cache.
    added_bytes
        By which packets grow.
    blocked_per_match
        The share of matches for which the packet is dropped.
    replicable
        Whether several cores can run copies of it: packets of one flow go to one copy.
    """

    name: str
    instructions: float
    ipc: float = 1.6
    instructions_per_byte: float = 0.0
    instructions_per_match: float = 0.0
    instructions_each: Mapping[str, float] = field(default_factory=dict, hash=False)
    tables: tuple[Table, ...] = ()
    payload_touches: float = 0.0
    payload_writes: float = 0.0
    code_bytes: float = 2048.0
    added_bytes: float = 0.0
    blocked_per_match: float = 0.0
    parameters: Mapping[str, NfParameter] = field(default_factory=dict, hash=False)
    replicable: bool = True

    def values(self, given: Mapping[str, float]) -> dict[str, float]:
        """Its parameters: as given, else the defaults."""
        return {name: given.get(name, parameter.default) for name, parameter in self.parameters.items()}

    def work(self, packets: TrafficProfile, values: Mapping[str, float]) -> float:
        """Instructions per packet."""
        return (
            self.instructions
            + payload(packets) * self.instructions_per_byte
            + matches(packets) * self.instructions_per_match
            + sum(each * values[name] for name, each in self.instructions_each.items())
        )

    def entries(self, table: Table, packets: TrafficProfile, values: Mapping[str, float]) -> float:
        """How many entries a table has in use."""
        if table.of != FLOWS:
            return values[table.of]
        return min(packets.flows, values.get(ENTRIES, math.inf))

    def kept(self, packets: TrafficProfile, values: Mapping[str, float]) -> float:
        """The share of the packets that it passes on."""
        clean = math.exp(-self.blocked_per_match * matches(packets))
        return clean * (1 - values.get(DENIED, 0.0) / 100)

    def changed(self, packets: TrafficProfile, values: Mapping[str, float]) -> TrafficProfile:
        """The packets that it passes on: their size may differ."""
        size = packets.packet_size - payload(packets) * values.get(REDUNDANCY, 0.0) / 100 + self.added_bytes
        return TrafficProfile(packets.flows, max(size, LEAST_PACKET), packets.mtbr)


def payload(packets: TrafficProfile) -> float:
    """Bytes of payload per packet."""
    return max(packets.packet_size - HEADER_BYTES, 1.0)


def matches(packets: TrafficProfile) -> float:
    """Matches per packet."""
    return packets.mtbr * 1e-6 * payload(packets)
