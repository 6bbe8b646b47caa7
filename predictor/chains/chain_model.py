"""A chain's performance from the profiles of its NFs, corrected by measured runs of the chain.

1. Each NF's profile predicts what its stage costs (`stage_costs`).
2. A rule composes the costs (`CompositionRule`).
3. What measured runs leave over is corrected as a smooth factor (`Correction`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.chains.placed_chain import ChainStage, CompositionRule, PlacedChain
from predictor.chains.process import TUNING_STEPS, Assumptions, SmoothProcess, Typical
from predictor.chains.profiled_nf import ProfiledNf
from predictor.chains.settings import DEVIATION_OF_MAD, Settings
from profiles.arrays import Floats

UNKNOWN_WORSE, UNKNOWN_BETTER = 0.35, 0.12
"""Relative standard deviation of what the weakest link predicts without any measured run of the chain, in the direction
of worse and of better performance. Assumed: a chain is more often worse (van Rossem et al., section 5.3)."""
COST_POWER = 4.0
"""Power of a stage's relative cost in features: stages that cost much less than the weakest hardly matter."""
HIGHEST_LEVEL = 0.998
"""Of the interval without outliers that together with them has the coverage that was asked for."""
INTERVAL_COVERAGE = 0.9


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
    """Whether a stage is outside its profile."""


@dataclass(frozen=True)
class ChainModel:
    """A fitted model of one chain."""

    profiles: Mapping[str, ProfiledNf]
    chain: PlacedChain
    """The stages on their cores."""
    higher_is_better: bool
    """Whether the measure is a throughput; else it is a response time."""
    rule: CompositionRule
    """How the costs of stages compose."""
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

    def uncorrected(self, stages: StageCosts, rule: CompositionRule | None = None) -> Floats:
        """Natural logarithm of the measure by the rule alone, shape (N,)."""
        cost = (rule or self.rule).cost(stages.costs, self.chain.shares, stages.source)
        return np.asarray(-np.log(cost) if self.higher_is_better else np.log(cost))

    def _composed(self, stages: StageCosts) -> tuple[Floats, Floats]:
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

    def _unknown(self, within: Floats, level: float) -> tuple[Floats, Floats]:
        """Interval ends below and above, wider by what is not known of the composition."""
        from scipy.stats import norm

        quantile = float(norm.ppf((1 + level) / 2))
        worse, better = np.hypot(within, quantile * UNKNOWN_WORSE), np.hypot(within, quantile * UNKNOWN_BETTER)
        return (worse, better) if self.higher_is_better else (better, worse)


def features_of(stages: StageCosts, shares: Floats) -> Floats:
    """What a correction may depend on, shape (N, features). The inputs, each stage's cost relative to the largest, and
    that cost itself."""
    reached = stages.costs * shares
    largest = reached.max(axis=1, keepdims=True)
    several = (reached / largest) ** COST_POWER if reached.shape[1] > 1 else np.empty((len(reached), 0))
    return np.column_stack([stages.inputs, several, np.log(largest)])


# What the stages of a chain cost at given configurations and workloads, each by its own profile.


Columns = Mapping[str, Floats]
"""Values by column: `nx.cpu` is the configuration of the NF `nx`; columns without a prefix are the shared workload."""

PACKET_SIZE = "packet_size"
"""The workload column that stages upstream change."""


def column_of(nf: str, name: str, columns: Mapping[str, object]) -> str | None:
    """The column that holds input `name` of an NF: its own, else that of the workload, else None."""
    own = f"{nf}.{name}"
    return own if own in columns else name if name in columns else None


@dataclass(frozen=True)
class StageCosts:
    """What the stages of chains cost, one row per chain."""

    costs: Floats
    """One over the throughput, or the response time, of each stage alone. Shape (N, stages)."""
    errors: Floats
    """Relative standard deviation of the error of each. Shape (N, stages)."""
    inputs: Floats
    """The distinct inputs of all stages as shares of their profiled ranges. Shape (N, inputs)."""
    extrapolated: NDArray[np.bool_]
    """Whether a stage is outside its profile. Shape (N,)."""
    source: Floats
    """What the traffic source costs; 0 where it was not measured. Shape (N,)."""


def stage_costs(
    profiles: Mapping[str, ProfiledNf],
    chain: PlacedChain,
    columns: Columns,
    *,
    higher_is_better: bool,
    source: str | None = None,
) -> StageCosts:
    """What each stage costs at each row of `columns`. `profiles`: by NF. `chain`: the stages. `columns`: configurations
    and workloads. `higher_is_better`: whether profiles hold throughputs; else they hold response times. `source`: the
    profile of an NF that does nothing. Raises `KeyError` when a column of a profile has no values."""
    costs, errors, outside = [], [], []
    inputs: dict[str, Floats] = {}
    for stage in chain.stages:
        profile = profiles[stage.nf]
        at = _inputs_of(profile, stage, columns)
        reached = profile.predict(at)
        costs.append(1 / reached if higher_is_better else reached)
        errors.append(profile.error(at))
        outside.append(profile.extrapolated(at))
        scaled = profile.scale(at)
        for number, name in enumerate(profile.settings.names):
            inputs.setdefault(str(column_of(stage.nf, name, columns)), scaled[:, number])
    received = np.zeros(len(costs[0]))
    if source is not None:
        reached = profiles[source].predict(_inputs_of(profiles[source], ChainStage(source), columns))
        received = 1 / reached if higher_is_better else reached
    return StageCosts(
        np.column_stack(costs),
        np.column_stack(errors),
        np.column_stack(list(inputs.values())) if inputs else np.zeros((len(received), 0)),
        np.any(outside, axis=0),
        received,
    )


def _inputs_of(profile: ProfiledNf, stage: ChainStage, columns: Columns) -> Floats:
    values = []
    for name in profile.settings.names:
        column = column_of(stage.nf, name, columns)
        if column is None:
            raise KeyError(f"{stage.nf}.{name}")
        value = np.asarray(columns[column], dtype=np.float64)
        values.append(stage.size(value) if column == PACKET_SIZE else value)
    if not values:  # the profile holds one setting
        return np.zeros((len(next(iter(columns.values()), [0.0])), 0))
    return np.column_stack(values)


# Corrections of predictions by measured chain runs: the factor that is left over, as a smooth function.
#
# The factor is learnt in logarithms by a process that assumes little: without evidence, it stays at 1.


CHAIN_ERROR_PRIOR = Assumptions(
    constant=Typical(0.3, 0.0),
    slope=Typical(0.05, 1.0),
    amplitude=Typical(0.05, 1.0),
    length=Typical(1.5, 0.7),
    nugget=Typical(0.02, 1.0),
)
"""A chain is off by a constant factor of typically 0.3, and by little that depends on its setting."""

FAR_DEVIATIONS, FAR_FACTOR = 4.5, 2.2
"""How far (standard deviations, and as a factor) a run is from the others to be left out."""
OUTLIER_ROUNDS = 3


@dataclass(frozen=True)
class Correction:
    """A factor as a function of features."""

    process: SmoothProcess
    """The factor's natural logarithm."""
    kept: NDArray[np.bool_]
    """Which runs it learnt from; the others are outliers. Shape (runs,)."""

    @classmethod
    def fit(
        cls,
        features: Floats,
        factor: Floats,
        variance: Floats,
        doubtful: NDArray[np.bool_],
        *,
        iterations: int = TUNING_STEPS,
    ) -> Correction:
        """The correction by some runs. `features`: what the factor may depend on, each of about unit range. Shape
        (runs, features). `factor`: natural logarithm of measured over predicted, shape (runs,). `variance`: of its
        noise, shape (runs,). `doubtful`: runs with too few repeats to show an outlier, shape (runs,).
        `iterations`: of the search for the most likely parameters."""
        centre = float(np.median(factor))
        unit = max(DEVIATION_OF_MAD * float(np.median(np.abs(factor - centre))), float(np.sqrt(np.median(variance))))
        kept = ~doubtful | (np.abs(factor - centre) <= max(FAR_DEVIATIONS * unit, np.log(FAR_FACTOR)))
        for _ in range(OUTLIER_ROUNDS):
            process = SmoothProcess.fit(
                features[kept], factor[kept], variance[kept], CHAIN_ERROR_PRIOR, iterations=iterations
            )
            error, deviation = _errors(process, features, factor, variance, kept)
            far = (np.abs(error) > np.maximum(FAR_DEVIATIONS * deviation, np.log(FAR_FACTOR))) & doubtful
            if (kept == ~far).all():
                break
            kept = ~far
        return cls(process.with_measurements(features[kept], factor[kept], variance[kept]), kept)

    def __call__(self, features: Floats) -> tuple[Floats, Floats]:
        """Natural logarithm of the factor, and the standard deviation of its error without noise, each shape (N,)."""
        return self.process(features)


def _errors(
    process: SmoothProcess, features: Floats, factor: Floats, variance: Floats, kept: NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Errors of all runs, of those kept as predicted from the others, with their standard deviations."""
    value, deviation = process(features)
    error, deviation = factor - value, np.sqrt(deviation**2 + variance)
    error[kept], deviation[kept] = process.left_out()
    return error, deviation


def improves(gain: Floats, chance: float) -> bool:
    """Whether gains, shape (runs,), are above 0 on the mean, more than by chance (Student's t, one-sided). `gain`: by
    how much the error of each left-out run becomes smaller; of fewer than two, nothing is known. `chance`: how probable
    it may be that no gain looks like one."""
    from scipy.stats import t as student

    if len(gain) < 2:
        return False
    needed = float(student.ppf(1 - chance, len(gain) - 1)) * gain.std(ddof=1) / np.sqrt(len(gain))
    return bool(gain.mean() > needed)
