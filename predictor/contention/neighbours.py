"""Correction by measured co-locations: what is learnt from the NFs that share the NIC, not from sums of contention.

Resource models know neighbours by sums only: of counters, of demands for an accelerator. What sums cannot express is an
error that belongs to the neighbours, and it is repeated wherever the same NFs meet. This correction is a Gaussian
process (Rasmussen & Williams, 2006, chapter 2) over how many instances of each NF there are next to an NF, and over
their traffic. Its outputs are errors of the resource models in units of their usual spread, so that one process fits
small drops and large ones.

Each co-location also has a deviation of its own, which says nothing about others. A co-location that was measured is
therefore answered as measured, as far as noise allows, and its uncertainty is that of the measurement; away from
everything measured, the correction fades and the usual spread remains.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictor.contention.conditions_of_members import ATTRIBUTE_COUNT, write_all_neighbours
from predictor.regression.compiled import compile_kernel, copy_into, dot, fill, pad, reducing
from predictor.regression.processes import ROOT5 as ROOT5
from predictor.regression.processes import factorise, matern, matern_exactly, solve, square_distances
from profiles import ATTRIBUTES
from profiles.arrays import Floats
from profiles.shown import Shown

LEAST_NOISE = 1e-4  # variance of a measurement, in squared spreads, below which equal rows could not be distinguished


class SolvedErrors(NamedTuple):
    """What a correction computes of its rows, once: in training, or when models without it are loaded."""

    weights: Floats  # the inverse of the covariance of what was measured, times `errors`, shape (N,)
    inverse_factor: Floats  # of that covariance, as `factorise` returns it, shape (N * (N + 1) / 2,)


@dataclass(frozen=True, repr=False)
class NeighbourCorrection(Shown):
    """The correction of one NF's predictions."""

    names: tuple[str, ...]  # the NFs whose instances are counted
    lengths: Floats
    """Per column of the inputs, how far apart co-locations are whose errors hardly resemble each other, shape (4 * NFs
    + 3,)."""
    smooth: float
    own: float
    """Variance of what resembles other co-locations, and of the own deviation of a co-location with two competitors, in
    squared spreads."""
    inputs: Floats  # of the measured co-locations, as `inputs_of` returns them, shape (N, 4 * NFs + 3)
    errors: Floats  # measured over predicted, logarithm divided by the usual spread, shape (N,)
    noise: Floats  # variance of each of `errors`, shape (N,)

    def __call__(self, inputs: Floats) -> tuple[Floats, Floats]:
        """The expected error at each row of `inputs`, and its standard deviation, both in usual spreads, shape (N,)."""
        mean, deviation = np.empty(len(inputs)), np.empty(len(inputs))
        write_errors(neighbour_models([self]), np.ascontiguousarray(inputs, dtype=np.float64), mean, deviation)
        return mean, deviation

    def left_out(self) -> tuple[Floats, Floats]:
        """Per row: its error less what the other co-locations lead to expect, and the variance of that without noise
        (Rasmussen & Williams, section 5.4.2), shape (N,). Equal rows are of one co-location, and left out together."""
        weights, factor = self.solved.weights, np.zeros((len(self.errors), len(self.errors)))
        factor[np.tri(len(factor), dtype=np.bool_)] = self.solved.inverse_factor
        variance = 1.0 / (factor**2).sum(axis=0)
        error = weights * variance
        equal: dict[bytes, list[int]] = {}
        for row, inputs in enumerate(np.ascontiguousarray(self.inputs)):
            equal.setdefault(inputs.tobytes(), []).append(row)
        for size in sorted({len(rows) for rows in equal.values()} - {1}):
            rows = np.array([rows for rows in equal.values() if len(rows) == size])
            columns = factor.T[rows]
            blocks = np.linalg.inv(columns @ columns.transpose(0, 2, 1))
            error[rows] = (blocks @ weights[rows][:, :, None])[:, :, 0]
            variance[rows] = blocks.diagonal(axis1=1, axis2=2)
        return error, np.maximum(variance - self.noise, SAME_DISTANCE)

    @cached_property
    def most_competitors(self) -> float:
        """The most competitors in a measured co-location at default traffic; infinite where none was at that."""
        counts = competitors(self.inputs)[(self.inputs[:, len(self.names) :] == 0).all(axis=1)]
        return float(counts.max()) if len(counts) else np.inf

    @cached_property
    def solved(self) -> SolvedErrors:
        """What is known of the covariance of what was measured."""
        points = self.inputs / self.lengths
        squared = square_distances(points, points)
        covariance = self.smooth * matern_exactly(squared)
        covariance += self.own * loneliness(self.inputs) * (squared < SAME_DISTANCE**2)
        covariance[np.diag_indices(len(covariance))] += np.maximum(self.noise, LEAST_NOISE)
        inverse_factor = factorise(covariance)
        return SolvedErrors(solve(inverse_factor, self.errors), inverse_factor)

    def as_arrays(self) -> dict[str, NDArray[np.generic]]:
        """What was learnt, as plain arrays."""
        return {
            "names": np.array(self.names, dtype=np.str_),
            "lengths": self.lengths,
            "variances": np.array([self.smooth, self.own]),
            "inputs": self.inputs,
            "errors": self.errors,
            "noise": self.noise,
            **self.solved._asdict(),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> NeighbourCorrection:
        """The correction that `as_arrays` returned."""
        lengths, variances, inputs, errors, noise = (
            np.asarray(arrays[name], dtype=np.float64) for name in ("lengths", "variances", "inputs", "errors", "noise")
        )
        names, rows = tuple(str(name) for name in arrays["names"]), len(errors)
        made = cls(names, lengths, float(variances[0]), float(variances[1]), inputs, errors, noise)
        if all(name in arrays for name in SolvedErrors._fields):
            known = SolvedErrors(*(np.asarray(arrays[name], dtype=np.float64) for name in SolvedErrors._fields))
            # compiled code checks no bounds
            if (known.weights.shape, known.inverse_factor.shape) != ((rows,), (rows * (rows + 1) // 2,)):
                raise ValueError(f"a factor of shape {known.inverse_factor.shape} does not belong to {rows} rows")
            vars(made)["solved"] = known  # where `cached_property` looks for it
        return made


def loneliness(inputs: Floats) -> Floats:
    """How much more variance of its own a co-location has the fewer competitors there are, 1 for two, shape (N,).

    With few, each one more changes much: pairs resemble larger co-locations less than those resemble each other.
    """
    fewer: Floats = (2.0 / np.maximum(competitors(inputs), 1.0)) ** 2
    return fewer


def competitors(inputs: Floats) -> Floats:
    """How many NFs share the NIC with each row's, NaN where that is not known, shape (N,)."""
    counted = (inputs.shape[1] - len(ATTRIBUTES)) // (1 + len(ATTRIBUTES))
    together: Floats = inputs[:, :counted].sum(axis=1) if counted > 0 else np.full(len(inputs), np.nan)
    return together


def points_of(corrections: Sequence[NeighbourCorrection | None]) -> NeighbourPoints:
    """Where errors were measured, as compiled code reads it; nowhere where there is no correction."""
    width = max((correction.inputs.shape[1] for correction in corrections if correction), default=0)
    scaled = [(model.inputs / model.lengths).T if model else np.zeros((width, 0)) for model in corrections]
    return NeighbourPoints(
        smooth=np.array([correction.smooth if correction else 0.0 for correction in corrections]),
        own=np.array([correction.own if correction else 0.0 for correction in corrections]),
        lengths=pad([correction.lengths if correction else np.ones(width) for correction in corrections]),
        points=pad(scaled),
        norms=pad([(points**2).sum(axis=0) for points in scaled]),
        size=np.array([points.shape[1] for points in scaled], dtype=np.int64),
    )


def neighbour_models(corrections: Sequence[NeighbourCorrection | None]) -> NeighbourModels:
    """The corrections as compiled code reads them; none where there is no correction."""
    return NeighbourModels(
        points_of(corrections),
        weights=pad([correction.solved.weights if correction else np.zeros(0) for correction in corrections]),
        inverse_factor=pad([model.solved.inverse_factor if model else np.zeros(0) for model in corrections]),
    )


@dataclass(frozen=True)
class NeighbourInputs:
    """Turns the members of co-locations into inputs of the corrections."""

    nf: NDArray[np.intp]  # number of each workload's NF, shape (workloads,)
    presence: Floats
    """How much of a neighbour each workload is, 1 where more is offered than it can carry, shape (workloads,)."""
    deviation: Floats  # of each workload's traffic from default, as a share of the profiled range, shape (workloads, 3)
    nfs: int  # how many NFs there are

    def of(self, member: NDArray[np.intp], positions: tuple[NDArray[np.intp], ...]) -> Floats:
        """One row per position (co-location, place) of the workloads `member`, -1 where there is none."""
        inputs = np.empty((len(positions[0]), self.nfs * (1 + ATTRIBUTE_COUNT) + ATTRIBUTE_COUNT))
        where = np.column_stack(positions)
        write_all_neighbours(self.nf, self.presence, self.deviation, self.nfs, member, where, inputs)
        return inputs


# Corrections by measured co-locations in compiled code: the expected error of one prediction, and its uncertainty.


SAME_DISTANCE = 1e-9  # distance below which two rows are the same co-location
SIDE_BY_SIDE = 4  # errors whose deviations are computed at the same time


class NeighbourPoints(NamedTuple):
    """Where the errors of NFs were measured, one NF after the other."""

    smooth: Floats
    own: Floats  # as of `NeighbourCorrection`, shape (NFs,)
    lengths: Floats  # shape (NFs, columns)
    points: Floats  # its inputs divided by their lengths, transposed, shape (NFs, columns, N)
    norms: Floats  # the sum of their squares, shape (NFs, N)
    size: NDArray[np.int64]  # how many each NF has, shape (NFs,)


class NeighbourModels(NamedTuple):
    """Corrections of NFs, one after the other: what follows from their errors, by point."""

    at: NeighbourPoints  # where the errors were measured
    weights: Floats  # shape (NFs, N)
    inverse_factor: Floats
    """The inverse of the Cholesky factor of the covariance of what was measured, row by row as `factorise` returns it,
    shape (NFs, N * (N + 1) / 2)."""


@compile_kernel
def write_covariance(at, which, row, near):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write the covariance of the error at the inputs `row` with each measured one; return its own variance."""
    size, width = at.size[which], len(row)
    points, competitors, squared = at.points[which], 0.0, 0.0
    for nf in range((width - ATTRIBUTE_COUNT) // (1 + ATTRIBUTE_COUNT)):
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
        if near[point] < SAME_DISTANCE * 1e3:
            near[point] = 0.0
            for column in range(width):
                near[point] += (row[column] / at.lengths[which, column] - points[column, point]) ** 2
    for point in range(size):
        same = own if near[point] < SAME_DISTANCE**2 else 0.0
        near[point] = at.smooth[which] * matern(near[point]) + same
    return own


@compile_kernel
def expect_error(models, which, row, near):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """The expected error at the inputs `row`, in usual spreads, and its own variance; `near` is overwritten."""
    own = write_covariance(models.at, which, row, near)
    return dot(near, models.weights[which], models.at.size[which]), own


@compile_kernel
def write_deviations(models, which, near, own, deviation):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write standard deviations of `SIDE_BY_SIDE` errors of one NF, in usual spreads.

    `near` is their covariance with measured errors, and `own` their own variance.
    """
    fill(deviation, 0.0)
    add_explained(models.inverse_factor[which], models.at.size[which], near, deviation)
    for at in range(len(deviation)):
        deviation[at] = math.sqrt(max(models.at.smooth[which] + own[at] - deviation[at], SAME_DISTANCE))


@reducing
def add_explained(factor, size, near, explained):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Add what measured errors explain of the variance of each of `SIDE_BY_SIDE` others.

    A factor is larger than the nearest cache of a processor, so it is read once for all.
    """
    here, there, third, fourth = near[0], near[1], near[2], near[3]
    start = 0
    for point in range(size):
        first = second = of_third = of_fourth = 0.0
        for at in range(point + 1):
            weight = factor[start + at]
            first += weight * here[at]
            second += weight * there[at]
            of_third += weight * third[at]
            of_fourth += weight * fourth[at]
        explained[0] += first * first
        explained[1] += second * second
        explained[2] += of_third * of_third
        explained[3] += of_fourth * of_fourth
        start += point + 1


@compile_kernel
def write_errors(models, rows, mean, deviation):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write the only NF's expected error at each of `rows`, and its standard deviation."""
    near, own = np.zeros((SIDE_BY_SIDE, models.weights.shape[1])), np.zeros(SIDE_BY_SIDE)
    together = np.empty(SIDE_BY_SIDE)
    for start in range(0, len(rows), SIDE_BY_SIDE):
        count = min(SIDE_BY_SIDE, len(rows) - start)
        for at in range(count):
            mean[start + at], own[at] = expect_error(models, 0, rows[start + at], near[at])
        write_deviations(models, 0, near, own, together)
        copy_into(deviation[start : start + count], together)
