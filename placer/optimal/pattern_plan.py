"""The plan from the pattern program: all co-locations are queried, so the optimum is proven."""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from placer.model.fleet import NicKind
from placer.model.oracle import Oracle
from placer.optimal.arrays import Ints
from placer.optimal.assignment import assign
from placer.optimal.duals import duals_of
from placer.optimal.optimum import Optimum
from placer.optimal.patterns import Members, Patterns, joined, patterns_of, slots_and_levels
from placer.optimal.program import costs_in_units, exact_cost, program_of
from placer.optimal.prove import solve
from placer.optimal.solvers import relaxation
from placer.optimal.tenant_groups import TenantGroup


def pattern_plan(
    groups: Sequence[TenantGroup],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    co_locations: Sequence[Sequence[Members]],
    *,
    seconds: float,
    solver: str,
    departure_safe: bool = False,
) -> Optimum:
    """The optimum over plans whose NICs carry these co-locations, listed by kind, or parts of them, listed too.

    With `departure_safe`, only over plans in which no tenant needs a neighbour to meet its SLA. First the number of
    tenants placed is maximised; that is needed only where a group cannot be placed on NICs of its own without limit.
    Then the cost is minimised.
    """
    patterns = joined(
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
        none_placed = np.concatenate([np.zeros_like(patterns.kind), [len(group.tenants) for group in groups]])
        placing = solve(program.placing_first(), none_placed, solver=solver, deadline=began + seconds / 2)
        start, most_placed = placing.values, placing.proven
    program = program.leaving_out_at_most(int(program.left_out @ start))
    solution = solve(program, start, solver=solver, deadline=deadline)
    times, left_out = np.split(solution.values, [program.patterns])
    nics, unplaced = assign(times, left_out, patterns, groups, kinds)
    costs, unit = costs_in_units(kinds)
    if len(set(costs.tolist())) == 1 and costs[0] > 0:
        fewest = -(-solution.bound // int(costs[0]))
    else:
        fewest = relaxation(program.at_unit_cost(), deadline - time.monotonic()).proof.bound
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
