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
l2, l3, dram time   9, 40 and 90 ns, each on top    fitted, with FlowMonitor's table in `nfs`, to FlowMonitor
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
==================  ==============================  =========================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LINE_BYTES = 64
HEADER_BYTES = 54
FRAME_OVERHEAD_BYTES = 24


@dataclass(frozen=True, slots=True)
class AcceleratorEngine:
    """A hardware accelerator that serves one request at a time.

    Parameters
    ----------
    request_us, byte_us, match_us
        Time (us) of a request, of each payload byte in it, and of each rule that matches in it.
    """

    request_us: float
    byte_us: float
    match_us: float = 0.0

    def service_us(self, packet_size: float, mtbr: float) -> float:
        """Time (us) to serve the payload of one packet of `packet_size` bytes with `mtbr` matches/MB."""
        payload = max(packet_size - HEADER_BYTES, 1.0)
        return self.request_us + payload * (self.byte_us + self.match_us * mtbr * 1e-6)


@dataclass(frozen=True, slots=True)
class Card:
    """A SmartNIC: cores, caches, memory, port and accelerators.

    Parameters
    ----------
    l2_bytes_per_core
        Share of a core in the L2 cache that its cluster shares.
    io_share
        Share of the last-level cache that incoming and outgoing packets take from the cores.
    l2_ns, l3_ns, dram_ns
        Time of an access that the L2 cache, the L3 cache or the unloaded memory answers.
    dram_gbps
        Memory bandwidth, GB/s.
    dram_queue_ns
        Waiting per unit of utilisation / (1 - utilisation).
    dma_leak
        Share of the packets' bytes, in and out, that pass through memory instead of staying on the chip.
    window
        Requests in flight between two stages of a pipeline.
    """

    model: str
    cores: int
    clock_ghz: float
    l2_bytes_per_core: float
    llc_bytes: int
    io_share: float
    l2_ns: float
    l3_ns: float
    dram_ns: float
    dram_gbps: float
    dram_queue_ns: float
    dma_leak: float
    line_gbps: float
    window: int
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
    },
)
"""A larger card of the same family, from its data sheet only: never compared with a real one."""
