"""A chain's performance from the profiles of its NFs, corrected by measured runs of the chain.

1. Each NF's profile predicts what its stage costs (`stage_costs`).
2. A rule composes the costs (`CompositionRule`).
3. Measured runs show by which factors stages differ from their profiles, and which rule holds (`Correction`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from predictor.chains.placed_chain import CompositionRule, PlacedChain
from predictor.chains.profiled_nf import ProfiledNf
from predictor.chains.settings import Settings
from predictor.chains.stage_costs import Columns, StageCosts, stage_costs
from predictor.chains.stage_factors import Correction
from profiles.arrays import Floats

UNKNOWN_WORSE, UNKNOWN_BETTER = 0.35, 0.12
"""Relative standard deviation of what the weakest link predicts without any measured run of the chain, in the direction
of worse and of better performance. Assumed: a chain is more often worse (van Rossem et al., section 5.3)."""
HIGHEST_LEVEL = 0.998
"""Of the interval without outliers that together with them has the coverage that was asked for."""
INTERVAL_COVERAGE = 0.9
FALLING_WEIGHT = 0.75
"""Of the falling function of the throughput beside the latency's own model. Chosen on recorded chains of programs: with
0.6 to 1, the p95 of their other settings errs by 0.7 to 1.4 points less than with a half."""


@dataclass(frozen=True)
class ChainPredictions:
    """What is predicted of a chain, one row per configuration and workload."""

    predicted: Floats
    """The measure, in the unit of the profiles."""
    low: Floats
    high: Floats
    """Ends of the interval in which a measurement lies with the probability that was asked for."""
    weakest: list[str]
    """The NF that costs most."""
    extrapolated: NDArray[np.bool_]
    """Whether a stage is outside its profile, or a latency is predicted beyond the throughput of all runs."""


@dataclass(frozen=True)
class ChainModel:
    """A fitted model of one chain."""

    profiles: Mapping[str, ProfiledNf]
    chain: PlacedChain
    """The stages on their cores."""
    higher_is_better: bool
    """Whether the measure is a throughput; else it is a response time."""
    rule: CompositionRule
    """How the costs of stages compose; with a correction, the most probable of its rules."""
    correction: Correction | None
    """By measured runs; None without, or where they show no need."""
    runs: Settings | None
    """Distinct measured settings of the chain."""
    noise: float
    """Relative standard deviation of a single measurement that is no outlier."""
    outliers: float
    """Share of measurements that are outliers."""
    source: str | None = None
    """The profile of an NF that does nothing; None where there is none."""
    widening: float = 1.0
    """By how much intervals are wider than the errors that the model expects, from left-out runs."""
    misfit: float = 0.0
    """Relative standard deviation of what an uncorrected model leaves over, without noise."""
    doubt: float = 0.0
    """How far, on logarithms, predictions are moved from the corrected ones towards those of `assumed`."""
    assumed: CompositionRule | None = None
    """The rule of a chain that was not run; None where that is `rule`."""

    def predict(self, columns: Columns, *, coverage: float = INTERVAL_COVERAGE) -> ChainPredictions:
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

    @property
    def trusted_runs(self) -> Settings:
        """The measured settings without those that are outliers beside the others. Requires runs."""
        assert self.runs is not None
        if self.correction is None:
            return self.runs
        return self.runs.at(self.correction.learnt_from[self.correction.kept])

    def uncorrected(self, stages: StageCosts, rule: CompositionRule | None = None) -> Floats:
        """Natural logarithm of the measure by the rule alone, shape (N,)."""
        cost = (rule or self.rule).cost(stages.costs, self.chain.shares, stages.source)
        return np.asarray(-np.log(cost) if self.higher_is_better else np.log(cost))

    def _composed(self, stages: StageCosts) -> tuple[Floats, Floats]:
        """Natural logarithm of the measure, and the standard deviation of its error without noise."""
        if self.correction is not None:
            cost, error = self.correction(stages)
            logarithm = -cost if self.higher_is_better else cost
            moved = self.doubt * (self.uncorrected(stages, self.assumed) - logarithm)
            return logarithm + moved, np.hypot(error, moved)
        logarithm = self.uncorrected(stages)
        weakest = np.argmax(stages.costs * self.chain.shares, axis=1)
        return logarithm, np.hypot(stages.errors[np.arange(len(weakest)), weakest], self.misfit)

    @property
    def _composition_is_known(self) -> bool:
        return len(self.chain.stages) == 1 or self.runs is not None

    def _unknown(self, within: Floats, level: float) -> tuple[Floats, Floats]:
        """Interval ends below and above, wider by what is not known of the composition."""
        from scipy.stats import norm

        quantile = float(norm.ppf((1 + level) / 2))
        worse, better = np.hypot(within, quantile * UNKNOWN_WORSE), np.hypot(within, quantile * UNKNOWN_BETTER)
        return (worse, better) if self.higher_is_better else (better, worse)


@dataclass(frozen=True)
class ClosedLoopModel:
    """The latency of a chain in which a fixed number of requests is under way, by its own model and by its throughput.

    Where cores have shares of a period, a high percentile of the latency goes in steps: most requests are answered at
    once, or wait for the next period, or for the one after it. Which of these holds follows from how many answers come
    in a period, and hardly from the percentile of any NF alone. So the runs of the chain show a falling function of the
    throughput, and the predicted throughput where a setting is on it. Either model errs where the other one does not:
    the prediction is their geometric mean, weighted in favour of the falling function. The interval contains that of
    the latency's model around either, and the falling function over that of the throughput: a run beside a step may be
    on either side of it.

    Where the predicted throughput is below or above that of all runs by more than a measurement's noise, they show
    nothing of the function: the latency's model predicts alone, and the row is marked as extrapolated."""

    latency: ChainModel
    throughput: ChainModel
    """Both with runs of the chain, of the same inputs."""

    def predict(self, columns: Columns, *, coverage: float = INTERVAL_COVERAGE) -> ChainPredictions:
        """The latency at each row of `columns`."""
        found = self.latency.predict(columns, coverage=coverage)
        kpps, falling = self._falling()
        if not len(kpps):
            return found
        expected, noise = self.throughput.predict(columns, coverage=coverage), self.throughput.noise
        reached = np.log(expected.predicted)
        beyond = (reached < kpps[0] - noise) | (reached > kpps[-1] + noise)
        shown = ~beyond & (kpps[0] < kpps[-1])  # runs of a single throughput show no function of it
        apart = np.where(shown, np.interp(reached, kpps, falling) - np.log(found.predicted), 0.0)
        low, high = found.low * np.exp(np.minimum(apart, 0)), found.high * np.exp(np.maximum(apart, 0))
        least, most = (np.exp(np.interp(np.log(ends), kpps, falling)) for ends in (expected.high, expected.low))
        low, high = np.where(shown, np.minimum(low, least), low), np.where(shown, np.maximum(high, most), high)
        predicted, extrapolated = found.predicted * np.exp(FALLING_WEIGHT * apart), found.extrapolated | beyond
        return replace(found, predicted=predicted, low=low, high=high, extrapolated=extrapolated)

    def _falling(self) -> tuple[Floats, Floats]:
        """Natural logarithms of throughput and latency by the settings that have both, in the order of the throughput.

        What the latency's model takes for an outlier may be a step, of which it knows nothing: such a setting is left
        out only if it contradicts a falling function of all."""
        from scipy.optimize import isotonic_regression

        assert self.latency.runs is not None
        kpps, us = (
            {tuple(at): value for at, value in zip(runs.inputs, np.log(runs.value), strict=True)}
            for runs in (self.throughput.trusted_runs, self.latency.runs)
        )
        sure = {tuple(at) for at in self.latency.trusted_runs.inputs}
        both = np.array(sorted((kpps[at], us[at], at in sure) for at in kpps.keys() & us.keys()))
        if not len(both):
            return np.empty(0), np.empty(0)
        apart = np.abs(both[:, 1] - isotonic_regression(both[:, 1], increasing=False).x)
        kept = both[(both[:, 2] > 0) | (apart <= self.latency.noise)]
        return kept[:, 0], isotonic_regression(kept[:, 1], increasing=False).x
