"""Solved, predicted, tightened, solved again, until plan and prediction agree.

Each round solves the chains with the cycles as the last plan's neighbours make them, and predicts the new plan. Where a
plan comes back, plans and predictions go in a circle; from then on factors only grow. The number of rounds is bounded.
Every plan on the way also gets the largest rates that its prediction allows; the best one that keeps every SLO by
prediction is returned. Contention only takes away, so the bound of the program with cycles alone holds for all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from placer.chains.chain import Chain
from placer.chains.contention.co_location import CycleGrowth
from placer.chains.contention.grown_instance import Factors, Key, RackInstance
from placer.chains.heuristics.fixed_layouts import CoreAllocation, plan_of
from placer.chains.plan import ChainPlan, RackPlan, Status
from placer.chains.rack import Rack

ROUNDS = 12
"""The most plans that are solved and predicted."""
HALVINGS = 4
"""How often a step that leaves no plan is halved."""
EQUAL = 1e-9

Solve = Callable[[Sequence[Chain], Rack], RackPlan]
"""Places chains by cycles alone."""
Notify = Callable[[str], None]


@dataclass(frozen=True)
class ContendedPlan:
    """A plan that keeps its SLOs by prediction, beside the one by cycles alone.

    Parameters
    ----------
    plan
        What was found; of status `unknown`, with a note why, where no plan keeps every SLO by prediction. Its bound is
        that of the program with cycles alone.
    predicted
        The same with grown cycles: its latencies, and what limits its rates, are as predicted.
    by_cycles
        The plan by cycles alone.
    factors
        Per chain and NF, by which its cycles grow in this plan; 1 on the switch.
    rounds
        Plans that were solved and predicted.
    agreed
        Whether the last plan keeps, by prediction, what the program gave it; else rounds or time ended first.
    """

    plan: RackPlan
    predicted: RackPlan
    by_cycles: RackPlan
    factors: tuple[tuple[float, ...], ...] = ()
    rounds: int = 0
    agreed: bool = False

    def explained(self, plan: RackPlan) -> ContendedPlan:
        """The same with another plan in place of one without chains."""
        return self if plan.chains else replace(self, plan=plan, predicted=plan)


def contended_plan(
    chains: Sequence[Chain],
    rack: Rack,
    growth: CycleGrowth,
    solve: Solve,
    *,
    rounds: int = ROUNDS,
    time_limit: float = float("inf"),
    notify: Notify = lambda message: None,
) -> ContendedPlan:
    """The best plan that the loop finds.

    Parameters
    ----------
    growth
        The predictor.
    solve
        The strategy; its first plan is that by cycles alone, and gives the bound.
    time_limit
        Seconds after which no further round begins.
    """
    begin = time.perf_counter()
    alone = solve(chains, rack)
    if not alone.chains:
        return ContendedPlan(alone, alone, alone)
    loop = _Loop(RackInstance(chains, rack), growth, solve, rounds, begin + time_limit, notify)
    loop.run(alone)
    return loop.result(alone, time.perf_counter() - begin)


@dataclass(frozen=True)
class _Candidate:
    """A plan by prediction: of grown chains, with the factors of its own co-locations."""

    plan: RackPlan
    factors: Factors


@dataclass
class _Loop:
    """The state of the loop."""

    asked: RackInstance
    growth: CycleGrowth
    solve: Solve
    rounds: int
    until: float
    notify: Notify
    done: int = 0
    agreed: bool = False
    best: _Candidate | None = None
    why: str = ""
    seen: set[object] = field(default_factory=set)
    largest: dict[Key, Fraction] = field(default_factory=dict)

    def run(self, alone: RackPlan) -> None:
        """Rounds until plan and prediction agree, or there are no more."""
        plan: Sequence[ChainPlan] | None = alone.chains
        factors: Factors = {}
        circling = False
        while plan is not None:
            found, repeated = self._predicted(plan)
            self.agreed = all(factor <= factors.get(key, 1) for key, factor in found.items())
            if self.agreed or not self._may_go_on():
                return
            circling = circling or repeated
            wanted = dict(self.largest) if circling else {**factors, **found}
            plan = self._solved(wanted)
            if plan is None and self.best is None:
                self._halve(factors, wanted)
            factors = wanted

    def _halve(self, low: Factors, high: Factors) -> None:
        """Look for a plan that keeps every SLO between factors that allow too much, and some that allow none."""
        for _ in range(HALVINGS):
            if self.best is not None or not self._may_go_on():
                return
            middle = {key: (low.get(key, Fraction(1)) + factor) / 2 for key, factor in high.items()}
            plan = self._solved(middle)
            if plan is None:
                high = middle
            else:
                low = middle
                self._predicted(plan)

    def _may_go_on(self) -> bool:
        return self.done < self.rounds and time.perf_counter() < self.until

    def _solved(self, factors: Factors) -> Sequence[ChainPlan] | None:
        """A plan with these factors, for the instance as it was asked."""
        grown = self.asked.grown(factors)
        plan = self.solve(grown.chains, grown.rack)
        return self.asked.placed(plan.chains) if plan.chains else None

    def _predicted(self, plan: Sequence[ChainPlan]) -> tuple[Factors, bool]:
        """The factors of a plan, and whether it was there before; what it gives with these is a candidate."""
        self.done += 1
        found = self.asked.predicted(plan, self.growth)
        for key, factor in found.items():
            self.largest[key] = max(self.largest.get(key, Fraction(1)), factor)
        grown = self.asked.grown(found)
        rated = _rated(grown.placed(plan), grown.rack, grows=any(factor > 1 for factor in found.values()))
        if rated.chains and (self.best is None or rated.marginal_mbps > self.best.plan.marginal_mbps):
            self.best = _Candidate(rated, found)
        elif not rated.chains:
            self.why = "; ".join(rated.notes)
        given = sum(one.rate_mbps for one in plan)
        kept = f"{sum(one.rate_mbps for one in rated.chains):,.1f} Mbps" if rated.chains else f"not kept: {self.why}"
        self.notify(f"contention, round {self.done}: {given:,.1f} Mbps planned, as predicted {kept}")
        placement = tuple((one.layout.sites, one.cores) for one in plan)
        repeated = placement in self.seen
        self.seen.add(placement)
        return found, repeated

    def result(self, alone: RackPlan, seconds: float) -> ContendedPlan:
        """The best candidate, under the names and with the rack that were asked."""
        if self.best is None:
            note = f"no plan was found that keeps every SLO beside its neighbours; of the last plan, {self.why}"
            nothing = RackPlan(
                self.asked.rack, Status.UNKNOWN, bound_mbps=alone.bound_mbps, seconds=seconds, notes=(note,)
            )
            return ContendedPlan(nothing, nothing, alone, rounds=self.done)
        best = self.best.plan
        bound = None if alone.bound_mbps is None else max(alone.bound_mbps, best.marginal_mbps)
        # a proven plan may be below its bound by the tolerance of the search
        proven_mbps = alone.marginal_mbps if alone.status is Status.OPTIMAL else bound
        proven = proven_mbps is not None and proven_mbps <= best.marginal_mbps + EQUAL * max(best.marginal_mbps, 1.0)
        status = Status.OPTIMAL if proven else Status.FEASIBLE
        predicted = replace(best, status=status, bound_mbps=bound, seconds=seconds)
        plan = replace(predicted, rack=self.asked.rack, chains=self.asked.placed(best.chains))
        return ContendedPlan(plan, predicted, alone, self._factors(best.chains), self.done, self.agreed)

    def _factors(self, chains: Sequence[ChainPlan]) -> tuple[tuple[float, ...], ...]:
        assert self.best is not None
        devices, factors = self.asked.rack.devices, self.best.factors
        return tuple(
            tuple(
                1.0 if site < 0 else float(factors[self.asked.class_of[number], at, devices[site].is_smartnic])
                for at, site in enumerate(one.layout.sites)
            )
            for number, one in enumerate(chains)
        )


def _rated(chains: Sequence[ChainPlan], rack: Rack, *, grows: bool) -> RackPlan:
    """These layouts and cores with the best rates that cycles and NICs allow; without chains where an SLO is lost."""
    if not grows:
        return RackPlan(rack, Status.FEASIBLE, tuple(chains))
    allocation = CoreAllocation(rack, [one.layout for one in chains])
    for chain, one in enumerate(chains):
        for group, cores in enumerate(one.cores):
            for _ in range(cores - 1):
                allocation.add_core(chain, group)
    return plan_of(allocation)
