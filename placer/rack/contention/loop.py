"""Solved, predicted, tightened, solved again, until plan and prediction agree.

Each round solves the chains with the cycles as the last plan's neighbours make them, and predicts the new plan. Where a
plan comes back, plans and predictions go in a circle; from then on factors only grow. The number of rounds is bounded.
Every plan on the way also gets the largest rates that its prediction allows; the best one that keeps every SLO by
prediction is returned. Contention only takes away, so the bound of the program with cycles alone holds for all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import ceil

from placer.rack.chain import FACTOR_MARK, Chain
from placer.rack.contention.co_location import CycleGrowth, co_locations
from placer.rack.heuristics.fixed_layouts import CoreAllocation, plan_of
from placer.rack.plan import ChainPlan, Layout, RackPlan, Status
from placer.rack.rack import CoreCost, NfCosts, Rack, SwitchKind
from placer.rack.search.fleet_bound import classes_of
from placer.rack.strategies import CHAIN_STRATEGIES, Notify, run_strategy

MOST_ROUNDS = 12  # the most plans that are solved and predicted
MOST_HALVINGS = 4  # how often a step that leaves no plan is halved
EQUAL_FACTORS = 1e-9

Solve = Callable[[Sequence[Chain], Rack], RackPlan]  # places chains by cycles alone
Worth = Callable[[RackPlan], tuple[float, ...]]


@dataclass(frozen=True)
class ContendedPlan:
    """A plan that keeps its SLOs by prediction, beside the one by cycles alone.

    `plan`: what was found; of status `unknown`, with a note why, where no plan keeps every SLO by prediction. Its bound
    is that of the program with cycles alone. `factors`: per chain and NF, by which its cycles grow in this plan; 1 on
    the switch. `agreed`: whether the last plan keeps, by prediction, what the program gave it; else rounds or time
    ended first.
    """

    plan: RackPlan
    predicted: RackPlan  # the same with grown cycles: its latencies, and what limits its rates, are as predicted
    by_cycles: RackPlan  # the plan by cycles alone
    factors: tuple[tuple[float, ...], ...] = ()
    rounds: int = 0  # plans that were solved and predicted
    agreed: bool = False


def plan_under_contention(
    chains: Sequence[Chain],
    rack: Rack,
    growth: CycleGrowth,
    solve: Solve,
    *,
    rounds: int = MOST_ROUNDS,
    time_limit: float = float("inf"),
    notify: Notify = lambda message: None,
    worth: Worth = lambda plan: (plan.marginal_mbps,),
) -> ContendedPlan:
    """The best plan that the loop finds.

    `growth`: the predictor. `solve`: the strategy; its first plan is that by cycles alone, and gives the bound.
    `time_limit`: seconds after which no further round begins. `worth`: the larger, the better is a plan.
    """
    begin = time.perf_counter()
    alone = solve(chains, rack)
    if not alone.chains:
        return ContendedPlan(alone, alone, alone)
    loop = _Loop(RackInstance(chains, rack), growth, solve, rounds, begin + time_limit, notify, worth)
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
    worth: Worth
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
            found, repeated = self._predict(plan)
            self.agreed = all(factor <= factors.get(key, 1) for key, factor in found.items())
            if self.agreed or not self._may_go_on():
                return
            circling = circling or repeated
            wanted = dict(self.largest) if circling else {**factors, **found}
            plan = self._solve(wanted)
            if plan is None and self.best is None:
                self._halve(factors, wanted)
            factors = wanted

    def _halve(self, low: Factors, high: Factors) -> None:
        """Look for a plan that keeps every SLO between factors that allow too much, and some that allow none."""
        for _ in range(MOST_HALVINGS):
            if self.best is not None or not self._may_go_on():
                return
            middle = {key: (low.get(key, Fraction(1)) + factor) / 2 for key, factor in high.items()}
            plan = self._solve(middle)
            if plan is None:
                high = middle
            else:
                low = middle
                self._predict(plan)

    def _may_go_on(self) -> bool:
        return self.done < self.rounds and time.perf_counter() < self.until

    def _solve(self, factors: Factors) -> Sequence[ChainPlan] | None:
        """A plan with these factors, for the instance as it was asked."""
        grown = self.asked.grow(factors)
        plan = self.solve(grown.chains, grown.rack)
        return self.asked.placed(plan.chains) if plan.chains else None

    def _predict(self, plan: Sequence[ChainPlan]) -> tuple[Factors, bool]:
        """The factors of a plan, and whether it was there before; what it gives with these is a candidate."""
        self.done += 1
        found = self.asked.predicted(plan, self.growth)
        for key, factor in found.items():
            self.largest[key] = max(self.largest.get(key, Fraction(1)), factor)
        grown = self.asked.grow(found)
        rated = _rate(grown.placed(plan), grown.rack, grows=any(factor > 1 for factor in found.values()))
        if rated.chains and (self.best is None or self.worth(rated) > self.worth(self.best.plan)):
            self.best = _Candidate(rated, found)
        elif not rated.chains:
            self.why = "; ".join(rated.notes)
        given = sum(chain_plan.rate_mbps for chain_plan in plan)
        kept = (
            f"{sum(chain.rate_mbps for chain in rated.chains):,.1f} Mbps" if rated.chains else f"not kept: {self.why}"
        )
        self.notify(f"contention, round {self.done}: {given:,.1f} Mbps planned, as predicted {kept}")
        placement = tuple((chain_plan.layout.sites, chain_plan.cores) for chain_plan in plan)
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
        proven = proven_mbps is not None and proven_mbps <= best.marginal_mbps + EQUAL_FACTORS * max(
            best.marginal_mbps, 1.0
        )
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


def _rate(chains: Sequence[ChainPlan], rack: Rack, *, grows: bool) -> RackPlan:
    """These layouts and cores with the best rates that cycles and NICs allow; without chains where an SLO is lost."""
    if not grows:
        return RackPlan(rack, Status.FEASIBLE, tuple(chains))
    allocation = CoreAllocation(rack, [chain.layout for chain in chains])
    for chain, one in enumerate(chains):
        for group, cores in enumerate(one.cores):
            for _ in range(int(cores) - 1):
                allocation.add_core(chain, group)
    return plan_of(allocation)


# Chains and rack with grown cycles: each NF that grows becomes a kind of its own, which costs more on cores.
#
# The program that places chains knows cycles by kind of NF, so it needs no change. Chains that are equal but for their
# names share their factors, the largest that any of them has: they stay equal, and may exchange their places.


FACTOR_GRAIN = 1_000_000  # factors are rounded up to multiples of its inverse

Key = tuple[int, int, bool]
"""The number of a class of equal chains, the index of the NF, and whether it runs on a SmartNIC."""
Factors = Mapping[Key, Fraction]  # by which cycles grow; 1 where there is none


@dataclass(frozen=True)
class RackInstance:
    """Chains and a rack, as they were asked."""

    chains: Sequence[Chain]
    rack: Rack

    @cached_property
    def class_of(self) -> Sequence[int]:
        """Per chain the number of its class."""
        found = {number: at for at, numbers in enumerate(classes_of(self.chains)) for number in numbers}
        return [found[number] for number in range(len(self.chains))]

    def grow(self, factors: Factors) -> RackInstance:
        """The instance with cycles grown by these factors; layouts keep their sites."""
        costs = dict(self.rack.costs)
        chains = [self._grow_chain(number, factors, costs) for number in range(len(self.chains))]
        order = self.rack.switch.table_order
        kinds = [kind for nf in order for kind in costs if kind == nf or kind.startswith(f"{nf}{FACTOR_MARK}")]
        switch = replace(self.rack.switch, table_order=tuple(kinds))
        return RackInstance(chains, replace(self.rack, costs=costs, switch=switch))

    def _grow_chain(self, number: int, factors: Factors, costs: dict[str, NfCosts]) -> Chain:
        chain = self.chains[number]
        nfs = []
        for at, nf in enumerate(chain.nfs):
            server, smartnic = (self._factor(number, at, on_smartnic, factors) for on_smartnic in (False, True))
            kind = nf.nf if server == smartnic == 1 else f"{nf.nf}{FACTOR_MARK}{server}{FACTOR_MARK}{smartnic}"
            own = self.rack.costs[nf.nf]
            costs[kind] = replace(own, server=_times(own.server, server), smartnic=_times(own.smartnic, smartnic))
            nfs.append(replace(nf, nf=kind))
        return replace(chain, nfs=tuple(nfs))

    def _factor(self, number: int, at: int, on_smartnic: bool, factors: Factors) -> Fraction:
        """Of one NF; before an OpenFlow switch, the largest of its kind in the chain: packets pass a table once."""
        nfs = self.chains[number].nfs
        openflow = self.rack.switch.kind is SwitchKind.OPENFLOW
        alike = [other for other, nf in enumerate(nfs) if nf.nf == nfs[at].nf] if openflow else [at]
        return max(factors.get((self.class_of[number], other, on_smartnic), Fraction(1)) for other in alike)

    def placed(self, chains: Sequence[ChainPlan]) -> tuple[ChainPlan, ...]:
        """The same sites, cores and rates of this instance's chains; of a plan for it with other cycles."""
        return tuple(
            ChainPlan(Layout(chain, self.rack, one.layout.sites), one.rate_mbps, one.cores)
            for chain, one in zip(self.chains, chains, strict=True)
        )

    def predicted(self, chains: Sequence[ChainPlan], growth: CycleGrowth) -> Factors:
        """The factors of the NFs that a plan for this instance runs on cores.

        Raises ValueError when a predicted factor is below 1, or no number.
        """
        factors: dict[Key, Fraction] = {}
        for device, placed in co_locations(chains, self.rack):
            answers = growth(device, [core_nf.member for core_nf in placed])
            for one, answer in zip(placed, answers, strict=True):
                for at, factor in zip(one.member.nfs, answer, strict=True):
                    key = (self.class_of[one.chain], at, device.is_smartnic)
                    factors[key] = max(factors.get(key, Fraction(1)), _round_up(factor))
        return factors


def _times(cost: CoreCost | None, factor: Fraction) -> CoreCost | None:
    return cost and cost.times(factor)


def _round_up(factor: float) -> Fraction:
    if not 1 <= factor < float("inf"):
        raise ValueError(f"cycles cannot grow by a factor of {factor}")
    return Fraction(ceil(factor * FACTOR_GRAIN), FACTOR_GRAIN)


LEAST_SECONDS = 0.1  # for a round that begins near the end of the time


def run_contended(
    name: str,
    chains: Sequence[Chain],
    rack: Rack,
    growth: CycleGrowth,
    *,
    time_limit: float = 60.0,
    notify: Notify = lambda message: None,
) -> ContendedPlan:
    """The plan of a strategy that keeps every SLO by prediction, with the bound of the program by cycles alone.

    `time_limit`: seconds for the plan by cycles alone, and again for the rounds after it. Raises InputError when there
    is no such strategy, or contention on the rack cannot be predicted.
    """
    strategy = CHAIN_STRATEGIES.find(name)
    rack.refuse_for("a prediction of contention", "--models none: cycles alone")
    until: float | None = None

    def solve(chains: Sequence[Chain], rack: Rack) -> RackPlan:
        nonlocal until
        if until is None:
            plan = run_strategy(name, chains, rack, time_limit=time_limit, notify=notify)
            until = time.perf_counter() + time_limit
            return plan
        left = max(until - time.perf_counter(), LEAST_SECONDS)
        return strategy(chains, rack, time_limit=left, notify=notify)

    return plan_under_contention(chains, rack, growth, solve, time_limit=2 * time_limit, notify=notify)
