"""The plan by the pattern program: all companies known, the optimum proven."""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from placer.model.fleet import NicKind
from placer.model.oracle import Oracle
from placer.optimal.assignment import assign
from placer.optimal.demand import Demand, Ints
from placer.optimal.duals import duals_of
from placer.optimal.optimum import Optimum
from placer.optimal.patterns import Members, Patterns, joined, patterns_of, rated
from placer.optimal.program import costs_in_units, exact_cost, program_of
from placer.optimal.prove import solve
from placer.optimal.solvers import relaxation


def pattern_plan(
    demands: Sequence[Demand],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    co_locations: Sequence[Sequence[Members]],
    *,
    seconds: float,
    solver: str,
    departure_safe: bool = False,
) -> Optimum:
    """The optimum over plans whose NICs carry nothing but `companies`, listed by kind and closed under leaving.

    With `departure_safe`, only over those plans in which leaving hurts nobody. The most tenants are placed first; that is a
    question only where somebody has no NIC kind of unlimited number that would take him alone. Then the cost is
    minimised.
    """
    patterns = joined(
        [
            patterns_of(number, members, *rated(number, members, demands, oracle))
            for number, (members, oracle) in enumerate(zip(co_locations, oracles, strict=True))
        ]
    )
    if departure_safe:
        patterns = patterns.take(~patterns.strict)
    began = time.monotonic()
    deadline = began + seconds
    program = program_of(patterns, demands, kinds)
    start = _everyone_apart(patterns, demands, kinds)
    most_placed = start is not None
    if start is None:
        nobody = np.concatenate([np.zeros_like(patterns.kind), [len(demand.tenants) for demand in demands]])
        placing = solve(program.placing_first(), nobody, solver=solver, deadline=began + seconds / 2)
        start, most_placed = placing.values, placing.proven
    program = program.leaving_out_at_most(int(program.left_out @ start))
    solution = solve(program, start, solver=solver, deadline=deadline)
    times, left_out = np.split(solution.values, [program.patterns])
    nics, unplaced = assign(times, left_out, patterns, demands, kinds)
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
        duals=duals_of(program, solution.proof.prices, patterns, demands, kinds),
        departure_safe=not patterns.strict[times > 0].any(),
        seconds=time.monotonic() - began,
    )


def _everyone_apart(patterns: Patterns, demands: Sequence[Demand], kinds: Sequence[NicKind]) -> Ints | None:
    """A solution that houses every demand by itself in NICs of unlimited kinds, if that is possible at all."""
    solution = np.zeros(len(patterns) + len(demands), dtype=np.int64)
    cost = np.array([kind.cost for kind in kinds])[patterns.kind]
    unlimited = np.array([kind.count is None for kind in kinds])[patterns.kind]
    for i, demand in enumerate(demands):
        tenants = len(demand.tenants)
        houses = np.flatnonzero(unlimited & ~patterns.strict & (patterns.levels[:, i] == tenants))
        if not len(houses):
            return None
        slots = patterns.slots[houses, i]
        best = np.argmin(cost[houses] / slots)
        solution[houses[best]] += -(-tenants // slots[best])
    return solution
