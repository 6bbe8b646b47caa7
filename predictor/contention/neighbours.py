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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from predictor.contention.conditions_of_members import WIDTH, write_all_neighbours
from predictor.contention.error_of_neighbours import (
    SAME,
    NeighbourModels,
    NeighbourPoints,
    write_covariances,
    write_errors,
)
from predictor.regression.compiled import padded
from predictor.regression.processes import ROOT5 as ROOT5
from profiles import ATTRIBUTES

Array = NDArray[np.float64]

LEAST_NOISE = 1e-4
"""Variance of a measurement, in squared spreads, below which equal rows could not be distinguished."""


@dataclass(frozen=True)
class NeighbourCorrection:
    """The correction of one NF's predictions.

    Parameters
    ----------
    names
        The NFs whose instances are counted.
    lengths
        Per column of the inputs, how far apart co-locations are whose errors hardly resemble each other, shape
        (4 * NFs + 3,).
    smooth, own
        Variance of what resembles other co-locations, and of the own deviation of a co-location with two competitors,
        in squared spreads.
    inputs
        Of the measured co-locations, as `inputs_of` returns them, shape (N, 4 * NFs + 3).
    errors
        Measured over predicted, logarithm divided by the usual spread, shape (N,).
    noise
        Variance of each of `errors`, shape (N,).
    """

    names: tuple[str, ...]
    lengths: Array
    smooth: float
    own: float
    inputs: Array
    errors: Array
    noise: Array

    def __call__(self, inputs: Array) -> tuple[Array, Array]:
        """The expected error at each row of `inputs`, and its standard deviation, both in usual spreads, shape (N,)."""
        mean, deviation = np.empty(len(inputs)), np.empty(len(inputs))
        write_errors(neighbour_models([self]), np.ascontiguousarray(inputs, dtype=np.float64), mean, deviation)
        return mean, deviation

    def left_out(self) -> tuple[Array, Array]:
        """Per row: its error less what the other co-locations lead to expect, and the variance of that without noise
        (Rasmussen & Williams, section 5.4.2), shape (N,). Equal rows are of one co-location, and left out together."""
        factor = self._inverse_factor
        variance = 1.0 / (factor**2).sum(axis=0)
        error = self._weights * variance
        _, of_group = np.unique(self.inputs, axis=0, return_inverse=True)
        of_group = of_group.ravel()
        for group in np.flatnonzero(np.bincount(of_group) > 1).tolist():
            rows = np.flatnonzero(of_group == group)
            block = np.linalg.inv(factor[:, rows].T @ factor[:, rows])
            error[rows], variance[rows] = block @ self._weights[rows], np.diag(block)
        return error, np.maximum(variance - self.noise, SAME)

    @cached_property
    def most_competitors(self) -> float:
        """The most competitors in a measured co-location at default traffic; infinite where none was at that."""
        counts = competitors(self.inputs)[(self.inputs[:, len(self.names) :] == 0).all(axis=1)]
        return float(counts.max()) if len(counts) else np.inf

    @cached_property
    def _inverse_factor(self) -> Array:
        """The inverse of the Cholesky factor of the covariance of what was measured."""
        measured = np.empty((len(self.inputs), len(self.inputs)))
        write_covariances(points_of([self]), np.ascontiguousarray(self.inputs), measured)
        measured[np.diag_indices(len(measured))] += np.maximum(self.noise, LEAST_NOISE)
        factor = np.linalg.cholesky(measured)
        return np.linalg.inv(factor)

    @cached_property
    def _weights(self) -> Array:
        inverse = self._inverse_factor
        weights: Array = inverse.T @ (inverse @ self.errors)
        return weights

    def as_arrays(self) -> dict[str, NDArray[np.generic]]:
        """What was learnt, as plain arrays."""
        return {
            "names": np.array(self.names, dtype=np.str_),
            "lengths": self.lengths,
            "variances": np.array([self.smooth, self.own]),
            "inputs": self.inputs,
            "errors": self.errors,
            "noise": self.noise,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> NeighbourCorrection:
        """The correction that `as_arrays` returned."""
        lengths, variances, inputs, errors, noise = (
            np.asarray(arrays[name], dtype=np.float64) for name in ("lengths", "variances", "inputs", "errors", "noise")
        )
        names = tuple(str(name) for name in arrays["names"])
        return cls(names, lengths, float(variances[0]), float(variances[1]), inputs, errors, noise)


def loneliness(inputs: Array) -> Array:
    """How much more variance of its own a co-location has the fewer competitors there are, 1 for two, shape (N,).

    With few, each one more changes much: pairs resemble larger co-locations less than those resemble each other.
    """
    fewer: Array = (2.0 / np.maximum(competitors(inputs), 1.0)) ** 2
    return fewer


def competitors(inputs: Array) -> Array:
    """How many NFs share the NIC with each row's, NaN where that is not known, shape (N,)."""
    counted = (inputs.shape[1] - len(ATTRIBUTES)) // (1 + len(ATTRIBUTES))
    together: Array = inputs[:, :counted].sum(axis=1) if counted > 0 else np.full(len(inputs), np.nan)
    return together


def points_of(corrections: Sequence[NeighbourCorrection | None]) -> NeighbourPoints:
    """Where errors were measured, as compiled code reads it; nowhere where there is no correction."""
    width = max((one.inputs.shape[1] for one in corrections if one), default=0)
    scaled = [(one.inputs / one.lengths).T if one else np.zeros((width, 0)) for one in corrections]
    return NeighbourPoints(
        smooth=np.array([one.smooth if one else 0.0 for one in corrections]),
        own=np.array([one.own if one else 0.0 for one in corrections]),
        lengths=padded([one.lengths if one else np.ones(width) for one in corrections]),
        points=padded(scaled),
        norms=padded([(points**2).sum(axis=0) for points in scaled]),
        size=np.array([points.shape[1] for points in scaled], dtype=np.int64),
    )


def neighbour_models(corrections: Sequence[NeighbourCorrection | None]) -> NeighbourModels:
    """The corrections as compiled code reads them; none where there is no correction."""
    return NeighbourModels(
        points_of(corrections),
        weights=padded([one._weights if one else np.zeros(0) for one in corrections]),
        inverse_factor=padded([one._inverse_factor if one else np.zeros((0, 0)) for one in corrections]),
    )


@dataclass(frozen=True)
class NeighbourInputs:
    """Turns the members of co-locations into inputs of the corrections.

    Parameters
    ----------
    nf
        Number of each workload's NF, shape (workloads,).
    deviation
        Of each workload's traffic from default, as a share of the profiled range, shape (workloads, 3).
    nfs
        How many NFs there are.
    """

    nf: NDArray[np.intp]
    deviation: Array
    nfs: int

    def of(self, member: NDArray[np.intp], positions: tuple[NDArray[np.intp], ...]) -> Array:
        """One row per position (co-location, place) of the workloads `member`, -1 where there is none."""
        inputs = np.empty((len(positions[0]), self.nfs * (1 + WIDTH) + WIDTH))
        write_all_neighbours(self.nf, self.deviation, self.nfs, member, np.column_stack(positions), inputs)
        return inputs
