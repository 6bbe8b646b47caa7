"""Fits the model of a chain to measured runs of it, where there are any. Without, the rule is the weakest link."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np

from predictor.chains.chain_model import ChainModel
from predictor.chains.placed_chain import (
    CompositionRule,
    Cores,
    CostsByCore,
    PlacedChain,
    SoftWeakestLink,
    weakest_link,
)
from predictor.chains.profiled_nf import ProfiledNf
from predictor.chains.settings import DEVIATION_OF_MAD, ENOUGH_REPEATS, Settings, settings_of
from predictor.chains.stage_costs import Columns
from predictor.chains.stage_factors import ChainRuns, Correction
from profiles.arrays import Floats

SOFT_POWERS = (3.0, 6.0, 12.0)
"""Of the soft weakest links that measured runs are compared with."""
SOURCE_SHARES = (0.0, 0.4)
"""Of the cheapest NF's cost, that are tried for a source that was not measured."""
WEAKEST_LINK_CHANCE, SOFT_CHANCE = 0.6, 0.3
"""How probable it is before any run of the chain that the weakest link holds, and that a soft one does; else NFs share
cores."""
MOST_STAGES_BY_CORE = 5
"""Stages up to which each way of sharing cores is tried; of longer chains, all stages on one core."""
FEW_RUNS = 8
"""With so few measured runs, the error of what was learnt from them doubles its expected variance."""
LARGEST_RATIO = 9.0
"""Of a left-out run's squared error and its expectation; what is larger counts as an outlier."""
CHANCE_ALONE = 1e-4
"""How probable it may be that a correction of an NF that is measured alone, as it was profiled, looks better than none
by chance."""
FAR_ALONE = 3.0
"""How many times its expected error an NF that is measured alone must typically be off to be another one than was
profiled; then it is corrected anyway."""

CHANCE_OF_CHAIN, DOUBT = 0.1, 0.5
"""How probable it may be that the correction of a chain's throughput looks better than none by chance; else it is
followed half way, on logarithms. Chosen on recorded chains of programs, of which some need no correction: their error
after ten noisy runs falls by up to 1.1 points then; the mean over all chains stays."""

WeightedRules = Sequence[tuple[CompositionRule, float]]
"""Rules with their probabilities before any run of the chain."""


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
    what fits the measured runs. `source`: the profile of an NF that does nothing, whose cost every other profile
    contains."""
    measured_alone = [profile.settings for profile in profiles.values()]
    noise = float(np.median([settings.spread for settings in measured_alone]))
    outliers = sum(nf.left_out for nf in measured_alone) / sum(nf.measurements for nf in measured_alone)
    known = cores_are_known and len(chain.stages) > 1
    rules = _by_core([chain.cores], 1.0, source) if known else _rules(len(chain.stages), source)
    model = ChainModel(profiles, chain, higher_is_better, rules[0][0], None, None, noise, outliers, source)
    if measured_at is None or measured is None or not len(measured):
        return model
    names = tuple(measured_at)
    runs = settings_of(names, np.column_stack([measured_at[name] for name in names]), measured)
    return _Fitting(model, runs).correct(rules)


def _rules(stages: int, source: str | None) -> WeightedRules:
    """The rules that measured runs are compared with; the first is the one without any."""
    if stages == 1:
        return [(weakest_link(1), 1.0)]
    soft = [(SoftWeakestLink(power), SOFT_CHANCE / len(SOFT_POWERS)) for power in SOFT_POWERS]
    shared = _by_core(_shared_cores(stages), 1 - WEAKEST_LINK_CHANCE - SOFT_CHANCE, source)
    return [(weakest_link(stages), WEAKEST_LINK_CHANCE), *soft, *shared]


def _shared_cores(stages: int) -> list[Cores]:
    """The ways in which neighbouring stages share cores."""
    if stages > MOST_STAGES_BY_CORE:
        return [(tuple(range(stages)),)]
    found = []
    for cuts in product((False, True), repeat=stages - 1):
        ends = [0, *(at for at, cut in enumerate(cuts, start=1) if cut), stages]
        found.append(tuple(tuple(range(start, end)) for start, end in pairwise(ends)))
    return [cores for cores in found if len(cores) < stages]


def _by_core(placed: Sequence[Cores], chance: float, source: str | None) -> WeightedRules:
    rules = [CostsByCore(cores, share) for cores in placed for share in (SOURCE_SHARES if source is None else (0.0,))]
    return [(rule, chance / len(rules)) for rule in rules]


@dataclass(frozen=True)
class _Fitting:
    """Fits a correction to measured runs."""

    model: ChainModel
    runs: Settings

    def correct(self, rules: WeightedRules) -> ChainModel:
        """The model with its correction, if a chain of one NF is better with it than without."""
        stages = self.model.stage_costs(dict(zip(self.runs.names, self.runs.inputs.T, strict=True)))
        doubtful = np.array([len(repeat) < ENOUGH_REPEATS for repeat in self.runs.repeats])
        cost = np.log(self.runs.value) * (-1 if self.model.higher_is_better else 1)
        variance = self._noise**2 / self.runs.count
        correction = Correction.fit(ChainRuns(stages, self.model.chain.shares, cost, variance, doubtful), rules)
        kept = correction.kept
        uncorrected = (np.log(self.runs.value) - self.model.uncorrected(stages, rules[0][0]))[correction.learnt_from]
        error, deviation = correction.left_out()
        count, left = len(error), float(np.mean(uncorrected[kept] ** 2 - correction.runs.variance[kept]))
        few = 1 + FEW_RUNS / count
        measured = replace(self.model, runs=self.runs, noise=self._noise)
        gain = np.abs(uncorrected[kept]) - np.abs(error)
        expected = np.hypot(stages.errors[:, 0], np.sqrt(variance))[correction.learnt_from]
        off = DEVIATION_OF_MAD * float(np.median(np.abs(uncorrected) / expected))
        if len(self.model.chain.stages) == 1 and off < FAR_ALONE and not improves(gain, CHANCE_ALONE):
            return replace(measured, misfit=float(np.sqrt(max(left, 0.0))), widening=float(np.sqrt(few)))
        ratio = float(np.mean(np.minimum((error / deviation) ** 2, LARGEST_RATIO)))
        calibrated = (count * max(ratio, 1.0) + FEW_RUNS) / (count + FEW_RUNS)
        sure = len(self.model.chain.stages) == 1 or improves(gain, CHANCE_OF_CHAIN)
        doubt = DOUBT if self.model.higher_is_better and not sure else 0.0  # a latency has a second model beside it
        noise = self._noise * (1.0 if self._repeated else correction.noise_factor)
        return replace(
            measured, rule=correction.rules[0][0], correction=correction, widening=float(np.sqrt(calibrated * few)),
            noise=noise, doubt=doubt, assumed=rules[0][0],
        )  # fmt: skip

    @property
    def _repeated(self) -> bool:
        return any(len(repeat) > 1 for repeat in self.runs.repeats)

    @property
    def _noise(self) -> float:
        return self.runs.spread if self._repeated else self.model.noise


def improves(gain: Floats, chance: float) -> bool:
    """Whether gains, shape (runs,), are above 0 on the mean, more than by chance (Student's t, one-sided). `gain`: by
    how much the error of each left-out run becomes smaller; of fewer than two, nothing is known. `chance`: how probable
    it may be that no gain looks like one."""
    from scipy.stats import t as student

    if len(gain) < 2:
        return False
    needed = float(student.ppf(1 - chance, len(gain) - 1)) * gain.std(ddof=1) / np.sqrt(len(gain))
    return bool(gain.mean() > needed)
