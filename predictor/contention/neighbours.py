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

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from profiles import ATTRIBUTES

Array = NDArray[np.float64]

LEAST_NOISE = 1e-4
"""Variance of a measurement, in squared spreads, below which equal rows could not be distinguished."""
SAME = 1e-9
"""Distance below which two rows are the same co-location."""
ROWS_AT_ONCE = 1_024
ROOT5 = 5**0.5


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
        mean, deviation = np.zeros(len(inputs)), np.empty(len(inputs))
        for start in range(0, len(inputs), ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            own = self.own * loneliness(inputs[part])
            near = covariance(inputs[part] / self.lengths, self.inputs / self.lengths, self.smooth, own)
            inverse = self._inverse_factor
            mean[part] = near @ self._weights
            explained = ((near @ inverse.T) ** 2).sum(axis=1)
            deviation[part] = np.sqrt(np.maximum(self.smooth + own - explained, SAME))
        return mean, deviation

    def left_out(self) -> tuple[Array, Array]:
        """Per measured co-location: its error less what the others lead to expect, and the variance of that without
        noise (Rasmussen & Williams, section 5.4.2), shape (N,)."""
        inverse = self._inverse_factor.T @ self._inverse_factor
        variance = 1.0 / np.diag(inverse)
        return self._weights * variance, np.maximum(variance - self.noise, SAME)

    @cached_property
    def _inverse_factor(self) -> Array:
        """The inverse of the Cholesky factor of the covariance of what was measured."""
        scaled = self.inputs / self.lengths
        measured = covariance(scaled, scaled, self.smooth, self.own * loneliness(self.inputs))
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


def covariance(left: Array, right: Array, smooth: float, own: Array) -> Array:
    """Covariance of errors at rows of inputs that were divided by their lengths, shape (len(left), len(right)).

    `own` is the variance of each row of `left` by itself, shape (len(left),).
    """
    used = (left != 0).any(axis=0) | (right != 0).any(axis=0)
    left, right = left[:, used], right[:, used]
    squared = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1)[None, :] - 2.0 * left @ right.T
    # differences of large sums round: what is nearly zero is computed again, term by term
    rows, columns = np.nonzero(squared < SAME * 1e3)
    squared[rows, columns] = ((left[rows] - right[columns]) ** 2).sum(axis=1)
    squared = np.maximum(squared, 0.0)
    distance = ROOT5 * np.sqrt(squared)
    near: Array = smooth * (1 + distance * (1 + distance / 3)) * np.exp(-distance)
    near += own[:, None] * (squared < SAME**2)
    return near


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
        width = len(ATTRIBUTES)
        occupied = member >= 0
        counts = np.zeros((len(member), self.nfs))
        traffic = np.zeros((len(member), self.nfs, width))
        rows = np.broadcast_to(np.arange(len(member))[:, None], member.shape)[occupied]
        which = member[occupied]
        np.add.at(counts, (rows, self.nf[which]), 1.0)
        np.add.at(traffic, (rows, self.nf[which]), self.deviation[which])
        own = member[positions]
        at = positions[0]
        of_nf, number = self.deviation[own], np.arange(len(own))
        others, apart = counts[at], traffic[at]
        others[number, self.nf[own]] -= 1.0
        apart[number, self.nf[own]] -= of_nf
        return np.column_stack([others, apart.reshape(len(own), -1), of_nf])
