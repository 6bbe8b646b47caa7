"""The latency of admitted SLOs, and in it the wait for the bus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, inf

import numpy as np
from numpy.typing import NDArray

from placer.gpu.compiled import compiled
from placer.gpu.device import Arbitration, GpuDevice
from placer.gpu.plan import Admitted
from placer.gpu.rounding import NEAR

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LatencyParts:
    """The worst latency of a packet by stage, us (paper 003, equation 1).

    Parameters
    ----------
    transfer_wait
        Infinite where the bus is overloaded.
    kernel
        Of its slowest minibatch, with the sharing penalty.
    """

    batching: float
    pre_post: float
    transfer_wait: float
    transfer: float
    kernel: float

    @property
    def total(self) -> float:
        """The latency, us."""
        return self.batching + self.pre_post + self.transfer_wait + self.transfer + self.kernel


def one_shot_wait(earlier_us: Sequence[float] | Floats) -> float:
    """The wait behind all earlier transfers, each once, us (paper 003, section V-B)."""
    return float(sum(earlier_us))


def sporadic_wait(
    transfer_us: float,
    period_us: float,
    earlier_us: Sequence[float] | Floats,
    earlier_periods_us: Sequence[float] | Floats,
    blocking_us: float,
) -> float:
    """The longest wait of a transfer that recurs beside others, under fixed priorities without preemption, us.

    Infinite where it and the earlier ones overload the bus.

    Parameters
    ----------
    earlier_us, earlier_periods_us
        Of the transfers with higher priority.
    blocking_us
        The largest transfer with lower priority; 0 for none.

    References
    ----------
    R. I. Davis, A. Burns, R. J. Bril, J. J. Lukkien, "Controller Area Network (CAN) schedulability analysis: Refuted,
    revisited and revised", Real-Time Systems 35, 2007. https://doi.org/10.1007/s11241-007-9012-7, section 3.1.
    """
    times = np.asarray(earlier_us, dtype=np.float64)
    periods = np.asarray(earlier_periods_us, dtype=np.float64)
    return float(longest_wait(transfer_us, period_us, times, periods, len(times), blocking_us, inf))


@compiled
def longest_wait(transfer, period, earlier, earlier_periods, count, blocking, limit):  # type: ignore[no-untyped-def]
    """The wait of `sporadic_wait` behind the first `count` of the earlier transfers; infinite if above `limit`.

    Instance q starts at most (blocking + q * transfer + earlier) / (1 - utilisation of the earlier) after the first
    arrives. This bound on its wait falls with q, so that the search ends when a longer wait is ruled out, which is
    before the busy period does.
    """
    before_it, once = 0.0, 0.0
    for k in range(count):
        before_it += earlier[k] / earlier_periods[k]
        once += earlier[k]
    if not before_it + transfer / period < 1.0 - NEAR or blocking > limit:
        return inf
    idle = 1.0 - before_it * (1.0 + NEAR)
    busy = blocking + transfer + once
    longest, started, instance = 0.0, blocking, 0
    while True:
        if instance > 0:
            if (blocking + instance * transfer + once) / idle - instance * period <= longest:
                break
            busy = _busy_beyond(instance * period, busy, transfer, period, earlier, earlier_periods, count, blocking)
            if busy <= instance * period:
                break
        # Earlier transfers that arrive until it starts go first.
        started = max(started, (blocking + instance * transfer) / idle * (1.0 - 4.0 * NEAR))
        before = -1.0
        while started > before:
            before = started
            started = blocking + instance * transfer
            for k in range(count):
                started += (floor(before / earlier_periods[k] * (1.0 + NEAR)) + 1) * earlier[k]
            if started - instance * period > limit:
                return inf
        longest = max(longest, started - instance * period)
        instance += 1
        started += transfer
    return longest


@compiled
def _busy_beyond(end, busy, transfer, period, earlier, earlier_periods, count, blocking):  # type: ignore[no-untyped-def]
    """Extend `busy`, a part of the busy period of it and the earlier ones, beyond `end` or to the whole period, us."""
    before = -1.0
    while before < busy <= end:
        before = busy
        busy = blocking + ceil(before / period) * transfer
        for k in range(count):
            busy += ceil(before / earlier_periods[k]) * earlier[k]
    return busy


def latency_of(device: GpuDevice, admitted: Sequence[Admitted]) -> dict[str, LatencyParts]:
    """By id of the SLO, its latency when all of these share the GPU."""
    ordered = sorted(admitted, key=lambda one: one.order)
    transfers = np.array([device.transfer(one.slo.nf, one.batch) for one in ordered], dtype=np.float64)
    periods = np.array([device.period_us(one.batch, one.slo.rate_kpps) for one in ordered], dtype=np.float64)
    kernels = _kernels(device, ordered)
    return {
        one.slo.id: LatencyParts(
            device.batching_us(one.batch, one.slo.rate_kpps),
            device.nfs[one.slo.nf].pre_post_us,
            _wait(device.arbitration, transfers, periods, at),
            float(transfers[at]),
            kernels[at],
        )
        for at, one in enumerate(ordered)
    }


def _wait(arbitration: Arbitration, transfers: Floats, periods: Floats, at: int) -> float:
    if arbitration is Arbitration.ONE_SHOT:
        return one_shot_wait(transfers[:at])
    blocking = float(transfers[at + 1 :].max(initial=0.0))
    return sporadic_wait(float(transfers[at]), float(periods[at]), transfers[:at], periods[:at], blocking)


def _kernels(device: GpuDevice, admitted: Sequence[Admitted]) -> list[float]:
    """Of each, the time of its slowest minibatch."""
    sharers: dict[int, list[int]] = {}
    for at, one in enumerate(admitted):
        for share in one.minibatches:
            sharers.setdefault(share.sm, []).append(at)
    return [
        max(
            (
                device.kernel(one.slo.nf, share.packets)
                + device.penalty(one.slo.nf, (admitted[k].slo.nf for k in sharers[share.sm] if k != at))
                for share in one.minibatches
            ),
            default=inf,
        )
        for at, one in enumerate(admitted)
    ]
