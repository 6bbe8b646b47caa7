"""How far predictions err: split-conformal intervals, wider where less is known.

Errors are divided by their local spread, which is larger away from default traffic, around which profiles are dense,
and where contention costs much. How the spread grows is learnt of all NFs together, how large it is of each NF: a few
dozen runs of one NF do not determine more. The quantiles of the standardised errors of all NFs make the intervals
(split-conformal prediction with local scale: Lei et al., 2018, doi:10.1080/01621459.2017.1307116, section 5.2).

A measured run errs by its own noise as well. Where repeats reveal its variance, it is subtracted, so that intervals
hold the throughput itself; a single measurement scatters around that. Where nothing was repeated, noise counts as error
and intervals hold measurements.

Over four profiles of the simulated card (400 runs per NF) intervals of 80, 90 and 95 % held 81, 89 and 93 % of the
throughputs of fresh co-locations at random traffic, and 87, 93 and 97 % at default traffic, where noise exceeds the
error, so that the rest cannot be estimated that small.

N errors support quantiles down to 1 / (N + 1). Below, Student's t distribution extends them: its tail is heavier than
a normal one, as that of the errors. Measurements that are typically more than `ABSURD_QUANTILE`
times off are refused in training, so extrapolation stops there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from predictor.contention.calibration import Conditions
from predictor.contention.conditions_of_members import (
    DISTANCE_COUNT,
    LEAST_SHARE,
    MOST_SHARE,
    USUAL_COMPETITORS,
    write_all_distances,
    write_all_spreads,
)
from predictor.regression.significant import significant
from profiles import ATTRIBUTES
from profiles.arrays import Floats

UNKNOWN_ERROR = 0.1
"""Spread of the logarithm that is assumed where no error is known."""
DEGREES_OF_FREEDOM = 4.5
"""Degrees of freedom of Student's t distribution that errors follow closely enough to estimate their spread."""
ABSURD_QUANTILE = 3.0
"""The factor by which neither typical measurements nor extrapolated quantiles may be off."""


@dataclass(frozen=True)
class HeldOutErrors:
    """Errors of one NF on runs that were left out of training, one entry per run."""

    logarithm: Floats
    """Measured over predicted, shape (N,)."""
    distance: Floats
    """As `TrafficScale.distance` returns it, shape (N, 3)."""
    noise: Floats
    """Variance of the measurement, 0 where it is not known, shape (N,)."""


@dataclass(frozen=True)
class TrafficScale:
    """Default traffic, and the width of the measured ranges: shapes (3,), on the scale of `_coordinates`."""

    default: Floats
    width: Floats

    @classmethod
    def of(cls, default: Floats, measured: Mapping[str, tuple[float, float]]) -> TrafficScale:
        """From default traffic, shape (3,), and the range that was measured of each attribute."""
        low, high = (_coordinates(np.array([[measured[name][end] for name in ATTRIBUTES]]))[0] for end in (0, 1))
        return cls(_coordinates(default[None, :])[0], np.maximum(high - low, 1.0))

    def deviation(self, traffic: Floats) -> Floats:
        """How far traffic is from default, as a share of the measured range, shape (N, 3)."""
        deviation: Floats = (_coordinates(traffic) - self.default) / self.width
        return deviation

    def distance(self, conditions: Conditions) -> Floats:
        """What the spread grows with: distance from default traffic, 0 to 1, drop, and competitors, shape (N, 3)."""
        distance = np.empty((len(conditions.kept), DISTANCE_COUNT))
        deviation, competitors = self.deviation(conditions.traffic), conditions.competitors(USUAL_COMPETITORS)
        write_all_distances(deviation, conditions.kept, competitors, distance)
        return distance


def _coordinates(traffic: Floats) -> Floats:
    """Traffic, shape (N, 3), on scales on which throughput changes evenly."""
    logarithm = [np.log(np.maximum(traffic[:, :2], 1.0)), np.log1p(traffic[:, 2] / 100.0)]
    return significant(np.column_stack(logarithm), of=1.0)


def lower_factors(exponents: Floats, spread: Floats) -> Floats:
    """The factors of `ErrorModel.lower` by `lower_exponents`, a row of which belongs to each spread, shape (N,).

    Where errors are extrapolated: the quantile of Student's t of variance 1; not above the smallest measured error, not
    absurdly far below.
    """
    tail = np.maximum(np.exp(exponents[:, 0] * spread), exponents[:, 1])
    factors: Floats = np.minimum(tail, np.exp(exponents[:, 2] * spread))
    return factors


@dataclass(frozen=True)
class ErrorModel:
    """How far predictions of one NF err in co-locations."""

    scale: TrafficScale
    """What distance is measured from."""
    usual: float
    """The spread (of the logarithm) at default traffic and a typical drop."""
    growth: Floats
    """The logarithm of how many times as large it is, per unit of distance. Shape (3,)."""
    standard: Floats
    """Errors divided by their spread, ascending, shape (M,)."""
    weight: Floats
    """How much each of them counts, shape (M,)."""

    @classmethod
    def even(cls, scale: TrafficScale, errors: Floats) -> ErrorModel:
        """Of errors, shape (N,), that are taken to be as large everywhere."""
        usual = float(np.clip(np.sqrt((errors**2).mean()), LEAST_SHARE, MOST_SHARE)) if len(errors) else UNKNOWN_ERROR
        return cls(scale, usual, np.zeros(DISTANCE_COUNT), np.sort(errors) / usual, np.ones(len(errors)))

    @classmethod
    def unknown(cls) -> ErrorModel:
        """Where no error is known."""
        return cls.even(TrafficScale(np.zeros(3), np.ones(3)), np.zeros(0))

    @property
    def least_risk(self) -> float:
        """The smallest risk for which `lower` returns a quantile of measured errors; 1 where none is known."""
        return float(self._cumulative[0]) if len(self.weight) else 1.0

    @cached_property
    def _cumulative(self) -> Floats:
        return _shares(self.weight)

    def at(self, conditions: Conditions) -> Floats:
        """The spread of each prediction, shape (N,)."""
        spread = np.empty(len(conditions.kept))
        write_all_spreads(self.usual, self.growth, self.scale.distance(conditions), spread)
        return spread

    def interval(self, spread: Floats, coverage: float) -> tuple[Floats, Floats] | None:
        """Factors below and above predictions of that spread between which a share `coverage` of cases lies.

        Each of shape (N,); None for too few errors.
        """
        size = np.abs(self.standard)
        order = np.argsort(size, kind="stable")
        rank = int(np.searchsorted(_shares(self.weight[order]), coverage - 1e-12))
        if rank == len(size):
            return None
        width = size[order[rank]] * spread
        return np.exp(-width), np.exp(width)

    def lower(self, spread: Floats, risk: float) -> Floats:
        """The factor below predictions of that spread that at most a share `risk` of cases falls short of, shape (N,).

        Below `least_risk` it is extrapolated.
        """
        return lower_factors(np.array([self.lower_exponents(risk)]), spread)

    def lower_exponents(self, risk: float) -> tuple[float, float, float]:
        """What `lower` consists of: exp(a spread), at least b, at most exp(c spread)."""
        rank = int(np.searchsorted(self._cumulative, risk + 1e-12, side="right"))
        if rank:
            measured = float(self.standard[rank - 1])
            return measured, 0.0, measured
        from scipy.special import stdtrit

        smallest = float(self.standard[0]) if len(self.standard) else 0.0
        shrunk = np.sqrt((DEGREES_OF_FREEDOM - 2) / DEGREES_OF_FREEDOM)
        tail = float(shrunk * stdtrit(DEGREES_OF_FREEDOM, min(risk, 0.5)))
        return tail, 1.0 / ABSURD_QUANTILE, min(smallest, 0.0)

    def shortfall(self, spread: Floats, factor: Floats) -> Floats:
        """The probability that throughput is below `factor` times a prediction of that spread, both of shape (N,).

        Between measured errors by their shares; beyond them by Student's t of variance 1.
        """
        from scipy.special import stdtr

        standard = np.log(np.maximum(factor, 1e-12)) / spread
        tail: Floats = stdtr(DEGREES_OF_FREEDOM, standard / np.sqrt((DEGREES_OF_FREEDOM - 2) / DEGREES_OF_FREEDOM))
        if not len(self.standard):
            return tail
        measured = np.interp(standard, self.standard, self._cumulative)
        return np.where(standard < self.standard[0], np.minimum(tail, measured), measured)

    def as_arrays(self) -> dict[str, Floats]:
        """What was learnt, as plain arrays."""
        return {
            "default": self.scale.default,
            "width": self.scale.width,
            "usual": np.array([self.usual]),
            "growth": self.growth,
            "standard": self.standard,
            "weight": self.weight,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Floats]) -> ErrorModel:
        """The model that `as_arrays` returned."""
        scale = TrafficScale(arrays["default"], arrays["width"])
        growth = np.pad(arrays["growth"], (0, DISTANCE_COUNT - len(arrays["growth"])))  # format 4 has the first two
        return cls(scale, float(arrays["usual"][0]), growth, arrays["standard"], arrays["weight"])


def _shares(weight: Floats) -> Floats:
    """The share up to each entry of all weight and that of one case more: the one to predict."""
    shares: Floats = np.cumsum(weight) / (weight.sum() + weight.mean()) if len(weight) else np.zeros(0)
    return shares


def spread_of(logarithm: Floats) -> Floats:
    """The spread of that logarithm, within what is plausible."""
    spread: Floats = np.exp(np.clip(logarithm, np.log(LEAST_SHARE), np.log(MOST_SHARE)))
    return spread
