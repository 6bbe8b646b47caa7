"""The bus: which order lets every transfer be over in time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from placer.gpu.device import Arbitration
from placer.gpu.rounding import NEAR
from placer.gpu.waiting import longest_wait


@dataclass(frozen=True)
class BusTransfer:
    """A transfer that must be over in time.

    Parameters
    ----------
    due_us
        Counted from the end of the batch.
    number
        In the order of arrival.
    kernel_us
        Of the kernel that follows, on SMs that nobody shares.
    """

    due_us: float
    number: int
    transfer_us: float
    period_us: float
    kernel_us: float


Floats = NDArray[np.float64]
InTime = Callable[[Sequence[BusTransfer], Arbitration], bool]
"""Whether each of these transfers, in this order, is over in time."""


def in_order(transfers: Sequence[BusTransfer]) -> list[BusTransfer]:
    """The transfers, the one due first before all others.

    If any order keeps all times of `one-shot`, this one does (Jackson's rule); of `sporadic` it often does.
    """
    return sorted(transfers, key=lambda one: (one.due_us, one.number))


def all_in_time(ordered: Sequence[BusTransfer], arbitration: Arbitration) -> bool:
    """Whether each transfer is over in time, in this order."""
    times, periods = [one.transfer_us for one in ordered], [one.period_us for one in ordered]
    limits = [one.due_us for one in ordered]
    return all(end < inf for end in ends(times, periods, limits, arbitration))


def in_time_unordered(transfers: Sequence[BusTransfer], arbitration: Arbitration) -> bool:
    """Whether each transfer is over in time behind all others, as it may be when nothing orders them."""
    for one in transfers:
        ordered = [*(other for other in transfers if other is not one), one]
        times, periods = [each.transfer_us for each in ordered], [each.period_us for each in ordered]
        limits = [one.due_us] * len(ordered)  # the others end before it
        if ends(times, periods, limits, arbitration)[-1] == inf:
            return False
    return True


def ends(
    times_us: Sequence[float], periods_us: Sequence[float], limits_us: Sequence[float], arbitration: Arbitration
) -> list[float]:
    """When each of these, served in this order, is over, us; infinite where that is above its limit.

    Parameters
    ----------
    times_us, periods_us
        Of the service, and between two batches.
    """
    if arbitration is Arbitration.ONE_SHOT:
        return _one_shot(times_us, limits_us)
    return _sporadic(np.array(times_us), np.array(periods_us), limits_us)


def _one_shot(times_us: Sequence[float], limits_us: Sequence[float]) -> list[float]:
    over, found = 0.0, []
    for time, limit in zip(times_us, limits_us, strict=True):
        over += time
        found.append(over if over <= limit else inf)
    return found


def _sporadic(times: Floats, periods: Floats, limits_us: Sequence[float]) -> list[float]:
    used, found = 0.0, []
    for at, limit in enumerate(limits_us):
        used += times[at] / periods[at]
        if not used < 1.0 - NEAR:
            found.append(inf)
            continue
        blocking = times[at + 1 :].max(initial=0.0)
        waited = longest_wait(times[at], periods[at], times, periods, at, blocking, limit - times[at])
        found.append(float(waited + times[at]))
    return found
