"""Fits the model of a chain to measured runs of it, where there are any. By default the rule is the weakest link;
measured runs show whether another one fits better, and whether a correction is better than none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from predictor.chains.chain_model import ChainModel, Columns, Correction, StageCosts, features_of, improves
from predictor.chains.placed_chain import (
    CompositionRule,
    Cores,
    CostsByCore,
    PlacedChain,
    SoftWeakestLink,
    weakest_link,
)
from predictor.chains.process import TUNING_STEPS
from predictor.chains.profiled_nf import ProfiledNf
from predictor.chains.settings import ENOUGH_REPEATS, Settings, settings_of
from profiles.arrays import Floats

SOFT_POWERS = (1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0)
"""Of the soft weakest links that measured runs are compared with."""
SOURCE_SHARES = (0.0, 0.25, 0.5, 0.75)
"""Of the cheapest NF's cost, that are tried for a source that was not measured."""
COMPARED_ON = 200
"""Measured settings on which rules are compared; with more, these are drawn at random."""
ROUGH_ITERATIONS, RULES_FITTED_FULLY = 6, 2
"""Iterations with which all rules are compared, and how many of them are then fitted completely."""
CLEARLY_BETTER = 1.0
"""By how much the logarithm of its likelihood must exceed that of the first rule for another one to be chosen."""
FEW_RUNS = 8
"""With so few measured runs, the error of what was learnt from them doubles its expected variance."""
LARGEST_RATIO = 9.0
"""Of a left-out run's squared error and its expectation; what is larger counts as an outlier."""
CHANCE_ALONE, CHANCE_OF_CHAIN = 1e-4, 0.15
"""How probable it may be that a correction looks better than none by chance: for an NF that is measured alone, as it
was profiled, and for a chain, of which no rule is exact."""


def fit_chain(
    profiles: Mapping[str, ProfiledNf],
    chain: PlacedChain,
    *,
    higher_is_better: bool = True,
    measured_at: Columns | None = None,
    measured: Floats | None = None,
    cores_are_known: bool = False,
    source: str | None = None,
) -> ChainModel:
    """The model of a chain.

    `profiles`: by NF. `chain`: the stages on their cores. `higher_is_better`: whether the measure is a throughput; else
    it is a response time. `measured_at`, `measured`: runs of the chain: columns, and the measure, above 0, shape
    (runs,). `cores_are_known`: whether costs add on each of the chain's cores. Else the rule is the weakest link, or
    what fits the measured runs better. `source`: the profile of an NF that does nothing, whose cost every other profile
    contains."""
    measured_alone = [profile.settings for profile in profiles.values()]
    noise = float(np.median([settings.spread for settings in measured_alone]))
    outliers = sum(nf.left_out for nf in measured_alone) / sum(nf.measurements for nf in measured_alone)
    known = cores_are_known and len(chain.stages) > 1
    rules = _by_core(chain.cores, source) if known else _rules(len(chain.stages), source)
    model = ChainModel(profiles, chain, higher_is_better, rules[0], None, None, noise, outliers, source)
    if measured_at is None or measured is None or not len(measured):
        return model
    names = tuple(measured_at)
    runs = settings_of(names, np.column_stack([measured_at[name] for name in names]), measured)
    return _Fitting(model, runs).best(rules)


def _rules(stages: int, source: str | None) -> Sequence[CompositionRule]:
    """The rules that measured runs are compared with; the first is preferred."""
    if stages == 1:
        return [weakest_link(1)]
    together = (tuple(range(stages)),)
    return [weakest_link(stages), *_by_core(together, source), *map(SoftWeakestLink, SOFT_POWERS)]


def _by_core(cores: Cores, source: str | None) -> list[CompositionRule]:
    return [CostsByCore(cores, share) for share in (SOURCE_SHARES if source is None else (0.0,))]


@dataclass(frozen=True)
class _Fitting:
    """Fits rule and correction to measured runs."""

    model: ChainModel
    runs: Settings

    def best(self, rules: Sequence[CompositionRule]) -> ChainModel:
        """The most likely rule with its correction, if that is better than the first rule alone."""
        some = np.sort(np.random.default_rng(0).permutation(len(self.runs))[:COMPARED_ON])
        rule = _Fitting(self.model, self.runs.at(some)).most_likely(rules) if len(rules) > 1 else rules[0]
        stages = self._stages()
        correction = self._corrected(rule, stages, TUNING_STEPS)
        uncorrected = np.log(self.runs.value) - self.model.uncorrected(stages, rules[0])
        return self._with(rule, correction, uncorrected[correction.kept])

    def most_likely(self, rules: Sequence[CompositionRule]) -> CompositionRule:
        """The rule that fits the runs best together with its correction."""
        stages = self._stages()
        rough = [self._corrected(rule, stages, ROUGH_ITERATIONS).process.likelihood for rule in rules]
        rough[0] += CLEARLY_BETTER
        tried: set[int] = {0, *np.argsort(rough)[-RULES_FITTED_FULLY:].tolist()}
        likely = {at: self._corrected(rules[at], stages, TUNING_STEPS).process.likelihood for at in tried}
        likely[0] += CLEARLY_BETTER
        return rules[max(likely, key=likely.__getitem__)]

    def _stages(self) -> StageCosts:
        return self.model.stage_costs(dict(zip(self.runs.names, self.runs.inputs.T, strict=True)))

    def _corrected(self, rule: CompositionRule, stages: StageCosts, iterations: int) -> Correction:
        factor = np.log(self.runs.value) - self.model.uncorrected(stages, rule)
        doubtful = np.array([len(repeat) < ENOUGH_REPEATS for repeat in self.runs.repeats])
        features = features_of(stages, self.model.chain.shares)
        variance = self._noise**2 / self.runs.count
        return Correction.fit(features, factor, variance, doubtful, iterations=iterations)

    @property
    def _noise(self) -> float:
        repeated = any(len(repeat) > 1 for repeat in self.runs.repeats)
        return self.runs.spread if repeated else self.model.noise

    def _with(self, rule: CompositionRule, correction: Correction, uncorrected: Floats) -> ChainModel:
        """The model with this rule and correction, where they are better than what is left without them."""
        error, deviation = correction.process.left_out()
        count, variance = len(error), self._noise**2 / self.runs.count[correction.kept]
        left = float(np.mean(uncorrected**2 - variance))
        few = 1 + FEW_RUNS / count
        measured = replace(self.model, runs=self.runs, noise=self._noise)
        if not self._useful(np.abs(uncorrected) - np.abs(error)):
            return replace(measured, misfit=float(np.sqrt(max(left, 0.0))), widening=float(np.sqrt(few)))
        ratio = float(np.mean(np.minimum((error / deviation) ** 2, LARGEST_RATIO)))
        calibrated = (count * max(ratio, 1.0) + FEW_RUNS) / (count + FEW_RUNS)
        return replace(measured, rule=rule, correction=correction, widening=float(np.sqrt(calibrated * few)))

    def _useful(self, gain: Floats) -> bool:
        """Whether left-out runs are predicted better with the correction; `gain` is by how much, shape (runs,)."""
        alone = len(self.model.chain.stages) == 1
        return improves(gain, CHANCE_ALONE if alone else CHANCE_OF_CHAIN) if len(gain) > 1 else not alone
