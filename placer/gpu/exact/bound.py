"""Upper bounds on the number of admitted SLOs, each from one resource with everything else at its best."""

from __future__ import annotations

from math import ceil, floor, inf
from typing import NamedTuple

import numpy as np

from placer.gpu.exact.sm_layout import Problem, least_batch, slack
from placer.gpu.tables import NEAR_LIMIT, compile_kernel
from profiles.arrays import Bools, Floats, Ints


def upper_bound(p: Problem, best: BestCases) -> int:
    """No plan admits more SLOs than this."""
    possible = best.size > 0
    bounds = [p.workers, int(possible.sum())]
    if possible.any():
        once = most_once(best.transfer[possible], best.due[possible], p.sporadic)
        bounds += [int(once.sum()), _by_sms(p, best, possible)]
        if p.sporadic:
            bounds.append(_fitting(_utilisations(p, best)[possible], 1.0))
    return min(bounds)


def _fitting(shares: Floats, limit: float) -> int:
    """How many of the smallest shares add up to at most the limit."""
    return int((np.cumsum(np.sort(shares)) <= limit * LOOSE_LIMIT).sum())


def _utilisations(p: Problem, best: BestCases) -> Floats:
    """The least share of the bus that an SLO takes: with its largest batch."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return p.slope_us / p.gap_us + p.fixed_us / (best.most * p.gap_us)


def _by_sms(p: Problem, best: BestCases, possible: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> int:
    """By the share of an SM that each SLO takes at least: whole SMs where it cannot share one with any other."""
    members = np.flatnonzero(possible).tolist()
    executors = -(-best.batch // p.width)
    stands = np.array([[_stands(p, i, f) for f in range(len(p.penalty_us))] for i in members], dtype=np.bool_)
    shares = []
    for at, i in enumerate(members):
        sharers = stands[at, p.nf[members]] & stands[:, p.nf[i]]
        sharers[at] = False
        if sharers.any():
            shares.append(executors[i] / p.slots)
            continue
        size = max(count for count in range(1, p.slots + 1) if count <= best.size[i] or _alone(p, i, count, 0.0))
        shares.append(-(-executors[i] // size))
    return _fitting(np.array(shares, dtype=np.float64), float(p.sms))


def _stands(p: Problem, i: int, other: int) -> bool:
    """Whether the SLO keeps its latency with a minibatch beside another NF."""
    return _alone(p, i, 1, float(p.penalty_us[p.nf[i], other]))


def _alone(p: Problem, i: int, size: int, penalty: float) -> bool:
    """Whether the SLO keeps its latency with nobody else on the bus."""
    kernel = (p.step_us[i] * size + p.base_us[i] + penalty) / (1.0 + 4.0 * (LOOSE_LIMIT - 1.0))
    batch = least_batch(p, i, kernel)
    if batch < 0:
        return False
    return bool(
        p.slope_us[i] * batch + p.fixed_us[i] <= slack(p, i, batch, kernel) + p.latency_us[i] * (LOOSE_LIMIT - 1.0)
    )


# The most SLOs that the bus can serve if every transfer came only once, blocked by a later one where they recur.
#
# Both buses serve no more than that. A transfer waits at least for one of each earlier one; with deadlines in order,
# for
# the largest later one, too (Jeffay, Stanat, Martel, RTSS 1991).


def most_once(transfer: Floats, due: Floats, blocks: bool) -> Bools:
    """The largest set that the bus serves: a flag per SLO."""
    # sorted here, as Numba compiles NumPy's sorting for over a second
    orders = (np.argsort(values, kind="stable") for values in (due, transfer))
    served: Bools = _most_once(transfer, due, blocks, *orders)
    return served


@compile_kernel
def _most_once(transfer, due, blocks, by_due, by_size):  # type: ignore[no-untyped-def]
    """After the SLOs with deadlines up to one, `least[m, b]` is the smallest sum of transfers of m of them of which all
    are in time if b is the largest later one (0 for none). An SLO of length zero or less is left out."""
    count = len(due)
    size = np.zeros(count + 1)
    rank = np.zeros(count, dtype=np.int64)
    for k in range(count):
        size[k + 1] = transfer[by_size[k]]
        rank[by_size[k]] = k + 1
    blockers = count + 1 if blocks else 1
    least = np.full((count + 1, blockers), inf)
    least[0, :] = 0.0
    taken = np.zeros((count, count + 1, blockers), dtype=np.bool_)
    for k in range(count):
        i = by_due[k]
        if transfer[i] > due[i]:
            continue
        for m in range(k + 1, 0, -1):
            for b in range(blockers):
                finished = least[m - 1, max(b, rank[i]) if blocks else 0] + transfer[i]
                if finished + size[b] <= due[i] and finished < least[m, b]:
                    least[m, b] = finished
                    taken[k, m, b] = True
    members = np.zeros(count, dtype=np.bool_)
    m, b = 0, 0
    while m < count and least[m + 1, 0] < inf:
        m += 1
    for k in range(count - 1, -1, -1):
        if taken[k, m, b]:
            i = by_due[k]
            members[i] = True
            m -= 1
            b = max(b, rank[i]) if blocks else 0
    return members


# Each SLO at its best: alone on the GPU, with the fastest kernel and the smallest batch that keeps up.


LOOSE_LIMIT = 1.0 + 1.1 * NEAR_LIMIT
"""What a time may be of its limit for a bound: more than the model allows, so that rounding never makes it wrong."""


class BestCases(NamedTuple):
    """By SLO, no plan has a shorter kernel or transfer, a smaller batch, or a later due time; nor a larger batch.
    `size`: executors of its largest minibatch; 0 where the GPU cannot serve it even alone. `batch`, `most`: the
    smallest and largest batch. `kernel`: without sharing, us. `transfer`, `due`: with the smallest batch, us; `due` is
    the time by which the transfer must be finished. `cause`: why the GPU cannot serve it; empty where it can."""

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
        room = p.latency_us[i] * LOOSE_LIMIT - p.pre_post_us[i] + p.gap_us[i]
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
    first = next(cause for cause in ("batching", "kernel", "pcie", "executors") if cause in causes)
    return 0, 0, 0, 0.0, 0.0, 0.0, first


def _batch(p: Problem, i: int, kernel: float) -> tuple[int, str]:
    """The smallest batch that keeps up with the rate, and why there is none."""
    for time, cause in ((p.pre_post_us[i], "batching"), (kernel, "kernel")):
        if p.pinned[i] and time > p.pinned[i] * p.gap_us[i] * LOOSE_LIMIT:
            return 0, cause
    longest = max(kernel, p.pre_post_us[i])
    return int(p.pinned[i]) or max(1, ceil(longest / (p.gap_us[i] * LOOSE_LIMIT))), ""


def _ints(values: object) -> Ints:
    return np.array(values, dtype=np.int64)


def _floats(values: object) -> Floats:
    return np.array(values, dtype=np.float64)
