"""Grus's repaired algorithm on arrays, from SLOs to what is admitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.fast.admit import admit_set
from placer.gpu.fast.place import CAUSES
from placer.gpu.fast.tables import (
    BATCH,
    COUNTS,
    JOB,
    LARGEST,
    ON,
    ROW,
    SHARERS,
    SLO,
    TENANTS,
)
from placer.gpu.plan import Admitted, Rejected, SmShare
from placer.gpu.slo import LatencySlo

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Sizes = tuple[int, int, int, int, int, int]


class SloArrays(NamedTuple):
    """SLOs as arrays, an element per SLO: number of its NF, kpps, us, and packets, 0 where the batch is not fixed."""

    nf: Ints
    rate_kpps: Floats
    latency_us: Floats
    batch: Ints


class GpuArrays:
    """A GPU whose SLOs come as arrays.

    Parameters
    ----------
    device
        Its NFs are numbered in the order of `device.nfs`.

    Attributes
    ----------
    sizes, nfs
        What the compiled loops read of it (`tables`).
    """

    def __init__(self, device: GpuDevice) -> None:
        self.device = device
        self.numbers = {nf: number for number, nf in enumerate(device.nfs)}
        sporadic = int(device.arbitration is Arbitration.SPORADIC)
        sms, executors, workers = device.sms, device.executors_per_sm, device.workers
        self.sizes: Sizes = (sms, executors, device.packets_per_executor, workers, sporadic, len(device.nfs))
        times = [(*device.transfer_us[nf.transfer_class], nf.pre_post_us, *nf.kernel_us) for nf in device.nfs.values()]
        betas = [[device.penalty(nf, (other,)) for other in device.nfs] for nf in device.nfs]
        self.nfs: Floats = np.vstack([np.array(times, dtype=np.float64).T, np.array(betas, dtype=np.float64)])

    def arrays(self, slos: Sequence[LatencySlo]) -> SloArrays:
        """SLOs as arrays."""
        numbers = self.numbers
        return SloArrays(
            np.array([numbers[slo.nf] for slo in slos], dtype=np.int64),
            np.array([slo.rate_kpps for slo in slos], dtype=np.float64),
            np.array([slo.latency_us for slo in slos], dtype=np.float64),
            np.array([slo.batch or 0 for slo in slos], dtype=np.int64),
        )

    def admit(self, slos: SloArrays) -> tuple[Ints, Floats, Floats, Ints]:
        """The tables of the GPU with what is admitted, periods by tenant, and causes by SLO; 0 is admitted."""
        found: tuple[Ints, Floats, Floats, Ints] = admit_set(self.sizes, self.nfs, *slos)
        return found


def admit_fast(device: GpuDevice, slos: Sequence[LatencySlo]) -> tuple[tuple[Admitted, ...], tuple[Rejected, ...]]:
    """What Grus admits and rejects: the same as `placer.gpu.greedy.admit.admit_greedily`."""
    if not slos:
        return (), ()
    gpu = GpuArrays(device)
    whole, _, _, causes = gpu.admit(gpu.arrays(slos))
    rejected = tuple(Rejected(slo, CAUSES[cause]) for slo, cause in zip(slos, causes, strict=True) if cause)
    return tuple(admitted(device, slos, whole)), rejected


def admitted(device: GpuDevice, slos: Sequence[LatencySlo], whole: Ints) -> list[Admitted]:
    """The tenants, in the order of their transfers."""
    sms = _sms_of(device, whole)
    found = []
    for order, number in enumerate(whole[JOB + whole[COUNTS, ROW], : whole[COUNTS, TENANTS]]):
        batch = int(whole[BATCH, number])
        largest = int(whole[LARGEST, number]) * device.packets_per_executor
        shares = tuple(SmShare(sm, min(largest, batch - at * largest)) for at, sm in enumerate(sms[number]))
        found.append(Admitted(slos[whole[SLO, number]], batch, order, shares))
    return found


def _sms_of(device: GpuDevice, whole: Ints) -> list[list[int]]:
    """By tenant, the SMs of its minibatches."""
    parts: list[list[tuple[int, int]]] = [[] for _ in range(whole[COUNTS, TENANTS])]
    for sm in range(device.sms):
        for at in range(whole[SHARERS, sm]):
            parts[whole[ON + sm, at]].append((int(whole[ON + device.sms + sm, at]), sm))
    return [[sm for _, sm in sorted(part)] for part in parts]
