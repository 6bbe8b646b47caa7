"""Many chains of the same NFs on one host: what a few measured chains teach about all others.

Where the cores of each stage are known, costs add on a core and the slowest core counts. What is left over is typical
of a host: an NF costs more beside others than alone, each further stage costs a little more. A correction learns this
from runs of any chains, by the share of time that each NF takes of a chain and by the number of stages and cores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import least_squares

from predictor.chains.chain_model import Correction, StageCosts, improves, stage_costs
from predictor.chains.placed_chain import ChainStage, CostsByCore, PlacedChain
from predictor.chains.process import Assumptions, Typical
from predictor.chains.profiled_nf import ProfiledNf
from predictor.chains.settings import ENOUGH_REPEATS, Settings, settings_of
from profiles.arrays import Floats

SOURCE_SPREAD, CHANGED_SPREAD = 0.15, 0.3  # standard deviations of both that are assumed before any run
SCATTER = 0.06  # of the logarithm of measured over predicted; larger differences count less than their squares


@dataclass(frozen=True)
class CommonCosts:
    """Costs in units of the cost of the NF that does nothing."""

    source: float = 1.0  # what all NFs have in common; a chain on one core has it once
    changed: float = 0.0  # what an NF costs more behind one that changes packets


AS_MEASURED = CommonCosts()  # without runs of chains


def fitted_costs(differences: Callable[[CommonCosts], Floats]) -> CommonCosts:
    """The most probable costs. `differences`: logarithm of measured over predicted of each run with given costs, shape
    (runs,)."""

    def costs(at: Floats) -> CommonCosts:
        return CommonCosts(1 + SOURCE_SPREAD * float(at[0]), CHANGED_SPREAD * float(at[1]))

    def residuals(at: Floats) -> Floats:
        scaled = differences(costs(at)) / SCATTER
        return np.concatenate([np.sign(scaled) * np.sqrt(2 * (np.sqrt(1 + scaled**2) - 1)), at])

    limits = (np.array([-4.0, 0.0]), np.array([4.0, 4.0]))
    return costs(np.asarray(least_squares(residuals, np.array([0.0, 0.1]), bounds=limits).x))


ASSUMED = Assumptions(
    constant=Typical(0.1, 0.5),
    slope=Typical(0.08, 0.7),
    amplitude=Typical(0.03, 0.7),
    length=Typical(2.0, 0.3),
    nugget=Typical(0.02, 0.7),
)
"""What is assumed of the factor: it differs by a few percent between NFs and numbers of stages."""
FEWEST = 3  # runs for a correction
SOURCE_SHARES = (0.0, 0.25, 0.5, 0.75, 0.9)
"""Of the cost of the cheapest NF, that are tried for a source that was not measured."""
OTHER_CORE_LIMITS = 1.03  # a cost up to so many times that of two NFs that do nothing may be that of the other core
CHANCE = 0.15  # how probable it may be that a correction looks better than none by chance


@dataclass(frozen=True)
class ChainRun:
    """One measured chain."""

    chain: PlacedChain  # the stages on their cores
    at: Mapping[str, float]  # values by column: `nx.cpu` of the NF `nx`, without prefix the workload
    measured: float  # throughput that enters the chain, in the unit of the profiles


@dataclass(frozen=True)
class ChainFamily:
    """Predicts chains of the same NFs on one host."""

    profiles: Mapping[str, ProfiledNf]  # by NF: throughput alone, with all of a core's time
    source: str | None = None  # the NF that does nothing; None when it was not measured
    source_share: float = 0.0  # then the cost of the source as a share of that of the cheapest NF
    common: CommonCosts = AS_MEASURED
    """What that NF's cost is of what all have in common; learned from runs, where it was measured."""
    ring: str | None = None
    """The profile of that NF twice, on two cores that a ring connects; None when it was not measured."""
    receivers: Mapping[str, str] = field(default_factory=dict)
    senders: Mapping[str, str] = field(default_factory=dict)
    """By NF, the profile of the NF behind such a ring, and in front of one, beside the NF that does nothing on the
    other core; empty where they were not measured."""
    correction: Correction | None = None  # by measured chains; None without, or where they show no need of one

    def fit(self, runs: Sequence[ChainRun]) -> ChainFamily:
        """The family, corrected by measured chains; runs of one chain at one setting are repeats. It is not corrected
        where left-out runs would not be predicted better."""
        plain = replace(self, source_share=0.0, common=AS_MEASURED, correction=None)
        measured = _MeasuredSettings.of(runs)
        if len(measured.settings) < FEWEST:
            return plain
        if self.source is not None:
            plain = plain._with_common_costs(measured)
        shares = SOURCE_SHARES if self.source is None else (0.0,)
        fitted = [replace(plain, source_share=share)._corrected(measured) for share in shares]
        best = max(fitted, key=lambda one: one.correction.process.likelihood if one.correction else -np.inf)
        assert best.correction is not None
        kept, left_out = best.correction.kept, best.correction.process.left_out()[0]
        gain = np.abs(plain._factors(measured)[0])[kept] - np.abs(left_out)
        return best if improves(gain, CHANCE) else plain

    def predict(self, chain: PlacedChain, at: Mapping[str, float]) -> float:
        """Throughput that enters the chain; what leaves it is less by what the NFs drop. One NF with all of a core's
        time is what its profile shows; it is not corrected. Raises `KeyError` when a column of a profile has no
        value."""
        logarithm, features = self._uncorrected(chain, at)
        # Whether a chain is just what one profile was measured of.
        if self.correction is None or (len(chain.stages) == 1 and all(share == 1.0 for share in chain.core_times)):
            return float(np.exp(logarithm))
        return float(np.exp(logarithm + self.correction(features[None])[0][0]))

    def _with_common_costs(self, measured: _MeasuredSettings) -> ChainFamily:
        """The family with the costs that fit the runs best."""
        return replace(self, common=fitted_costs(lambda common: replace(self, common=common)._factors(measured)[0]))

    def _corrected(self, measured: _MeasuredSettings) -> ChainFamily:
        settings = measured.settings
        noise = float(np.median([profile.settings.spread for profile in self.profiles.values()]))
        repeated = settings.measurements > len(settings)
        doubtful = np.array([len(one) < ENOUGH_REPEATS for one in settings.repeats])
        variance = (settings.spread if repeated else noise) ** 2 / settings.count
        factors, features = self._factors(measured)
        return replace(self, correction=Correction.fit(features, factors, variance, doubtful, ASSUMED))

    def _factors(self, measured: _MeasuredSettings) -> tuple[Floats, Floats]:
        """Natural logarithm of measured over predicted, shape (settings,), and its features."""
        predicted, features = zip(*(self._uncorrected(run.chain, run.at) for run in measured.runs), strict=True)
        return np.log(measured.settings.value) - np.array(predicted), np.array(features)

    def _uncorrected(self, chain: PlacedChain, at: Mapping[str, float]) -> tuple[float, Floats]:
        """Natural logarithm of the throughput by the rule alone, and the features of its correction."""
        columns = {name: np.array([float(value)]) for name, value in at.items()}
        stages = stage_costs(self.profiles, chain, columns, higher_is_better=True, source=self.source)
        source = stages.source * self.common.source
        if self.source is None:
            everything = PlacedChain.of(list(self.profiles))
            cheapest = stage_costs(self.profiles, everything, columns, higher_is_better=True).costs.min(axis=1)
            source = self.source_share * cheapest
        rule = CostsByCore(chain.cores, core_times=chain.core_times, rings=self._rings(chain, columns, stages))
        costs = stages.costs[0] + self.common.changed * stages.source[0] * _behind_changes(chain)
        cost = float(rule.cost(costs[None], chain.shares, source)[0])
        taken = costs * chain.shares / cost
        by_nf = [sum(taken[at] for at, stage in enumerate(chain.stages) if stage.nf == nf) for nf in self.profiles]
        counts = [(len(chain.stages) - 1) / 2, (len(chain.cores) - 1) / 2]
        return -float(np.log(cost)), np.array([*by_nf, *counts], dtype=np.float64)

    def _rings(
        self, chain: PlacedChain, columns: Mapping[str, Floats], stages: StageCosts
    ) -> tuple[tuple[float, float], ...]:
        """Per stage what receiving by a ring and sending by a ring cost; empty where it is not known."""
        if self.ring is None or len(chain.cores) < 2:
            return ()
        limit = self._cost_of(self.ring, chain.stages[0], columns)
        plain = max(limit - float(stages.source[0]), 0.0)

        def beside(names: Mapping[str, str], at: int) -> float:
            stage = chain.stages[at]
            if stage.nf not in names:
                return plain
            measured = self._cost_of(names[stage.nf], stage, columns)
            extra = max(measured - float(stages.costs[0, at]), 0.0)
            return extra if measured > limit * OTHER_CORE_LIMITS else min(extra, plain)

        return tuple((beside(self.receivers, at), beside(self.senders, at)) for at in range(len(chain.stages)))

    def _cost_of(self, profile: str, stage: ChainStage, columns: Mapping[str, Floats]) -> float:
        """One over the throughput of a profile, for the packets that reach a stage."""
        chain = PlacedChain((replace(stage, nf=profile),), ((0,),))
        return float(stage_costs(self.profiles, chain, columns, higher_is_better=True).costs[0, 0])


def _behind_changes(chain: PlacedChain) -> Floats:
    """1 for each stage directly behind one that changes packets, else 0; shape (stages,)."""
    sizes = [(stage.bytes_factor, stage.bytes_added) for stage in chain.stages]
    return np.array([0.0, *(float(one != other) for one, other in zip(sizes[1:], sizes, strict=False))])


@dataclass(frozen=True)
class _MeasuredSettings:
    """Runs of which those of one chain at one setting are one."""

    runs: tuple[ChainRun, ...]  # the first run of each chain and setting
    settings: Settings  # what was measured of each; the only input is its number in `runs`

    @classmethod
    def of(cls, runs: Sequence[ChainRun]) -> _MeasuredSettings:
        """The distinct chains and settings of some runs."""
        numbers: dict[object, int] = {}
        number_of = [numbers.setdefault((run.chain, tuple(sorted(run.at.items()))), len(numbers)) for run in runs]
        first = tuple(runs[number_of.index(number)] for number in range(len(numbers)))
        measured = np.array([run.measured for run in runs], dtype=np.float64)
        return cls(first, settings_of(("run",), np.array(number_of, dtype=np.float64)[:, None], measured))
