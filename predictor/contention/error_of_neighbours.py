"""Corrections by measured co-locations in compiled code: the expected error of one prediction, and its uncertainty."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictor.contention.conditions_of_members import WIDTH
from predictor.regression.compiled import compiled, copy_into, dot
from predictor.regression.processes import matern

Array = NDArray[np.float64]

SAME = 1e-9
"""Distance below which two rows are the same co-location."""


class NeighbourPoints(NamedTuple):
    """Where the errors of NFs were measured, one NF after the other.

    Parameters
    ----------
    smooth, own
        As of `NeighbourCorrection`, shape (NFs,).
    lengths
        Shape (NFs, columns).
    points
        Its inputs divided by their lengths, transposed, shape (NFs, columns, N).
    norms
        The sum of their squares, shape (NFs, N).
    size
        How many each NF has, shape (NFs,).
    """

    smooth: Array
    own: Array
    lengths: Array
    points: Array
    norms: Array
    size: NDArray[np.int64]


class NeighbourModels(NamedTuple):
    """Corrections of NFs, one after the other: what follows from their errors, by point.

    Parameters
    ----------
    at
        Where the errors were measured.
    weights
        Shape (NFs, N).
    inverse_factor
        The inverse of the Cholesky factor of the covariance of what was measured, shape (NFs, N, N).
    """

    at: NeighbourPoints
    weights: Array
    inverse_factor: Array


@compiled
def write_covariance(at, which, row, near):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write the covariance of the error at the inputs `row` with each measured one; return its own variance."""
    size, width = at.size[which], len(row)
    points, competitors, squared = at.points[which], 0.0, 0.0
    for nf in range((width - WIDTH) // (1 + WIDTH)):
        competitors += row[nf]
    own = at.own[which] * (2.0 / max(competitors, 1.0)) ** 2
    copy_into(near[:size], at.norms[which])
    for column in range(width):
        if row[column] != 0.0:
            here, of_column = row[column] / at.lengths[which, column], points[column]
            squared += here * here
            for point in range(size):
                near[point] -= 2.0 * here * of_column[point]
    for point in range(size):
        near[point] += squared
        # differences of large sums round: what is nearly zero is computed again, term by term
        if near[point] < SAME * 1e3:
            near[point] = 0.0
            for column in range(width):
                near[point] += (row[column] / at.lengths[which, column] - points[column, point]) ** 2
    for point in range(size):
        same = own if near[point] < SAME**2 else 0.0
        near[point] = at.smooth[which] * matern(near[point]) + same
    return own


@compiled
def expected_error(models, which, row, near):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """The expected error at the inputs `row`, in usual spreads, and its own variance; `near` is overwritten."""
    own = write_covariance(models.at, which, row, near)
    return dot(near, models.weights[which], models.at.size[which]), own


@compiled
def deviation_of(models, which, near, own):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """The standard deviation of an error, in usual spreads, by its covariance with measured ones and own variance."""
    explained = 0.0
    for point in range(models.at.size[which]):
        explained += dot(models.inverse_factor[which, point], near, point + 1) ** 2
    return math.sqrt(max(models.at.smooth[which] + own - explained, SAME))


@compiled
def write_covariances(at, rows, covariances):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write the covariance of the only NF's errors at each of `rows` with each measured one."""
    for row in range(len(rows)):
        write_covariance(at, 0, rows[row], covariances[row])


@compiled
def write_errors(models, rows, mean, deviation):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write the only NF's expected error at each of `rows`, and its standard deviation."""
    near = np.empty(models.weights.shape[1])
    for row in range(len(rows)):
        mean[row], own = expected_error(models, 0, rows[row], near)
        deviation[row] = deviation_of(models, 0, near, own)
