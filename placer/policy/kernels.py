"""The compiled inner loops of the class index: which patterns a NIC can become, what its free capacity is worth, and
which class suits an arrival best."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from predictor.regression.compiled import KERNEL_FOLDERS, NOT_NEEDED, Kernel, cache_kernel
from profiles.arrays import Floats

Ints = NDArray[np.int32]

NO_NIC = np.iinfo(np.int64).max  # the lowest NIC number of a class without NICs

INFEASIBLE_SCORE = np.float32(np.inf)


class JoinScores(NamedTuple):
    """What each arrival would find in each class of NICs.

    `scores`: by workload and SLA level, then class; shape (workloads * levels, classes). The lowest is the best.
    `kpps`: throughput that an arrival would get, -1 where it cannot join; shape (workloads, classes).
    """

    scores: NDArray[np.float32]
    kpps: Floats


def compile_kernel(kernel: Kernel) -> Kernel:
    """The kernel as machine code, kept on disk until a file of this room or of those with kernels of models changes."""
    return cache_kernel(njit(**NOT_NEEDED)(kernel), (Path(__file__).parent, *KERNEL_FOLDERS))


@compile_kernel
def mark_reachable(pattern, above, members, kpps, required, reachable):  # type: ignore[no-untyped-def]
    """Mark in `reachable` the patterns of `above` in which every tenant of `pattern` gets what it requires (kpps)."""
    for place in range(len(above)):
        meets = True
        for at in range(members.shape[1]):
            column = members[pattern, at]
            if column < 0:
                break
            if kpps[above[place], column] < required[column]:
                meets = False
                break
        reachable[place] = meets


@compile_kernel
def added_worth(pattern, above, counts, members, worth):  # type: ignore[no-untyped-def]
    """What the instances are worth that `above` has beyond `pattern`, in the slots of `above`."""
    total = 0.0
    for at in range(members.shape[1]):
        column = members[above, at]
        if column < 0:
            break
        total += (counts[above, column] - counts[pattern, column]) * worth[above, column]
    return total


@compile_kernel
def free_capacity_value(pattern, above, reachable, counts, members, level, worth, then):  # type: ignore[no-untyped-def]
    """The value of the free capacity of a NIC with this pattern: what the best pattern adds that it can become.

    Added instances are worth `worth`, shape (patterns, workloads). The values that remain after an arrival of each
    workload and SLA level joined are written into `then`; only patterns that meet this level remain.
    """
    now = 0.0
    then[:] = 0.0
    for place in range(len(above)):
        if not reachable[place]:
            continue
        here = above[place]
        gain = added_worth(pattern, here, counts, members, worth)
        now = max(now, gain)
        for at in range(members.shape[1]):
            column = members[here, at]
            if column < 0:
                break
            step = level[here, column]
            if counts[here, column] > counts[pattern, column] and step >= 0:
                then[column, step] = max(then[column, step], gain - worth[here, column])
    for column in range(then.shape[0]):
        remaining = 0.0
        for step in range(then.shape[1] - 1, -1, -1):
            remaining = max(remaining, then[column, step])
            then[column, step] = remaining
    return now


@compile_kernel
def score_joins(pattern, above, reachable, counts, members, level, joined, kpps, worth, before, after, into, slot):  # type: ignore[no-untyped-def]
    """Write into column `slot` of `into` the score and the throughput of every possible arrival.

    A score is the value of the free capacity now times `before`, plus that with the arrival times `after`.
    """
    width = counts.shape[1]
    levels = into.scores.shape[0] // max(width, 1)
    then = np.empty((width, levels))
    now = free_capacity_value(pattern, above, reachable, counts, members, level, worth, then)
    for column in range(width):
        with_it = joined[pattern, column]
        if with_it < 0 or not reachable[np.searchsorted(above, with_it)]:
            into.kpps[column, slot] = -1.0
            into.scores[column * levels : (column + 1) * levels, slot] = np.inf
            continue
        into.kpps[column, slot] = kpps[with_it, column]
        for step in range(levels):
            score = before * now + after * then[column, step]
            into.scores[column * levels + step, slot] = round(score * 1e6) / 1e6


@compile_kernel
def best_class(scores, row, kpps, column, lowest_nic, sizes, zones, allowed, classes, required):  # type: ignore[no-untyped-def]
    """The class and zone with the lowest score in which the arrival gets what it requires (kpps), as the number of the
    class times the zones, plus that of the zone; -1 where there is none.

    `lowest_nic`: the lowest NIC number of each zone of each class; only the zones `allowed` count. `sizes`: the NICs of
    each class. Among equal scores, the lowest NIC number is taken.
    """
    # plain arrays, because a named tuple takes microseconds to hand over and this runs once per arrival
    at, least, number = -1, np.inf, NO_NIC
    for slot in range(classes):
        if sizes[slot] > 0 and kpps[column, slot] >= required:
            score = scores[row, slot]
            if score <= least:
                for zone in allowed:
                    lowest = lowest_nic[slot * zones + zone]
                    if lowest != NO_NIC and (score < least or lowest < number):
                        at, least, number = slot * zones + zone, score, lowest
    return at
