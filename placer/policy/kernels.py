"""The compiled inner loops of the class index: which patterns a NIC can become, what its free capacity is worth, and
which class suits an arrival best."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from predictor.regression.compiled import Kernel, cache_kernel
from profiles.arrays import Floats

Ints = NDArray[np.int32]

NO_NIC = np.iinfo(np.int64).max  # the lowest NIC number of a class without NICs
NICS_AT_ONCE = 1_024  # NICs whose scores are computed before they are looked at
EMPTY_MARGIN = 10.0  # the margin of a NIC without tenants, in logarithms of throughput

INFEASIBLE_SCORE = np.float32(np.inf)


class JoinScores(NamedTuple):
    """What each arrival would find in each class of NICs.

    `scores`: by workload and SLA level, then class; shape (workloads * levels, classes). The lowest is the best.
    `kpps`: throughput that an arrival would get, -1 where it cannot join; shape (workloads, classes).
    """

    scores: NDArray[np.float32]
    kpps: Floats


def compile_kernel(kernel: Kernel) -> Kernel:
    """The kernel as machine code, kept on disk until a file of this room changes."""
    return cache_kernel(njit()(kernel), (Path(__file__).parent,))


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


@compile_kernel
def preferred_nics(number, free, port, margin, left, own, accepted, least_slack, cores, weights, places):  # type: ignore[no-untyped-def]
    """Write as many places of NICs with enough cores as have room, best first by estimated score; return their number.

    Arrays have an element per place: the NIC's number, its free cores (negative where there is no NIC), the smallest
    margin of its tenants, what the arrival would leave of it, and what it would lose itself of the margin `accepted`
    that it has alone. The value of free capacity is the number of NFs that fit: free cores or the smallest margin,
    each times its weight, whichever is less; the other weights are those of the value before and after. NICs on which
    an SLA would be violated by the estimate come last. `port`: what is taken of the port of each, what the arrival
    takes, and what there is, Gb/s.
    """
    taken, gbps, line_rate = port
    # a kernel that returns an array takes microseconds longer
    most, found = len(places), 0
    best = np.full(most, np.inf)
    worst, scores = np.inf, np.empty(NICS_AT_ONCE)
    for start in range(0, len(number), NICS_AT_ONCE):
        here = slice(start, min(start + NICS_AT_ONCE, len(number)))
        write_scores(free[here], margin[here], left[here], own[here], accepted, least_slack, cores, weights, scores)
        for offset in range(here.stop - start):
            score = scores[offset]
            # few NICs are among the best
            if not score <= worst or score == np.inf:
                continue
            place = start + offset
            if gbps > 0.0 and not taken[place] + gbps <= line_rate:
                continue
            if found == most and score == worst and number[place] > number[places[most - 1]]:
                continue
            found = min(found + 1, most)
            at = found - 1
            while at > 0 and (
                best[at - 1] > score or (best[at - 1] == score and number[places[at - 1]] > number[place])
            ):
                places[at], best[at] = places[at - 1], best[at - 1]
                at -= 1
            places[at], best[at] = place, score
            worst = best[most - 1]
    return found


@compile_kernel
def write_scores(free, margin, left, own, accepted, least_slack, cores, weights, scores):  # type: ignore[no-untyped-def]
    """Write the score of each place as `preferred_nics` describes it, infinite where the arrival does not fit.

    There are no branches, so that it becomes vector instructions.
    """
    per_core, per_margin, before, after = weights
    for at in range(len(free)):
        slack = min(left[at], own[at] + accepted)
        now = min(free[at] * per_core, max(margin[at], 0.0) * per_margin)
        then = min((free[at] - cores) * per_core, max(slack, 0.0) * per_margin)
        score = 1e6 - slack if slack < 0.0 else before * now + after * then
        scores[at] = score if (free[at] >= cores) & (slack >= least_slack) else np.inf


@compile_kernel
def write_margins(loss, tenants, margins, rough, place, left, own, arrays):  # type: ignore[no-untyped-def]
    """Write into `left` and `own` at a place what an arrival of each NF would leave of the smallest margin of these
    tenants, and what it would lose itself; return the smallest margin now.

    `tenants` holds number of the NF and row of each, and `loss` what the NF in the row loses per neighbour in the
    column. Both are written into `arrays`, too, behind their number and before margins less rough logarithms: as many
    as have room there, since only NFs that take no cores are more.
    """
    sizes, nfs, rows, offset = arrays
    least, count = EMPTY_MARGIN, len(tenants)
    for at in range(count):
        least = min(least, margins[at])
    for arriving in range(len(loss)):
        left[arriving, place], own[arriving, place] = EMPTY_MARGIN, 0.0
        for at in range(count):
            nf = tenants[at, 0]
            left[arriving, place] = min(left[arriving, place], margins[at] - loss[nf, arriving])
            own[arriving, place] -= loss[arriving, nf]
    sizes[place] = min(count, nfs.shape[1])
    for at in range(sizes[place]):
        nfs[place, at], rows[place, at] = tenants[at]
        offset[place, at] = margins[at] - rough[at]
    return least


@compile_kernel
def learn_losses(loss, nfs, logs, rate, least):  # type: ignore[no-untyped-def]
    """Correct `loss` by a share `rate` of the error in the logarithm of the throughput share of each of these NFs,
    NaN where it is not known."""
    neighbours = np.zeros(len(loss))
    for nf in nfs:
        neighbours[nf] += 1.0
    for at in range(len(nfs)):
        if logs[at] != logs[at]:  # not known
            continue
        of_nf = loss[nfs[at]]
        neighbours[nfs[at]] -= 1.0
        expected, squared = 0.0, 1.0
        for other in range(len(loss)):
            expected += of_nf[other] * neighbours[other]
            squared += neighbours[other] ** 2
        for other in range(len(loss)):
            of_nf[other] += rate * (-logs[at] - expected) * neighbours[other] / squared
        neighbours[nfs[at]] += 1.0
    for number in range(len(loss)):
        for other in range(len(loss)):
            loss[number, other] = max(loss[number, other], least)


@compile_kernel
def write_losses(loss, nfs, sizes, logarithms):  # type: ignore[no-untyped-def]
    """Write what the losses leave of the throughput of each member of co-locations, of which `nfs` holds the NFs."""
    for at in range(len(sizes)):
        for place in range(sizes[at]):
            logarithms[at, place] = loss[nfs[at, place], nfs[at, place]]
            for other in range(sizes[at]):
                logarithms[at, place] -= loss[nfs[at, place], nfs[at, other]]


@compile_kernel
def add_biases(by_size, by_neighbour, nfs, sizes, logarithms):  # type: ignore[no-untyped-def]
    """Add to the logarithms of members of co-locations, of which `nfs` holds the NFs, what `Biases` are of them."""
    for at in range(len(sizes)):
        size = sizes[at]
        for place in range(size):
            nf = nfs[at, place]
            logarithms[at, place] += by_size[nf, min(size, by_size.shape[1] - 1)] - by_neighbour[nf, nf]
            for other in range(size):
                logarithms[at, place] += by_neighbour[nf, nfs[at, other]]


@compile_kernel
def learn_biases(by_size, by_neighbour, count, nfs, errors, size_rate, neighbour_rate):  # type: ignore[no-untyped-def]
    """Correct the biases by a share of the errors of members of one co-location, NaN where they are not known."""
    size = len(nfs)
    for at in range(size):
        nf, error = nfs[at], errors[at]
        if error != error:
            continue
        count[nf, size] += 1.0
        by_size[nf, size] += max(1.0 / count[nf, size], size_rate) * error
        if count[nf, size] > 1.0 / size_rate:
            for other in range(size):
                if other != at:
                    by_neighbour[nf, nfs[other]] += neighbour_rate * error / size


@compile_kernel
def learn_margins(loss, biases, nfs, margins, alone, rough, offset, arriving, rates):  # type: ignore[no-untyped-def]
    """Learn from the margins of tenants that share a NIC, NaN where they are not known; return the mean loss.

    `biases` and `rates` are those of `learn_biases` and `learn_losses`, and the share of an error by which `offset`
    falls: it holds what the margins of all but the one at `arriving` are less their rough logarithms, `rough`.
    """
    size_rate, neighbour_rate, loss_rate, least, offset_rate = rates
    logs, errors = np.empty(len(nfs)), np.empty(len(nfs))
    for at in range(len(nfs)):
        logs[at] = margins[at] - alone[at]
        errors[at] = logs[at] - rough[at]
        if at != arriving:
            present = at if at < arriving else at - 1
            error = margins[at] - rough[at] - offset[present]
            # one that lost more than expected beside this arrival will beside the next; NaN is not known
            if error < 0.0:
                offset[present] += offset_rate * error
    learn_losses(loss, nfs, logs, loss_rate, least)
    by_size, by_neighbour, count = biases
    learn_biases(by_size, by_neighbour, count, nfs, errors, size_rate, neighbour_rate)
    total = 0.0
    for number in range(len(loss)):
        for other in range(len(loss)):
            total += loss[number, other]
    return total / loss.size


@compile_kernel
def write_members(places, nf_at, row_at, sizes, arriving, nfs, rows, together):  # type: ignore[no-untyped-def]
    """Write NF and row of the tenants at each place, and those of `arriving` behind them; and how many they are."""
    for at in range(len(places)):
        size = sizes[places[at]]
        for tenant in range(size):
            nfs[at, tenant], rows[at, tenant] = nf_at[places[at], tenant], row_at[places[at], tenant]
        nfs[at, size], rows[at, size] = arriving
        together[at] = size + 1


@compile_kernel
def rank_roughly(places, tenants, alone, rough, nics, cores, weights, safe, slack, order, remembered):  # type: ignore[no-untyped-def]
    """Write the estimated slack of an arrival at each place, and the numbers of the places in order, best first.

    `tenants` is how many there are at each place, and their margins less what is expected roughly. `nics` is
    number, free cores and smallest margin. An NF that has the margin `alone` arrives. Scores are those of
    `write_scores`; where an SLA would be violated by the estimate, the one that is violated least comes first.
    `remembered`: the margins that are left and lost of the arrays of `preferred_nics`, which are corrected; or empty.
    """
    (sizes, offset), (number, free, margin) = tenants, nics
    per_core, per_margin, before, after = weights
    scores = np.empty(len(places))
    for at in range(len(places)):
        place = places[at]
        size = sizes[place]
        least = EMPTY_MARGIN
        for tenant in range(size):
            least = min(least, offset[place, tenant] + rough[at, tenant])
        own = rough[at, size]
        if len(remembered[0]):
            remembered[0][place], remembered[1][place] = least, own
        least = min(least, alone + own)
        now = min(free[place] * per_core, max(margin[place], 0.0) * per_margin)
        then = min((free[place] - cores) * per_core, max(least, 0.0) * per_margin)
        slack[at], scores[at] = least, 1e6 - least if least < safe else before * now + after * then
        to = at
        while to > 0 and (
            scores[order[to - 1]] > scores[at]
            or (scores[order[to - 1]] == scores[at] and number[places[order[to - 1]]] > number[place])
        ):
            order[to] = order[to - 1]
            to -= 1
        order[to] = at
