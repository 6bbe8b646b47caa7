"""Solvers of the pattern program, all through OR-Tools: GLOP for its relaxation, CP-SAT or HiGHS for the integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from ortools.linear_solver.python import model_builder_helper as ortools
from scipy import sparse

from placer.optimal.demand import Floats, Ints
from placer.optimal.program import Program, weak_duality

ROUNDING = 1e-6
"""A bound this little above a whole number is not rounded up past it."""

SOLVERS = {
    "cp-sat": ("sat", "num_workers:1 random_seed:0"),
    "highs": ("highs", "output_flag=false threads=1 random_seed=0 mip_rel_gap=0 mip_abs_gap=0.999"),
}
"""The integer solvers by name: what OR-Tools calls them, and settings that make them silent, exact and repeatable."""

LEAST_SECONDS = 0.01


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The program without integrality.

    Parameters
    ----------
    values
        A solution; None where there was no time for one.
    duals
        The price of every row.
    bound
        What no integer solution goes below: weak duality with these prices, rounded up.
    """

    values: Floats | None
    duals: Floats
    bound: int


@dataclass(frozen=True, eq=False)
class Integers:
    """What an integer solver found: a feasible solution or None, and a proven bound on the cost."""

    values: Ints | None
    bound: int


def relaxation(program: Program, seconds: float) -> Relaxation:
    """The relaxation of the program by the simplex method; its bound is safe against rounding errors."""
    solver = _solve("glop", "", _model(program, np.zeros_like(program.upper), program.upper), seconds)
    if solver.status() != ortools.SolveStatus.OPTIMAL:
        nothing = np.zeros(len(program.least))
        return Relaxation(None, nothing, _rounded_up(weak_duality(program, nothing)))
    duals = np.array(solver.dual_values())
    return Relaxation(np.array(solver.variable_values()), duals, _rounded_up(weak_duality(program, duals)))


def integers(
    program: Program, lower: Ints, upper: Ints, *, bound: int, start: Ints | None, solver: str, seconds: float
) -> Integers:
    """The program's best whole numbers between `lower` and `upper`.

    Parameters
    ----------
    bound
        A cost that is known not to be beaten; reaching it ends the search.
    start
        A solution to start from.
    solver
        One of `SOLVERS`.
    seconds
        Time limit.
    """
    name, settings = SOLVERS[solver]
    model = _model(program.costing_at_least(bound), lower, upper)
    for variable in range(len(program.cost)):
        model.set_var_integrality(variable, True)
        if start is not None:
            model.add_hint(variable, float(start[variable]))
    answer = _solve(name, settings, model, seconds)
    if answer.status() == ortools.SolveStatus.INFEASIBLE:
        return Integers(None, int(program.upper @ program.cost) + 1)
    if answer.status() not in (ortools.SolveStatus.OPTIMAL, ortools.SolveStatus.FEASIBLE):
        return Integers(None, bound)
    values = np.rint(np.array(answer.variable_values())).astype(np.int64)
    proven = answer.best_objective_bound()
    if not program.is_feasible(values):
        return Integers(None, bound)
    return Integers(values, max(bound, _rounded_up(proven)) if math.isfinite(proven) else bound)


def _model(program: Program, lower: Ints, upper: Ints) -> ortools.ModelBuilderHelper:
    model = ortools.ModelBuilderHelper()
    fill: Any = model.fill_model_from_sparse_data
    unlimited = np.full(len(program.least), np.inf)
    vectors = (lower, upper, program.cost, program.least, unlimited)
    fill(*(np.asarray(vector, dtype=np.float64) for vector in vectors), sparse.csr_matrix(program.matrix, dtype=float))
    return model


def _solve(name: str, settings: str, model: ortools.ModelBuilderHelper, seconds: float) -> ortools.ModelSolverHelper:
    solver = ortools.ModelSolverHelper(name)
    solver.enable_output(False)
    solver.set_solver_specific_parameters(settings)
    solver.set_time_limit_in_seconds(max(seconds, LEAST_SECONDS))
    solver.solve(model)
    return solver


def _rounded_up(bound: float) -> int:
    return math.ceil(bound - ROUNDING * max(1.0, abs(bound) * 1e-6))
