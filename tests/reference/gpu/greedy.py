"""Greedy admission to a GPU, readable: the reference of `placer.gpu.greedy`, which is compiled."""

from collections.abc import Callable, Sequence
from math import inf

from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.plan import Admitted, LatencySlo, Rejected
from placer.gpu.tables import BY_DUE, SERIAL, UNORDERED
from tests.reference.gpu.greedy_gpu import GreedyGpu, InTime, all_in_time, in_time_unordered, in_time_with_kernels
from tests.reference.gpu.greedy_layouts import BatchLayout, layouts

SMALLEST_BATCHES = (0.0,)
LARGER_BATCHES = (0.5, 0.25)
LARGEST_BATCHES = (0.625,)
"""Shares of the headroom that batches take where transfers recur: a larger batch takes less of the bus."""

Placed = tuple[tuple[Admitted, ...], tuple[Rejected, ...]]
Key = Callable[[GpuDevice, LatencySlo, BatchLayout], float]
"""SLOs with a smaller key come first; the layout is their first one."""


def headroom_us(device: GpuDevice, slo: LatencySlo, layout: BatchLayout) -> float:
    """The latency without batching, pre- and post-processing (line 3)."""
    batching = device.batching_us(layout.batch, slo.rate_kpps)
    return slo.latency_us - batching - device.nfs[slo.nf].pre_post_us


def bus_use(device: GpuDevice, slo: LatencySlo, layout: BatchLayout) -> float:
    """The share of the bus that its transfers take."""
    return device.transfer(slo.nf, layout.batch) / device.period_us(layout.batch, slo.rate_kpps)


def admit_readably(
    device: GpuDevice, slos: Sequence[LatencySlo], *, exclusive: bool = False, rule: int = BY_DUE
) -> Placed:
    """The same as `placer.gpu.greedy.admit_greedily`."""
    key = headroom_us if device.arbitration is Arbitration.ONE_SHOT else bus_use
    shares = shares_of(device, slos)
    in_time: InTime = all_in_time
    if rule == UNORDERED:
        in_time = in_time_unordered
        key = largest_headroom_first if device.arbitration is Arbitration.ONE_SHOT else bus_use
    if rule == SERIAL:
        key, in_time = gpu_use, in_time_with_kernels
        shares = (*SMALLEST_BATCHES, *LARGER_BATCHES, *LARGEST_BATCHES)
    return best_of_shares(device, slos, shares, key, lambda: GreedyGpu(device, exclusive=exclusive, in_time=in_time))


def shares_of(device: GpuDevice, slos: Sequence[LatencySlo]) -> Sequence[float]:
    """The shares of the headroom to try for batches: large ones if the bus cannot take the transfers of all SLOs."""
    if device.arbitration is Arbitration.ONE_SHOT:
        return SMALLEST_BATCHES
    used = 0.0
    for slo in slos:
        if (layout := next(layouts(device, slo, 0.0, LARGER_BATCHES[0]), None)) is not None:
            used += bus_use(device, slo, layout)
    return LARGER_BATCHES if used < 1.0 else LARGEST_BATCHES


def best_of_shares(
    device: GpuDevice, slos: Sequence[LatencySlo], shares: Sequence[float], key: Key, empty: Callable[[], GreedyGpu]
) -> Placed:
    """What is admitted and rejected with that share of the headroom for batches with which most SLOs are admitted."""
    best: Placed | None = None
    for share in shares:
        found = admit_in_order(device, slos, share, key, empty())
        best = found if best is None or len(found[0]) > len(best[0]) else best
        if not best[1]:
            break
    assert best is not None
    return best


def admit_in_order(device: GpuDevice, slos: Sequence[LatencySlo], share: float, key: Key, gpu: GreedyGpu) -> Placed:
    """What is admitted and rejected when SLOs come one by one, the smallest key first."""
    others = () if gpu.table.exclusive else tuple(dict.fromkeys(slo.nf for slo in slos))
    possible = {slo.id: list(layouts(device, slo, device.penalty(slo.nf, others), share)) for slo in slos}

    def key_of(slo: LatencySlo) -> float:
        return key(device, slo, possible[slo.id][0]) if possible[slo.id] else inf

    causes = {}
    for slo in sorted(slos, key=key_of):
        if (cause := gpu.place(slo, possible[slo.id])) is not None:
            causes[slo.id] = cause
    return gpu.admitted(), tuple(Rejected(slo, causes[slo.id]) for slo in slos if slo.id in causes)


def largest_headroom_first(device: GpuDevice, slo: LatencySlo, layout: BatchLayout) -> float:
    """The key of an SLO: minus its headroom, us."""
    return -headroom_us(device, slo, layout)


def gpu_use(device: GpuDevice, slo: LatencySlo, layout: BatchLayout) -> float:
    """The share of the GPU's time that its kernels take."""
    kernel = max(device.kernel(slo.nf, packets) for packets in layout.minibatches)
    return kernel / device.period_us(layout.batch, slo.rate_kpps)
