"""Gaussian processes as compiled code evaluates them: several side by side, row by row."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictor.regression import compiled
from profiles.arrays import Floats

ROOT5 = 5**0.5
ONE_THIRD = 1 / 3


class Processes(NamedTuple):
    """Gaussian processes, each padded with zeros to the largest; the attributes of `GaussianProcess`, transposed."""

    low: Floats
    high: Floats
    scale: Floats  # shape (processes, inputs)
    points: Floats  # shape (processes, inputs, points)
    weights: Floats  # shape (processes, outputs, points)
    mean: Floats  # shape (processes, outputs)
    anchored: NDArray[np.bool_]  # shape (processes,)
    size: NDArray[np.int64]  # how many points each has, shape (processes,)


@compiled.compile_kernel
def matern(squared):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Matérn covariance of smoothness 5/2 at a squared distance."""
    distance = ROOT5 * math.sqrt(squared)
    # a division would take as long as the root
    return (1.0 + distance * (1.0 + distance * ONE_THIRD)) * compiled.exponential(-distance)


@compiled.compile_kernel
def add_squared(processes, which, row, first, end, squared):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Add the squared distances of the inputs `row` to each point of one process, along some columns."""
    count = processes.size[which]
    for column in range(first, end):
        scale = processes.scale[which, column]
        if scale == 0.0:
            continue
        low, value = processes.low[which, column], row[column]
        if not processes.anchored[which]:
            value = min(max(value, low), processes.high[which, column])
        here, points = (value - low) * scale, processes.points[which, column]
        for point in range(count):
            apart = here - points[point]
            squared[point] += apart * apart


@compiled.compile_kernel
def write_similarity(processes, which, row, near):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write into `near` how similar the inputs `row` are to each point of one process; return how many points."""
    count = processes.size[which]
    compiled.fill(near[:count], 0.0)
    add_squared(processes, which, row, 0, processes.points.shape[1], near)
    for point in range(count):
        near[point] = matern(near[point])
    return count


@compiled.compile_kernel
def value_at(processes, which, squared):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """The first output of one process at these squared distances to its points, which are overwritten."""
    count = processes.size[which]
    for point in range(count):
        squared[point] = matern(squared[point])
    return processes.mean[which, 0] + compiled.dot(squared, processes.weights[which, 0], count)


@compiled.compile_kernel
def write_values(processes, rows, values):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write into `values`, shape (N, outputs), the outputs of the only process at each of `rows`."""
    near = np.empty(processes.points.shape[2])
    for row in range(len(rows)):
        count = write_similarity(processes, 0, rows[row], near)
        for output in range(values.shape[1]):
            values[row, output] = processes.mean[0, output] + compiled.dot(near, processes.weights[0, output], count)


@compiled.compile_kernel
def write_nearness(processes, rows, nearness):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write into `nearness` the similarity of each of `rows` to the most similar point of the only process."""
    near = np.empty(processes.points.shape[2])
    for row in range(len(rows)):
        count = write_similarity(processes, 0, rows[row], near)
        nearness[row] = 0.0
        for point in range(count):
            nearness[row] = max(nearness[row], near[point])


# Factors of covariance matrices, to the last bit the same on every processor, so that models can keep them.
#
# LAPACK adds in the order that suits a processor, and libraries compute exponentials in several ways. Here each
# operation is one that rounds correctly, and sums are added in the order written.


TAYLOR_TERMS = 13  # terms of the Taylor series of e^x for x between -0.35 and 0.35


def square_distances(left: Floats, right: Floats) -> Floats:
    """Squared distances between rows, shape (len(left), len(right))."""
    squared = np.zeros((len(left), len(right)))
    for here, there in zip(left.T, right.T, strict=True):
        if there.any() or here.any():
            squared += np.subtract.outer(here, there) ** 2
    return squared


def matern_exactly(squared: Floats) -> Floats:
    """Matérn covariance of smoothness 5/2 at squared distances; at most 2e-16 from that of `processes.matern`."""
    distance = ROOT5 * np.sqrt(squared)
    exponent = np.maximum(-distance, compiled.LEAST_EXPONENT)
    times = np.rint(exponent * compiled.LOG2_E)
    rest = (exponent - times * compiled.LN2_HIGH) - times * compiled.LN2_LOW
    series = np.ones_like(rest)
    for term in range(TAYLOR_TERMS, 0, -1):
        series = series * rest / term + 1.0
    covariance: Floats = (1 + distance * (1 + distance / 3)) * np.ldexp(series, times.astype(np.int32))
    return covariance


def factorise(covariance: Floats) -> Floats:
    """The inverse of the Cholesky factor of a covariance matrix: the rows of its lower triangle, one after the other.
    Row i begins at i * (i + 1) / 2. Raises `numpy.linalg.LinAlgError` when the matrix is not positive definite."""
    inverse = np.zeros(len(covariance) * (len(covariance) + 1) // 2)
    _write_inverse_factor(covariance.copy(), inverse)
    if not np.isfinite(inverse).all():
        raise np.linalg.LinAlgError("a covariance matrix is not positive definite")
    return inverse


def solve(inverse_factor: Floats, values: Floats) -> Floats:
    """The inverse of the covariance matrix of that factor, times `values`, shape (N,)."""
    solved = np.zeros(len(values))
    _write_solved(inverse_factor, values, solved)
    return solved


@compiled.exact
def _write_inverse_factor(covariance, inverse):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write what `factorise` returns; the covariance is overwritten by the factor, transposed."""
    size = len(covariance)
    for column in range(size):
        covariance[column, column] = math.sqrt(covariance[column, column])
        for at in range(column + 1, size):
            covariance[column, at] /= covariance[column, column]
        for row in range(column + 1, size):
            share = covariance[column, row]
            for at in range(row, size):
                covariance[row, at] -= share * covariance[column, at]
    for row in range(size):
        written = inverse[row * (row + 1) // 2 : (row + 1) * (row + 2) // 2]
        written[row] = 1.0
        for column in range(row):
            share, before = covariance[column, row], inverse[column * (column + 1) // 2 :]
            for at in range(column + 1):
                written[at] -= share * before[at]
        for at in range(row + 1):
            written[at] /= covariance[row, row]


@compiled.exact
def _write_solved(inverse_factor, values, solved):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Add what `solve` returns to `solved`."""
    start = 0
    for row in range(len(values)):
        factor, product = inverse_factor[start : start + row + 1], 0.0
        for at in range(row + 1):
            product += factor[at] * values[at]
        for at in range(row + 1):
            solved[at] += factor[at] * product
        start += row + 1
