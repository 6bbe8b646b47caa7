"""NFs of the simulated GPUs: what a packet costs the worker, the buses and an SM.

Everything here is simulated. `NFS` on `profiler.simulated_gpu.card.TITAN` is calibrated to the few numbers that Grus
prints (Zheng et al., figures 1, 3, 9 and 10); its other curves have none. Batches have 256 packets.

=============================================================  =============  =========================================
quantity                                                       printed        this server
=============================================================  =============  =========================================
firewall (ACL) beside 2 others in turns (figure 1)             +0.19x         +0.15x in mean latency
... beside 9 others                                            +2.1x          +1.97x, no throughput is lost
... beside 9 others with executors and order 0 (figure 9)      below +0.10x   +0.001x
worker of the NIDS, before and after the GPU (figure 3b)       31 us          31.5 us
a line through transfers of 32 to 1,024 packets, both ways     2.2, 3.5,      0.01, 0.4 and 0.6 % for ACL, NIDS and
(figure 10b)                                                   4.1 %          IPSec: this bus has less noise
a line through batching of 32 to 1,024 packets (figure 10a)    1.2 to 1.6 %,  2.5 % in single runs; none in long ones,
                                                               up to 4.7 %    where the mean is (batch - 1) / (2 rate)
=============================================================  =============  =========================================

Assumed, since they are not printed: the firewalls of figures 1 and 9 have packets of 850 B (294 kpps are 2 Gb/s) and 30
flows; ten of them in turns use 98 % of the card's time, so that 1 us more or less for a change of NFs doubles or halves
the increase beside nine; how the time of a kernel divides into instructions, reads and waiting; tables and caches; what
comes back; how packets come. The NFs are named as in this project: ACL is Grus's firewall.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

HEADER_BYTES = 64
"""What of a packet is moved as its header: one cache line."""
ETHERNET_BYTES = 54
"""Of a packet, what is no payload."""
VERDICT_BYTES = 4
"""What comes back of a packet that is not changed."""


@dataclass(frozen=True, slots=True)
class GpuNfSpec:
    """One NF.

    Parameters
    ----------
    name
        As in requests.
    moves
        What of a packet is moved to the card; `both` comes back changed, otherwise a verdict does.
    grows_bytes
        By how much a packet that comes back is longer.
    pre_us, pre_packet_us, pre_byte_us
        Time of the worker before the GPU: per batch, packet, and byte that is moved.
    post_us, post_packet_us
        Time of the worker after the GPU.
    instructions, instructions_per_byte, instructions_per_match
        Of a thread, for its packet; a warp takes as long as the thread with the most matches.
    dependency_cycles
        Cycles per instruction in which the warp waits for its own results.
    reads, reads_per_byte
        Dependent reads of tables of a thread.
    table_kb, bytes_per_flow
        Size of the tables that are read, and what a flow adds.
    locality
        The share of reads that hits a cache into which the tables fit.
    burst_shape
        Shape of the Weibull distribution of the gaps between bursts: 1 is exponential, less has a heavier tail.
    """

    name: str
    moves: Literal["header", "payload", "both"]
    grows_bytes: int = 0
    pre_us: float = 3.0
    pre_packet_us: float = 0.03
    pre_byte_us: float = 2e-5
    post_us: float = 2.0
    post_packet_us: float = 0.02
    instructions: float = 0.0
    instructions_per_byte: float = 0.0
    instructions_per_match: float = 0.0
    dependency_cycles: float = 2.0
    reads: float = 0.0
    reads_per_byte: float = 0.0
    table_kb: float = 8.0
    bytes_per_flow: float = 0.0
    locality: float = 0.9
    burst_shape: float = 1.0


NFS: Sequence[GpuNfSpec] = (
    GpuNfSpec(
        "IPRouter", "header", instructions=700, reads=4, table_kb=900, bytes_per_flow=2, locality=0.6,
        pre_packet_us=0.025,
    ),
    GpuNfSpec(
        "ACL", "header", instructions=3600, reads=40, table_kb=64, locality=0.8, pre_packet_us=0.035,
    ),
    GpuNfSpec(
        "NIDS", "payload", instructions=900, instructions_per_byte=9, instructions_per_match=1200, reads_per_byte=0.55,
        table_kb=160, locality=0.93, pre_packet_us=0.045, pre_byte_us=5e-5, post_us=2.4, post_packet_us=0.034,
        burst_shape=0.8,
    ),
    GpuNfSpec(
        "IPSec", "both", grows_bytes=38, instructions=3000, instructions_per_byte=46, dependency_cycles=1.3, reads=8,
        reads_per_byte=0.02, table_kb=12, locality=0.95, pre_packet_us=0.05, pre_byte_us=5e-5, post_packet_us=0.06,
        burst_shape=0.8,
    ),
)  # fmt: skip

SMALL_CARD_NFS: Sequence[GpuNfSpec] = (
    GpuNfSpec(
        "IPRouter", "header", instructions=900, reads=7, table_kb=300, bytes_per_flow=12, locality=0.5, pre_us=5,
        pre_packet_us=0.05, burst_shape=0.7,
    ),
    GpuNfSpec(
        "ACL", "header", instructions=9000, reads=16, table_kb=20, locality=0.95, pre_us=4, pre_packet_us=0.07,
        post_packet_us=0.05,
    ),
    GpuNfSpec(
        "NIDS", "payload", instructions=400, instructions_per_byte=14, instructions_per_match=4000, reads_per_byte=0.3,
        table_kb=400, locality=0.85, pre_packet_us=0.08, pre_byte_us=9e-5, post_us=6, post_packet_us=0.02,
    ),
    GpuNfSpec(
        "IPSec", "both", grows_bytes=46, instructions=5000, instructions_per_byte=30, dependency_cycles=2.5, reads=20,
        reads_per_byte=0.1, table_kb=30, locality=0.9, pre_us=6, pre_packet_us=0.09, pre_byte_us=8e-5,
        post_packet_us=0.11, burst_shape=0.75,
    ),
)  # fmt: skip
