"""The compiled inner loops of the sampled index: which NICs are looked at, in which order, and what a check teaches.

All that is known of NICs is in three arrays with a place per NIC. `nics`, shape (`BY_NF` + 2 * NFs, places), has free
cores (negative where there is no NIC), what is taken of the port (Gb/s) and the smallest margin of its tenants; then by
NF what an arrival would leave of that margin, and what it would lose itself. `members`, shape (places, 1 + most, 2),
has the NIC's number and how many tenants it has, then NF and row of each. `tenants`, shape (places, most, 3), has per
tenant its margin less what is expected roughly, the throughput that it requires (kpps), its margin alone, and what it
takes of the port (Gb/s).
"""

import math

import numpy as np

from placer.policy.kernels import compile_kernel
from predictor.contention.checks import CLOSE, MET, VIOLATED, check_members, write_rough_logarithms
from predictor.regression.compiled import share_with_python

FREE, GBPS, MARGIN, BY_NF = range(4)
OFFSET, REQUIRED, ALONE, OWN_GBPS = range(4)

NICS_AT_ONCE = 1_024  # NICs whose scores are computed before they are looked at
FEW_FIT = 256  # of these, NICs with enough cores up to which only theirs are computed, one by one
SURE_FACTOR, LEAST_SURE, LEARNT_FROM = 1.5, 0.05, 64
"""A margin is surely enough if it is estimated to be so many times the largest error that estimates of the NF have had,
and at least that; and if so many of its estimates were checked."""
FORGOTTEN = 0.001  # the share of the largest error that each check of the NF forgets
FIRST_COMPARED = 4  # NICs of which margins are estimated first, where the best may be taken without a check
EMPTY_MARGIN = 10.0  # the margin of a NIC without tenants, in logarithms of throughput
NOBODY = -1, 0, 0.0, 0.0, 0.0, 0.0  # in the place of an arrival


@share_with_python
@compile_kernel
def preferred_nics(nics, members, used, arriving, line_rate, least_slack, weights, places):  # type: ignore[no-untyped-def]
    """Write as many places of NICs with enough cores as have room, best first by estimated score; return their number.

    `arriving`: number of the NF, row, cores, the throughput that it requires (kpps), its margin alone, and what it
    takes of the port, which has `line_rate` (Gb/s). The value of free capacity is the number of NFs that fit: free
    cores or the smallest margin, each times its weight, whichever is less; the other weights are those of the value
    before and after. NICs on which an SLA would be violated by the estimate come last. The first `used` places are
    looked at.
    """
    nf, _, cores, _, alone, gbps = arriving
    free, taken, margin = nics[FREE], nics[GBPS], nics[MARGIN]
    left, own = nics[BY_NF + nf], nics[BY_NF + (len(nics) - BY_NF) // 2 + nf]
    # a kernel that returns an array takes microseconds longer
    most, found = len(places), 0
    best = np.full(most, np.inf)
    worst, scores, fits = np.inf, np.empty(NICS_AT_ONCE), np.empty(NICS_AT_ONCE, dtype=np.int64)
    few = True
    for start in range(0, used, NICS_AT_ONCE):
        here, fitting = slice(start, min(start + NICS_AT_ONCE, used)), 0
        for place in range(start, here.stop if few else start):
            fits[fitting] = place
            fitting += free[place] >= cores
        few = few and fitting <= FEW_FIT
        if not few:
            fitting = here.stop - start
            write_scores(free[here], margin[here], left[here], own[here], alone, least_slack, cores, weights, scores)
        for offset in range(fitting):
            place = fits[offset] if few else start + offset
            if few:
                score = score_at(
                    free[place], margin[place], left[place], own[place], alone, least_slack, cores, weights
                )  # fmt: skip
            else:
                score = scores[offset]
            # few NICs are among the best
            if not score <= worst or score == np.inf:
                continue
            if gbps > 0.0 and not taken[place] + gbps <= line_rate:
                continue
            number = members[place, 0, 0]
            if found == most and score == worst and number > members[places[most - 1], 0, 0]:
                continue
            found = min(found + 1, most)
            at = found - 1
            while at > 0 and (
                best[at - 1] > score or (best[at - 1] == score and members[places[at - 1], 0, 0] > number)
            ):
                places[at], best[at] = places[at - 1], best[at - 1]
                at -= 1
            places[at], best[at] = place, score
            worst = best[most - 1]
    return found


@compile_kernel
def rank_nics(known, used, arriving, line_rate, models, learnt, weights, limits, sure, learns, places, rough, order):  # type: ignore[no-untyped-def]
    """`rank_roughly` for the places that `preferred_nics` writes: one call hands over the arrays once.

    `known`: all that is known of NICs. The last of `limits` is the `least_slack` of `preferred_nics`. A few are enough
    where the margins of the best of them are surely enough, if `sure` asks for that.
    """
    nics, members, tenants = known
    safe, most, least_checked, least_slack = limits
    found = preferred_nics(nics, members, used, arriving, line_rate, least_slack, weights, places)
    compared = min(FIRST_COMPARED, found) if sure else found
    while True:
        checked, surplus, score = rank_roughly(
            nics, members, tenants, places[:compared], arriving, models, learnt, weights, (safe, most, least_checked),
            rough, order,
        )  # fmt: skip
        if surplus >= 0.0 or compared == found:
            break
        compared = found
    if learns:  # not before: who only asks has to find the same places
        remember_left(nics, members, tenants, places[:compared], arriving[0], rough)
    return checked, surplus, score


@compile_kernel
def write_scores(free, margin, left, own, accepted, least_slack, cores, weights, scores):  # type: ignore[no-untyped-def]
    """Write the score of each place."""
    for at in range(len(free)):
        scores[at] = score_at(free[at], margin[at], left[at], own[at], accepted, least_slack, cores, weights)


@compile_kernel
def score_at(free, margin, left, own, accepted, least_slack, cores, weights):  # type: ignore[no-untyped-def]
    """The score of a NIC as `preferred_nics` describes it, infinite where the arrival does not fit.

    There are no branches, so that many at once become vector instructions.
    """
    per_core, per_margin, before, after = weights
    slack = min(left, own + accepted)
    now = min(free * per_core, max(margin, 0.0) * per_margin)
    then = min((free - cores) * per_core, max(slack, 0.0) * per_margin)
    score = 1e6 - slack if slack < 0.0 else before * now + after * then
    return score if (free >= cores) & (slack >= least_slack) else np.inf


@compile_kernel
def write_rough(members, places, arriving, models, learnt, rough):  # type: ignore[no-untyped-def]
    """Write about the logarithm of the share of its throughput alone that each tenant at these places keeps, and behind
    them that of an arrival beside them, if its NF is not negative.

    `models`: of `CoLocationChecks.arrays`; empty where what NFs lose on average has to do. `learnt`: losses, biases,
    and by NF the largest error and of how many estimates it is.
    """
    numbers, whole, packed, surfaces = models
    loss, by_size, by_neighbour, _, _ = learnt
    joining = arriving[0] >= 0
    nfs, rows = (np.empty(rough.shape, dtype=np.int64), np.empty(rough.shape, dtype=np.int64))
    sizes = np.empty(len(places), dtype=np.int64)
    for at in range(len(places)):
        here = members[places[at]]
        size = sizes[at] = here[0, 1]
        for tenant in range(size):
            nfs[at, tenant], rows[at, tenant] = here[1 + tenant]
        if joining:
            nfs[at, size], rows[at, size] = arriving[0], arriving[1]
            sizes[at] += 1
    if len(whole):
        write_rough_logarithms(numbers, whole, packed, surfaces, rows, sizes, rough)
    else:
        write_losses(loss, nfs, sizes, rough)
    add_biases(by_size, by_neighbour, nfs, sizes, rough)


@compile_kernel
def rank_roughly(nics, members, tenants, places, arriving, models, learnt, weights, limits, rough, order):  # type: ignore[no-untyped-def]
    """Write the numbers of the places to check in order, best first, and what `write_rough` does; return how many, by
    how much the margins of the first are more than surely enough, and its score, both by estimate.

    Scores are those of `score_at`; where less than a safe margin is left by the estimate, most comes first.
    `limits`: that margin, how many are checked at most, and the least margin of these.
    """
    safe, most, least_slack = limits
    write_rough(members, places, arriving, models, learnt, rough)
    nf, _, cores, _, alone, _ = arriving
    per_core, per_margin, before, after = weights
    scores, slack, surplus = np.empty(len(places)), np.empty(len(places)), np.empty(len(places))
    for at in range(len(places)):
        place = places[at]
        number, size = members[place, 0]
        own, least = rough[at, size], EMPTY_MARGIN
        surplus[at] = alone + own - sure_margin(learnt, nf)
        for tenant in range(size):
            margin = tenants[place, tenant, OFFSET] + rough[at, tenant]
            least = min(least, margin)
            surplus[at] = min(surplus[at], margin - sure_margin(learnt, members[place, 1 + tenant, 0]))
        least = min(least, alone + own)
        now = min(nics[FREE, place] * per_core, max(nics[MARGIN, place], 0.0) * per_margin)
        then = min((nics[FREE, place] - cores) * per_core, max(least, 0.0) * per_margin)
        slack[at], scores[at] = least, 1e6 - least if least < safe else before * now + after * then
        to = at
        while to > 0 and (
            scores[order[to - 1]] > scores[at]
            or (scores[order[to - 1]] == scores[at] and members[places[order[to - 1]], 0, 0] > number)
        ):
            order[to] = order[to - 1]
            to -= 1
        order[to] = at
    checked = 0
    for to in range(min(most, len(places))):
        if slack[order[to]] >= least_slack:
            order[checked] = order[to]
            checked += 1
    if not checked:
        return 0, -np.inf, np.inf
    return checked, surplus[order[0]], scores[order[0]]


@share_with_python
@compile_kernel
def remember_left(nics, members, tenants, places, nf, rough):  # type: ignore[no-untyped-def]
    """Remember the margins that are left on these places beside an arrival of the NF, and lost by it, by what
    `rank_roughly` wrote."""
    left, own_lost = nics[BY_NF + nf], nics[BY_NF + (len(nics) - BY_NF) // 2 + nf]
    for at in range(len(places)):
        place, size, least = places[at], members[places[at], 0, 1], EMPTY_MARGIN
        for tenant in range(size):
            least = min(least, tenants[place, tenant, OFFSET] + rough[at, tenant])
        left[place], own_lost[place] = least, rough[at, size]


@compile_kernel
def sure_margin(learnt, nf):  # type: ignore[no-untyped-def]
    """The estimated margin of a tenant that is surely enough; none is where errors of its NF are not known yet."""
    error, checks = learnt[4][nf]
    return np.inf if checks < LEARNT_FROM else max(SURE_FACTOR * error, LEAST_SURE)


@compile_kernel
def note_error(learnt, nf, error):  # type: ignore[no-untyped-def]
    """Remember by how much the margin of a tenant was estimated too high, if it is known."""
    learnt[4][nf, 0] *= 1.0 - FORGOTTEN
    learnt[4][nf, 1] += error == error
    if error > learnt[4][nf, 0]:
        learnt[4][nf, 0] = error


@compile_kernel
def check_arrival(known, place, at, arriving, models, exponents, rough, margins, learnt, weights, rates, learns):  # type: ignore[no-untyped-def]
    """Check whether every SLA is met on a NIC with an arrival at `at` of its tenants; return what `check_members` does,
    and what `take_check` returns, which is done unless it is too close. `known`: all that is known of NICs."""
    (nics, members, tenants), (numbers, whole, packed, _) = known, models
    size = 1 + members[place, 0, 1]
    rows, needed, kpps = np.empty(size, dtype=np.int64), np.empty(size), np.empty(size)
    for number in range(size):
        present = number if number < at else number - 1
        if number == at:
            rows[number], needed[number] = arriving[1], arriving[3]
        else:
            rows[number], needed[number] = members[place, 1 + present, 1], tenants[place, present, REQUIRED]
    verdict = check_members(numbers, whole, packed, exponents, rows, needed, kpps)
    if verdict == CLOSE:
        return verdict, 0.0, 0.0
    score, mean_loss = take_check(
        nics, members, tenants, place, at, arriving, kpps, rough, margins, learnt, weights, rates, learns
    )
    return verdict, score, mean_loss


@share_with_python
@compile_kernel
def take_check(nics, members, tenants, place, at, arriving, kpps, rough, margins, learnt, weights, rates, learns):  # type: ignore[no-untyped-def]
    """Write the margins of the tenants of a NIC with an arrival at `at` of them, which were checked to get `kpps`, NaN
    where they are not known; return the score of the NIC, and the mean loss, 0 where nothing was learnt.

    `rough`: what is expected of the tenants, and of the arrival behind them, which is moved to `at`.
    """
    nf, _, cores, required, alone, _ = arriving
    size = members[place, 0, 1]
    nfs, margins_alone, expected = np.empty(size + 1, dtype=np.int64), np.empty(size + 1), rough[size]
    own = left = EMPTY_MARGIN
    for number in range(size, -1, -1):
        if number == at:
            nfs[number], margins_alone[number], rough[number] = nf, alone, expected
            own = margins[number] = _margin_of(kpps[number], required)
            if learns:
                note_error(learnt, nf, alone + expected - own)
            continue
        present = number if number < at else number - 1
        nfs[number], margins_alone[number] = members[place, 1 + present, 0], tenants[place, present, ALONE]
        rough[number] = rough[present]
        margin = margins[number] = _margin_of(kpps[number], tenants[place, present, REQUIRED])
        # behind a violated SLA they are not known
        if margin < left:
            left = margin
        if learns:
            note_error(learnt, nfs[number], tenants[place, present, OFFSET] + rough[number] - margin)
    mean_loss = 0.0
    if learns:
        nics[BY_NF + nf, place] = left
        if own == own:
            nics[BY_NF + (len(nics) - BY_NF) // 2 + nf, place] = own - alone
        loss, by_size, by_neighbour, count, _ = learnt
        if size + 1 < by_size.shape[1]:
            biases, offset = (by_size, by_neighbour, count), tenants[place, :, OFFSET]
            mean_loss = learn_margins(loss, biases, nfs, margins, margins_alone, rough, offset, at, rates)
            weights = weights[0], 1.0 / mean_loss, weights[2], weights[3]
    return score_of(nics, place, cores, min(left, own), weights), mean_loss


@share_with_python
@compile_kernel
def score_of(nics, place, cores, margin, weights):  # type: ignore[no-untyped-def]
    """The score of a NIC on which all margins would be at least `margin` after that many more cores."""
    per_core, per_margin, before, after = weights
    free = nics[FREE, place]
    now = min(free * per_core, nics[MARGIN, place] * per_margin)
    then = min((free - cores) * per_core, margin * per_margin)
    return before * now + after * then


@compile_kernel
def _margin_of(kpps, required):  # type: ignore[no-untyped-def]
    """How far a throughput is above the required one, in logarithms; NaN where it is not known."""
    if required <= 0:
        return EMPTY_MARGIN
    return math.log((1e-9 if kpps < 1e-9 else kpps) / required)


@share_with_python
@compile_kernel
def add_member(nics, members, tenants, place, at, arriving):  # type: ignore[no-untyped-def]
    """Put an arrival at `at` of the tenants of a NIC, of which it takes cores and line rate."""
    nf, row, cores, required, alone, gbps = arriving
    size = members[place, 0, 1]
    for tenant in range(size, at, -1):
        members[place, 1 + tenant], tenants[place, tenant] = members[place, tenant], tenants[place, tenant - 1]
    members[place, 1 + at, 0], members[place, 1 + at, 1], members[place, 0, 1] = nf, row, size + 1
    tenants[place, at, REQUIRED], tenants[place, at, ALONE], tenants[place, at, OWN_GBPS] = required, alone, gbps
    _take_cores(nics, members, tenants, place, cores)


@compile_kernel
def add_estimated(nics, members, tenants, place, at, arriving, rough, learnt):  # type: ignore[no-untyped-def]
    """As `add_checked`, by what is expected of the tenants, and of the arrival behind them; return whether all margins
    are surely enough."""
    size, sure = members[place, 0, 1], True
    margins, expected = np.empty(size + 1), np.empty(size + 1)
    for number in range(size + 1):
        present = size if number == at else number if number < at else number - 1
        offset = arriving[4] if number == at else tenants[place, present, OFFSET]
        expected[number], margins[number] = rough[present], offset + rough[present]
    add_checked(nics, members, tenants, place, at, arriving, margins, expected, learnt[0])
    for number in range(size + 1):
        sure = sure and margins[number] >= sure_margin(learnt, members[place, 1 + number, 0])
    return sure


@share_with_python
@compile_kernel
def add_unchecked(nics, members, tenants, place, at, arriving, models, learnt):  # type: ignore[no-untyped-def]
    """As `add_estimated`, of an arrival of which nothing is expected yet."""
    rough = np.empty((1, 1 + members[place, 0, 1]))
    write_rough(members, np.full(1, place), arriving, models, learnt, rough)
    return add_estimated(nics, members, tenants, place, at, arriving, rough[0], learnt)


@compile_kernel
def expect_change(members, tenants, place, at, changed, headroom, models, learnt):  # type: ignore[no-untyped-def]
    """Whether every SLA is met if the tenant at `at` of a NIC becomes `changed`, its own by so much more (logarithm):
    `MET`, `VIOLATED` or, if estimates are not enough, `CLOSE`."""
    here, size, found = members[place : place + 1].copy(), members[place, 0, 1], MET
    here[0, 1 + at, 0], here[0, 1 + at, 1] = changed[0], changed[1]
    rough = np.empty((1, size))
    write_rough(here, np.zeros(1, dtype=np.int64), NOBODY, models, learnt, rough)
    for tenant in range(size):
        margin = changed[4] - headroom if tenant == at else tenants[place, tenant, OFFSET]
        sure = sure_margin(learnt, here[0, 1 + tenant, 0])
        if margin + rough[0, tenant] <= -sure:
            return VIOLATED
        if margin + rough[0, tenant] < sure:
            found = CLOSE
    return found


@compile_kernel
def add_checked(nics, members, tenants, place, at, arriving, margins, rough, loss):  # type: ignore[no-untyped-def]
    """As `add_member`; the NIC has these margins then, which are written down."""
    add_member(nics, members, tenants, place, at, arriving)
    write_margins(nics, members, tenants, place, margins, rough, loss)


@compile_kernel
def _take_cores(nics, members, tenants, place, cores):  # type: ignore[no-untyped-def]
    """Take so many more cores of a NIC, and sum up what its tenants now take of its port."""
    nics[FREE, place] -= cores
    nics[GBPS, place] = 0.0
    for tenant in range(members[place, 0, 1]):
        nics[GBPS, place] += tenants[place, tenant, OWN_GBPS]


@compile_kernel
def write_known(nics, members, tenants, place, kpps, models, learnt):  # type: ignore[no-untyped-def]
    """Write down the margins of the tenants of a NIC, which have these throughputs (kpps)."""
    size = members[place, 0, 1]
    rough, margins = np.empty((1, size)), np.empty(size)
    write_rough(members, np.full(1, place), NOBODY, models, learnt, rough)
    for at in range(size):
        margins[at] = _margin_of(kpps[at], tenants[place, at, REQUIRED])
    write_margins(nics, members, tenants, place, margins, rough[0], learnt[0])


@share_with_python
@compile_kernel
def remove_tenant(nics, members, tenants, place, at, cores, models, learnt):  # type: ignore[no-untyped-def]
    """Take the tenant at `at`, with so many cores, off a NIC; estimate the margins of those that stay."""
    members[place, 0, 1] -= 1
    for tenant in range(at, members[place, 0, 1]):
        members[place, 1 + tenant], tenants[place, tenant] = members[place, 2 + tenant], tenants[place, tenant + 1]
    _take_cores(nics, members, tenants, place, -cores)
    estimate_margins(nics, members, tenants, place, models, learnt, True)


@compile_kernel
def replace_tenant(nics, members, tenants, place, at, cores, to, arriving, models, learnt):  # type: ignore[no-untyped-def]
    """`remove_tenant`, and `add_unchecked` at `to` of those that stay."""
    remove_tenant(nics, members, tenants, place, at, cores, models, learnt)
    return add_unchecked(nics, members, tenants, place, to, arriving, models, learnt)


@share_with_python
@compile_kernel
def estimate_margins(nics, members, tenants, place, models, learnt, known):  # type: ignore[no-untyped-def]
    """Estimate the margins of the tenants of a NIC: by what they are less what is expected roughly, if that is `known`,
    else by what they are alone, and write them down."""
    size = members[place, 0, 1]
    places, rough, margins = np.full(1, place), np.empty((1, size)), np.empty(size)
    write_rough(members, places, NOBODY, models, learnt, rough)
    for tenant in range(size):
        alone = tenants[place, tenant, ALONE]
        margins[tenant] = min((tenants[place, tenant, OFFSET] if known else alone) + rough[0, tenant], alone)
    write_margins(nics, members, tenants, place, margins, rough[0], learnt[0])


@compile_kernel
def write_margins(nics, members, tenants, place, margins, rough, loss):  # type: ignore[no-untyped-def]
    """Write the smallest of these margins of the tenants of a NIC, what an arrival of each NF would leave of it, and
    what it would lose itself; and the margins less what is expected roughly.

    `loss` is what the NF in the row loses per neighbour in the column.
    """
    least, size = EMPTY_MARGIN, members[place, 0, 1]
    for at in range(size):
        least = min(least, margins[at])
        tenants[place, at, OFFSET] = margins[at] - rough[at]
    nics[MARGIN, place] = least
    for arriving in range(len(loss)):
        left, own = EMPTY_MARGIN, 0.0
        for at in range(size):
            nf = members[place, 1 + at, 0]
            left = min(left, margins[at] - loss[nf, arriving])
            own -= loss[arriving, nf]
        nics[BY_NF + arriving, place], nics[BY_NF + len(loss) + arriving, place] = left, own


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
    """Add to the logarithms of members of co-locations, of which `nfs` holds the NFs, their biases."""
    for at in range(len(sizes)):
        size = sizes[at]
        for place in range(size):
            nf = nfs[at, place]
            logarithms[at, place] += by_size[nf, min(size, by_size.shape[1] - 1)] - by_neighbour[nf, nf]
            for other in range(size):
                logarithms[at, place] += by_neighbour[nf, nfs[at, other]]


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
    return loss.mean()


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
