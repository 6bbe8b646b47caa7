"""How many SLOs a GPU can admit at most, whatever the method.

Each SLO gets its smallest batch, spread over all SMs, which nobody shares: then it is on the bus for the shortest time
and may wait longest. How many transfers can be in time is 1||sum U_j, which Moore and Hodgson solve exactly. Workers,
executors and, where transfers recur, the utilisation of the bus give bounds of their own; the smallest counts.

References
----------
J. M. Moore, Management Science 15, 1968. https://doi.org/10.1287/mnsc.15.1.102"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappush, heappushpop
from math import ceil, floor

from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.plan import LatencySlo
from placer.gpu.tables import NEAR_LIMIT

LOOSE_LIMIT = 2.0 * NEAR_LIMIT
"""By this much, relative, every limit is loosened: rounding must not make the bound too small."""


@dataclass(frozen=True)
class AdmissionBound:
    """An upper bound on the number of admitted SLOs."""

    count: int
    reason: str


@dataclass(frozen=True)
class RelaxedSlo:
    """An SLO at its best: times on the bus (us), executors, and the least share of the bus it can take."""

    transfer_us: float
    due_us: float
    executors: int
    utilisation: float


def upper_bound(device: GpuDevice, slos: Sequence[LatencySlo]) -> AdmissionBound:
    """No plan admits more of these SLOs."""
    alone = [one for slo in slos if (one := relax_slo(device, slo)) is not None]
    executors = device.sms * device.executors_per_sm
    bounds = [
        AdmissionBound(len(alone), "the others are not kept by an empty GPU" if len(alone) < len(slos) else "all SLOs"),
        AdmissionBound(device.workers, "each SLO takes a worker"),
        AdmissionBound(_fitting((slo.executors for slo in alone), executors), "executors of all SMs"),
        AdmissionBound(_in_time(alone), "transfers in time, each once (Moore and Hodgson)"),
    ]
    if device.arbitration is Arbitration.SPORADIC:
        shares = (slo.utilisation for slo in alone)
        bounds.append(AdmissionBound(_fitting(shares, 1.0 + LOOSE_LIMIT), "utilisation of the bus"))
    return min(bounds, key=lambda one: one.count)


def relax_slo(device: GpuDevice, slo: LatencySlo) -> RelaxedSlo | None:
    """An SLO at its best; None where even an empty GPU does not keep it."""
    batch = _smallest(device, slo)
    if batch is None:
        return None
    left = slo.latency_us * (1.0 + LOOSE_LIMIT) - device.nfs[slo.nf].pre_post_us
    due = left - device.batching_us(batch, slo.rate_kpps) - _least_kernel(device, slo.nf, batch)
    transfer = device.transfer(slo.nf, batch)
    if transfer > due:
        return None
    largest = slo.batch or max(batch, _largest(device, slo, left))
    utilisation = device.transfer(slo.nf, largest) / device.period_us(largest, slo.rate_kpps)
    return RelaxedSlo(transfer, due, device.executors(batch), utilisation)


def _smallest(device: GpuDevice, slo: LatencySlo) -> int | None:
    """The smallest batch whose kernel, over all SMs, and CPU fit the period."""
    nf = device.nfs[slo.nf]
    capacity = device.sms * device.packets_per_executor
    if slo.batch is not None:
        longest = max(_least_kernel(device, slo.nf, slo.batch), nf.pre_post_us)
        fits = longest <= device.period_us(slo.batch, slo.rate_kpps) * (1.0 + LOOSE_LIMIT)
        return slo.batch if fits and slo.batch <= capacity * device.executors_per_sm else None
    per_executor, fixed = nf.kernel_us
    for used in range(1, device.executors_per_sm + 1):
        longest = max(per_executor * used + fixed, nf.pre_post_us)
        batch = max(ceil(longest * slo.rate_kpps / 1000.0 * (1.0 - LOOSE_LIMIT)), (used - 1) * capacity + 1)
        if batch <= used * capacity:
            return batch
    return None


def _largest(device: GpuDevice, slo: LatencySlo, left_us: float) -> int:
    """No batch that keeps the latency is larger."""
    per_packet, fixed = device.transfer_us[device.nfs[slo.nf].transfer_class]
    interval = 1000.0 / slo.rate_kpps
    left = left_us + interval - fixed - sum(device.nfs[slo.nf].kernel_us)
    most = device.sms * device.executors_per_sm * device.packets_per_executor
    return min(max(floor(left / (interval + per_packet)) + 1, 1), most)


def _least_kernel(device: GpuDevice, nf: str, batch: int) -> float:
    """The kernel of a batch that is spread over all SMs, us."""
    per_executor, fixed = device.nfs[nf].kernel_us
    return per_executor * -(-device.executors(batch) // device.sms) + fixed


def _fitting(sizes: Iterable[float], room: float) -> int:
    """How many sizes, the smallest first, fit the room together."""
    count, taken = 0, 0.0
    for size in sorted(sizes):
        taken += size
        if taken > room:
            break
        count += 1
    return count


def _in_time(jobs: Sequence[RelaxedSlo]) -> int:
    """How many transfers can be over in time, one after another."""
    kept: list[float] = []
    over = 0.0
    for job in sorted(jobs, key=lambda one: one.due_us):
        over += job.transfer_us
        if over > job.due_us * (1.0 + LOOSE_LIMIT):
            over += heappushpop(kept, -job.transfer_us)  # leave out the longest
        else:
            heappush(kept, -job.transfer_us)
    return len(kept)
