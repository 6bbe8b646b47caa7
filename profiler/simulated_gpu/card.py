"""A simulated server with a GPU: its ports, workers, buses and streaming multiprocessors (SMs).

Two cards. `TITAN` has what is printed of the server of Grus (section VII): 30 SMs, 3,840 cores (four schedulers of 32
lanes per SM), Xeon cores, four ports of 10 Gb/s. An executor has 128 threads, one per packet; of the 16 that fit on an
SM (2,048 threads), one is the dispatcher. Its clock and memory bandwidth are NVIDIA's for the TITAN Xp; its latencies
are typical of such cards, the times of buses, dispatch and scheduling chosen such that the figures of Grus come out
(see `profiler.simulated_gpu.card`). `SMALL_CARD` is a made-up other one. Neither is measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

WARP_LANES = 32  # threads of a warp, which issue together


@dataclass(frozen=True, slots=True)
class Bus:
    """One direction of the bus between host and card, which carries one transfer at a time."""

    setup_us: float  # before the first byte of a transfer
    packet_us: float  # per packet, for its descriptor
    bytes_per_us: float  # while bytes flow
    payload_bytes: int = 256  # the largest payload of one packet on the bus
    header_bytes: int = 26  # what comes with each
    buffer_bytes: int = 65536  # a transfer goes through buffers of this size
    buffer_us: float = 0.6  # to hand over one of them


@dataclass(frozen=True, slots=True)
class GpuCard:
    """A server with a GPU."""

    model: str  # what it is called
    sms: int
    executors_per_sm: int
    packets_per_executor: int
    """Streaming multiprocessors, slots of each, and packets that one slot processes at a time, one per thread."""
    schedulers: int  # of an SM; each issues one instruction of one warp per cycle
    clock_ghz: float  # of the SMs
    cache_kb: float  # first-level cache of an SM
    cache_us: float  # latency of a hit in it
    memory_us: float
    memory_bytes_per_us: float
    memory_wait: float
    """Latency of a miss while the memory is idle, bandwidth of the card's memory, and how much waiting adds to the
    latency at half of the bandwidth."""
    to_card: Bus
    to_host: Bus  # the bus in each direction
    dispatch_us: float
    executor_us: float
    """From the arrival of a batch to the first executor that begins: at most, and for each further executor."""
    launch_us: float
    switch_us: float
    """Where the scheduler of the GPU places threads: the start of a kernel, and, in temporal sharing, the change from
    one NF to another."""
    workers: int  # CPU cores, each for one NF
    ring: int = 4096  # packets that wait for a worker at most
    in_flight: int = 4  # batches that a worker has under way at most
    port_gbps: float = 40.0  # speed at which the packets of a burst follow each other


TITAN = GpuCard(
    model="titan-xp",
    sms=30,
    executors_per_sm=15,
    packets_per_executor=128,
    schedulers=4,
    clock_ghz=1.58,
    cache_kb=48.0,
    cache_us=0.05,
    memory_us=0.2,
    memory_bytes_per_us=547e3,
    memory_wait=0.5,
    to_card=Bus(setup_us=6.0, packet_us=0.008, bytes_per_us=11.8e3),
    to_host=Bus(setup_us=5.0, packet_us=0.006, bytes_per_us=12.4e3),
    dispatch_us=2.0,
    executor_us=0.15,
    launch_us=5.0,
    switch_us=70.9,
    workers=22,
)

SMALL_CARD = GpuCard(
    model="small-gpu",
    sms=14,
    executors_per_sm=8,
    packets_per_executor=64,
    schedulers=2,
    clock_ghz=1.1,
    cache_kb=24.0,
    cache_us=0.09,
    memory_us=0.45,
    memory_bytes_per_us=120e3,
    memory_wait=0.8,
    to_card=Bus(
        setup_us=11.0, packet_us=0.015, bytes_per_us=5.6e3, payload_bytes=128, buffer_bytes=32768, buffer_us=1.1
    ),
    to_host=Bus(setup_us=9.0, packet_us=0.02, bytes_per_us=5.2e3, payload_bytes=128, buffer_bytes=32768, buffer_us=1.3),
    dispatch_us=4.0,
    executor_us=0.3,
    launch_us=9.0,
    switch_us=45.0,
    workers=14,
    ring=2048,
    in_flight=3,
    port_gbps=25.0,
)


# NFs of the simulated GPUs: what a packet costs the worker, the buses and an SM.
#
# Everything here is simulated. `GPU_NFS` on `TITAN` is calibrated to the few numbers that Grus
# prints (Zheng et al., figures 1, 3, 9 and 10); its other curves have none. Batches have 256 packets.
#
# ===========================================================  =============  =========================================
# quantity                                                     printed        this server
# ===========================================================  =============  =========================================
# firewall (ACL) beside 2 others in turns (figure 1)           +0.19x         +0.15x in mean latency
# ... beside 9 others                                          +2.1x          +1.97x, no throughput is lost
# ... beside 9 others with executors and order 0 (figure 9)    below +0.10x   +0.001x
# worker of the NIDS, before and after the GPU (figure 3b)     31 us          31.5 us
# a line through transfers of 32 to 1,024 packets, both ways   2.2, 3.5,      0.01, 0.4 and 0.6 % for ACL, NIDS and
# (figure 10b)                                                 4.1 %          IPSec: this bus has less noise
# a line through batching of 32 to 1,024 packets (figure 10a)  1.2 to 1.6 %,  2.5 % in single runs; none in long ones,
#                                                              up to 4.7 %    where the mean is (batch - 1) / (2 rate)
# ===========================================================  =============  =========================================
#
# Assumed, since they are not printed: the firewalls of figures 1 and 9 have packets of 850 B (294 kpps are 2 Gb/s) and
# 30 flows; ten of them in turns use 98 % of the card's time, so that 1 us more or less for a change of NFs doubles or
# halves the increase beside nine; how the time of a kernel divides into instructions, reads and waiting; tables and
# caches; what comes back; how packets come. The NFs are named as in this project: ACL is Grus's firewall.


HEADER_BYTES = 64  # what of a packet is moved as its header: one cache line
ETHERNET_BYTES = 54  # of a packet, what is no payload
VERDICT_BYTES = 4  # what comes back of a packet that is not changed


@dataclass(frozen=True, slots=True)
class GpuNfSpec:
    """One NF."""

    name: str  # as in requests
    moves: Literal["header", "payload", "both"]
    """What of a packet is moved to the card; `both` comes back changed, otherwise a verdict does."""
    grows_bytes: int = 0  # by how much a packet that comes back is longer
    pre_us: float = 3.0  # time of the worker before the GPU, per batch
    pre_packet_us: float = 0.03  # the same per packet
    pre_byte_us: float = 2e-5  # the same per byte that is moved
    post_us: float = 2.0  # time of the worker after the GPU, per batch
    post_packet_us: float = 0.02  # the same per packet
    instructions: float = 0.0
    instructions_per_byte: float = 0.0
    instructions_per_match: float = 0.0
    """Of a thread, for its packet; a warp takes as long as the thread with the most matches."""
    dependency_cycles: float = 2.0  # cycles per instruction in which the warp waits for its own results
    reads: float = 0.0  # dependent reads of tables of a thread
    reads_per_byte: float = 0.0  # the same per byte
    table_kb: float = 8.0  # size of the tables that are read
    bytes_per_flow: float = 0.0  # what a flow adds to it
    locality: float = 0.9  # the share of reads that hits a cache into which the tables fit
    burst_shape: float = 1.0
    """Shape of the Weibull distribution of the gaps between bursts: 1 is exponential, less has a heavier tail."""


GPU_NFS: Sequence[GpuNfSpec] = (
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
