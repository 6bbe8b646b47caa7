"""The eleven network functions of Tomur's table 1, described by their work per packet.

No figure here is a throughput or a drop: those are results of `solve`. Sources of instructions, sizes and accesses:

===============  ==============================================================================================
FlowMonitor      fitted to a BlueField-2: about 1080 kpps at 200 flows, 970 at 3K, 870 at 8K, 650 at 30K, 610 at
                 184K, and at 16K from about 735 alone to 560 with mem-bench. Pipeline and one queue, as measured.
FlowStats        Tomur, figure 6: 30 % down between 1 and 20K flows with a 10 MB competitor, flat from 40K.
IPTunnel         Tomur, table 5: most of its time depends on packet size.
NIDS             run-to-completion with two queues. It uses the engine less than FlowMonitor does: a predictor
                 without an accelerator model has half the error on it (SLOMO in Tomur's table 2).
the six others   chosen so that drops lie in the bands of Tomur's figure 1 (median 1.9 to 10.6 %, 95th percentile
of table 2       4.2 to 62.2 % with up to three others), towards their lower ends: a placer that models memory
                 contention alone puts nearly four NFs with SLAs of 5 to 20 % on a NIC (SLOMO in Tomur's table
                 6). ACL and IPRouter have no flow state (Tomur, table 1).
IPCompGateway,   assumed: the engines bound them at default traffic, their cores with few matches.
PacketFilter
===============  ==============================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profiler.simulated.card import LINE_BYTES

ExecutionPattern = Literal["pipeline", "run-to-completion"]


@dataclass(frozen=True, slots=True)
class Structure:
    """A data structure that is touched evenly: each line as likely as the next.

    Parameters
    ----------
    fixed_bytes, bytes_per_flow
        Its size, which may grow with the flows.
    accesses
        Accesses per packet that miss the L1 cache.
    accesses_per_byte
        Further ones per byte of payload.
    writes
        Share of the accesses that write.
    overlap
        Accesses outstanding at the same time.
    """

    fixed_bytes: float = 0.0
    bytes_per_flow: float = 0.0
    accesses: float = 0.0
    accesses_per_byte: float = 0.0
    writes: float = 0.3
    overlap: float = 1.0


@dataclass(frozen=True, slots=True)
class NfSpec:
    """A network function.

    Parameters
    ----------
    instructions, instructions_per_byte, instructions_per_fragment
        Per packet, per payload byte that a core touches, and per outgoing fragment.
    ipc
        Instructions per cycle while every access hits the L1 cache.
    fragment_bytes
        Payload of a fragment; None: not fragmented. Sizes vary around their mean, so the mean number of fragments is
        not whole.
    queues
        Request queues per accelerator, in the order in which a packet visits them.
    """

    name: str
    instructions: float
    structures: tuple[Structure, ...]
    instructions_per_byte: float = 0.0
    instructions_per_fragment: float = 0.0
    fragment_bytes: float | None = None
    ipc: float = 0.7
    cores: int = 2
    queues: tuple[tuple[str, int], ...] = ()
    pattern: ExecutionPattern = "pipeline"


MB = 1e6


def headers(overlap: float = 5.0) -> Structure:
    """Packet buffers of which only headers are touched, `overlap` packets at once."""
    return Structure(fixed_bytes=0.6 * MB, accesses=2.0, writes=0.3, overlap=overlap)


def per_flow(flow_bytes: float, accesses: float, *, fixed_bytes: float = 0.0, writes: float = 0.3) -> Structure:
    """A hash table with an entry per flow, walked by dependent accesses."""
    return Structure(fixed_bytes, flow_bytes, accesses, writes=writes)


def shared_table(size_mb: float, accesses: float) -> Structure:
    """A read-only table that does not depend on the traffic."""
    return Structure(fixed_bytes=size_mb * MB, accesses=accesses, writes=0.0)


def payload(pool_mb: float, touches: float, overlap: float) -> Structure:
    """Packet buffers whose payload is touched line after line, `touches` times, half of them writing."""
    return Structure(fixed_bytes=pool_mb * MB, accesses_per_byte=touches / LINE_BYTES, writes=0.5, overlap=overlap)


NFS: tuple[NfSpec, ...] = (
    NfSpec("FlowStats", 1950, (headers(), per_flow(105, 3.9, writes=0.5))),
    NfSpec("IPRouter", 1300, (headers(), shared_table(1.4, 0.6))),
    NfSpec(
        "IPTunnel",
        750,
        (headers(), per_flow(24, 1), payload(0.7, touches=2, overlap=9)),
        instructions_per_byte=1.0,
        instructions_per_fragment=400,
        fragment_bytes=512,
    ),
    NfSpec("NAT", 1900, (headers(), per_flow(80, 1.4, writes=0.2))),
    NfSpec("FlowMonitor", 3100, (headers(2.0), per_flow(430, 10.5, writes=0.4)), queues=(("regex", 1),)),
    NfSpec(
        "NIDS",
        9000,
        (headers(2.0), per_flow(200, 4), payload(2.0, touches=2, overlap=16)),
        queues=(("regex", 2),),
        pattern="run-to-completion",
    ),
    NfSpec(
        "IPCompGateway",
        2500,
        (headers(2.0), per_flow(64, 2), payload(0.8, touches=1, overlap=6)),
        queues=(("regex", 1), ("compression", 1)),
    ),
    NfSpec("ACL", 1100, (headers(), shared_table(0.8, 0.7))),
    NfSpec("FlowClassifier", 650, (headers(), per_flow(50, 0.8))),
    NfSpec("FlowTracker", 850, (headers(), per_flow(50, 0.8, writes=0.4))),
    NfSpec("PacketFilter", 1250, (headers(2.0),), queues=(("regex", 1),)),
)
"""The simulated NFs, two cores each (Tomur, section 7.1)."""
