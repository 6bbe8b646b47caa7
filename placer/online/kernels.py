"""The inner loops of the rooms, compiled: which companies a NIC may still become, what joins are worth, who is best."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import numpy as np

EMPTY = np.iinfo(np.int64).max
"""The first NIC of a room without any."""

REFUSED = np.float32(np.inf)


@cache
def compiled(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel as machine code; where nothing may be written it is compiled anew in every process."""
    from numba import njit

    try:
        return cast("Callable[..., Any]", njit(cache=True)(kernel))
    except RuntimeError:
        return cast("Callable[..., Any]", njit()(kernel))


def becomes(pattern, over, members, kpps, required, able):  # type: ignore[no-untyped-def]
    """Mark in `able` the patterns `over` this one in which everybody here keeps what is required; their number."""
    found = 0
    for place in range(len(over)):
        meets = True
        for at in range(members.shape[1]):
            column = members[pattern, at]
            if column < 0:
                break
            if kpps[over[place], column] < required[column]:
                meets = False
                break
        able[place] = meets
        found += meets
    return found


def appraise(pattern, over, able, counts, kpps, prices, level, joined, before, after, scores, gets, slot):  # type: ignore[no-untyped-def]
    """Write the scores of every newcomer, by workload and level of SLA, and the throughput that each would get.

    A room is worth the most that can still be earned in it: over the patterns that it may become, the prices of the
    slots beyond those taken. The score is `before` times its worth now and `after` times its worth with the newcomer.
    """
    width, levels = counts.shape[1], scores.shape[0] // counts.shape[1]
    earns = np.empty(len(over))
    worth = 0.0
    for place in range(len(over)):
        earns[place] = 0.0
        if able[place]:
            for column in range(width):
                more = counts[over[place], column] - counts[pattern, column]
                if more > 0:
                    earns[place] += more * prices[over[place], column]
            worth = max(worth, earns[place])
    best = np.empty(levels)
    for column in range(width):
        with_it = joined[pattern, column]
        at = np.searchsorted(over, with_it) if with_it >= 0 else 0
        if with_it < 0 or not able[at]:
            gets[column, slot] = -1.0
            for step in range(levels):
                scores[column * levels + step, slot] = np.inf
            continue
        gets[column, slot] = kpps[with_it, column]
        best[:] = 0.0
        for place in range(len(over)):
            if able[place] and counts[over[place], column] > counts[pattern, column]:
                strictest = level[over[place], column]
                best[strictest] = max(best[strictest], earns[place] - prices[over[place], column])
        left = 0.0
        for step in range(levels - 1, -1, -1):
            left = max(left, best[step])
            scores[column * levels + step, slot] = round((before * worth + after * left) * 1e6) / 1e6


def pick(scores, row, gets, column, first, slots, required):  # type: ignore[no-untyped-def]
    """The room with the lowest score, among equals that of the lowest NIC, in which the newcomer gets what it needs."""
    at, least, number = -1, np.inf, EMPTY
    for slot in range(slots):
        if first[slot] != EMPTY and gets[column, slot] >= required:
            score = scores[row, slot]
            if score < least or (score == least and first[slot] < number):
                at, least, number = slot, score, first[slot]
    return at
