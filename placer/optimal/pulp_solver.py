"""The pattern program through PuLP, with whichever solver it finds installed."""

from __future__ import annotations

from typing import Any

import numpy as np

from placer.optimal.program import IntegerProgram
from profiles import InputError
from profiles.arrays import Ints

PULP_PREFIX = "pulp"  # the solver `pulp` is PuLP's own choice, `pulp:NAME` the one that PuLP calls NAME


def refuse_unknown(solver: str) -> None:
    """Refuse a solver that PuLP does not have.

    Raises InputError when PuLP is not installed, or it does not find the solver.
    """
    known = _pulp().listSolvers(onlyAvailable=True)
    name = _name(solver) or next(iter(known), "")
    if name not in known:
        message = f"PuLP finds no solver '{name}'" if name else "PuLP finds no solver"
        raise InputError.of("--solver", message, hint=f"installed are {', '.join(known) or 'none'}")


def solve_with_pulp(
    program: IntegerProgram, lower: Ints, upper: Ints, *, solver: str, seconds: float
) -> tuple[Ints | None, bool]:
    """Whole numbers that minimise the program, or None where there are none; and whether that is certain."""
    pulp = _pulp()
    problem = pulp.LpProblem("patterns", pulp.LpMinimize)
    variables = [
        pulp.LpVariable(f"v{i}", low, high, cat="Integer")
        for i, (low, high) in enumerate(zip(lower.tolist(), upper.tolist(), strict=True))
    ]
    problem += pulp.LpAffineExpression(zip(variables, program.cost.tolist(), strict=True))
    matrix = program.matrix
    for row, least in enumerate(program.least.tolist()):
        entries = slice(int(matrix.indptr[row]), int(matrix.indptr[row + 1]))
        holds = zip(matrix.indices[entries].tolist(), matrix.data[entries].tolist(), strict=True)
        problem += pulp.LpAffineExpression([(variables[i], value) for i, value in holds]) >= least
    name = _name(solver) or pulp.listSolvers(onlyAvailable=True)[0]
    status = problem.solve(_exact(pulp, name, max(seconds, 1.0)))
    certain = problem.sol_status == pulp.LpSolutionOptimal
    if status == pulp.LpStatusInfeasible:
        return None, True
    if any(variable.value() is None for variable in variables):
        return None, False
    return np.rint([variable.value() for variable in variables]).astype(np.int64), certain


def _exact(pulp: Any, name: str, seconds: float) -> Any:
    """The solver with a gap of 0: by default some call a solution optimal that is only near it."""
    try:
        return pulp.getSolver(name, msg=False, timeLimit=seconds, gapRel=0.0)
    except TypeError:  # a solver without this option
        return pulp.getSolver(name, msg=False, timeLimit=seconds)


def _name(solver: str) -> str:
    return solver.partition(":")[2]


def _pulp() -> Any:
    try:
        import pulp
    except ImportError as error:
        raise InputError.of("--solver", "PuLP is not installed", hint="pip install 'nf-placer[pulp]'") from error
    return pulp
