"""How far predictions err: split-conformal intervals, wider where less is known.

Errors are taken in units of their own spread, which is larger away from default traffic, around which profiles are
dense, and where company costs much. How much larger is learnt of all NFs together, how large of each: a few dozen runs
of one NF do not tell more. The errors in these units are those of all NFs, and their quantiles make the intervals
(split-conformal prediction with local scale: Lei et al., 2018, doi:10.1080/01621459.2017.1307116, section 5.2).

A measured run errs by its own noise as well. Where repeats tell how large that is, it is taken off, so that intervals
hold the throughput itself; a single measurement scatters around that. Where nothing was repeated, noise counts as error
and intervals hold measurements.

Over four profiles of the simulated card (400 runs per NF) intervals of 80, 90 and 95 % held 81, 89 and 93 % of the
throughputs of fresh companies at random traffic, and 87, 93 and 97 % at default traffic, where noise exceeds the error
and what remains cannot be told so small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from predictor.contention.calibration import Seen
from profiles import ATTRIBUTES

Array = NDArray[np.float64]

FAR = 0.3
"""Distance from default traffic, as a share of the ranges on a logarithmic scale, from which it counts as far."""
FELT, TYPICAL = 0.01, 0.05
"""Drops (as a fraction) that are hardly felt, and that are usual."""
ROUNDS = 3
LEAST, MOST = 1e-4, 1.0
"""Smallest and largest spread of the logarithm that are believed."""
FREEDOM = 4.5
"""Of the Student's t distribution that errors follow nearly enough to tell their spread: some are large."""
APART, SLOPES_APART, SLOPE = 0.5, 0.3, 1.0
"""How much NFs differ in spread and in its growth, and how much it grows, as standard deviations of logarithms."""


@dataclass(frozen=True)
class Errors:
    """Errors of one NF on runs that were not learnt from, one entry per run.

    Parameters
    ----------
    logarithm
        Measured over predicted, shape (N,).
    where
        As `Place.__call__` tells it, shape (N, 2).
    noise
        Variance of the measurement, 0 where it is not known, shape (N,).
    """

    logarithm: Array
    where: Array
    noise: Array


@dataclass(frozen=True)
class Place:
    """Where default traffic is, and how wide the measured ranges are: shapes (3,), on the scale of `_coordinates`."""

    default: Array
    width: Array

    @classmethod
    def of(cls, default: Array, measured: Mapping[str, tuple[float, float]]) -> Place:
        """From default traffic, shape (3,), and the range that was measured of each attribute."""
        low, high = (_coordinates(np.array([[measured[name][end] for name in ATTRIBUTES]]))[0] for end in (0, 1))
        return cls(_coordinates(default[None, :])[0], np.maximum(high - low, 1.0))

    def __call__(self, seen: Seen) -> Array:
        """What the spread grows with: distance from default traffic, 0 to 1, and the drop, shape (N, 2)."""
        away = np.sqrt((((_coordinates(seen.traffic) - self.default) / self.width) ** 2).sum(axis=1))
        drop = np.maximum(1.0 - seen.kept, 0.0)
        return np.column_stack([np.minimum(away / FAR, 1.0), np.log((FELT + drop) / TYPICAL)])


def _coordinates(traffic: Array) -> Array:
    """Traffic, shape (N, 3), on scales on which throughput changes evenly."""
    return np.column_stack([np.log(np.maximum(traffic[:, :2], 1.0)), np.log1p(traffic[:, 2] / 100.0)])


@dataclass(frozen=True)
class Spread:
    """How far predictions of one NF err in company.

    Parameters
    ----------
    place
        What distance is measured from.
    usual
        The spread (of the logarithm) at default traffic and a usual drop.
    growth
        The logarithm of how many times as large it is, per unit of what it grows with. Shape (2,).
    standard
        Errors in units of their spread, ascending, shape (M,).
    weight
        How much each of them tells, shape (M,).
    """

    place: Place
    usual: float
    growth: Array
    standard: Array
    weight: Array

    @classmethod
    def even(cls, place: Place, errors: Array) -> Spread:
        """Of errors, shape (N,), that are taken to be as large everywhere."""
        usual = float(np.clip(np.sqrt((errors**2).mean()), LEAST, MOST)) if len(errors) else LEAST
        return cls(place, usual, np.zeros(2), np.sort(errors) / usual, np.ones(len(errors)))

    def at(self, seen: Seen) -> Array:
        """The spread of each prediction, shape (N,)."""
        return _spread(np.log(self.usual) + self.place(seen) @ self.growth)

    def interval(self, seen: Seen, coverage: float) -> tuple[Array, Array] | None:
        """Factors below and above predictions between which a share `coverage` of cases lies; None for too few errors.

        Each of shape (N,).
        """
        size = np.abs(self.standard)
        order = np.argsort(size, kind="stable")
        rank = int(np.searchsorted(_shares(self.weight[order]), coverage - 1e-12))
        if rank == len(size):
            return None
        width = size[order[rank]] * self.at(seen)
        return np.exp(-width), np.exp(width)

    def lower(self, seen: Seen, risk: float) -> Array:
        """The factor below predictions that at most a share `risk` of cases falls short of, shape (N,).

        0 for too few errors.
        """
        rank = int(np.searchsorted(_shares(self.weight), risk + 1e-12, side="right"))
        factors: Array = np.exp(self.standard[rank - 1] * self.at(seen)) if rank else np.zeros(len(seen.kept))
        return factors

    def as_arrays(self) -> dict[str, Array]:
        """What was learnt, as plain arrays."""
        return {
            "default": self.place.default,
            "width": self.place.width,
            "usual": np.array([self.usual]),
            "growth": self.growth,
            "standard": self.standard,
            "weight": self.weight,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Spread:
        """The spread that `as_arrays` gave."""
        place = Place(arrays["default"], arrays["width"])
        return cls(place, float(arrays["usual"][0]), arrays["growth"], arrays["standard"], arrays["weight"])


def _shares(weight: Array) -> Array:
    """The share up to each entry of all weight and that of one case more: the one to be told."""
    shares: Array = np.cumsum(weight) / (weight.sum() + weight.mean()) if len(weight) else np.zeros(0)
    return shares


def _spread(logarithm: Array) -> Array:
    spread: Array = np.exp(np.clip(logarithm, np.log(LEAST), np.log(MOST)))
    return spread


def fit_spreads(errors: Mapping[str, Errors], places: Mapping[str, Place]) -> dict[str, Spread]:
    """The spread of each NF, and the standard errors of all.

    The logarithm of the spread is linear in what it grows with. Most likely under Student's t, with NFs not far from
    each other: a hierarchical model (Gelman et al., Bayesian Data Analysis, chapter 5). The less of an error is noise,
    the more it tells of the errors' shape, and so it weighs.
    """
    if not errors:
        return {}
    names = list(errors)
    nf = np.repeat(np.arange(len(names)), [len(errors[name].logarithm) for name in names])
    logarithm, where, noise = (
        np.concatenate([getattr(errors[name], part) for name in names]) for part in ("logarithm", "where", "noise")
    )
    usual, growth = _most_likely(nf, len(names), logarithm, where, noise)
    # an error smaller than what the noise itself is uncertain by cannot be told from none
    usual = np.maximum(usual, 0.25 * np.log(max(2 * float((noise**2).mean()) / len(noise), LEAST**4)))
    variance = _spread(usual[nf] + (growth[nf] * where).sum(axis=1)) ** 2
    standard = logarithm / np.sqrt(variance + noise)
    order = np.argsort(standard, kind="stable")
    weight = variance / (variance + noise)
    return {
        name: Spread(places[name], float(np.exp(usual[at])), growth[at], standard[order], weight[order])
        for at, name in enumerate(names)
    }


def _most_likely(nf: NDArray[np.intp], count: int, logarithm: Array, where: Array, noise: Array) -> tuple[Array, Array]:
    """Per NF, the logarithm of the usual spread, shape (count,), and its growth, shape (count, 2).

    Of an error plus noise the tails are lighter than the error's own: as much as their fourth moments say, by how much
    of the variance is noise, which the spread tells. So both are found in turn.
    """
    squared, width = logarithm**2, where.shape[1]
    terms = np.column_stack([np.ones(len(where)), where])
    apart = np.array([APART, *[SLOPES_APART] * width])
    common = np.array([np.inf, *[SLOPE] * width])
    freedom = np.full(len(squared), FREEDOM)

    def unpack(vector: Array) -> tuple[Array, Array]:
        shared, *own = vector.reshape(count + 1, width + 1)
        return shared, np.array(own)

    def variance(vector: Array) -> Array:
        shared, own = unpack(vector)
        return _spread((terms * (shared + own)[nf]).sum(axis=1)) ** 2

    def cost(vector: Array) -> tuple[float, Array]:
        (shared, own), expected = unpack(vector), variance(vector)
        shrunk = (freedom - 2) / freedom
        scale = shrunk * (expected + noise)
        tail = 1 + squared / scale / freedom
        slope = expected * shrunk / scale * (1 - (freedom + 1) * squared / scale / freedom / tail)
        by_nf = np.column_stack([np.bincount(nf, slope * column, count) for column in terms.T])
        value = 0.5 * np.log(scale).sum() + ((freedom + 1) / 2 * np.log(tail)).sum()
        value += 0.5 * (((own / apart) ** 2).sum() + ((shared / common) ** 2).sum())
        return float(value), np.concatenate([by_nf.sum(axis=0) + shared / common**2, (by_nf + own / apart**2).ravel()])

    likely = np.zeros((count + 1) * (width + 1))
    likely[0] = 0.5 * np.log(max(float(squared.mean() - noise.mean()), 0.1 * float(squared.mean()), LEAST**2))
    for _ in range(ROUNDS):
        likely = minimize(cost, likely, jac=True, method="L-BFGS-B").x
        share = variance(likely) / (variance(likely) + noise)
        freedom = 4 + (FREEDOM - 4) / np.maximum(share, 0.05) ** 2
    shared, own = unpack(likely)
    found = shared + own
    return found[:, 0], found[:, 1:]
