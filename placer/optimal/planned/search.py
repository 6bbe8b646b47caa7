"""Search by simulated annealing: tenants move between a fixed number of NICs until fewer violations are to be expected.

A move takes a tenant to another NIC, or swaps two. What counts is the expected violations (`lower_sum`, the faster by
six times), or those with their reserve (`lower_value`). A tenant at a place that it must not have counts as more than
one violation, the more the further its SLA is from being met.
Annealing: Kirkpatrick, Gelatt and Vecchi, Science 220, 1983, https://doi.org/10.1126/science.220.4598.671."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit

from placer.optimal.planned.chances import Chances
from predictor.regression.compiled import KERNEL_FOLDERS, NOT_NEEDED, Kernel, cache_kernel, copy_into, exponential
from profiles.arrays import Bools, Floats, Ints

NO_TENANT = -1
LEAST_CHANCE = 0.0005  # a chance that is lower by this is not
SHORTFALL_COST, MAX_SHORTFALL_COST = 40.0, 40.0
"""Violations that a tenant counts besides, per unit of the logarithm by which it is short, and at most."""
LAST_TEMPERATURE = 0.004  # the last temperature, in violations
FOCUSED_SHARE, DRAWN_TENANTS = 0.9, 8
"""The share of moves that take the tenant of so many whose NIC has most violations; others take any."""
STEPS_PER_TEMPERATURE = 1_000  # steps between two temperatures of the faster search
UPHILL_DRAWS = np.round(-np.log((np.arange(4_096) + 0.5) / 4_096), 9)
"""Draws of how much worse a move may be, in temperatures: an exponential distribution, alike on all machines."""
MAX_TENANTS_OF_TWO = 16  # tenants of two NICs, at most, between which one is moved
MAX_TOUCHED_CASES = 4 * MAX_TENANTS_OF_TWO


class Movers(NamedTuple):
    """The tenants that move, in order of arrival: the group of each, and its class in the group."""

    group: Ints
    of_class: Ints


class Graph(NamedTuple):
    """How co-locations change by a tenant, in arrays.

    `larger`, `smaller`: the co-location with one more, or one less, of each group; -1 for none, shape (co-locations,
    groups). `case`: the row of `chance` of each group in each co-location; -1 for none, same shape. `chance`: what a
    tenant of each class counts in each case, shape (cases, classes). `empty`: per kind, the number of the co-location
    of an empty NIC. `eases`: whether a part of each co-location, which a NIC has on the way to it, is worse for some
    tenant.
    """

    larger: Ints
    smaller: Ints
    case: Ints
    chance: Floats
    empty: Ints
    eases: Bools


def _compile(kernel: Kernel) -> Kernel:
    return cache_kernel(njit(error_model="numpy", **NOT_NEEDED)(kernel), (Path(__file__).parent, *KERNEL_FOLDERS))


@_compile
def find_easing(smaller, case, chance, by_size):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Whether some chance in each co-location is below that in a part of it; of `by_size`, the smaller are first."""
    groups = smaller.shape[1]
    worst, found = chance.copy(), np.zeros(len(smaller), dtype=np.bool_)
    for at in by_size:
        for group in range(groups):
            here = case[at, group]
            for gone in range(groups if here != NO_TENANT else 0):
                part = case[smaller[at, gone], group] if smaller[at, gone] != NO_TENANT else NO_TENANT
                for of_class in range(chance.shape[1] if part != NO_TENANT else 0):
                    worst[here, of_class] = max(worst[here, of_class], worst[part, of_class])
                    found[at] |= worst[here, of_class] > chance[here, of_class] + LEAST_CHANCE
    return found


def graph_of(chances: Chances, kinds: int, barred: float) -> Graph:
    """The graph of all co-locations of the table; an empty one per kind comes after them.

    A tenant at a place that it must not have counts at least as `barred` violations: more than are allowed in all.
    """
    number = {(int(kind), one): at for at, (kind, one) in enumerate(zip(chances.kind, chances.members, strict=True))}
    empty = np.arange(kinds) + len(number)
    for kind in range(kinds):
        number[kind, ()] = int(empty[kind])
    groups = len(chances.of_group)
    larger, smaller, case = (np.full((len(number), groups), NO_TENANT, dtype=np.int64) for _ in range(3))
    for (kind, one), at in number.items():
        for group in dict.fromkeys(one):
            place = one.index(group)
            part = number.get((kind, one[:place] + one[place + 1 :]), NO_TENANT)
            smaller[at, group] = part
            if part != NO_TENANT:
                larger[part, group] = at
    rows = [table for _, _, table in chances.of_group]
    chance = np.zeros((sum(map(len, rows)), max((table.shape[1] for table in rows), default=0)))
    start = 0
    for group, ((cases, _, table), gap) in enumerate(zip(chances.of_group, chances.gaps, strict=True)):
        case[cases, group] = start + np.arange(len(cases))
        far = barred + np.clip(SHORTFALL_COST * gap, 0.0, MAX_SHORTFALL_COST)
        chance[start : start + len(cases), : table.shape[1]] = np.where(np.isfinite(table), table, far)
        start += len(cases)
    by_size = np.argsort([len(one) for _, one in number], kind="stable")
    return Graph(larger, smaller, case, chance, empty, find_easing(smaller, case, chance, by_size))


@_compile
def variance_of(total, squares):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """The variance of the violations of a case by the sum of its chances and of their squares (`reserve.py`)."""
    if squares <= 1e-18:
        return 0.0
    return max(total * total * total / squares - total * total, 0.0)


@_compile
def shift(case, by, sums, squares, touched, before, count):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Add a chance to a case, or take it away where `by` is negative; what it was before is kept once."""
    for at in range(count):
        if touched[at] == case:
            break
    else:
        touched[count] = case
        before[count, 0], before[count, 1] = sums[case], squares[case]
        count += 1
    sums[case] += by
    squares[case] += by * abs(by)
    return count


@_compile
def tenants_by_nic(nic, nics):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """The tenants of each NIC, in order of arrival and padded, and how many there are."""
    count, most = np.zeros(nics, dtype=np.int64), MAX_TENANTS_OF_TWO
    for here in nic:
        if here != NO_TENANT:
            count[here] += 1
            most = max(most, count[here])
    carried = np.empty((nics, most + 1), dtype=np.int64)
    for here in range(nics):
        count[here] = 0
        for place in range(most + 1):
            carried[here, place] = NO_TENANT
    for tenant in range(len(nic)):
        here = nic[tenant]
        if here != NO_TENANT:
            carried[here, count[here]] = tenant
            count[here] += 1
    return carried, count


@_compile
def stay(graph, movers, kind, at, carried, count, out, enters, limit, worst):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Expected violations on a NIC without tenant `out` and with `enters`, whose co-location is `at` then; some above
    `limit` where they are more.

    Tenants come one after the other, and of all co-locations on the way the worst counts for each that is there.
    Example: of a, b and c the chance of a is the largest of those alone, in {a, b} and in {a, b, c}; that of c is the
    one in {a, b, c}. Written to `worst` are tenant, chance and case of each, in order of arrival.
    """
    at_once = not graph.eases[at]
    if not at_once:
        at = graph.empty[kind]
    here, place, total = 0, 0, 0.0
    who, chance, case = worst
    while place < count or enters != NO_TENANT:
        if enters != NO_TENANT and (place == count or enters < carried[place]):
            tenant, enters = enters, NO_TENANT
        else:
            tenant = carried[place]
            place += 1
            if tenant == out:
                continue
        if not at_once:
            at = graph.larger[at, movers.group[tenant]]
        who[here], chance[here] = tenant, 0.0
        case[here] = graph.case[at, movers.group[tenant]]
        here += 1
        for present in range(here - 1 if at_once else 0, here):
            now = graph.case[at, movers.group[who[present]]]
            more = graph.chance[now, movers.of_class[who[present]]]
            if more > chance[present]:
                total += more - chance[present]
                chance[present], case[present] = more, now
        if total > limit:
            break
    return total


@_compile
def sum_of(graph, movers, kind, at, carried, count, out, enters, limit, worst):  # type: ignore[no-untyped-def]  # pragma: no cover
    """The sum of `stay`, faster where no part of the co-location counts."""
    if graph.eases[at]:
        return stay(graph, movers, kind, at, carried, count, out, enters, limit, worst)
    total = 0.0
    if enters != NO_TENANT:
        total += graph.chance[graph.case[at, movers.group[enters]], movers.of_class[enters]]
    for place in range(count):
        tenant = carried[place]
        if tenant != out:
            total += graph.chance[graph.case[at, movers.group[tenant]], movers.of_class[tenant]]
            if total > limit:
                break
    return total


@_compile
def room_for_worst():  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """What `stay` writes to."""
    return (
        np.empty(MAX_TOUCHED_CASES, dtype=np.int64),
        np.empty(MAX_TOUCHED_CASES),
        np.empty(MAX_TOUCHED_CASES, dtype=np.int64),
    )


@_compile
def leave(carried, count, tenant):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Take a tenant from a NIC, whose others stay in order."""
    place = 0
    while carried[place] != tenant:
        place += 1
    for after in range(place, count - 1):
        carried[after] = carried[after + 1]


@_compile
def join(carried, count, tenant):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Give a NIC a tenant, in order."""
    place = count
    while place > 0 and carried[place - 1] > tenant:
        carried[place] = carried[place - 1]
        place -= 1
    carried[place] = tenant


@_compile
def carry(carried, count, nic, source, goal, mover, other):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Let the move happen."""
    leave(carried[source], count[source], mover)
    count[source] -= 1
    if other != NO_TENANT:
        leave(carried[goal], count[goal], other)
        count[goal] -= 1
        join(carried[source], count[source], other)
        count[source] += 1
        nic[other] = source
    join(carried[goal], count[goal], mover)
    count[goal] += 1
    nic[mover] = goal


@_compile
def propose(graph, movers, at, source, goal, mover, other, after):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write the co-locations after a move, or a swap where there is an `other`; whether there is such a move."""
    mine = movers.group[mover]
    if other == NO_TENANT:
        after[0], after[1] = graph.smaller[at[source], mine], graph.larger[at[goal], mine]
    elif movers.group[other] == mine:
        after[0], after[1] = at[source], at[goal]
        if movers.of_class[other] == movers.of_class[mover] or at[source] == at[goal]:
            return False
    else:
        after[0], after[1] = graph.smaller[at[source], mine], graph.smaller[at[goal], movers.group[other]]
        if after[0] != NO_TENANT and after[1] != NO_TENANT:
            after[0], after[1] = graph.larger[after[0], movers.group[other]], graph.larger[after[1], mine]
    return after[0] != NO_TENANT and after[1] != NO_TENANT


@_compile
def most_doubtful(nic, sums, draw):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """A tenant, mostly of the NIC with most violations among a few."""
    mover = np.int64(draw.random() * len(nic))
    if draw.random() < FOCUSED_SHARE:
        for _ in range(DRAWN_TENANTS - 1):
            other = np.int64(draw.random() * len(nic))
            if sums[nic[other]] > sums[nic[mover]]:
                mover = other
    return mover


@_compile
def draw_move(mover, nic, carried, count, draw):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """The tenant's NIC, another NIC, and a tenant of that one or none; the same NIC twice where that is no move."""
    source, goal = nic[mover], np.int64(draw.random() * len(count))
    place = np.int64(draw.random() * (count[goal] + 1))
    other = carried[goal, place] if place < count[goal] else NO_TENANT
    if count[source] + count[goal] > MAX_TENANTS_OF_TWO:
        goal = source
    return source, goal, other


@_compile
def count_stay(sign, number, worst, sums, squares, touched, before, many):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Add the chances of `stay` to their cases, or take them away; cases touched, the sum, and places not allowed."""
    change, barred = 0.0, 0
    for present in range(number):
        chance = sign * worst[1][present]
        if chance != 0.0:
            many = shift(worst[2][present], chance, sums, squares, touched, before, many)
            change += chance
            if abs(chance) >= 1.0:
                barred += 1 if sign > 0 else -1
    return many, change, barred


@_compile
def lower_value(graph, movers, kind, nic, at, draw, steps, warm, weights, target):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Move tenants until the expected violations and their reserve, in these weights, are `target`, or for so many
    steps; this value before, the best one, and the NIC of each tenant then.

    Only plans without a tenant at a place that it must not have are answered; the value is infinite without one. `nic`
    is where each tenant is, `kind` and `at` the kind and the co-location of each NIC; `nic` and `at` are overwritten.
    """
    carried, count = tenants_by_nic(nic, len(at))
    sums, squares = np.zeros(len(graph.chance)), np.zeros(len(graph.chance))
    worst = room_for_worst()
    touched, before = np.empty(MAX_TOUCHED_CASES, dtype=np.int64), np.empty((MAX_TOUCHED_CASES, 2))
    banned, expected, variance = 0, 0.0, 0.0
    for here in range(len(at)):
        stay(graph, movers, kind[here], at[here], carried[here], count[here], NO_TENANT, NO_TENANT, np.inf, worst)
        _, change, barred = count_stay(1.0, count[here], worst, sums, squares, touched, before, 0)
        expected, banned = expected + change, banned + barred
    for case in range(len(sums)):
        variance += variance_of(sums[case], squares[case])
    first = value = (1.0 + weights[0]) * expected + weights[1] * np.sqrt(variance)
    best, best_nic = value if banned == 0 else np.inf, nic.copy()
    pair, out, after = np.empty(2, dtype=np.int64), np.empty(2, dtype=np.int64), np.empty(2, dtype=np.int64)
    heat, cooling = warm, (LAST_TEMPERATURE / warm) ** (1.0 / max(steps, 1))
    for _ in range(steps):
        if best <= target:
            break
        heat *= cooling
        mover = np.int64(draw.random() * len(nic))
        a, b, other = draw_move(mover, nic, carried, count, draw)
        if a == b or not propose(graph, movers, at, a, b, mover, other, after):
            continue
        pair[0], pair[1], out[0], out[1] = a, b, mover, other
        many, change, barred = 0, 0.0, 0
        for side in range(2):
            here, goes, comes = pair[side], out[side], out[1 - side]
            stay(graph, movers, kind[here], at[here], carried[here], count[here], NO_TENANT, NO_TENANT, np.inf, worst)
            many, more, bar = count_stay(-1.0, count[here], worst, sums, squares, touched, before, many)
            change, barred = change + more, barred + bar
            stay(graph, movers, kind[here], after[side], carried[here], count[here], goes, comes, np.inf, worst)
            number = count[here] - (goes != NO_TENANT) + (comes != NO_TENANT)
            many, more, bar = count_stay(1.0, number, worst, sums, squares, touched, before, many)
            change, barred = change + more, barred + bar
        spread = variance
        for which in range(many):
            case = touched[which]
            spread += variance_of(sums[case], squares[case]) - variance_of(before[which, 0], before[which, 1])
        new = (1.0 + weights[0]) * (expected + change) + weights[1] * np.sqrt(max(spread, 0.0))
        if new <= value or draw.random() < exponential((value - new) / heat):
            expected, variance, value, banned = expected + change, spread, new, banned + barred
            at[a], at[b] = after[0], after[1]
            carry(carried, count, nic, a, b, mover, other)
            if banned == 0 and value < best - 1e-12:
                best = value
                copy_into(best_nic, nic)
        else:
            for which in range(many):
                sums[touched[which]], squares[touched[which]] = before[which, 0], before[which, 1]
    return first, best, best_nic


@_compile
def lower_sum(graph, movers, kind, nic, at, draw, steps, warm, target, uphill):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Move tenants until their expected violations are `target`, or for so many steps; the least sum, and the NIC of
    each tenant then. The arrays are those of `lower_value`."""
    carried, count = tenants_by_nic(nic, len(at))
    sums, worst = np.empty(len(at)), room_for_worst()
    for here in range(len(at)):
        sums[here] = sum_of(
            graph, movers, kind[here], at[here], carried[here], count[here], NO_TENANT, NO_TENANT, np.inf, worst
        )
    total = sums.sum()
    best, best_nic = total, nic.copy()
    after = np.empty(2, dtype=np.int64)
    heat, cooling = warm, (LAST_TEMPERATURE / warm) ** (STEPS_PER_TEMPERATURE / steps)
    for step in range(steps):
        if best <= target:
            break
        if step % STEPS_PER_TEMPERATURE == 0:
            heat *= cooling
            total = sums.sum()  # anew, as rounding adds up
        mover = most_doubtful(nic, sums, draw)
        a, b, other = draw_move(mover, nic, carried, count, draw)
        if a == b or not propose(graph, movers, at, a, b, mover, other, after):
            continue
        # what the move may cost is drawn first, so that most moves are refused halfway
        limit = sums[a] + sums[b] + heat * uphill[np.int64(draw.random() * len(uphill))]
        left = sum_of(graph, movers, kind[a], after[0], carried[a], count[a], mover, other, limit, worst)
        if left > limit:
            continue
        more = sum_of(graph, movers, kind[b], after[1], carried[b], count[b], other, mover, limit - left, worst)
        if left + more > limit:
            continue
        total += left + more - sums[a] - sums[b]
        sums[a], sums[b] = left, more
        at[a], at[b] = after[0], after[1]
        carry(carried, count, nic, a, b, mover, other)
        if total < best - 1e-12:
            best = total
            copy_into(best_nic, nic)
    return best, best_nic


@_compile
def co_locations(graph, movers, kind, nic):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    at = graph.empty[kind]
    for tenant in range(len(nic)):
        here = nic[tenant]
        if here != NO_TENANT and at[here] != NO_TENANT:
            at[here] = graph.larger[at[here], movers.group[tenant]]
    return at


@_compile
def chances_now(graph, movers, kind, nic):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """How likely each tenant violates its SLA during its stay; 0 for those without a NIC."""
    at = co_locations(graph, movers, kind, nic)
    carried, count = tenants_by_nic(nic, len(kind))
    found, worst = np.zeros(len(nic)), room_for_worst()
    for here in range(len(kind)):
        stay(graph, movers, kind[here], at[here], carried[here], count[here], NO_TENANT, NO_TENANT, np.inf, worst)
        for present in range(count[here]):
            found[worst[0][present]] = worst[1][present]
    return found


@_compile
def add(graph, movers, kind, nic, at, order, most):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Give these tenants NICs, each where the fewest violations are added; an empty one where more than `most` are."""
    carried, count = tenants_by_nic(nic, len(at))
    sums, worst = np.empty(len(at)), room_for_worst()
    for here in range(len(at)):
        sums[here] = sum_of(
            graph, movers, kind[here], at[here], carried[here], count[here], NO_TENANT, NO_TENANT, np.inf, worst
        )
    for tenant in order:
        best, where = np.inf, NO_TENANT
        for here in range(len(at)):
            goal = graph.larger[at[here], movers.group[tenant]]
            if goal == NO_TENANT or count[here] >= MAX_TENANTS_OF_TWO:
                continue
            limit = best + sums[here]
            more = (
                stay(graph, movers, kind[here], goal, carried[here], count[here], NO_TENANT, tenant, limit, worst)
                - sums[here]
            )
            if count[here] == 0:
                more += most
            if more < best:
                best, where = more, here
        if where != NO_TENANT:
            nic[tenant] = where
            at[where] = graph.larger[at[where], movers.group[tenant]]
            join(carried[where], count[where], tenant)
            count[where] += 1
            sums[where] = sum_of(
                graph, movers, kind[where], at[where], carried[where], count[where], NO_TENANT, NO_TENANT, np.inf, worst
            )
