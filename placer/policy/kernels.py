"""The compiled inner loops of the class index: which patterns a NIC can become, what its free capacity is worth, and
which class suits an arrival best."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Flags = NDArray[np.bool_]

NO_NIC = np.iinfo(np.int64).max
"""The lowest NIC number of a class without NICs."""

INFEASIBLE = np.float32(np.inf)
"""The score of a class that an arrival cannot join."""

Kernel = Callable[..., Any]


class PatternArrays(NamedTuple):
    """What kernels read of a `PatternTable`; the attributes have the same names there."""

    counts: Ints
    kpps: Floats
    level: Ints
    joined: Ints


class Forecast(NamedTuple):
    """Which arrivals to expect.

    Parameters
    ----------
    arrival_share
        Share of each workload among the arrivals, shape (workloads,).
    sla_share
        Share of a workload's instances whose SLA is met in a pattern, shape (patterns, workloads).
    value
        What placing one of those instances there saves on average, in NICs; shape of `sla_share`.
    """

    arrival_share: Floats
    sla_share: Floats
    value: Floats


class Scoring(NamedTuple):
    """How a class is scored.

    Parameters
    ----------
    before, after
        Weights of the expected value without and with the arrival.
    continuation
        Probability that another arrival comes to the NIC.
    """

    before: float
    after: float
    continuation: float


class Scratch(NamedTuple):
    """Memory that kernels overwrite, one element per pattern: its position among those above, and its value."""

    position: Ints
    value: Floats


class JoinScores(NamedTuple):
    """What each arrival would find in each class of NICs.

    Parameters
    ----------
    scores
        By workload and SLA level, then class; shape (workloads * levels, classes). The lowest is the best.
    kpps
        Throughput that an arrival would get, -1 where it cannot join; shape (workloads, classes).
    """

    scores: NDArray[np.float32]
    kpps: Floats


def compiled(kernel: Kernel) -> Kernel:
    """The kernel as machine code, cached on disk; where nothing can be written, it is compiled in every process."""
    try:
        return cast("Kernel", njit(cache=True)(kernel))
    except RuntimeError:
        return cast("Kernel", njit()(kernel))


@compiled
def mark_reachable(pattern, above, members, kpps, required, reachable):  # type: ignore[no-untyped-def]
    """Mark in `reachable` the patterns of `above` in which every tenant of `pattern` gets what it requires (kpps).

    Returns the number of marked patterns.
    """
    found = 0
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
        found += meets
    return found


@compiled
def still_met(pattern, here, after, counts, sla_share):  # type: ignore[no-untyped-def]
    """The probability that all SLAs of the arrivals between `pattern` and `here` are also met in `after`."""
    chance = 1.0
    for other in range(counts.shape[1]):
        for _ in range(counts[here, other] - counts[pattern, other]):
            if sla_share[here, other] > sla_share[after, other]:
                chance *= sla_share[after, other] / sla_share[here, other]
    return chance


@compiled
def expected_value(pattern, above, reachable, patterns, forecast, continuation, scratch):  # type: ignore[no-untyped-def]
    """The value that a NIC with this pattern can expect from future arrivals if it takes only those that pay.

    An arrival runs a workload with the probability `arrival_share`; its SLA is met in a pattern with the probability
    `sla_share`, and it is worth `value` there. After each arrival, another one comes with the probability
    `continuation`. `scratch.value` is filled for all patterns of `above`.
    """
    counts, joined, sla_share, worth = patterns.counts, patterns.joined, forecast.sla_share, scratch.value
    width = counts.shape[1]
    gains, chances = np.empty(width), np.empty(width)
    for place in range(len(above)):
        scratch.position[above[place]] = place
    for place in range(len(above) - 1, -1, -1):
        worth[place] = 0.0
        if place > 0 and not reachable[place]:
            continue
        here, found = above[place], 0
        for column in range(width):
            after = joined[here, column]
            if after < 0 or not reachable[scratch.position[after]]:
                continue
            chance = forecast.arrival_share[column] * sla_share[after, column]
            chance *= still_met(pattern, here, after, counts, sla_share)
            if chance <= 0.0:
                continue
            gain = forecast.value[after, column] + worth[scratch.position[after]]
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
def score_joins(pattern, above, reachable, patterns, forecast, scoring, scratch, into, slot):  # type: ignore[no-untyped-def]
    """Write into column `slot` of `into` the score and the throughput of every possible arrival.

    A score is the expected value now times `scoring.before`, plus the one with the arrival times `scoring.after`.
    """
    counts, kpps, level, joined = patterns.counts, patterns.kpps, patterns.level, patterns.joined
    width, levels = counts.shape[1], into.scores.shape[0] // counts.shape[1]
    now = expected_value(pattern, above, reachable, patterns, forecast, scoring.continuation, scratch)
    beyond = np.empty(len(above), dtype=above.dtype)
    within, still = np.empty(len(above), dtype=np.bool_), np.empty(len(above), dtype=np.bool_)
    for column in range(width):
        with_it = joined[pattern, column]
        if with_it < 0 or not reachable[np.searchsorted(above, with_it)]:
            into.kpps[column, slot] = -1.0
            into.scores[column * levels : (column + 1) * levels, slot] = np.inf
            continue
        into.kpps[column, slot] = kpps[with_it, column]
        found, counted, then = 0, -1, 0.0
        for place in range(len(above)):
            if counts[above[place], column] > counts[pattern, column]:
                beyond[found], within[found] = above[place], reachable[place]
                found += 1
        for step in range(levels - 1, -1, -1):
            remaining = 0
            for place in range(found):
                still[place] = within[place] and level[beyond[place], column] >= step
                remaining += still[place]
            if remaining != counted:
                counted = remaining
                then = expected_value(with_it, beyond[:found], still, patterns, forecast, scoring.continuation, scratch)
            into.scores[column * levels + step, slot] = round((scoring.before * now + scoring.after * then) * 1e6) / 1e6


@compiled
def best_class(scores, row, kpps, column, lowest_nic, classes, required):  # type: ignore[no-untyped-def]
    """The class with the lowest score in which the arrival gets what it requires (kpps); -1 where there is none.

    Among equal scores, the class of the lowest NIC number is taken.
    """
    # plain arrays, because a named tuple takes microseconds to hand over and this runs once per arrival
    at, least, number = -1, np.inf, NO_NIC
    for slot in range(classes):
        if lowest_nic[slot] != NO_NIC and kpps[column, slot] >= required:
            score = scores[row, slot]
            if score < least or (score == least and lowest_nic[slot] < number):
                at, least, number = slot, score, lowest_nic[slot]
    return at
