"""Each SLO at its best: alone on the GPU, with the fastest kernel and the smallest batch that keeps up."""

from __future__ import annotations

from math import ceil, floor
from typing import NamedTuple

import numpy as np

from placer.gpu.exact.problem import Floats, Ints, Problem
from placer.gpu.rounding import NEAR

LOOSE = 1.0 + 1.1 * NEAR
"""What a time may be of its limit for a bound: more than the model allows, so that rounding never makes it wrong."""


class BestCases(NamedTuple):
    """By SLO, no plan has a shorter kernel or transfer, a smaller batch, or a later due time; nor a larger batch.

    Parameters
    ----------
    size
        Executors of its largest minibatch; 0 where the GPU cannot serve it even alone.
    batch, most
        The smallest and largest batch.
    kernel
        Without sharing, us.
    transfer, due
        With the smallest batch, us; `due` is the time by which the transfer must be finished.
    cause
        Why the GPU cannot serve it; empty where it can.
    """

    size: Ints
    batch: Ints
    most: Ints
    kernel: Floats
    transfer: Floats
    due: Floats
    cause: list[str]


def best_cases(p: Problem) -> BestCases:
    """The best cases of all SLOs."""
    rows = [_best_case(p, i) for i in range(len(p.nf))]
    size, batch, most, kernel, transfer, due, cause = zip(*rows, strict=True) if rows else ((),) * 7
    return BestCases(
        _ints(size), _ints(batch), _ints(most), _floats(kernel), _floats(transfer), _floats(due), list(cause)
    )


def _best_case(p: Problem, i: int) -> tuple[int, int, int, float, float, float, str]:
    causes = set()
    for size in range(1, p.slots + 1):
        kernel = p.step_us[i] * size + p.base_us[i]
        batch, cause = _batch(p, i, kernel)
        room = p.latency_us[i] * LOOSE - p.pre_post_us[i] + p.gap_us[i]
        if not cause and -(-batch // p.width) > size * p.sms:
            cause = "executors"
        if not cause and batch * p.gap_us[i] > room:
            cause = "batching"
        if not cause and batch * p.gap_us[i] + kernel > room:
            cause = "kernel"
        transfer = p.slope_us[i] * batch + p.fixed_us[i]
        if not cause and batch * p.gap_us[i] + kernel + transfer > room:
            cause = "pcie"
        most = floor((room - kernel - p.fixed_us[i]) / (p.gap_us[i] + p.slope_us[i]))
        most = batch if p.pinned[i] else max(batch, min(most, p.sms * p.slots * p.width))
        if not cause and p.sporadic and p.slope_us[i] * most + p.fixed_us[i] >= most * p.gap_us[i]:
            cause = "pcie"
        if not cause:
            return size, batch, most, kernel, transfer, room - batch * p.gap_us[i] - kernel, ""
        causes.add(cause)
        if cause != "executors":
            break
    return 0, 0, 0, 0.0, 0.0, 0.0, next(one for one in ("batching", "kernel", "pcie", "executors") if one in causes)


def _batch(p: Problem, i: int, kernel: float) -> tuple[int, str]:
    """The smallest batch that keeps up with the rate, and why there is none."""
    for time, cause in ((p.pre_post_us[i], "batching"), (kernel, "kernel")):
        if p.pinned[i] and time > p.pinned[i] * p.gap_us[i] * LOOSE:
            return 0, cause
    longest = max(kernel, p.pre_post_us[i])
    return int(p.pinned[i]) or max(1, ceil(longest / (p.gap_us[i] * LOOSE))), ""


def _ints(values: object) -> Ints:
    return np.array(values, dtype=np.int64)


def _floats(values: object) -> Floats:
    return np.array(values, dtype=np.float64)
