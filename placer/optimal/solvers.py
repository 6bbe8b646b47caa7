"""Solvers of the pattern program: GLOP for its relaxation; for the integers CP-SAT or HiGHS."""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from ortools.linear_solver.python import model_builder_helper as ortools
from scipy import sparse

from placer.optimal.program import IntegerProgram, WeakDuality
from profiles import InputError
from profiles.arrays import Floats, Ints
from profiles.linear_programs import stdout_kept

SOLVERS = {
    # with its own handler, Ctrl-C would end the process without a message
    "cp-sat": ("sat", "num_workers:1 linearization_level:2 catch_sigint_signal:false"),
    "highs": ("highs", "output_flag=false\nthreads=1\nmip_rel_gap=0\nmip_abs_gap=0.999"),
}
"""Integer solvers of OR-Tools by our name: theirs, and settings that make them silent, exact and repeatable."""

BRIEF_SETTINGS = {"cp-sat": " max_deterministic_time:4", "highs": "\nmip_max_nodes=500"}
"""Settings for a brief search: an effort that is the same on every machine, unlike a number of seconds."""

SIFTED_VARIABLES = 8_000  # a relaxation with more variables than this is solved over a part of them at a time
LEAST_IMPROVEMENT = 1e-7  # variables whose reduced cost is not below minus this are not added to a relaxation

LEAST_SECONDS = 0.01


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The program without integrality: a solution, None if time was too short, and the bound of its prices."""

    values: Floats | None
    proof: WeakDuality


@dataclass(frozen=True, eq=False)
class IntegerSolution:
    """The end of an integer solver: a feasible solution or None, and whether the search was complete."""

    values: Ints | None
    complete: bool


def relaxation(program: IntegerProgram, seconds: float, start: Ints | None = None) -> Relaxation:
    """The relaxation of the program by the simplex method; its bound is safe against rounding errors.

    With many variables it is sifted: solved over some of them, with those of a feasible `start`, to which the variables
    of negative reduced cost are added until there are none.
    """
    began = time.monotonic()
    number = len(program.cost)
    active = np.arange(number)
    if start is not None and number > SIFTED_VARIABLES:
        evenly = np.linspace(0, number - 1, SIFTED_VARIABLES // 4).astype(np.int64)
        active = np.union1d(np.flatnonzero(start), np.append(evenly, np.arange(program.patterns, number)))
    best = WeakDuality.of(program, np.zeros(len(program.least)))
    while True:
        part = program.only(active)
        model = _model(part, np.zeros_like(part.upper), part.upper)
        solver = _solve("glop", "", model, seconds - (time.monotonic() - began))
        if solver.status() != ortools.SolveStatus.OPTIMAL:
            return Relaxation(None, best)
        duals = np.array(solver.dual_values())
        best = max(best, WeakDuality.of(program, duals), key=lambda proof: proof.value)
        reduced = program.cost - program.matrix.T @ np.maximum(duals, 0.0)
        wanted = np.argsort(reduced, kind="stable")[: SIFTED_VARIABLES // 4]
        wanted = np.setdiff1d(wanted[reduced[wanted] < -LEAST_IMPROVEMENT], active)
        if not len(wanted):
            values = np.zeros(number)
            values[active] = np.array(solver.variable_values())
            return Relaxation(values, best)
        active = np.union1d(active, wanted)


def solve_integers(
    program: IntegerProgram, lower: Ints, upper: Ints, *, start: Ints, solver: str, seconds: float, briefly: bool
) -> IntegerSolution:
    """The program's best whole numbers between `lower` and `upper`.

    `start`: a solution to start from, which need not be feasible; HiGHS ignores it. `solver`: one of `SOLVERS`.
    `seconds`: time limit. `briefly`: whether to give up after a few seconds' effort.
    """
    free = np.flatnonzero(upper > 0)
    name, settings = SOLVERS[solver]
    model = _model(program.only(free), lower[free], upper[free])
    for position, variable in enumerate(free.tolist()):
        model.set_var_integrality(position, True)
        if name == "sat":  # HiGHS crashes on a start within OR-Tools 9.15
            model.add_hint(position, float(start[variable]))
    answer = _solve(name, settings + BRIEF_SETTINGS[solver] * briefly, model, seconds)
    if answer.status() == ortools.SolveStatus.INFEASIBLE:
        return IntegerSolution(None, complete=True)
    if answer.status() not in (ortools.SolveStatus.OPTIMAL, ortools.SolveStatus.FEASIBLE):
        return IntegerSolution(None, complete=False)
    values = np.zeros_like(upper)
    values[free] = np.rint(np.array(answer.variable_values())).astype(np.int64)
    if not program.is_feasible(values):
        return IntegerSolution(None, complete=False)
    return IntegerSolution(values, complete=answer.status() == ortools.SolveStatus.OPTIMAL)


def refuse_unknown(solver: str) -> None:
    """Refuse an integer solver that there is not. Raises InputError when the solver is unknown."""
    if solver not in SOLVERS:
        hint = f"solvers are {' and '.join(SOLVERS)}"
        raise InputError.of("--solver", f"'{solver}' is not an integer solver", hint=hint)


def _model(program: IntegerProgram, lower: Ints, upper: Ints) -> ortools.ModelBuilderHelper:
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
    with stdout_kept():
        solver.solve(model)
    return solver


# The search for a proven solution of the pattern program.


NEARLY_WHOLE = 1e-6  # a variable of the relaxation this close to a whole number is one
BRIEF_SLACKS = (0, 1)  # how far below the relaxation's whole part each variable may go in brief searches

FIRST_VARIABLES = (2_000, 20_000)
"""Where there are more variables, as many as these of lowest reduced cost are tried first."""

AT_BOUND_SHARE = 0.5  # share of the remaining time for the search at the bound; the rest is for a search above it


@dataclass(frozen=True, eq=False)
class Solution:
    """A feasible solution of a program, a proven bound on its cost, and the prices of the relaxation's bound."""

    values: Ints
    cost: int
    bound: int
    proof: WeakDuality

    @property
    def proven(self) -> bool:
        """Whether no solution costs less."""
        return self.cost <= self.bound


def solve(program: IntegerProgram, start: Ints, *, solver: str, deadline: float) -> Solution:
    """The best solution found until `deadline` (of `time.monotonic`), no worse than the feasible `start`.

    The bound from the relaxation is mostly the optimum itself, so the search looks for a solution of just that cost.
    First briefly, with most of the relaxation's whole part fixed: the rest is small even with a million tenants. Then
    in full; if there is no such solution, the bound rises, and the next search allows one NIC more, then two, then
    four. A NIC may cost many units, and a search for each unit would take long.
    """
    relaxed = relaxation(program, deadline - time.monotonic(), start)
    best = Solution(start, int(start @ program.cost), relaxed.proof.bound, relaxed.proof)
    if relaxed.values is None:
        return best
    best = _better(program, best, np.ceil(relaxed.values - NEARLY_WHOLE).astype(np.int64))
    whole = np.floor(relaxed.values + NEARLY_WHOLE).astype(np.int64)
    none_fixed = np.zeros_like(whole)
    target, above = best.bound - 1, 0
    while not best.proven and best.bound > target:
        target, above = best.bound + above, 2 * above or _least_cost(program) - 1
        for few in FIRST_VARIABLES:
            if few < len(whole):
                best = _attempt(program, relaxed, best, target, none_fixed, solver, deadline, few=few)
        for slack in BRIEF_SLACKS:
            best = _attempt(program, relaxed, best, target, np.maximum(whole - slack, 0), solver, deadline)
        best = _attempt(program, relaxed, best, target, none_fixed, solver, deadline)
    return _attempt(program, relaxed, best, best.cost - 1, none_fixed, solver, deadline)


def _attempt(
    program: IntegerProgram,
    relaxed: Relaxation,
    best: Solution,
    target: int,
    lower: Ints,
    solver: str,
    deadline: float,
    few: int | None = None,
) -> Solution:
    """Search for the best solution that costs at most `target`, with all variables that it could use or with a few.

    If no variable is fixed or left out and there is no such solution, the bound rises.
    """
    last = target >= best.cost - 1
    target = min(target, best.cost - 1)
    remaining = deadline - time.monotonic()
    if best.proven or remaining <= 0:
        return best
    upper = relaxed.proof.limits(program, target)
    if few is not None:
        upper[_most_promising_first(program, relaxed)[few:]] = 0
    if np.any(lower > upper):
        return best
    whole = few is None and not lower.any()
    found = solve_integers(
        program.costing_at_most(target),
        lower,
        upper,
        start=best.values,
        solver=solver,
        seconds=remaining if last and whole else AT_BOUND_SHARE * remaining,
        briefly=not whole,
    )
    if found.values is not None:
        best = _better(program, best, found.values)
    if found.complete and whole:
        best = replace(best, bound=max(best.bound, best.cost if best.cost <= target else target + 1))
    return best


def _least_cost(program: IntegerProgram) -> int:
    """The lowest cost of a variable, above 0."""
    return int(np.min(program.cost[program.cost > 0], initial=program.cost.max(initial=1)))


def _most_promising_first(program: IntegerProgram, relaxed: Relaxation) -> Ints:
    """The variables by reduced cost; of those nearly equal, by how much they add to the rows."""
    adds = program.matrix.sum(axis=0)
    order = np.lexsort((-adds, np.round(relaxed.proof.reduced, 2)))
    return np.concatenate([np.arange(program.patterns, len(order)), order[order < program.patterns]])


def _better(program: IntegerProgram, best: Solution, values: Ints) -> Solution:
    cost = int(values @ program.cost)
    return replace(best, values=values, cost=cost) if cost < best.cost and program.is_feasible(values) else best
