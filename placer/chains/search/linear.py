"""Linear programs as the relaxations here have them: each chain takes one of its columns, and limits are shared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

INFEASIBLE = 2
"""The status of a solver that has proven that there is no solution."""


@dataclass(frozen=True)
class Solved:
    """A solution.

    Parameters
    ----------
    gain
        The largest sum of gains.
    weights
        Of each column; shape (columns,).
    """

    gain: float
    weights: Floats


def largest_gain(gains: Floats, uses: Floats, limits: Floats, owners: Ints, sizes: Floats) -> Solved | None:
    """The best mixture of columns; None if there is none within the limits.

    Parameters
    ----------
    gains
        Of each column; shape (columns,).
    uses
        Of each limit by each column; shape (limits, columns).
    limits
        Shape (limits,).
    owners
        Who takes each column; shape (columns,).
    sizes
        How many columns each owner takes; shape (owners,).

    Raises
    ------
    ArithmeticError
        When the solver gives up: then nothing is known, not even that there is no mixture.
    """
    scales = np.where(limits > 0, limits, 1.0)
    places = (owners, np.arange(len(owners)))
    once: Any = csr_array((np.ones(len(owners)), places), shape=(len(sizes), len(owners)))
    costs: Floats = -gains
    found = linprog(costs, A_ub=uses / scales[:, None], b_ub=limits / scales, A_eq=once, b_eq=sizes, method="highs")
    if found.status == INFEASIBLE:
        return None
    if found.status != 0 or found.x is None:
        raise ArithmeticError(f"a linear program was not solved: {found.message}")
    return Solved(float(gains @ found.x), np.asarray(found.x, dtype=np.float64))
