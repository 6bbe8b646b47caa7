"""A chain's performance from the profiles of its NFs, corrected by measured runs of the chain.

1. Each NF's profile predicts what its stage costs (`stages`).
2. A rule composes the costs (`rules`).
3. What measured runs leave over is corrected as a smooth factor (`correction`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.chains.correction import Correction
from predictor.chains.placed_chain import PlacedChain
from predictor.chains.profiled_nf import ProfiledNf
from predictor.chains.rules import CompositionRule
from predictor.chains.settings import Settings
from predictor.chains.stages import Columns, StageCosts, stage_costs

Array = NDArray[np.float64]

UNKNOWN_WORSE, UNKNOWN_BETTER = 0.35, 0.12
"""Relative standard deviation of what the weakest link predicts without any measured run of the chain, in the direction
of worse and of better performance. Assumed: a chain is more often worse (van Rossem et al., section 5.3)."""
WEAK = 4.0
"""Power of a stage's relative cost in features: stages that cost much less than the weakest hardly matter."""
HIGHEST_LEVEL = 0.998
"""Of the interval without outliers that together with them has the coverage that was asked for."""
COVERAGE = 0.9


@dataclass(frozen=True)
class ChainPredictions:
    """What is predicted of a chain, one row per configuration and workload.

    Parameters
    ----------
    predicted
        The measure, in the unit of the profiles.
    low, high
        Ends of the interval in which a measurement lies with the probability that was asked for.
    weakest
        The NF that costs most.
    extrapolated
        Whether a stage is outside its profile.
    """

    predicted: Array
    low: Array
    high: Array
    weakest: list[str]
    extrapolated: NDArray[np.bool_]


@dataclass(frozen=True)
class ChainModel:
    """A fitted model of one chain.

    Parameters
    ----------
    profiles
        By NF.
    chain
        The stages on their cores.
    higher_is_better
        Whether the measure is a throughput; else it is a response time.
    rule
        How the costs of stages compose.
    correction
        By measured runs; None without, or where they show no need.
    runs
        Distinct measured settings of the chain.
    noise
        Relative standard deviation of a single measurement that is no outlier.
    outliers
        Share of measurements that are outliers.
    source
        The profile of an NF that does nothing; None where there is none.
    widening
        By how much intervals are wider than the errors that the model expects, from left-out runs.
    misfit
        Relative standard deviation of what an uncorrected model leaves over, without noise.
    """

    profiles: Mapping[str, ProfiledNf]
    chain: PlacedChain
    higher_is_better: bool
    rule: CompositionRule
    correction: Correction | None
    runs: Settings | None
    noise: float
    outliers: float
    source: str | None = None
    widening: float = 1.0
    misfit: float = 0.0

    def predict(self, columns: Columns, *, coverage: float = COVERAGE) -> ChainPredictions:
        """What the chain reaches at each row of `columns`, with intervals of this coverage for single measurements."""
        from scipy.stats import norm

        stages = self.stage_costs(columns)
        logarithm, error = self._composed(stages)
        # an outlier is in no interval, so that the others must be in it more often
        level = min(coverage / (1 - self.outliers), HIGHEST_LEVEL)
        within = float(norm.ppf((1 + level) / 2)) * self.widening * np.hypot(error, self.noise)
        below, above = (within, within) if self._composition_is_known else self._unknown(within, level)
        weakest = np.argmax(stages.costs * self.chain.shares, axis=1)
        return ChainPredictions(
            np.exp(logarithm),
            np.exp(logarithm - below),
            np.exp(logarithm + above),
            [self.chain.stages[at].nf for at in weakest],
            stages.extrapolated,
        )

    def stage_costs(self, columns: Columns) -> StageCosts:
        """What each stage costs alone at each row of `columns`."""
        return stage_costs(
            self.profiles, self.chain, columns, higher_is_better=self.higher_is_better, source=self.source
        )

    def uncorrected(self, stages: StageCosts, rule: CompositionRule | None = None) -> Array:
        """Natural logarithm of the measure by the rule alone, shape (N,)."""
        cost = (rule or self.rule).cost(stages.costs, self.chain.shares, stages.source)
        return np.asarray(-np.log(cost) if self.higher_is_better else np.log(cost))

    def _composed(self, stages: StageCosts) -> tuple[Array, Array]:
        """Natural logarithm of the measure, and the standard deviation of its error without noise."""
        logarithm = self.uncorrected(stages)
        if self.correction is not None:
            factor, error = self.correction(features_of(stages, self.chain.shares))
            return logarithm + factor, error
        weakest = np.argmax(stages.costs * self.chain.shares, axis=1)
        return logarithm, np.hypot(stages.errors[np.arange(len(weakest)), weakest], self.misfit)

    @property
    def _composition_is_known(self) -> bool:
        return len(self.chain.stages) == 1 or self.runs is not None

    def _unknown(self, within: Array, level: float) -> tuple[Array, Array]:
        """Interval ends below and above, wider by what is not known of the composition."""
        from scipy.stats import norm

        quantile = float(norm.ppf((1 + level) / 2))
        worse, better = np.hypot(within, quantile * UNKNOWN_WORSE), np.hypot(within, quantile * UNKNOWN_BETTER)
        return (worse, better) if self.higher_is_better else (better, worse)


def features_of(stages: StageCosts, shares: Array) -> Array:
    """What a correction may depend on, shape (N, features).

    The inputs, each stage's cost relative to the largest, and that cost itself.
    """
    reached = stages.costs * shares
    largest = reached.max(axis=1, keepdims=True)
    several = (reached / largest) ** WEAK if reached.shape[1] > 1 else np.empty((len(reached), 0))
    return np.column_stack([stages.inputs, several, np.log(largest)])
