"""What a load needs of the card per packet, or per operation of a bench: all that the solver knows of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profiler.simulated.cache import private_hits
from profiler.simulated.card import HEADER_BYTES, LINE_BYTES, Card
from profiler.simulated.nfs import NfSpec
from profiles import TrafficProfile

LOADS_PER_INSTRUCTION = 0.29
STORES_PER_INSTRUCTION = 0.108
"""Of a polling core, from the slowest mem-bench runs measured on a BlueField-2."""

PROGRAM_BYTES = 0.14e6
"""Working set in addition to the data structures, from the same runs."""


@dataclass(frozen=True, slots=True)
class Access:
    """One structure as the shared cache sees it, per packet.

    Parameters
    ----------
    lines
        Its size; 0 when every access hits the private cache.
    l2, l3
        Accesses that miss the L1 cache, and the L2 cache.
    writes
        Share that writes.
    overlap
        Accesses outstanding at the same time.
    """

    lines: float
    l2: float
    l3: float
    writes: float
    overlap: float


@dataclass(frozen=True, slots=True)
class LoadDemand:
    """What one load needs of a card, or one core of a chain of NFs.

    Parameters
    ----------
    cores
        Cores that work for it; of a core of which a chain has only a share, that share.
    compute_ns
        Core time per packet while every access hits the L1 cache, ns.
    offered
        Packets/us that arrive: line rate for NFs, the requested rate for a bench.
    dma_bytes
        Bytes per packet that the port moves through memory.
    queues, service_us
        Per accelerator of the card: request queues (0: not used) and time of a request.
    serial
        Run-to-completion: a packet waits for each resource in turn.
    follows
        It is a further core of the chain whose earlier cores are before it: all of them pass the same packets.
    """

    cores: float
    instructions: float
    compute_ns: float
    accesses: tuple[Access, ...]
    offered: float
    dma_bytes: float
    queues: tuple[int, ...]
    service_us: tuple[float, ...]
    serial: bool
    wss_mb: float
    follows: bool = False


@dataclass(frozen=True, slots=True)
class Touched:
    """A structure of known size (bytes) and accesses per packet, before any cache."""

    size: float
    accesses: float
    writes: float
    overlap: float


def filtered(touched: Sequence[Touched], cores: int, card: Card) -> tuple[Access, ...]:
    """The accesses that miss the private cache of `cores` cores."""
    lines = [part.size / LINE_BYTES for part in touched]
    found = private_hits(lines, [part.accesses for part in touched], cores * card.l2_bytes_per_core / LINE_BYTES)
    return tuple(
        Access(n if h < 1 else 0.0, part.accesses, part.accesses * (1 - h), part.writes, part.overlap)
        for part, n, h in zip(touched, lines, found, strict=True)
    )


def nf_demand(spec: NfSpec, traffic: TrafficProfile, card: Card) -> LoadDemand:
    """What the NF needs per packet of this traffic."""
    payload = max(traffic.packet_size - HEADER_BYTES, 1.0)
    fragments = max(payload / spec.fragment_bytes, 1.0) if spec.fragment_bytes else 0.0
    instructions = spec.instructions + payload * spec.instructions_per_byte + fragments * spec.instructions_per_fragment
    touched = [
        Touched(
            part.fixed_bytes + part.bytes_per_flow * traffic.flows,
            part.accesses + part.accesses_per_byte * payload,
            part.writes,
            part.overlap,
        )
        for part in spec.structures
    ]
    queues = dict(spec.queues)
    return LoadDemand(
        cores=spec.cores,
        instructions=instructions,
        compute_ns=instructions / spec.ipc / card.clock_ghz,
        accesses=filtered(touched, spec.cores, card),
        offered=card.line_mpps(traffic.packet_size),
        dma_bytes=2 * card.dma_leak * traffic.packet_size,
        queues=tuple(queues.get(name, 0) for name in card.engines),
        service_us=tuple(
            engine.service_us(traffic.packet_size, traffic.mtbr) if name in queues else 0.0
            for name, engine in card.engines.items()
        ),
        serial=spec.pattern == "run-to-completion",
        wss_mb=(sum(part.size for part in touched) + PROGRAM_BYTES) / 1e6,
    )
