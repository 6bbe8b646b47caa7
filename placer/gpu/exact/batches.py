"""Batches of placed SLOs: whether any within their intervals let the bus serve all in time.

Which batch suits an SLO best depends on the others, where transfers recur. Of an interval, no batch has a shorter
transfer or a later due time than the smallest, and none a longer period than the largest. A bus that cannot serve all
SLOs with these three at once cannot serve them with any batches of the intervals, since a shorter transfer, a longer
period or a later due time never makes anybody late. Otherwise an interval is halved. So only those batches are tried
that can matter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placer.gpu.compiled import compiled
from placer.gpu.exact.bus import in_time
from placer.gpu.exact.problem import Floats, Ints, Problem
from placer.gpu.exact.sm_layout import least_batch, sharing, slack

Expired = Callable[[], bool]
"""Whether the time is over; raises nothing."""


@compiled
def limits(p, layout, members, executors, fewer, cases_batch, cases_most, cases_kernel, kernel, low, high):  # type: ignore[no-untyped-def]
    """Fill the kernels of the members and the intervals of their batches; False where one has none.

    Members without minibatches are at their best. Batches that `fewer` executors process are left to these.
    """
    for i in members:
        if layout.parts[i] == 0:
            kernel[i], low[i], high[i] = cases_kernel[i], cases_batch[i], cases_most[i]
            continue
        kernel[i] = 0.0
        for part in range(layout.parts[i]):
            alone = p.step_us[i] * layout.part_executors[i, part] + p.base_us[i]
            kernel[i] = max(kernel[i], alone + sharing(p, i, layout.part_sm[i, part], layout))
        low[i] = least_batch(p, i, kernel[i])
        high[i] = min(executors[i] * p.width, max(low[i], cases_most[i]))
        if low[i] < 0 or low[i] > executors[i] * p.width:
            return False
        if p.pinned[i] > 0 or not p.sporadic:
            high[i] = low[i]
        else:
            low[i] = max(low[i], fewer[i] * p.width + 1)
            if low[i] > high[i]:
                return False
    return True


@compiled
def fits(p, members, kernel, small, large):  # type: ignore[no-untyped-def]
    """Whether the bus serves the members with the transfers and due times of one batch and the periods of another."""
    count = len(members)
    transfer, period, due = np.empty(count), np.empty(count), np.empty(count)
    for k in range(count):
        i = members[k]
        transfer[k] = p.slope_us[i] * small[i] + p.fixed_us[i]
        period[k] = large[i] * p.gap_us[i]
        due[k] = slack(p, i, small[i], kernel[i])
        if transfer[k] > due[k]:
            return False
    return in_time(p.sporadic, np.arange(count), count, transfer, period, due, count)


def batches_in_time(p: Problem, members: Ints, kernel: Floats, low: Ints, high: Ints, expired: Expired) -> Ints | None:
    """Batches with which the bus serves the members in time, by SLO; None where there are none, or the time is over."""
    open_ones = [(low, high)]
    while open_ones and not expired():
        low, high = open_ones.pop()
        if not fits(p, members, kernel, low, high):
            continue
        for batches in (low, np.maximum(low, np.minimum(high, _even(p, kernel))), high):
            if fits(p, members, kernel, batches, batches):
                return batches
        widest = members[np.argmax(high[members] / low[members])]
        if high[widest] == low[widest]:
            continue
        middle = (low[widest] + high[widest]) // 2
        upper, lower = low.copy(), high.copy()
        upper[widest], lower[widest] = middle + 1, middle
        open_ones += [(upper, high), (low, lower)]
    return None


def _even(p: Problem, kernel: Floats) -> Ints:
    """Batches whose period is half of what latency is left, the other half being the wait."""
    return ((p.latency_us - p.pre_post_us - kernel) / (2.0 * p.gap_us)).astype(np.int64)
