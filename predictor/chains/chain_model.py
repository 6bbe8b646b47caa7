"""A chain's performance from the profiles of its NFs, corrected by measured runs of the chain.

1. Each NF's profile predicts what its stage costs (`stages`).
2. A rule composes the costs (`rules`). By default it is the weakest link; measured runs show whether another one fits
   better.
3. What measured runs leave over is corrected as a smooth factor (`correction`), but only where they show that this is
   better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.chains.correction import Correction
from predictor.chains.placed_chain import PlacedChain
from predictor.chains.profiled_nf import ProfiledNf
from predictor.chains.rules import CompositionRule, CostsByCore, SoftWeakestLink, weakest_link
from predictor.chains.settings import ENOUGH, Settings, settings_of
from predictor.chains.stages import Columns, StageCosts, stage_costs

Array = NDArray[np.float64]

POWERS = (1.5, 2.0, 3.0, 4.0, 6.0, 9.0)
"""Of the soft weakest links that measured runs are compared with."""
CLEARLY_BETTER = 1.0
"""By how much the logarithm of its likelihood must exceed that of the first rule for another one to be chosen."""
UNKNOWN_COMPOSITION = 0.15
"""Relative standard deviation of what the rule predicts without any measured run of the chain."""
SURE = 3.0
"""Standard deviations by which a correction must be better for an NF that is measured alone, as it was profiled."""
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
        Relative standard deviation of a single measurement.
    widening
        By how much intervals are wider than the errors that the model expects, from left-out runs.
    """

    profiles: Mapping[str, ProfiledNf]
    chain: PlacedChain
    higher_is_better: bool
    rule: CompositionRule
    correction: Correction | None
    runs: Settings | None
    noise: float
    widening: float = 1.0

    @classmethod
    def fit(
        cls,
        profiles: Mapping[str, ProfiledNf],
        chain: PlacedChain,
        *,
        higher_is_better: bool = True,
        measured_at: Columns | None = None,
        measured: Array | None = None,
        rule: CompositionRule | None = None,
    ) -> ChainModel:
        """The model of a chain.

        Parameters
        ----------
        profiles
            By NF.
        chain
            The stages on their cores.
        higher_is_better
            Whether the measure is a throughput; else it is a response time.
        measured_at, measured
            Runs of the chain: columns, and the measure, above 0, shape (runs,).
        rule
            How costs compose; None: the weakest link, or what fits the measured runs better.
        """
        noise = float(np.median([profile.settings.spread for profile in profiles.values()]))
        first = rule or weakest_link(len(chain.stages))
        model = cls(profiles, chain, higher_is_better, first, None, None, noise)
        if measured_at is None or measured is None or not len(measured):
            return model
        names = tuple(measured_at)
        runs = settings_of(names, np.column_stack([measured_at[name] for name in names]), measured)
        return _Fitting(model, runs).best([first] if rule else _rules(len(chain.stages)))

    def predict(self, columns: Columns, *, coverage: float = COVERAGE) -> ChainPredictions:
        """What the chain reaches at each row of `columns`, with intervals of this coverage for single measurements."""
        from scipy.stats import norm

        stages = self.stage_costs(columns)
        logarithm, error = self._composed(stages)
        within = float(norm.ppf((1 + coverage) / 2)) * self.widening * np.hypot(error, self.noise)
        weakest = np.argmax(stages.costs * self.chain.shares, axis=1)
        return ChainPredictions(
            np.exp(logarithm),
            np.exp(logarithm - within),
            np.exp(logarithm + within),
            [self.chain.stages[at].nf for at in weakest],
            stages.extrapolated,
        )

    def stage_costs(self, columns: Columns) -> StageCosts:
        """What each stage costs alone at each row of `columns`."""
        return stage_costs(self.profiles, self.chain, columns, higher_is_better=self.higher_is_better)

    def uncorrected(self, stages: StageCosts, rule: CompositionRule | None = None) -> Array:
        """Natural logarithm of the measure by the rule alone, shape (N,)."""
        cost = (rule or self.rule).cost(stages.costs, self.chain.shares)
        return np.asarray(-np.log(cost) if self.higher_is_better else np.log(cost))

    def _composed(self, stages: StageCosts) -> tuple[Array, Array]:
        """Natural logarithm of the measure, and the standard deviation of its error without noise."""
        logarithm = self.uncorrected(stages)
        if self.correction is not None:
            factor, error = self.correction(features_of(stages, self.chain.shares))
            return logarithm + factor, error
        weakest = np.argmax(stages.costs * self.chain.shares, axis=1)
        unknown = UNKNOWN_COMPOSITION if len(self.chain.stages) > 1 and self.runs is None else 0.0
        return logarithm, np.hypot(stages.errors[np.arange(len(weakest)), weakest], unknown)


def features_of(stages: StageCosts, shares: Array) -> Array:
    """What a correction may depend on: configuration and workload, each stage's cost relative to the largest, its size."""
    reached = stages.costs * shares
    largest = reached.max(axis=1, keepdims=True)
    several = reached / largest if reached.shape[1] > 1 else np.empty((len(reached), 0))
    return np.column_stack([stages.inputs, several, np.log(largest)])


def _rules(stages: int) -> Sequence[CompositionRule]:
    """The rules that measured runs are compared with; the first is preferred."""
    if stages == 1:
        return [weakest_link(1)]
    together = CostsByCore((tuple(range(stages)),))
    return [weakest_link(stages), together, *map(SoftWeakestLink, POWERS)]


@dataclass(frozen=True)
class _Fitting:
    """Fits rule and correction to measured runs."""

    model: ChainModel
    runs: Settings

    def best(self, rules: Sequence[CompositionRule]) -> ChainModel:
        """The model with the most likely rule, and its correction if that is better than none."""
        stages = self.model.stage_costs(dict(zip(self.runs.names, self.runs.inputs.T, strict=True)))
        fitted = [self._corrected(rule, stages) for rule in rules]
        likely = [correction.process.likelihood for correction in fitted]
        likely[0] += CLEARLY_BETTER
        chosen = int(np.argmax(likely))
        factor = np.log(self.runs.value) - self.model.uncorrected(stages, rules[chosen])
        return self._with(rules[chosen], fitted[chosen], factor)

    def _corrected(self, rule: CompositionRule, stages: StageCosts) -> Correction:
        factor = np.log(self.runs.value) - self.model.uncorrected(stages, rule)
        doubtful = np.array([len(one) < ENOUGH for one in self.runs.repeats])
        features = features_of(stages, self.model.chain.shares)
        return Correction.fit(features, factor, self._noise**2 / self.runs.count, doubtful)

    @property
    def _noise(self) -> float:
        repeated = any(len(one) > 1 for one in self.runs.repeats)
        return self.runs.spread if repeated else self.model.noise

    def _with(self, rule: CompositionRule, correction: Correction, factor: Array) -> ChainModel:
        from dataclasses import replace

        error, deviation = correction.process.left_out()
        gain = np.abs(factor[correction.kept]) - np.abs(error)
        needed = SURE * gain.std() / np.sqrt(len(gain)) if len(self.model.chain.stages) == 1 else 0.0
        useful = gain.mean() > needed
        ratio = float(np.mean(np.minimum((error / deviation) ** 2, 9.0)))
        widening = np.sqrt((len(error) * max(ratio, 1.0) + 5) / (len(error) + 5))
        return replace(
            self.model, rule=rule, correction=correction if useful else None, runs=self.runs,
            noise=self._noise, widening=float(widening) if useful else 1.0,
        )  # fmt: skip
