"""The inner loops of the rooms, compiled: which companies a NIC may still become, what joins are worth, who is best."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import njit

EMPTY = np.iinfo(np.int64).max
"""The first NIC of a room without any."""

REFUSED = np.float32(np.inf)

Kernel = Callable[..., Any]


def compiled(kernel: Kernel) -> Kernel:
    """The kernel as machine code; where nothing may be written it is compiled anew in every process."""
    try:
        return cast("Kernel", njit(cache=True)(kernel))
    except RuntimeError:
        return cast("Kernel", njit()(kernel))


@compiled
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


@compiled
def stays(pattern, here, after, counts, bears):  # type: ignore[no-untyped-def]
    """The probability that all who joined `pattern` up to `here` bear `after`, too."""
    chance = 1.0
    for other in range(counts.shape[1]):
        for _ in range(counts[here, other] - counts[pattern, other]):
            if bears[here, other] > bears[after, other]:
                chance *= bears[after, other] / bears[here, other]
    return chance


@compiled
def expects(pattern, over, able, counts, joined, likely, bears, rewards, continuation, place_of, worth):  # type: ignore[no-untyped-def]
    """What a NIC with this pattern can expect to earn from those to come, when it takes only whom it gains by.

    Of all newcomers the share `likely` runs a workload; the share `bears` of those keeps the SLA in a pattern, and is
    worth `rewards` there. After each newcomer the NIC goes on with the probability `patience`. `worth` is filled for
    all patterns `over` this one.
    """
    width = counts.shape[1]
    gains, chances = np.empty(width), np.empty(width)
    for place in range(len(over)):
        place_of[over[place]] = place
    for place in range(len(over) - 1, -1, -1):
        worth[place] = 0.0
        if place > 0 and not able[place]:
            continue
        here, found = over[place], 0
        for column in range(width):
            after = joined[here, column]
            if after < 0 or not able[place_of[after]]:
                continue
            chance = likely[column] * bears[after, column] * stays(pattern, here, after, counts, bears)
            if chance <= 0.0:
                continue
            gain = rewards[after, column] + worth[place_of[after]]
            at = found
            while at > 0 and gains[at - 1] < gain:
                gains[at], chances[at] = gains[at - 1], chances[at - 1]
                at -= 1
            gains[at], chances[at] = gain, chance
            found += 1
        earned = taken = 0.0
        for at in range(found):
            if gains[at] <= worth[place]:
                break
            earned += chances[at] * gains[at]
            taken += chances[at]
            worth[place] = continuation * earned / (1.0 - continuation * (1.0 - taken))
    return worth[0]


@compiled
def score_joins(  # type: ignore[no-untyped-def]
    pattern, over, able, counts, kpps, level, joined, likely, bears, rewards, continuation, before, after,
    scores, gets, slot, place_of, worth,
):  # fmt: skip
    """Write the scores of every newcomer, by workload and level of SLA, and the throughput that each would get.

    The score is `before` times what the room can expect now, and `after` times what it can expect with the newcomer.
    """
    width, levels = counts.shape[1], scores.shape[0] // counts.shape[1]
    now = expects(pattern, over, able, counts, joined, likely, bears, rewards, continuation, place_of, worth)
    beyond = np.empty(len(over), dtype=over.dtype)
    within, still = np.empty(len(over), dtype=np.bool_), np.empty(len(over), dtype=np.bool_)
    for column in range(width):
        with_it = joined[pattern, column]
        if with_it < 0 or not able[np.searchsorted(over, with_it)]:
            gets[column, slot] = -1.0
            scores[column * levels : (column + 1) * levels, slot] = np.inf
            continue
        gets[column, slot] = kpps[with_it, column]
        found, counted, then = 0, -1, 0.0
        for place in range(len(over)):
            if counts[over[place], column] > counts[pattern, column]:
                beyond[found], within[found] = over[place], able[place]
                found += 1
        for step in range(levels - 1, -1, -1):
            remaining = 0
            for place in range(found):
                still[place] = within[place] and level[beyond[place], column] >= step
                remaining += still[place]
            if remaining != counted:
                counted = remaining
                then = expects(
                    with_it,
                    beyond[:found],
                    still,
                    counts,
                    joined,
                    likely,
                    bears,
                    rewards,
                    continuation,
                    place_of,
                    worth,
                )
            scores[column * levels + step, slot] = round((before * now + after * then) * 1e6) / 1e6


@compiled
def pick(scores, row, gets, column, first, slots, required):  # type: ignore[no-untyped-def]
    """The room with the lowest score, among equals that of the lowest NIC, in which the newcomer gets what it needs."""
    at, least, number = -1, np.inf, EMPTY
    for slot in range(slots):
        if first[slot] != EMPTY and gets[column, slot] >= required:
            score = scores[row, slot]
            if score < least or (score == least and first[slot] < number):
                at, least, number = slot, score, first[slot]
    return at
