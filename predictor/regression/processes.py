"""Gaussian processes as compiled code evaluates them: several side by side, row by row."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictor.regression.compiled import compiled, dot, exponential, fill

Array = NDArray[np.float64]

ROOT5 = 5**0.5
THIRD = 1 / 3


class Processes(NamedTuple):
    """Gaussian processes, each padded with zeros to the largest; the attributes of `GaussianProcess`, transposed.

    Parameters
    ----------
    low, high, scale
        Shape (processes, inputs).
    points
        Shape (processes, inputs, points).
    weights
        Shape (processes, outputs, points).
    mean
        Shape (processes, outputs).
    anchored
        Shape (processes,).
    size
        How many points each has, shape (processes,).
    """

    low: Array
    high: Array
    scale: Array
    points: Array
    weights: Array
    mean: Array
    anchored: NDArray[np.bool_]
    size: NDArray[np.int64]


@compiled
def matern(squared):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Matérn covariance of smoothness 5/2 at a squared distance."""
    distance = ROOT5 * math.sqrt(squared)
    # a division would take as long as the root
    return (1.0 + distance * (1.0 + distance * THIRD)) * exponential(-distance)


@compiled
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


@compiled
def write_similarity(processes, which, row, near):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write into `near` how similar the inputs `row` are to each point of one process; return how many points."""
    count = processes.size[which]
    fill(near[:count], 0.0)
    add_squared(processes, which, row, 0, processes.points.shape[1], near)
    for point in range(count):
        near[point] = matern(near[point])
    return count


@compiled
def value_at(processes, which, squared):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """The first output of one process at these squared distances to its points, which are overwritten."""
    count = processes.size[which]
    for point in range(count):
        squared[point] = matern(squared[point])
    return processes.mean[which, 0] + dot(squared, processes.weights[which, 0], count)


@compiled
def write_values(processes, rows, values):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write into `values`, shape (N, outputs), the outputs of the only process at each of `rows`."""
    near = np.empty(processes.points.shape[2])
    for row in range(len(rows)):
        count = write_similarity(processes, 0, rows[row], near)
        for output in range(values.shape[1]):
            values[row, output] = processes.mean[0, output] + dot(near, processes.weights[0, output], count)


@compiled
def write_nearness(processes, rows, nearness):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write into `nearness` the similarity of each of `rows` to the most similar point of the only process."""
    near = np.empty(processes.points.shape[2])
    for row in range(len(rows)):
        count = write_similarity(processes, 0, rows[row], near)
        nearness[row] = 0.0
        for point in range(count):
            nearness[row] = max(nearness[row], near[point])
