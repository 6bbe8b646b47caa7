"""The optimum: the plan of least cost in which no SLA is broken, and the proof.

    tenants -> demands -> patterns (asking the oracles) -> program -> solution -> tenants on NICs

A plan depends on tenants only through the workload they run and what they accept. So a plan is a number of NICs for
every co-location pattern, and an integer program over patterns finds the best one, whatever the number of tenants.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from placer.fleet import NicKind, Tenant
from placer.optimal.asking import Progress, TimedOracle
from placer.optimal.assignment import assign
from placer.optimal.demand import Demand, Ints, demands_of
from placer.optimal.optimum import Optimum
from placer.optimal.patterns import Patterns, companies_within, joined, patterns_of, rated
from placer.optimal.program import costs_in_units, exact_cost, program_of
from placer.optimal.search import solve
from placer.optimal.solvers import relaxation
from placer.oracle import Oracle

__all__ = ["Optimum", "optimal_plan"]

Plan = Sequence[tuple[NicKind, Sequence[Tenant]]]


def optimal_plan(
    tenants: Sequence[Tenant],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    *,
    time_limit: float = 60.0,
    solver: str = "cp-sat",
    start: Plan | None = None,
    progress: Progress | None = None,
) -> Optimum:
    """The plan that places the most tenants with no SLA broken and, of those, costs least.

    Parameters
    ----------
    tenants
        Who is to be placed, all present at once.
    kinds
        The NICs that can be had.
    oracles
        By kind, the throughput in company. Not assumed to be monotone: leaving a NIC may slow others down.
    time_limit
        Seconds of search, oracle answers known; when they are over, the best plan so far is returned with its bound.
    solver
        Name of an integer solver, one of `SOLVERS`.
    start
        A plan to beat: when it is sound and no better one is found, it is returned.
    progress
        Told how many companies were asked and how many are to be asked.
    """
    began = time.monotonic()
    asked = [TimedOracle(oracle, progress) for oracle in oracles]
    demands = demands_of(tenants, kinds, asked)
    patterns = _all_patterns(demands, kinds, asked)
    program = program_of(patterns, demands, kinds)
    oracle_seconds = sum(oracle.seconds for oracle in asked)
    deadline = began + oracle_seconds + time_limit
    apart = _everyone_apart(patterns, demands, kinds)
    if apart is not None:
        most = True
        program = program.leaving_out_at_most(0)
        first = apart
    else:
        nobody = np.concatenate([np.zeros_like(patterns.kind), [len(demand.tenants) for demand in demands]])
        placing = solve(program.placing_first(), nobody, solver=solver, deadline=began + (deadline - began) / 2)
        most = placing.proven
        program = program.leaving_out_at_most(placing.cost)
        first = placing.values
    solution = solve(program, first, solver=solver, deadline=deadline)
    nics, unplaced = assign(
        solution.values[: program.patterns], solution.values[program.patterns :], patterns, demands, kinds
    )
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
        proven=most and cost == bound,
        seconds=time.monotonic() - began - oracle_seconds,
        oracle_seconds=oracle_seconds,
    )


def _all_patterns(demands: Sequence[Demand], kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> Patterns:
    parts = []
    for number, (kind, oracle) in enumerate(zip(kinds, oracles, strict=True)):
        companies = list(companies_within(kind, demands))
        slots, levels = rated(number, companies, demands, oracle)
        parts.append(patterns_of(number, companies, slots, levels))
    return joined(parts)


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
