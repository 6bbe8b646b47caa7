"""A simulated server with a GPU: its ports, workers, buses and streaming multiprocessors (SMs).

Two cards. `TITAN` has what is printed of the server of Grus (section VII): 30 SMs, 3,840 cores (four schedulers of 32
lanes per SM), Xeon cores, four ports of 10 Gb/s. An executor has 128 threads, one per packet; of the 16 that fit on an
SM (2,048 threads), one is the dispatcher. Its clock and memory bandwidth are NVIDIA's for the TITAN Xp; its latencies
are typical of such cards, the times of buses, dispatch and scheduling chosen such that the figures of Grus come out
(see `profiler.simulated_gpu.nfs`). `SMALL_CARD` is a made-up other one. Neither is measured.
"""

from __future__ import annotations

from dataclasses import dataclass

LANES = 32
"""Threads of a warp, which issue together."""


@dataclass(frozen=True, slots=True)
class Bus:
    """One direction of the bus between host and card, which carries one transfer at a time.

    Parameters
    ----------
    setup_us
        Before the first byte of a transfer.
    packet_us
        Per packet, for its descriptor.
    bytes_per_us
        While bytes flow.
    payload_bytes, header_bytes
        Of one packet on the bus: the largest payload, and what comes with each.
    buffer_bytes, buffer_us
        A transfer goes through buffers of this size, each of which takes time to hand over.
    """

    setup_us: float
    packet_us: float
    bytes_per_us: float
    payload_bytes: int = 256
    header_bytes: int = 26
    buffer_bytes: int = 65536
    buffer_us: float = 0.6


@dataclass(frozen=True, slots=True)
class GpuCard:
    """A server with a GPU.

    Parameters
    ----------
    model
        What it is called.
    sms, executors_per_sm, packets_per_executor
        Streaming multiprocessors, slots of each, and packets that one slot processes at a time, one per thread.
    schedulers
        Of an SM; each issues one instruction of one warp per cycle.
    clock_ghz
        Of the SMs.
    cache_kb, cache_us
        First-level cache of an SM, and the latency of a hit.
    memory_us, memory_bytes_per_us, memory_wait
        Latency of a miss while the memory is idle, bandwidth of the card's memory, and how much waiting adds to the
        latency at half of the bandwidth.
    to_card, to_host
        The bus in each direction.
    dispatch_us, executor_us
        From the arrival of a batch to the first executor that begins: at most, and for each further executor.
    launch_us, switch_us
        Where the scheduler of the GPU places threads: the start of a kernel, and, in temporal sharing, the change from
        one NF to another.
    workers
        CPU cores, each for one NF.
    ring, in_flight
        Packets that wait for a worker at most, and batches that it has under way at most.
    port_gbps
        Speed at which the packets of a burst follow each other.
    """

    model: str
    sms: int
    executors_per_sm: int
    packets_per_executor: int
    schedulers: int
    clock_ghz: float
    cache_kb: float
    cache_us: float
    memory_us: float
    memory_bytes_per_us: float
    memory_wait: float
    to_card: Bus
    to_host: Bus
    dispatch_us: float
    executor_us: float
    launch_us: float
    switch_us: float
    workers: int
    ring: int = 4096
    in_flight: int = 4
    port_gbps: float = 40.0


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
