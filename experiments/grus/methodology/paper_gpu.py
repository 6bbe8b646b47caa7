"""The GPU and the SLOs of Grus's evaluation (section VII), as far as the paper prints them.

Printed: 30 SMs; at most 2,048 threads in an SM and 128 in an executor, which makes 16 executors; two CPUs of 12 cores;
four NFs and the three classes of what they transfer; flows of 2 Gbps; batches of 256 packets, on two executors, which
makes 128 packets in each; 31 us of pre- and post-processing of a NIDS.

Assumed: a bus of 12 GB/s that takes 8 us to set up a transfer; headers of 64 B, payloads of 700 B; kernel times, all
other times on the CPU, and that a kernel takes 10 % longer beside any other on its SM."""

from random import Random

from placer.gpu.device import Arbitration, GpuDevice, GpuNf
from placer.gpu.plan import LatencySlo

WORKER_COUNT = 24
BASELINE_BATCH = 256  # of the baseline (section VII-B)
BYTES_PER_US = 12_000
SETUP_US = 8.0
HEADER_BYTES, PAYLOAD_BYTES = 64, 700
FLOW_GBPS = 2.0  # of each flow (section II-A)
SHARING_LOSS = 0.1
FREE_BATCH, FIXED_BATCH, BEST_BATCH = BASELINE_NAMES = ("batch 256", "fixed batch 256", "best batch")
"""Latency of an NF alone: with a batch of 256, where methods choose another, or all use 256; the shortest there is."""

PAPER_NFS = {
    "router": GpuNf("header", 18.0, (1.5, 14.0)),
    "firewall": GpuNf("header", 20.0, (2.0, 20.0)),
    "nids": GpuNf("payload", 31.0, (6.0, 60.0)),
    "ipsec": GpuNf("both", 36.0, (8.0, 90.0)),
}
"""Times in us: on the CPU; of the kernel per executor, and fixed."""


def device(bus: str, workers: int = WORKER_COUNT) -> GpuDevice:
    """The GPU, with one of both models of its bus."""
    sizes = {"header": HEADER_BYTES, "payload": PAYLOAD_BYTES, "both": HEADER_BYTES + PAYLOAD_BYTES}
    return GpuDevice(
        sms=30,
        executors_per_sm=16,
        packets_per_executor=128,
        workers=workers,
        arbitration=Arbitration(bus),
        transfer_us={name: (size / BYTES_PER_US, SETUP_US) for name, size in sizes.items()},
        nfs=PAPER_NFS,
        sharing_us={
            name: {other: SHARING_LOSS * sum(nf.kernel_us) for other in PAPER_NFS} for name, nf in PAPER_NFS.items()
        },
    )


def rate_kpps(gbps: float) -> float:
    """Packets of payload and header at a rate."""
    return gbps * 1e6 / 8 / (HEADER_BYTES + PAYLOAD_BYTES)


def alone_us(gpu: GpuDevice, nf: str, rate: float, batch: int) -> float:
    """The latency of an NF that runs solely, on one SM."""
    return gpu.batching_us(batch, rate) + gpu.nfs[nf].pre_post_us + gpu.transfer(nf, batch) + gpu.kernel(nf, batch)


def baseline_us(gpu: GpuDevice, nf: str, rate: float, baseline: str) -> float:
    """The latency to which a tolerance is added. `baseline`: `best batch`: the shortest there is on one SM. Any other:
    of a batch of 256, as in the paper."""
    return alone_us(gpu, nf, rate, smallest_batch(gpu, nf, rate) if baseline == BEST_BATCH else BASELINE_BATCH)


def smallest_batch(gpu: GpuDevice, nf: str, rate: float) -> int:
    """The smallest batch with which kernel and CPU keep up on one SM; all that an SM can process if none does."""
    most = gpu.executors_per_sm * gpu.packets_per_executor
    keeping_up = (
        batch
        for batch in range(1, most + 1)
        if gpu.period_us(batch, rate) >= max(gpu.kernel(nf, batch), gpu.nfs[nf].pre_post_us)
    )
    return next(keeping_up, most)


def random_slos(
    gpu: GpuDevice,
    number: int,
    rng: Random,
    *,
    baseline: str,
    tolerances: tuple[float, float],
    gbps: tuple[float, float] = (FLOW_GBPS, FLOW_GBPS),
    pinned: bool = False,
) -> list[LatencySlo]:
    """SLOs of random NFs, each with a latency of `baseline * (1 + tolerance)` (section VII, "SLO generation"). With
    `pinned`, or from the fixed baseline, the batch of the baseline is the only one."""
    slos = []
    for place in range(number):
        nf, rate = rng.choice(sorted(PAPER_NFS)), round(rate_kpps(rng.uniform(*gbps)), 3)
        tolerance = rng.uniform(*tolerances)
        latency = baseline_us(gpu, nf, rate, baseline) * (1 + tolerance)
        batch = smallest_batch(gpu, nf, rate) if baseline == BEST_BATCH else BASELINE_BATCH
        fixed = batch if pinned or baseline == FIXED_BATCH else None
        slos.append(LatencySlo(f"{place}-{nf}", nf, rate, round(latency, 3), fixed))
    return slos
