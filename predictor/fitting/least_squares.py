"""Non-linear least squares by Levenberg and Marquardt's method (More 1978), for a few dozen parameters.

SciPy has it, too, but takes longer to import than a curve takes to fit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROUNDS = 40
"""Most steps that are tried."""
CLOSE = 1e-7
"""Relative change of the sum of squares at which it has settled."""
DAMPING, LESS, MORE, MOST = 1e-3, 0.2, 5.0, 1e10
"""Of the first step, factors after a step that helps and one that does not, and where to give up."""


def least_squares(residuals: Callable[[Array], Array], slopes: Callable[[Array], Array], begin: Array) -> Array:
    """The parameters of the least sum of squared residuals near `begin`, shape of `begin`.

    Parameters
    ----------
    residuals
        At parameters, shape (points,); finite.
    slopes
        Their derivatives, shape (points, parameters).
    begin
        Where to begin.
    """
    at, rest = begin, residuals(begin)
    squares, table, damping = float(rest @ rest), slopes(begin), DAMPING
    unit = np.zeros(len(begin))
    for _ in range(ROUNDS):
        unit = np.maximum(unit, np.linalg.norm(table, axis=0))
        trial = at - _step(table, rest, np.where(unit > 0, unit, 1.0), damping)
        rest_there = residuals(trial)
        squares_there = float(rest_there @ rest_there)
        if not squares_there < squares:
            damping *= MORE
            if damping > MOST:
                break
            continue
        settled = squares - squares_there <= CLOSE * squares
        at, rest, squares = trial, rest_there, squares_there
        if settled:
            break
        table, damping = slopes(at), damping * LESS
    return at


def _step(table: Array, rest: Array, unit: Array, damping: float) -> Array:
    """The step that lessens the linearised sum of squares, damped in proportion to each parameter's unit."""
    damped = np.concatenate([table / unit, np.sqrt(damping) * np.eye(len(unit))])
    target = np.concatenate([rest, np.zeros(len(unit))])
    step: Array = np.linalg.lstsq(damped, target, rcond=None)[0] / unit
    return step
