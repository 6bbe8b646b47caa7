"""A GPU, SLOs and what is admitted as arrays, for the compiled loops of greedy admission, and which row is what. What
is admitted is in two large arrays instead of many small ones: as 26 named arrays, which every call hands over, 100 SLOs
take five times as long. `whole` (numbers) and `times` (us) have a column per SM, tenant (an admitted SLO, in the order
of arrival) or place in the queue on the bus."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.plan import LatencySlo
from predictor.regression.compiled import NOT_NEEDED, cache_kernel
from profiles.arrays import Floats, Ints

Kernel = Callable[..., Any]

KERNEL_FOLDERS = (Path(__file__).parent,)  # where kernels are

NEAR_LIMIT = 1e-9
WITHIN_LIMIT = 1.0 + NEAR_LIMIT / 2
"""Greedy methods let times exceed their limits by this factor: half of `NEAR_LIMIT`, so that rounding stays in it."""


def compile_kernel(kernel: Kernel) -> Kernel:
    """The kernel as machine code, kept on disk until a file of this room changes."""
    return cache_kernel(njit(**NOT_NEEDED)(kernel), KERNEL_FOLDERS)


BY_DUE, UNORDERED, SERIAL = range(3)
"""What must be in time: transfers, the one due first before all others; transfers behind all others, as nothing orders
them; or transfers and then kernels, both one after another by when they are due."""

SLOPE_ROW, FIXED_ROW, PRE_POST_ROW, PER_EXECUTOR_ROW, KERNEL_ROW, BETA_ROW = range(6)
"""Rows of `nfs`, which has a column per NF and us: of a transfer, per packet and fixed; of a batch on the CPU; of a
kernel, per executor of a minibatch and fixed; and from `BETA_ROW` on for each NF its penalties beside each other NF."""

(
    COUNTS_ROW, FREE_ROW, SHARERS_ROW, SLO_ROW, NF_ROW, BATCH_ROW, LARGEST_ROW, CHANGED_ROW, CHOSEN_ROW, JOB_ROW,
    _OTHER_JOB_ROW, ON_ROW,
) = range(12)  # fmt: skip
"""Rows of `whole`. `FREE_ROW` executors and `SHARERS_ROW`, which are minibatches, by SM; SLO, NF, batch and executors
of the largest minibatch by tenant; `CHANGED_ROW` tenants and `CHOSEN_ROW` SMs are scratch; `JOB_ROW` and the next one
hold the tenants in the queue. From `ON_ROW` on, a row for each SM: the tenant of each minibatch, and then as many rows
with which of its minibatches it is."""
TENANT_COUNT, QUEUE_ROW = range(2)
"""Places in row `COUNTS_ROW`: the number of tenants, and which of two rows is the queue; the other is for a trial."""

(
    BEFORE_ROW, NOW_ROW, LATER_ROW, OWN_PERIOD_ROW, DUE_ROW, _OTHER_DUE_ROW, TRANSFER_ROW, _OTHER_TRANSFER_ROW,
    PERIOD_ROW, _OTHER_PERIOD_ROW, OVER_ROW, _OTHER_OVER_ROW, USED_ROW, _OTHER_USED_ROW, BASE_ROW,
) = range(15)  # fmt: skip
"""Rows of `times`.

By tenant: the latency without batching, pre- and post-processing, the kernel `NOW_ROW`, and beside an arrival
(`LATER_ROW`), and the period. By place in the queue, in two rows each: when a transfer is due, its time and period,
when it is `OVER_ROW` if each came once, and the share of the bus that is `USED_ROW` up to it. From `BASE_ROW` on, a row
for each SM: the time of each minibatch alone. Then by NF and SM the penalty of an arrival, and as many rows with the
largest delay of a tenant, infinite where one would exceed its period."""


class GpuNumbers(NamedTuple):
    """The size of a GPU, and how SLOs share it. `nfs`: how many it has. `sporadic`: whether transfers recur.
    `exclusive`: whether an SM serves one SLO only. `rule`: what must be in time: `BY_DUE`, `UNORDERED` or `SERIAL`."""

    sms: int
    executors: int
    packets: int
    workers: int
    nfs: int
    sporadic: bool
    exclusive: bool
    rule: int


class SloArrays(NamedTuple):
    """SLOs as arrays, an element per SLO: number of its NF, kpps, us, and packets, 0 where the batch is not fixed."""

    nf: Ints
    rate_kpps: Floats
    latency_us: Floats
    batch: Ints


def numbers_of(device: GpuDevice) -> Mapping[str, int]:
    """The number of each NF."""
    return {nf: number for number, nf in enumerate(device.nfs)}


def gpu_numbers(device: GpuDevice, *, exclusive: bool = False, rule: int = BY_DUE) -> GpuNumbers:
    """The size of a device."""
    sporadic, sizes = device.arbitration is Arbitration.SPORADIC, (device.sms, device.executors_per_sm)
    return GpuNumbers(*sizes, device.packets_per_executor, device.workers, len(device.nfs), sporadic, exclusive, rule)


def nf_times(device: GpuDevice) -> Floats:
    """The table `nfs`."""
    times = [(*device.transfer_us[nf.transfer_class], nf.pre_post_us, *nf.kernel_us) for nf in device.nfs.values()]
    betas = [[device.penalty(nf, (other,)) for other in device.nfs] for nf in device.nfs]
    return np.vstack([np.array(times, dtype=np.float64).T, np.array(betas, dtype=np.float64)])


def slo_arrays(device: GpuDevice, slos: Sequence[LatencySlo]) -> SloArrays:
    numbers = numbers_of(device)
    return SloArrays(
        np.array([numbers[slo.nf] for slo in slos], dtype=np.int64),
        np.array([slo.rate_kpps for slo in slos], dtype=np.float64),
        np.array([slo.latency_us for slo in slos], dtype=np.float64),
        np.array([slo.batch or 0 for slo in slos], dtype=np.int64),
    )


def empty_tables(gpu: GpuNumbers, tenants: int) -> tuple[Ints, Floats]:
    """`whole` and `times` for at most so many tenants on a GPU without any; one more is tried at a time."""
    width = max(tenants + 2, gpu.sms)
    whole = np.zeros((ON_ROW + 2 * gpu.sms, width), dtype=np.int64)
    whole[FREE_ROW] = gpu.executors
    return whole, np.zeros((BASE_ROW + gpu.sms + 2 * gpu.nfs, width))


@compile_kernel
def times_of(nfs, nf, rate, batch):  # type: ignore[no-untyped-def]
    """Batching, transfer and period of a batch, us."""
    return 1000.0 * (batch - 1) / rate, nfs[SLOPE_ROW, nf] * batch + nfs[FIXED_ROW, nf], 1000.0 * batch / rate
