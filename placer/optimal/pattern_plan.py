"""The plan from the pattern program: all co-locations are queried, so the optimum is proven."""

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy import sparse

from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.optimal.optimum import Optimum, duals_of
from placer.optimal.patterns import Members, Patterns, TenantGroup, join, patterns_of, slots_and_levels
from placer.optimal.program import IntegerProgram, costs_in_units, exact_cost, program_of
from placer.optimal.solvers import relaxation, solve
from profiles.arrays import Ints


def pattern_plan(
    groups: Sequence[TenantGroup],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    co_locations: Sequence[Sequence[Members]],
    *,
    seconds: float,
    solver: str,
    departure_safe: bool = False,
    in_use: Collection[int] = (),
) -> Optimum:
    """The optimum over plans whose NICs carry these co-locations, listed by kind, or parts of them, listed too.

    With `departure_safe`, only over plans in which no tenant needs a neighbour to meet its SLA. First the number of
    tenants placed is maximised; that is needed only where a group cannot be placed on NICs of its own without limit.
    Where no group has tenants of several priorities, it is the number of the highest first, then of the next.
    Then the cost is minimised, and of plans that cost the same, one with few NICs to buy is taken. NICs of the kinds
    numbered `in_use` are in use whatever is placed, and cost nothing.
    """
    patterns = join(
        [
            patterns_of(number, members, *slots_and_levels(number, members, groups, oracle))
            for number, (members, oracle) in enumerate(zip(co_locations, oracles, strict=True))
        ]
    )
    if departure_safe:
        patterns = patterns.take(~patterns.strict)
    began = time.monotonic()
    deadline = began + seconds
    program = program_of(patterns, groups, kinds)
    start = _one_group_per_nic(patterns, groups, kinds)
    most_placed = start is not None
    if start is None:
        start = np.concatenate([np.zeros_like(patterns.kind), [len(group.tenants) for group in groups]])
        most_placed, ranks = True, _ranks(groups)
        for number, of_rank in enumerate(ranks, start=1):
            until = began + seconds / 2 * number / len(ranks)
            placing = solve(program.placing_first(of_rank), start, solver=solver, deadline=until)
            start, most_placed = placing.values, most_placed and placing.proven
            program = program.leaving_out_at_most(int(program.left_out(of_rank) @ start), of_rank)
    else:
        program = program.leaving_out_at_most(int(program.left_out() @ start))
    solution = solve(program, start, solver=solver, deadline=deadline)
    values = with_owned_first(program, solution.values, patterns, kinds, in_use, solver=solver, deadline=deadline)
    times, left_out = np.split(values, [program.patterns])
    nics, unplaced = assign(times, left_out, patterns, groups, kinds)
    costs, unit = costs_in_units(kinds)
    different = {cost for number, cost in enumerate(costs.tolist()) if number not in in_use}
    if len(different) == 1 and (one_cost := different.pop()) > 0:
        fewest = -(-solution.bound // one_cost)
    else:
        anyway = np.isin(patterns.kind, list(in_use))
        fewest = relaxation(program.at_unit_cost(anyway), deadline - time.monotonic()).proof.bound
    cost = sum((exact_cost(kind) for kind, _ in nics), start=Fraction(0))
    bound = min(cost, solution.bound * unit)
    return Optimum(
        nics=nics,
        unplaced=unplaced,
        cost=float(cost),
        lower_bound=float(bound),
        nics_lower_bound=fewest,
        proven=most_placed and cost == bound,
        duals=duals_of(program, solution.proof.prices, patterns, groups, kinds),
        departure_safe=not patterns.strict[times > 0].any(),
        seconds=time.monotonic() - began,
    )


def _ranks(groups: Sequence[TenantGroup]) -> list[npt.NDArray[np.bool_]]:
    """Which groups have the highest priority, then the next; all are alike where one has tenants of several."""
    of_groups = [{tenant.priority for tenant in group.tenants} for group in groups]
    if any(len(priorities) > 1 for priorities in of_groups):
        return [np.ones(len(groups), dtype=np.bool_)]
    return [
        np.array([priority in priorities for priorities in of_groups], dtype=np.bool_)
        for priority in sorted(set().union(*of_groups), reverse=True)
    ]


def _one_group_per_nic(patterns: Patterns, groups: Sequence[TenantGroup], kinds: Sequence[NicKind]) -> Ints | None:
    """A solution that nics every group by itself in NICs of unlimited kinds, if that is possible at all."""
    solution = np.zeros(len(patterns) + len(groups), dtype=np.int64)
    cost = np.array([kind.cost for kind in kinds])[patterns.kind]
    unlimited = np.array([kind.count is None for kind in kinds])[patterns.kind]
    for i, group in enumerate(groups):
        tenants = len(group.tenants)
        fitting = np.flatnonzero(unlimited & ~patterns.strict & (patterns.levels[:, i] == tenants))
        if not len(fitting):
            return None
        slots = patterns.slots[fitting, i]
        best = np.argmin(cost[fitting] / slots)
        solution[fitting[best]] += -(-tenants // slots[best])
    return solution


# Assignment: from a solution of the pattern program to the tenants of every NIC.


Assignment = list[tuple[NicKind, tuple[Tenant, ...]]]  # the NICs of a plan: the kind of each, and its tenants


def assign(
    times: Ints, left_out: Ints, patterns: Patterns, groups: Sequence[TenantGroup], kinds: Sequence[NicKind]
) -> tuple[Assignment, list[Tenant]]:
    """Tenants on NICs that carry each pattern the given number of times, and the tenants left out.

    Each slot of a group is good enough for the least demanding tenants up to its level. Slots of strict patterns are
    filled first, lowest level first, each with the most demanding tenant it can take; then those of loose patterns,
    the best slot with the most demanding tenant. NICs without tenants are not used.
    """
    pattern_of = np.repeat(np.arange(len(patterns)), times)
    carried: list[list[Tenant]] = [[] for _ in pattern_of]
    unplaced: list[Tenant] = []
    for i, group in enumerate(groups):
        placed = len(group.tenants) - int(left_out[i])
        unplaced.extend(group.tenants[placed:])
        nic_of_slot = np.repeat(np.arange(len(pattern_of)), patterns.slots[pattern_of, i])
        nic_of_tenant = _nics_of(nic_of_slot, pattern_of, patterns, i, placed)
        for tenant, nic in zip(group.tenants, nic_of_tenant.tolist(), strict=False):
            carried[nic].append(tenant)
    nics = [
        (kinds[patterns.kind[pattern]], tuple(tenants))
        for pattern, tenants in zip(pattern_of.tolist(), carried, strict=True)
        if tenants
    ]
    return nics, unplaced


def _nics_of(nic_of_slot: Ints, pattern_of: Ints, patterns: Patterns, group: int, placed: int) -> Ints:
    """The NIC of each of the `placed` least demanding tenants of a group, from the NIC of each of its slots."""
    level = np.minimum(patterns.levels[pattern_of[nic_of_slot], group], placed)
    strict = patterns.strict[pattern_of[nic_of_slot]]
    nic_of_tenant = np.full(placed, -1, dtype=np.int64)
    waiting: list[int] = []
    reached = 0
    for slot in np.flatnonzero(strict)[np.argsort(level[strict], kind="stable")].tolist():
        waiting.extend(range(reached, int(level[slot])))
        reached = int(level[slot])
        nic_of_tenant[waiting.pop()] = nic_of_slot[slot]
    hardest_first = np.flatnonzero(nic_of_tenant < 0)[::-1]
    best_first = np.flatnonzero(~strict)[np.argsort(-level[~strict], kind="stable")][: len(hardest_first)]
    if np.any(level[best_first] <= hardest_first):
        raise AssertionError("A slot of the plan is not good enough for its tenant.")
    nic_of_tenant[hardest_first] = nic_of_slot[best_first]
    return nic_of_tenant


# Owned NICs: of the solutions of the pattern program that cost the same, one for which fewest NICs must be bought.


CHOICE_SECONDS = 5.0  # most seconds of this search: it chooses among plans of one cost


def with_owned_first(
    program: IntegerProgram,
    values: Ints,
    patterns: Patterns,
    kinds: Sequence[NicKind],
    in_use: Collection[int],
    *,
    solver: str,
    deadline: float,
) -> Ints:
    """A solution of the pattern program that costs no more than this one, with as few NICs to buy as are found.

    One variable for each kind is how many of its NICs must be bought: those that carry patterns, less those owned. NICs
    of the kinds numbered `in_use` never are.
    """
    for_sale = [number for number in range(len(kinds)) if number not in in_use]
    if len(for_sale) < 2 or not any(kinds[number].owned for number in for_sale):
        return values
    owned = np.array([kinds[number].owned or 0 for number in for_sale], dtype=np.int64)
    used = (patterns.kind == np.array(for_sale)[:, None]).astype(np.int64)
    bought = np.maximum(used @ values[: program.patterns] - owned, 0)
    if not bought.any():
        return values
    limited = program.costing_at_most(int(program.cost @ values))
    before, after = limited.matrix[:, : program.patterns], limited.matrix[:, program.patterns :]
    known = sparse.hstack([before, sparse.csr_array((before.shape[0], len(for_sale)), dtype=np.int64), after])
    buying_rows = np.hstack([-used, np.eye(len(for_sale), dtype=np.int64), np.zeros((len(for_sale), after.shape[1]))])
    buying = replace(
        limited,
        matrix=sparse.csr_array(sparse.vstack([known, sparse.csr_array(buying_rows.astype(np.int64))])),
        least=np.concatenate([limited.least, -owned]),
        cost=np.concatenate([np.zeros(program.patterns), np.ones(len(for_sale)), np.zeros(after.shape[1])]).astype(int),
        upper=np.insert(limited.upper, program.patterns, np.full(len(for_sale), bought.sum())),
        patterns=program.patterns + len(for_sale),
    )
    start = np.insert(values, program.patterns, bought)
    found = solve(buying, start, solver=solver, deadline=min(deadline, time.monotonic() + CHOICE_SECONDS)).values
    return np.delete(found, np.arange(program.patterns, buying.patterns))
