"""What measured runs of a chain say of its stages: by which factors they cost more or less than their profiles say, and
how their costs compose.

    log cost = log rule(cost_1 * f_1, ..., cost_S * f_S) + log g

The logarithm of f_i, the factor of stage i, is a Gaussian process over the inputs of that stage; that of g, the factor
of the whole chain, one over its features. Near the most likely factors the rule is linear, so that what is known of
them is normally distributed (Laplace's approximation: Rasmussen & Williams, 2006, section 3.4).

Ten runs do not show which rule holds, nor how far factors vary. Therefore each rule is fitted under each prior, and
predictions are averaged by the probabilities of these hypotheses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from predictor.chains.placed_chain import CompositionRule
from predictor.chains.process import matern
from predictor.chains.settings import DEVIATION_OF_MAD
from predictor.chains.stage_costs import StageCosts, features_of
from profiles.arrays import Floats

STAGE_LENGTH, CHAIN_LENGTH = 0.6, 1.5
"""Lengths in which factors of a stage and of the chain change, as shares of the range of an input."""
NUGGETS = (0.005, 0.04)
"""Standard deviation of what each setting has of its own."""
NOISE_FACTORS = (1.0, 2.0)
"""How many times as noisy as NFs alone a chain may be: single runs of it do not show their noise."""
OUTLIER_CHANCE, OUTLIER_DEVIATION, LEAST_OUTLIER = 0.02, 1.0, 1.5
"""How probable it is that a single run is an outlier, the standard deviation of its logarithm, and its least factor."""
FAR_DEVIATIONS, FAR_FACTOR = 4.5, 2.2
"""How far (standard deviations, and as a factor) a run is from the others to be taken for an outlier at first."""
NEWTON_STEPS, LEAST_STEP, SETTLED_GAIN = 15, 0.1, 1e-3
GRADIENT_STEP = 1e-5
COMPARED_ON, LEARNT_FROM = 60, 400
"""Runs on which hypotheses are compared, and those that the probable ones are fitted to; with more, drawn at random."""
LEAST_PROBABILITY = 1e-3
LEAST_VARIANCE = 1e-8


@dataclass(frozen=True)
class FactorPrior:
    """How far factors vary: standard deviations of their logarithms, and how probable this is before any run."""

    weight: float
    chain: float  # a constant factor of the chain
    stage: float = 0.0  # a constant factor of each stage
    change: float = 0.0  # how the factor of a stage changes with its inputs
    slope: float = 0.0  # how the factor of the chain changes along the range of a feature
    deviation: float = 0.0  # from that slope
    nugget: float = 0.0


PRIORS = (
    FactorPrior(60.0, 0.01),  # the rule holds as it is: noisy runs must not look like a factor
    FactorPrior(1.0, 0.2),
    FactorPrior(1.0, 0.1, 0.1, 0.05),
    FactorPrior(1.0, 0.2, 0.2, 0.1),
    FactorPrior(10.0, 0.2, 0.2, 0.25),  # an NF differs where it limits the chain: the usual case besides
    FactorPrior(1.0, 0.3, 0.4, 0.4),
    FactorPrior(1.0, 0.2, 0.0, 0.0, 0.05, 0.05),
    FactorPrior(1.0, 0.2, 0.1, 0.05, 0.05, 0.05),
    FactorPrior(1.0, 0.2, 0.2, 0.25, 0.05, 0.05),
    FactorPrior(1.0, 0.3, 0.0, 0.0, 0.2, 0.1),
    FactorPrior(1.0, 0.3, 0.2, 0.25, 0.2, 0.1),
    FactorPrior(1.0, 0.3, 0.0, 0.0, 0.4, 0.25),
    FactorPrior(0.5, 0.3, 1.5, 0.3),  # an NF costs a multiple: a process for each connection, which others keep open
    FactorPrior(0.5, 0.3, 1.5, 0.8),
)


@dataclass(frozen=True)
class ChainRuns:
    """Measured runs of a chain, one row per setting."""

    stages: StageCosts
    shares: Floats  # packets that reach each stage, shape (stages,)
    logarithm: Floats  # of the measured cost, shape (runs,)
    variance: Floats  # of its noise, shape (runs,)
    doubtful: NDArray[np.bool_]  # whether too few repeats show an outlier, shape (runs,)

    def at(self, rows: NDArray[np.intp]) -> ChainRuns:
        """Only these runs."""
        return ChainRuns(
            self.stages.at(rows), self.shares, self.logarithm[rows], self.variance[rows], self.doubtful[rows]
        )

    def __len__(self) -> int:
        return len(self.logarithm)


@dataclass(frozen=True)
class Correction:
    """What runs of a chain say, as hypotheses with their probabilities."""

    hypotheses: Sequence[_Fitted]
    probabilities: Floats  # shape (hypotheses,)
    runs: ChainRuns  # which it learnt from
    learnt_from: NDArray[np.intp]
    """Their places among all runs."""

    @classmethod
    def fit(cls, runs: ChainRuns, rules: Sequence[tuple[CompositionRule, float]]) -> Correction:
        """The correction by at least one run. `rules`: with their probabilities before any run."""
        order = np.random.default_rng(0).permutation(len(runs))
        tried = [
            _Tried(rule, float(np.log(weight * prior.weight)), prior, nugget, noise)
            for (rule, weight), prior, nugget, noise in product(rules, PRIORS, NUGGETS, NOISE_FACTORS)
        ]
        found = cls._among(runs, np.sort(order[:COMPARED_ON]), tried)
        if len(runs) <= COMPARED_ON:
            return found
        return cls._among(runs, np.sort(order[:LEARNT_FROM]), [hypothesis.tried for hypothesis in found.hypotheses])

    @classmethod
    def _among(cls, measured: ChainRuns, rows: NDArray[np.intp], tried: Sequence[_Tried]) -> Correction:
        runs = measured.at(rows)
        features = features_of(runs.stages, runs.shares)
        alike = _Likeness.of((features, runs.stages), (features, runs.stages), features.mean(axis=0))
        fitted = [_Search(rule, runs, alike).find() for rule in tried]
        evidence = np.array([hypothesis.evidence for hypothesis in fitted])
        probability = np.exp(evidence - evidence.max())
        probability /= probability.sum()
        kept = np.flatnonzero(probability > LEAST_PROBABILITY)
        return cls([fitted[at] for at in kept], probability[kept] / probability[kept].sum(), runs, rows)

    def __call__(self, stages: StageCosts) -> tuple[Floats, Floats]:
        """Natural logarithm of the cost of chains, and the standard deviation of its error, each of shape (N,)."""
        own = features_of(self.runs.stages, self.runs.shares)
        asked = features_of(stages, self.runs.shares)
        alike = _Likeness.of((asked, stages), (own, self.runs.stages), own.mean(axis=0))
        return self._average([part.predict(stages, self.runs.shares, alike) for part in self.hypotheses])

    def left_out(self) -> tuple[Floats, Floats]:
        """Error of each kept run as predicted from the others, and its standard deviation, which contains the noise of
        the run; each of shape (kept runs,). Rasmussen & Williams, section 5.4.2."""
        error, deviation = self._average([hypothesis.left_out() for hypothesis in self.hypotheses])
        return error[self.kept], deviation[self.kept]

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which runs are no outliers, shape (runs,)."""
        outlying = self.probabilities @ np.array([part.outlying for part in self.hypotheses], dtype=np.float64)
        return np.asarray(outlying < 0.5)

    @property
    def noise_factor(self) -> float:
        """How many times as noisy as its NFs alone the chain is, as the runs show it: the root of the mean square."""
        return float(np.sqrt(self.probabilities @ [hypothesis.tried.noise_factor**2 for hypothesis in self.hypotheses]))

    @property
    def rules(self) -> list[tuple[CompositionRule, float]]:
        """The rules with their probabilities, the most probable first."""
        probability: dict[CompositionRule, float] = {}
        for one, share in zip(self.hypotheses, self.probabilities, strict=True):
            probability[one.tried.rule] = probability.get(one.tried.rule, 0.0) + float(share)
        return sorted(probability.items(), key=lambda item: -item[1])

    def _average(self, found: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
        values, deviations = (np.array(part) for part in zip(*found, strict=True))
        value = self.probabilities @ values
        return value, np.sqrt(self.probabilities @ (deviations**2 + (values - value) ** 2))


@dataclass(frozen=True)
class _Likeness:
    """How much factors at some settings, the rows, resemble those at others, the columns."""

    products: Floats  # of the features of the chain, shape (rows, columns)
    chain: Floats  # 1 for equal settings. Shape (rows, columns).
    stages: Floats  # the same of each stage, shape (stages, rows, columns)
    squares: Floats  # sum of the squares of each row's features, shape (rows,)

    @classmethod
    def of(cls, left: tuple[Floats, StageCosts], right: tuple[Floats, StageCosts], centre: Floats) -> _Likeness:
        """That of settings with these features and stages; `centre`: of the features."""
        row, column = left[0] - centre, right[0] - centre
        pairs = zip(left[1].by_stage, right[1].by_stage, strict=True)
        stages = np.array([matern(one / STAGE_LENGTH, other / STAGE_LENGTH) for one, other in pairs])
        return cls(row @ column.T, matern(row / CHAIN_LENGTH, column / CHAIN_LENGTH), stages, (row**2).sum(axis=1))

    def covariances(self, prior: FactorPrior) -> Floats:
        """Of the factor of the chain, then of those of the stages. Shape (1 + stages, rows, columns)."""
        chain = prior.chain**2 + prior.slope**2 * self.products + prior.deviation**2 * self.chain
        return np.concatenate([chain[None], prior.stage**2 + prior.change**2 * self.stages])


@dataclass(frozen=True)
class _Tried:
    """A rule under a prior."""

    rule: CompositionRule
    weight: float  # natural logarithm of its probability before any run
    prior: FactorPrior
    nugget: float
    noise_factor: float

    def compose(self, stages: StageCosts, shares: Floats, factors: Floats) -> tuple[Floats, Floats]:
        """Natural logarithm of the cost, shape (N,), and its derivatives by the logarithms of the factors, shape (1 +
        stages, N). `factors`: these logarithms, of the same shape."""

        def logarithm(costs: Floats) -> Floats:
            return np.asarray(np.log(self.rule.cost(costs, shares, stages.source)))

        costs = stages.costs * np.exp(factors[1:].T)
        value, steep = logarithm(costs), np.ones_like(factors)
        for stage in range(len(shares)):
            more = costs.copy()
            more[:, stage] *= np.exp(GRADIENT_STEP)
            steep[1 + stage] = (logarithm(more) - value) / GRADIENT_STEP
        return value + factors[0], steep


@dataclass(frozen=True)
class _Fitted:
    """A hypothesis with its most likely factors."""

    tried: _Tried
    evidence: float  # natural logarithm of its probability, up to a constant
    outlying: NDArray[np.bool_]  # shape (runs,)
    weights: Floats  # covariances times these are the logarithms of the factors. Shape (1 + stages, runs).
    steep: Floats  # derivatives of the runs by the factors, shape (1 + stages, runs)
    precision: Floats  # inverse of the covariance of the runs, shape (runs, runs)
    solved: Floats  # precision times what the runs are off at factors of 1, as if the rule were linear. Shape (runs,).

    def predict(self, stages: StageCosts, shares: Floats, alike: _Likeness) -> tuple[Floats, Floats]:
        """Natural logarithm of the cost, and the standard deviation of its error; each of shape (N,)."""
        prior = self.tried.prior
        covariances = alike.covariances(prior)
        value, steep = self.tried.compose(stages, shares, np.einsum("knm,km->kn", covariances, self.weights))
        with_runs = np.einsum("kn,knm,km->nm", steep, covariances, self.steep)
        own = prior.chain**2 + prior.slope**2 * alike.squares + prior.deviation**2 + self.tried.nugget**2
        own = own + (prior.stage**2 + prior.change**2) * (steep[1:] ** 2).sum(axis=0)
        known = ((with_runs @ self.precision) * with_runs).sum(axis=1)
        return value, np.sqrt(np.maximum(own - known, LEAST_VARIANCE))

    def left_out(self) -> tuple[Floats, Floats]:
        """Error of each run as predicted from the others, and its standard deviation; each of shape (runs,)."""
        own = np.diag(self.precision)
        return self.solved / own, 1 / np.sqrt(own)


class _Search:
    """Finds the most likely factors and outliers of a hypothesis."""

    def __init__(self, tried: _Tried, runs: ChainRuns, alike: _Likeness) -> None:
        self._tried = tried
        self._runs = runs
        self._covariances = alike.covariances(tried.prior)
        self._noise = runs.variance * tried.noise_factor**2 + tried.nugget**2 + LEAST_VARIANCE

    def find(self) -> _Fitted:
        """The hypothesis, with outliers as long as each makes the runs more probable."""
        nothing = np.zeros((len(self._covariances), len(self._runs)))
        best = self._newton(nothing, self._far(nothing))
        for _ in range(1 + len(self._runs) // 5):
            gain = self._gain(best)
            most = int(np.argmax(gain))
            if gain[most] <= 0:
                break
            outlying = best.outlying.copy()
            outlying[most] = not outlying[most]
            further = self._newton(best.weights, outlying)
            if further.evidence <= best.evidence:
                break
            best = further
        return best

    def _far(self, nothing: Floats) -> NDArray[np.bool_]:
        """Runs far from the others."""
        off = self._runs.logarithm - self._tried.compose(self._runs.stages, self._runs.shares, nothing)[0]
        off = np.abs(off - np.median(off))
        unit = max(DEVIATION_OF_MAD * float(np.median(off)), float(np.sqrt(np.median(self._runs.variance))))
        return np.asarray((off > max(FAR_DEVIATIONS * unit, np.log(FAR_FACTOR))) & self._runs.doubtful)

    def _gain(self, found: _Fitted) -> Floats:
        """How much more probable the runs are if this one, too, is an outlier, or is none after all. Shape (runs,)."""
        error, deviation = found.left_out()
        plain = np.maximum(deviation**2 - OUTLIER_DEVIATION**2 * found.outlying, self._noise)
        wide = plain + OUTLIER_DEVIATION**2
        gain = (error**2 / plain + np.log(plain) - error**2 / wide - np.log(wide)) / 2 + _OUTLIER_ODDS
        gain[(np.abs(error) < np.log(LEAST_OUTLIER)) | ~self._runs.doubtful] = -np.inf
        return np.where(found.outlying, -gain, gain)

    @np.errstate(over="ignore", divide="ignore", invalid="ignore")
    def _newton(self, weights: Floats, outlying: NDArray[np.bool_]) -> _Fitted:
        """The most likely factors, by Gauss-Newton steps, halved where a whole one leads too far."""
        runs, tried = self._runs, self._tried
        noise = self._noise + OUTLIER_DEVIATION**2 * outlying

        def at(weights: Floats) -> tuple[float, Floats, Floats, Floats]:
            factors = np.einsum("knm,km->kn", self._covariances, weights)
            value, steep = tried.compose(runs.stages, runs.shares, factors)
            cost = ((runs.logarithm - value) ** 2 / noise).sum() + (weights * factors).sum()
            return float(cost) / 2, factors, value, steep

        def solve(factors: Floats, value: Floats, steep: Floats) -> tuple[Floats, Floats, Floats, Floats]:
            covariance = np.einsum("kn,knm,km->nm", steep, self._covariances, steep) + np.diag(noise)
            precision = np.linalg.inv(covariance)
            off = runs.logarithm - value + (steep * factors).sum(axis=0)
            return covariance, precision, off, precision @ off

        weights = weights * ~outlying
        cost, *there = at(weights)
        if not np.isfinite(cost):  # weights of runs that are nearly alike cancel out, and that of an outlier is gone
            weights = np.zeros_like(weights)
            cost, *there = at(weights)
        for _ in range(NEWTON_STEPS):
            further = there[2] * solve(*there)[3]
            step = 1.0
            tried_cost, *found = at(further)
            while not tried_cost <= cost and step > LEAST_STEP:
                step /= 2
                tried_cost, *found = at(weights + step * (further - weights))
            if not tried_cost <= cost:
                break
            gained, cost, there, weights = cost - tried_cost, tried_cost, found, weights + step * (further - weights)
            if gained < SETTLED_GAIN or tried.prior.stage == 0:  # linear in the factor of the chain
                break
        covariance, precision, off, solved = solve(*there)
        evidence = -(off @ solved + np.linalg.slogdet(covariance)[1]) / 2 + _OUTLIER_ODDS * outlying.sum()
        if not np.isfinite(evidence):
            evidence = -np.inf
        return _Fitted(tried, float(evidence) + tried.weight, outlying, weights, there[2], precision, solved)


_OUTLIER_ODDS = float(np.log(OUTLIER_CHANCE) - np.log1p(-OUTLIER_CHANCE))
