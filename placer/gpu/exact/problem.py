"""The device and its SLOs as arrays, for the compiled loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.slo import LatencySlo

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Problem(NamedTuple):
    """A device and SLOs.

    Parameters
    ----------
    sporadic
        Whether batches on the bus recur.
    slots
        Executors of an SM.
    width
        Packets per executor.
    nf
        By SLO, the number of its NF.
    gap_us
        By SLO, the time between two packets.
    slope_us, fixed_us
        By SLO, of a transfer: per packet, and fixed.
    step_us, base_us
        By SLO, of a kernel: per executor of a minibatch, and fixed.
    pinned
        By SLO, the fixed batch; 0 for none.
    penalty_us
        By NF and other NF.
    """

    sporadic: bool
    sms: int
    slots: int
    width: int
    workers: int
    nf: Ints
    gap_us: Floats
    latency_us: Floats
    pre_post_us: Floats
    slope_us: Floats
    fixed_us: Floats
    step_us: Floats
    base_us: Floats
    pinned: Ints
    penalty_us: Floats


def problem_of(device: GpuDevice, slos: Sequence[LatencySlo]) -> Problem:
    """The arrays of a device and SLOs."""
    names = sorted({slo.nf for slo in slos})
    nfs = [device.nfs[slo.nf] for slo in slos]
    transfers = [device.transfer_us[nf.transfer_class] for nf in nfs]
    return Problem(
        device.arbitration is Arbitration.SPORADIC,
        device.sms,
        device.executors_per_sm,
        device.packets_per_executor,
        device.workers,
        np.array([names.index(slo.nf) for slo in slos], dtype=np.int64),
        _floats(1000.0 / slo.rate_kpps for slo in slos),
        _floats(slo.latency_us for slo in slos),
        _floats(nf.pre_post_us for nf in nfs),
        _floats(slope for slope, _ in transfers),
        _floats(fixed for _, fixed in transfers),
        _floats(nf.kernel_us[0] for nf in nfs),
        _floats(nf.kernel_us[1] for nf in nfs),
        np.array([slo.batch or 0 for slo in slos], dtype=np.int64),
        np.array([[device.penalty(one, [other]) for other in names] for one in names], dtype=np.float64).reshape(
            len(names), len(names)
        ),
    )


def _floats(values: Iterable[float]) -> Floats:
    return np.array(list(values), dtype=np.float64)
