"""The hardware of a SmartNIC. Another card is another `Card` value; no other module here holds figures of a card.

Where the figures of `BLUEFIELD_2` come from:

==================  ==============================  =========================================================
field               value                           source
==================  ==============================  =========================================================
cores, clock        8 x 2.5 GHz Armv8 A72           Tomur, section 7.1
llc                 6 MB, shared by all cores       Tomur, section 7.1 and appendix B
l2                  1 MB a core pair                data sheet; half of it counts for a core
line rate           100 Gb/s                        Tomur, section 7.1
dram                20.5 GB/s                       data sheet: one DDR4-3200 channel, 25.6 GB/s, of which about
                                                    0.8 is reached
l2, l3, dram time   9, 40 and 90 ns, each on top    fitted, with FlowMonitor's table below, to FlowMonitor
and waiting         of the one before; 48 ns        measured on a BlueField-2 over flows and with mem-bench
io share            0.4 of the last-level cache     fitted likewise: FlowMonitor exceeds the cache as if 3.8 MB
                                                    were available to it
dma leak            0.15 of the packets' bytes       assumed; small, since FlowStats does not depend on packet
                                                    size (Tomur, figure 6)
regex               49 ns a request, 0.067 ns a     FlowMonitor measured on a BlueField-2: 1 / 1176.2 ms at 330.2
                    byte, 1.454 us a match          and 1 / 673.89 ms at 628.03 matches/MB, 1518 B; the split
                                                    between request and byte is assumed
compression         100 ns a request, 0.5 ns a      assumed: 16 Gb/s of deflate, a little less with small requests
                    byte
window              48 requests in flight           assumed; rounds the knee where two stages are equally fast
                                                    by 2 %
==================  ==============================  ========================================================="""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

LINE_BYTES = 64
HEADER_BYTES = 54
FRAME_OVERHEAD_BYTES = 24


@dataclass(frozen=True, slots=True)
class AcceleratorEngine:
    """A hardware accelerator that serves one request at a time."""

    request_us: float  # time (us) of a request
    byte_us: float  # of each payload byte in it
    match_us: float = 0.0  # of each rule that matches in it

    def service_us(self, packet_size: float, mtbr: float) -> float:
        """Time (us) to serve the payload of one packet of `packet_size` bytes with `mtbr` matches/MB."""
        payload = max(packet_size - HEADER_BYTES, 1.0)
        return self.request_us + payload * (self.byte_us + self.match_us * mtbr * 1e-6)


@dataclass(frozen=True, slots=True)
class Card:
    """A SmartNIC: cores, caches, memory, port and accelerators."""

    model: str
    cores: int
    clock_ghz: float
    l2_bytes_per_core: float  # share of a core in the L2 cache that its cluster shares
    llc_bytes: int
    io_share: float  # share of the last-level cache that incoming and outgoing packets take from the cores
    l2_ns: float
    l3_ns: float
    dram_ns: float  # time of an access that the L2 cache, the L3 cache or the unloaded memory answers
    dram_gbps: float  # memory bandwidth, GB/s
    dram_queue_ns: float  # waiting per unit of utilisation / (1 - utilisation)
    dma_leak: float  # share of the packets' bytes, in and out, that pass through memory instead of staying on the chip
    line_gbps: float
    window: int  # requests in flight between two stages of a pipeline
    engines: Mapping[str, AcceleratorEngine] = field(hash=False)

    @property
    def shared_lines(self) -> float:
        """Lines of the last-level cache that the cores share."""
        return self.llc_bytes * (1 - self.io_share) / LINE_BYTES

    def line_mpps(self, packet_size: float) -> float:
        """Packets/us that the port carries."""
        return self.line_gbps * 1e3 / (8 * (packet_size + FRAME_OVERHEAD_BYTES))


BLUEFIELD_2 = Card(
    model="bluefield-2",
    cores=8,
    clock_ghz=2.5,
    l2_bytes_per_core=512 * 1024,
    llc_bytes=6 * 1024 * 1024,
    io_share=0.4,
    l2_ns=9.0,
    l3_ns=40.0,
    dram_ns=90.0,
    dram_gbps=20.5,
    dram_queue_ns=48.0,
    dma_leak=0.15,
    line_gbps=100.0,
    window=48,
    engines={
        "regex": AcceleratorEngine(request_us=0.049, byte_us=6.73e-5, match_us=1.4535),
        "compression": AcceleratorEngine(request_us=0.1, byte_us=5e-4),
    },
)

BLUEFIELD_3 = Card(
    model="bluefield-3",
    cores=16,
    clock_ghz=2.6,
    l2_bytes_per_core=512 * 1024,
    llc_bytes=16 * 1024 * 1024,
    io_share=0.25,
    l2_ns=6.0,
    l3_ns=30.0,
    dram_ns=110.0,
    dram_gbps=60.0,
    dram_queue_ns=30.0,
    dma_leak=0.1,
    line_gbps=400.0,
    window=48,
    engines={
        "regex": AcceleratorEngine(request_us=0.03, byte_us=3.4e-5, match_us=0.73),
        "compression": AcceleratorEngine(request_us=0.06, byte_us=2.5e-4),
        "dma": AcceleratorEngine(request_us=0.2, byte_us=4e-5),
    },
)
"""A larger card of the same family, from its data sheet only: never compared with a real one."""

PENSANDO = Card(
    model="pensando",
    cores=16,
    clock_ghz=2.8,
    l2_bytes_per_core=512 * 1024,
    llc_bytes=8 * 1024 * 1024,
    io_share=0.4,
    l2_ns=8.0,
    l3_ns=35.0,
    dram_ns=120.0,
    dram_gbps=40.0,
    dram_queue_ns=60.0,
    dma_leak=0.15,
    line_gbps=100.0,
    window=48,
    engines={"regex": AcceleratorEngine(request_us=0.06, byte_us=1e-4, match_us=1.2)},
)
"""A card of another maker, as that of Tomur's table 9, of which the paper prints no figure: cores of the same kind, and
an accelerator of another speed. All is assumed; it was never compared with a real one."""


# The eleven network functions of Tomur's table 1, described by their work per packet.
#
# No figure here is a throughput or a drop: those are results of `solve`. Sources of instructions, sizes and accesses:
#
# ===============  ==============================================================================================
# FlowMonitor      fitted to a BlueField-2: about 1080 kpps at 200 flows, 970 at 3K, 870 at 8K, 650 at 30K, 610 at
#                  184K, and at 16K from about 735 alone to 560 with mem-bench. Pipeline and one queue, as measured.
# FlowStats        Tomur, figure 6: 30 % down between 1 and 20K flows with a 10 MB competitor, flat from 40K.
# IPTunnel         Tomur, table 5: most of its time depends on packet size.
# NIDS             run-to-completion with two queues. It uses the engine less than FlowMonitor does: a predictor
#                  without an accelerator model has half the error on it (SLOMO in Tomur's table 2).
# the six others   chosen so that drops lie in the bands of Tomur's figure 1 (median 1.9 to 10.6 %, 95th percentile
# of table 2       4.2 to 62.2 % with up to three others), towards their lower ends: a placer that models memory
#                  contention alone puts nearly four NFs with SLAs of 5 to 20 % on a NIC (SLOMO in Tomur's table
#                  6). ACL and IPRouter have no flow state (Tomur, table 1).
# IPCompGateway,   assumed: the engines bound them at default traffic, their cores with few matches.
# PacketFilter
# ===============  ==============================================================================================


ExecutionPattern = Literal["pipeline", "run-to-completion"]


@dataclass(frozen=True, slots=True)
class Structure:
    """A data structure that is touched evenly: each line as likely as the next."""

    fixed_bytes: float = 0.0
    bytes_per_flow: float = 0.0  # its size, which may grow with the flows
    accesses: float = 0.0  # accesses per packet that miss the L1 cache
    accesses_per_byte: float = 0.0  # further ones per byte of payload
    writes: float = 0.3  # share of the accesses that write
    overlap: float = 1.0  # accesses outstanding at the same time


@dataclass(frozen=True, slots=True)
class NfSpec:
    """A network function. `instructions`, `instructions_per_byte`, `instructions_per_fragment`: per packet, per payload
    byte that a core touches, and per outgoing fragment. `ipc`: instructions per cycle while every access hits the L1
    cache. `fragment_bytes`: payload of a fragment; None: not fragmented. Sizes vary around their mean, so the mean
    number of fragments is not whole. `queues`: request queues per accelerator, in the order in which a packet visits
    them."""

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


def per_flow(flow_bytes: float, accesses: float, *, writes: float = 0.3) -> Structure:
    """A hash table with an entry per flow, walked by dependent accesses."""
    return Structure(0.0, flow_bytes, accesses, writes=writes)


def shared_table(size_mb: float, accesses: float) -> Structure:
    """A read-only table that does not depend on the traffic."""
    return Structure(fixed_bytes=size_mb * MB, accesses=accesses, writes=0.0)


def payload(pool_mb: float, touches: float, overlap: float) -> Structure:
    """Packet buffers whose payload is touched line after line, `touches` times, half of them writing."""
    return Structure(fixed_bytes=pool_mb * MB, accesses_per_byte=touches / LINE_BYTES, writes=0.5, overlap=overlap)


CARD_NFS: tuple[NfSpec, ...] = (
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

BLUEFIELD_3_NFS: tuple[NfSpec, ...] = (*CARD_NFS, NfSpec("Mirror", 700, (headers(3.0),), queues=(("dma", 1),)))
"""The simulated NFs of the larger card; Mirror copies packets to the host's memory by the DMA engine, whose speed is
assumed: 200 Gb/s of large packets."""

PENSANDO_NFS: tuple[NfSpec, ...] = (
    *(nf for nf in CARD_NFS if all(engine in PENSANDO.engines for engine, _ in nf.queues)),
    NfSpec("Firewall", 1400, (headers(2.0), per_flow(192, 5.0, writes=0.5)), queues=(("regex", 1),)),
)
"""Firewall walks a table of flows and writes the entry of each packet's flow, and uses memory and the accelerator for
regular expressions (Tomur, section 8); the sizes are assumed."""
