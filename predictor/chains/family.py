"""Many chains of the same NFs on one host: what a few measured chains teach about all others.

Where the cores of each stage are known, costs add on a core and the slowest core counts. What is left over is typical
of a host: an NF costs more beside others than alone, each further stage costs a little more. A correction learns this
from runs of any chains, by the share of time that each NF takes of a chain and by the number of stages and cores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from predictor.chains.chain_fitting import SOURCE_SHARES
from predictor.chains.correction import Correction
from predictor.chains.placed_chain import PlacedChain
from predictor.chains.process import Assumptions, Typical
from predictor.chains.profiled_nf import ProfiledNf
from predictor.chains.rules import CostsByCore
from predictor.chains.settings import ENOUGH, settings_of
from predictor.chains.stages import stage_costs

Array = NDArray[np.float64]

ASSUMED = Assumptions(
    constant=Typical(0.1, 0.5),
    slope=Typical(0.08, 0.7),
    amplitude=Typical(0.03, 0.7),
    length=Typical(2.0, 0.3),
    nugget=Typical(0.02, 0.7),
)
"""What is assumed of the factor: it differs by a few percent between NFs and numbers of stages."""
FEWEST = 3
"""Runs for a correction."""


@dataclass(frozen=True)
class ChainRun:
    """One measured chain.

    Parameters
    ----------
    chain
        The stages on their cores.
    at
        Values by column: `nx.cpu` of the NF `nx`, without prefix the workload.
    measured
        Throughput that enters the chain, in the unit of the profiles.
    """

    chain: PlacedChain
    at: Mapping[str, float]
    measured: float


@dataclass(frozen=True)
class ChainFamily:
    """Predicts chains of the same NFs on one host.

    Parameters
    ----------
    profiles
        By NF: throughput alone.
    source
        The NF that does nothing; None when it was not measured.
    source_share
        Then the cost of the source as a share of that of a chain's cheapest NF.
    correction
        By measured chains; None without.
    """

    profiles: Mapping[str, ProfiledNf]
    source: str | None = None
    source_share: float = 0.0
    correction: Correction | None = None

    def fit(self, runs: Sequence[ChainRun]) -> ChainFamily:
        """The family, corrected by measured chains; runs of one chain at one setting are repeats."""
        shares = SOURCE_SHARES if self.source is None else (0.0,)
        fitted = [replace(self, source_share=share, correction=None)._corrected(runs) for share in shares]
        return max(fitted, key=lambda one: one.correction.process.likelihood if one.correction else -np.inf)

    def predict(self, chain: PlacedChain, at: Mapping[str, float]) -> float:
        """Throughput that enters the chain; what leaves it is less by what the NFs drop.

        Raises
        ------
        KeyError
            When a column of a profile has no value.
        """
        logarithm, features = self._uncorrected(chain, at)
        factor = float(self.correction(features[None])[0][0]) if self.correction else 0.0
        return float(np.exp(logarithm + factor))

    def _corrected(self, runs: Sequence[ChainRun]) -> ChainFamily:
        predicted, features = zip(*(self._uncorrected(run.chain, run.at) for run in runs), strict=True)
        factors = np.exp(np.log([run.measured for run in runs]) - np.array(predicted))
        settings = settings_of(("",) * len(features[0]), np.array(features), factors)
        if len(settings) < FEWEST:
            return self
        noise = np.median([profile.settings.spread for profile in self.profiles.values()])
        repeated = settings.measurements > len(settings)
        doubtful = np.array([len(one) < ENOUGH for one in settings.repeats])
        variance = (settings.spread if repeated else noise) ** 2 / settings.count
        correction = Correction.fit(settings.inputs, np.log(settings.value), variance, doubtful, ASSUMED)
        return replace(self, correction=correction)

    def _uncorrected(self, chain: PlacedChain, at: Mapping[str, float]) -> tuple[float, Array]:
        """Natural logarithm of the throughput by the rule alone, and the features of its correction."""
        columns = {name: np.array([float(value)]) for name, value in at.items()}
        stages = stage_costs(self.profiles, chain, columns, higher_is_better=True, source=self.source)
        cost = CostsByCore(chain.cores, self.source_share).cost(stages.costs, chain.shares, stages.source)
        taken = stages.costs[0] * chain.shares / cost[0]
        by_nf = [sum(taken[i] for i, stage in enumerate(chain.stages) if stage.nf == nf) for nf in self.profiles]
        counts = [(len(chain.stages) - 1) / 2, (len(chain.cores) - 1) / 2]
        return -float(np.log(cost[0])), np.array([*by_nf, *counts], dtype=np.float64)
