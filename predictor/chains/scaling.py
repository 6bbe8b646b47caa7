"""How much of a resource each NF of a chain needs for a target (van Rossem et al., section 4). From profiles, the
smallest allocation follows in one shot. Without them, the greedy procedure of the paper (algorithm 1) starts small,
measures the chain, and gives the limiting NFs a step more until the target is met."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from predictor.chains.chain_model import ChainModel, ChainPredictions
from profiles.arrays import Floats

Allocation = Mapping[str, float]
"""The amount of the resource by NF."""

MOST_COMBINATIONS = 1_000_000
"""Allocations that are compared where NFs cannot be allocated one by one."""
AT_ONCE = 5000
TARGET_ROUNDING = 1e-9
"""Relative difference to the target that counts as none."""
LIKELY_SHARE = 0.25
"""How far towards the worse end of the 90 % interval, on logarithms, the measure of a chain that was run must meet a
target: a further run then meets it with a probability of 70 %. Chosen on recorded chains of programs, on other draws
than those that judge: there 73 % meet it, with a share of 0.2 only 68 %."""
LIMITING_SHARE = 0.9
"""An NF limits the chain when its cost is at least this share of the largest (algorithm 1: 90 % of its CPU is used)."""


@dataclass(frozen=True)
class ScalingTarget:
    """What a chain must reach."""

    measure: float
    """The least throughput, or the longest response time."""
    workload: Mapping[str, float]
    """Values of the columns that are not allocated."""
    resource: str = "cpu"
    """The profile column that is allocated: `cpu`."""
    safe: bool = False
    """Whether the interval's worse end must meet the target, not only what is predicted or likely."""

    def met(self, model: ChainModel, predicted: ChainPredictions) -> NDArray[np.bool_]:
        """Whether each prediction meets it, shape (N,)."""
        worse = predicted.low if model.higher_is_better else predicted.high
        return self.met_by(model, worse if self.safe else likely(model, predicted))

    def met_by(self, model: ChainModel, measure: Floats) -> NDArray[np.bool_]:
        """Whether each value of the model's measure meets it, shape (N,)."""
        if model.higher_is_better:
            return np.asarray(measure >= self.measure * (1 - TARGET_ROUNDING))
        return np.asarray(measure <= self.measure * (1 + TARGET_ROUNDING))


def likely(model: ChainModel, predicted: ChainPredictions) -> Floats:
    """What an allocation must reach for it to be chosen: where the chain was run, what it probably reaches; else what
    is predicted.

    Of many allocations, the least one whose prediction meets a target is one that is predicted too well, so that it
    often misses it. Without runs of the chain, the width of the interval is assumed, and not shown by anything."""
    if model.runs is None:
        return predicted.predicted
    worse = predicted.low if model.higher_is_better else predicted.high
    return np.asarray(predicted.predicted ** (1 - LIKELY_SHARE) * worse**LIKELY_SHARE)


@dataclass(frozen=True)
class ScalingResult:
    """An allocation, and what it took to find it."""

    allocation: Allocation | None
    """By NF; None when no allocation meets the target."""
    tried: tuple[Allocation, ...] = ()
    """The allocations that the chain was run with, in order; empty when it was not run."""

    @property
    def total(self) -> float:
        """All that is allocated; infinite when nothing meets the target."""
        return float(sum(self.allocation.values())) if self.allocation is not None else float("inf")


def smallest_allocation(
    model: ChainModel, target: ScalingTarget, amounts: Mapping[str, Sequence[float]]
) -> ScalingResult:
    """The allocation of least total that meets the target as predicted, or probably where the chain was run before.

    Where the weakest link limits the chain, each NF by itself takes the least amount that meets the target. Else
    combinations of amounts are predicted in the order of their totals, until one meets the target. `model`: of the
    chain. `target`: what to reach. `amounts`: by NF, the amounts to choose from. Raises `ValueError` when there are
    more than `MOST_COMBINATIONS` combinations."""
    choices = {nf: sorted(set(map(float, one))) for nf, one in amounts.items()}
    if model.runs is None and model.rule.name == "weakest-link" and not target.safe:
        least = {nf: _least_sufficient(model, target, choices, nf) for nf in choices}
        return ScalingResult({nf: one for nf, one in least.items() if one is not None} if all(
            amount is not None for amount in least.values()) else None)  # fmt: skip
    count = int(np.prod([len(amount_range) for amount_range in choices.values()]))
    if count > MOST_COMBINATIONS:
        raise ValueError(f"{count:,} combinations of amounts are more than {MOST_COMBINATIONS:,}")
    for rows in _by_total(list(choices.values())):
        predicted = predict_allocations(model, target, dict(zip(choices, rows.T, strict=True)))
        met = target.met(model, predicted)
        if met.any():
            totals = np.where(met, rows.sum(axis=1), np.inf)
            # of equal totals, the one that performs best
            sign = -1 if model.higher_is_better else 1
            ranked = np.lexsort((sign * predicted.predicted, np.round(totals, 9)))
            return ScalingResult(dict(zip(choices, map(float, rows[ranked[0]]), strict=True)))
    return ScalingResult(None)


def greedy_allocation(
    model: ChainModel,
    target: ScalingTarget,
    amounts: Mapping[str, Sequence[float]],
    run: Callable[[Allocation], float] | None = None,
) -> ScalingResult:
    """The greedy procedure of van Rossem et al., algorithm 1: each step is a run of the chain. `model`: of the chain;
    its profiles stand for the CPU usage that the paper monitors: NFs with at least 90 % of the largest cost get a step
    more. `target`: what to reach. `amounts`: by NF, the amounts in the order in which they are tried. `run`: measures
    the chain; None takes the prediction in place of a measurement."""
    level = dict.fromkeys(amounts, 0)
    tried: list[Allocation] = []
    while True:
        allocation = {nf: float(amounts[nf][at]) for nf, at in level.items()}
        tried.append(allocation)
        columns = {nf: np.array([amount]) for nf, amount in allocation.items()}
        predicted = predict_allocations(model, target, columns)
        met = target.met(model, predicted) if run is None else target.met_by(model, np.array([run(allocation)]))
        if met[0]:
            return ScalingResult(allocation, tuple(tried))
        growing = [
            nf for nf in _limiting(model, columns_for(model, target, columns)) if level[nf] + 1 < len(amounts[nf])
        ]
        if not growing:  # what limits the chain has all there is
            return ScalingResult(None, tuple(tried))
        for nf in growing:
            level[nf] += 1


def predict_allocations(
    model: ChainModel, target: ScalingTarget, allocations: Mapping[str, Floats]
) -> ChainPredictions:
    """What the chain reaches with amounts by NF, each of shape (N,)."""
    return model.predict(columns_for(model, target, allocations))


def columns_for(model: ChainModel, target: ScalingTarget, allocations: Mapping[str, Floats]) -> dict[str, Floats]:
    """The columns of allocations with the target's workload."""
    count = len(next(iter(allocations.values())))
    columns = {name: np.full(count, float(value)) for name, value in target.workload.items()}
    return columns | {f"{nf}.{target.resource}": np.asarray(amount) for nf, amount in allocations.items()}


def _limiting(model: ChainModel, columns: Mapping[str, Floats]) -> list[str]:
    """The NFs that limit the chain."""
    reached = (model.stage_costs(columns).costs * model.chain.shares)[0]
    limits = reached >= LIMITING_SHARE * reached.max()
    return list(dict.fromkeys(stage.nf for stage, limit in zip(model.chain.stages, limits, strict=True) if limit))


def _least_sufficient(
    model: ChainModel, target: ScalingTarget, choices: Mapping[str, Sequence[float]], nf: str
) -> float | None:
    """The least amount of one NF with which each of its stages meets the target; None when none does."""
    amounts = np.array(choices[nf])
    allocations = {other: np.full(len(amounts), float(one[-1])) for other, one in choices.items()} | {nf: amounts}
    costs = model.stage_costs(columns_for(model, target, allocations)).costs * model.chain.shares
    own = [at for at, stage in enumerate(model.chain.stages) if stage.nf == nf]
    largest = costs[:, own].max(axis=1)
    reached = 1 / largest if model.higher_is_better else largest
    met = target.met_by(model, reached)
    return float(amounts[int(np.argmax(met))]) if met.any() else None


def _by_total(choices: Sequence[Sequence[float]]) -> Iterator[Floats]:
    """Combinations in the order of their totals, some at a time; those of one total are never parted."""
    rows = np.array(list(product(*choices)), dtype=np.float64)
    totals = np.round(rows.sum(axis=1), 9)
    order = np.argsort(totals, kind="stable")
    rows, totals = rows[order], totals[order]
    start = 0
    while start < len(rows):
        end = int(np.searchsorted(totals, totals[min(start + AT_ONCE, len(rows)) - 1], side="right"))
        yield rows[start:end]
        start = end
