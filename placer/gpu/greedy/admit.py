"""Admission by Grus's algorithm (paper 003, Algorithm 1), repaired: the readable version.

The paper's text, lines 16 to 21, never charges an accepted NF its own transfer and its wait, shifts orders by one, and
never resets `accepted`. Here every SLO is admitted only if all that are admitted keep their latency with it.
`placer.gpu.fast` gives the same answers on arrays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import inf

from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.greedy.bound import upper_bound
from placer.gpu.greedy.gpu import GreedyGpu
from placer.gpu.greedy.layout import BatchLayout, layouts
from placer.gpu.plan import Admission, Admitted, Rejected
from placer.gpu.slo import LatencySlo

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


def admit_greedily(device: GpuDevice, slos: Sequence[LatencySlo], *, exclusive: bool = False) -> Placed:
    """What Grus admits and rejects.

    Where a transfer comes once, shortest headroom first, with the smallest batches. Where transfers recur, smallest use
    of the bus first, with larger batches: shortest headroom first would fill the bus with few SLOs.

    Parameters
    ----------
    exclusive
        Whether an SM serves one SLO only.
    """
    key = headroom_us if device.arbitration is Arbitration.ONE_SHOT else bus_use
    shares = shares_of(device, slos)
    return best_of_shares(device, slos, shares, key, lambda: GreedyGpu(device, exclusive=exclusive))


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
    """What is admitted and rejected with that share of the headroom for batches with which most SLOs are admitted.

    Parameters
    ----------
    empty
        Makes a GPU without tenants.
    """
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


def answered(device: GpuDevice, slos: Sequence[LatencySlo], admit: Callable[[], Placed]) -> Admission:
    """What `admit` returns, timed, with a bound that holds for every method."""
    begun = time.perf_counter()
    admitted, rejected = admit()
    seconds = time.perf_counter() - begun
    bound = upper_bound(device, slos).count
    return Admission(admitted, rejected, bound, bound == len(admitted), seconds)
