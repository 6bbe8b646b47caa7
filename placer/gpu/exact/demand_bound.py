"""An upper bound for recurring transfers: what they demand of the bus until some times, as a linear program.

Variables: how much of each SLO is admitted with a batch in each of its intervals. Whatever the priorities, all
transfers that arrive at once and are due by a time t must fit into t; if one of them is due by t, together with the
largest transfer that is due later, which may have just begun (Jeffay, Stanat, Martel, RTSS 1991). Of an interval, the
batch with the least demand counts at each t.

The bound comes from the multipliers of the solution: any multipliers, however exact, give a bound."""

from collections.abc import Callable
from math import ceil, floor
from typing import NamedTuple

import numpy as np
from ortools.sat.python import cp_model
from scipy import sparse

from placer.gpu.exact.bound import LOOSE_LIMIT, BestCases
from placer.gpu.exact.sm_layout import Problem
from placer.gpu.tables import NEAR_LIMIT, compile_kernel
from profiles.arrays import Bools, Floats, Ints
from profiles.linear_programs import linprog

MOST_INTERVALS = 500  # of all SLOs together
DEMAND_TIMES = 120  # times for which the demand is bounded
JUST_BEYOND = 1.0 + 10.0 * NEAR_LIMIT  # times are just beyond the instants at which transfers are due
MOST_JOBS = 60  # transfers of one SLO until one of the times; the demand of further ones is left out


class _Intervals(NamedTuple):
    """By interval: its SLO, the smallest and largest batch, the latest due time and its sum with the period."""

    of: Ints
    low: Ints
    high: Ints
    due: Floats
    span: Floats


class BusDemand(NamedTuple):
    """What the intervals demand. `of`, `low`: by interval: its SLO and the smallest batch. `share`, `transfer`: by
    interval, the least share of the bus; the smallest transfer, us. `times`, `demand`: times, us; by time and interval,
    the bus time due until then, us. `until`, `since`: by interval, the number of times until which it blocks for sure;
    the first from which on it is due for sure."""

    of: Ints
    low: Ints
    share: Floats
    transfer: Floats
    times: Floats
    demand: Floats
    until: Ints
    since: Ints


class DemandBound(NamedTuple):
    """No plan admits more SLOs than `bound`. `gain`: by SLO, what is left of its value 1 after it pays for the bus by
    the multipliers: those in good plans have most. `batch`: by SLO, the batch with which that is most; 0 where the GPU
    cannot serve it."""

    bound: float
    gain: Floats
    batch: Ints


def demand_bound(p: Problem, best: BestCases, time_limit_s: float) -> DemandBound | None:
    """The bound; None where time is too short."""
    demands = bus_demand(p, best)
    rows, limits, upper = _rows(p, demands)
    gain = np.zeros(len(upper))
    gain[: len(demands.of)] = 1.0
    solved = linprog(  # type: ignore[call-overload]
        -gain,
        A_ub=rows,
        b_ub=limits,
        bounds=[(0.0, float(most)) for most in upper],
        method="highs",
        options={"time_limit": max(0.01, time_limit_s)},
    )
    if solved.status != 0:
        return None
    multipliers = np.maximum(0.0, -solved.ineqlin.marginals)
    bound = float(limits @ multipliers + upper @ np.maximum(0.0, gain - rows.T @ multipliers))
    multipliers[1 : 1 + len(p.nf)] = 0.0
    return DemandBound(bound, *_favour(p, demands, (gain - rows.T @ multipliers)[: len(demands.of)]))


def _favour(p: Problem, demands: BusDemand, gain: Floats) -> tuple[Floats, Ints]:
    """By SLO, the largest gain and its batch."""
    most, batch = np.full(len(p.nf), -np.inf), np.zeros(len(p.nf), dtype=np.int64)
    for of, low, one in zip(demands.of.tolist(), demands.low.tolist(), gain.tolist(), strict=True):
        if one > most[of]:
            most[of], batch[of] = one, low
    return most, batch


def _intervals(p: Problem, best: BestCases) -> _Intervals:
    """Intervals of batches, in each of which the largest is at most some factor above the smallest."""
    members = np.flatnonzero(best.size > 0).tolist()
    factor = 1.05
    while True:
        found = [(i, low, high) for i in members for low, high in _split(int(best.batch[i]), int(best.most[i]), factor)]
        if len(found) <= MOST_INTERVALS or factor > 100.0:
            break
        factor = 1.0 + (factor - 1.0) * 1.5
    of, low, high = (np.array(column, dtype=np.int64) for column in zip(*found, strict=True))
    span = (p.latency_us * LOOSE_LIMIT + p.gap_us - p.pre_post_us - best.kernel)[of]
    return _Intervals(of, low, high, span - low * p.gap_us[of], span)


def _split(low: int, most: int, factor: float) -> list[tuple[int, int]]:
    found = []
    while low <= most:
        high = min(most, max(low, floor(low * factor)))
        found.append((low, high))
        low = high + 1
    return found


def _times(p: Problem, intervals: _Intervals) -> Floats:
    """Instants at which first, second and third transfers are due; a part of them where there are many."""
    period = intervals.low * p.gap_us[intervals.of]
    instants = np.unique(np.concatenate([intervals.due + k * period for k in range(3)]))
    instants = instants[instants > 0] * JUST_BEYOND
    return instants[np.unique(np.linspace(0, len(instants) - 1, DEMAND_TIMES).astype(np.int64))]


@compile_kernel
def _demands(p, of, low, high, span, times, least):  # type: ignore[no-untyped-def]
    """Fill, by time and interval, the bus time of all transfers due until then, us, with the batch for which it is
    least."""
    for at in range(len(times)):
        for k in range(len(of)):
            gap, slope, fixed = p.gap_us[of[k]], p.slope_us[of[k]], p.fixed_us[of[k]]
            beyond = times[at] - span[k]
            if low[k] * gap <= -beyond * (1.0 + NEAR_LIMIT):
                least[at, k] = 0.0
                continue
            least[at, k] = MOST_JOBS * (slope * low[k] + fixed)
            for jobs in range(1 if beyond <= 0.0 else 2, MOST_JOBS):
                # The smallest batch with a period so long that no further transfer is due.
                batch = low[k]
                if jobs > 1:
                    batch = max(batch, ceil(beyond * (1.0 - NEAR_LIMIT) / ((jobs - 1) * gap)))
                if batch <= high[k]:
                    least[at, k] = min(least[at, k], jobs * (slope * batch + fixed))
                if batch <= low[k]:
                    break


def bus_demand(p: Problem, best: BestCases) -> BusDemand:
    """What all SLOs that the GPU can serve demand of the bus."""
    intervals = _intervals(p, best)
    times = _times(p, intervals)
    of = intervals.of
    gap, transfer = p.gap_us[of], p.slope_us[of] * intervals.low + p.fixed_us[of]
    share = p.slope_us[of] / gap + p.fixed_us[of] / (intervals.high * gap)
    demand = np.empty((len(times), len(of)))
    _demands(p, of, intervals.low, intervals.high, intervals.span, times, demand)
    until = np.searchsorted(times * JUST_BEYOND, intervals.span - intervals.high * gap)
    since = np.searchsorted(times, intervals.due * JUST_BEYOND)
    return BusDemand(of, intervals.low, share, transfer, times, demand, until, since)


def _rows(p: Problem, demands: BusDemand) -> tuple[sparse.csr_matrix, Floats, Floats]:
    """Rows, their limits, and upper bounds of variables: intervals; by time, the transfer that blocks relative to it;
    by time, whether anything is due."""
    of, times, transfer = demands.of, demands.times, demands.transfer
    count, ends = len(of), len(times)
    most = np.array([transfer[demands.until > at].max(initial=0.0) / time for at, time in enumerate(times)])
    once = sparse.csr_matrix((np.ones(count), (of, np.arange(count))), shape=(len(p.nf), count))
    eye, none = sparse.csr_matrix(np.eye(ends)), sparse.csr_matrix((ends, ends))
    dense = sparse.csr_matrix(demands.demand / times[:, None])
    blocks = _steps(of, transfer, demands.until - 1, np.greater_equal, 1.0 / times)
    dues = _steps(of, np.ones(count), demands.since, np.less_equal, np.ones(ends))
    blocks_of: list[list[sparse.csr_matrix | None]] = [
        [sparse.csr_matrix(demands.share), None, None],
        [once, None, None],
        [dense, none, none],
        [dense, eye, sparse.csr_matrix(np.diag(most))],
        [blocks[0], -blocks[1], None],
        [None, _chain(times), None],
        [dues[0], None, -dues[1]],
        [None, None, -_chain(np.ones(ends))],
    ]
    rows = sparse.bmat(blocks_of).tocsr()
    limits = np.zeros(rows.shape[0])
    limits[: 1 + len(p.nf) + 2 * ends] = np.concatenate([np.ones(1 + len(p.nf) + ends), 1.0 + most])
    return rows, limits, np.concatenate([np.ones(count), most, np.ones(ends)])


def _steps(
    of: Ints, weight: Floats, at: Ints, counts: Callable[[Ints, int], Bools], scale: Floats
) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """A row for each SLO and time at which one of its intervals begins or ends to count: the weighted intervals that
    count there, and the time's own variable."""
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    places: list[int] = []
    for slo in np.unique(of):
        own = np.flatnonzero(of == slo)
        for place in np.unique(at[own]):
            if not 0 <= place < len(scale):
                continue
            counted = own[counts(at[own], place)]
            rows += [len(places)] * len(counted)
            columns += counted.tolist()
            values += (weight[counted] * scale[place]).tolist()
            places.append(int(place))
    left = sparse.csr_matrix((values, (rows, columns)), shape=(len(places), len(of)))
    right = sparse.csr_matrix((np.ones(len(places)), (range(len(places)), places)), shape=(len(places), len(scale)))
    return left, right


def _chain(scale: Floats) -> sparse.csr_matrix:
    """Each time's variable, scaled, is at least the next one's."""
    last = len(scale) - 1
    here, following = np.arange(last), np.arange(1, last + 1)
    places = (np.concatenate([here, here]), np.concatenate([here, following]))
    return sparse.csr_matrix((np.concatenate([-scale[:-1], scale[1:]]), places), shape=(last, last + 1))


# The bound of `demand_bound`, with SLOs that are admitted whole or not at all, by CP-SAT.
#
# Numbers are whole nanoseconds, rounded so that nothing is ruled out that the linear demands allows.


PER_US = 1_000

BUS_SHARES = 10_000_000  # parts into which the bus is divided where utilisation is counted


def whole_demand_bound(p: Problem, best: BestCases, at_least: int, time_limit_s: float) -> int | None:
    """No plan admits more SLOs than this, or than `at_least`; None where time is too short."""
    demands = bus_demand(p, best)
    model = cp_model.CpModel()
    chosen = [model.new_bool_var("") for _ in demands.of]
    for slo in np.unique(demands.of).tolist():
        model.add_at_most_one(chosen[k] for k in np.flatnonzero(demands.of == slo))
    shares = [floor(share * BUS_SHARES) for share in demands.share]
    model.add(cp_model.LinearExpr.weighted_sum(chosen, shares) <= BUS_SHARES)
    _add_times(model, demands, chosen)
    model.add(sum(chosen) >= at_least + 1)
    model.maximize(sum(chosen))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = time_limit_s
    solver.parameters.num_workers = 1
    solver.parameters.linearization_level = 2
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return at_least
    if status == cp_model.UNKNOWN and solver.best_objective_bound <= at_least:
        return None
    return floor(solver.best_objective_bound + 0.5)


def _add_times(model: cp_model.CpModel, demands: BusDemand, chosen: list[cp_model.IntVar]) -> None:
    """Until each time, what is due fits; if anything is, together with the largest transfer that is due later."""
    largest = ceil(demands.transfer.max(initial=0.0) * PER_US)
    blocking = [model.new_int_var(0, largest, "") for _ in demands.times]
    anything = [model.new_bool_var("") for _ in demands.times]
    for at in range(1, len(demands.times)):
        model.add(blocking[at - 1] >= blocking[at])
        model.add_implication(anything[at - 1], anything[at])
    for k, one in enumerate(chosen):
        if demands.until[k] > 0:
            model.add(blocking[demands.until[k] - 1] >= floor(demands.transfer[k] * PER_US) * one)
        if demands.since[k] < len(demands.times):
            model.add_implication(one, anything[demands.since[k]])
    for at, time in enumerate(demands.times):
        demand = np.floor(demands.demand[at] * PER_US).astype(np.int64)
        there = np.flatnonzero(demand)
        due = cp_model.LinearExpr.weighted_sum([chosen[k] for k in there], demand[there].tolist())
        limit = ceil(time * PER_US)
        model.add(due <= limit)
        model.add(due + blocking[at] <= limit).only_enforce_if(anything[at])
