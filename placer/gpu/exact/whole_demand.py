"""The bound of `demand_bound`, with SLOs that are admitted whole or not at all, by CP-SAT.

Numbers are whole nanoseconds, rounded so that nothing is ruled out that the linear demands allows.
"""

from __future__ import annotations

from math import ceil, floor

import numpy as np
from ortools.sat.python import cp_model

from placer.gpu.exact.best_case import BestCases
from placer.gpu.exact.demand_bound import BusDemand, bus_demand
from placer.gpu.exact.problem import Problem

PER_US = 1_000

SHARES = 10_000_000
"""Parts into which the bus is divided where utilisation is counted."""


def whole_demand_bound(p: Problem, best: BestCases, at_least: int, time_limit_s: float) -> int | None:
    """No plan admits more SLOs than this, or than `at_least`; None where time is too short."""
    demands = bus_demand(p, best)
    model = cp_model.CpModel()
    chosen = [model.new_bool_var("") for _ in demands.of]
    for slo in np.unique(demands.of).tolist():
        model.add_at_most_one(chosen[k] for k in np.flatnonzero(demands.of == slo))
    shares = [floor(one * SHARES) for one in demands.share]
    model.add(cp_model.LinearExpr.weighted_sum(chosen, shares) <= SHARES)
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
