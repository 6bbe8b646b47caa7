"""A plan for a trace, with lower bounds on what any such plan costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from placer.evaluate.checks import peak_nics
from placer.evaluate.evaluation import to_buy
from placer.model.arrival import Arrival, settle_running
from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.plan import OPTIMAL, Placement, Plan
from placer.optimal.optimum import Duals
from placer.optimal.program import exact_cost
from placer.optimal.shortfall import Shortfall
from profiles.shown import Shown


@dataclass(frozen=True, repr=False)
class BoundedPlan(Shown):
    """A plan for a trace, and how far from the best possible plan it can be.

    `plan`: has no SLA violation by the oracles that it was made with.
    `nics`, `cost`: of the plan, at the peak.
    `lower_bound`: no plan without SLA violations that places as many arrivals of each priority costs less; at unit cost
        a whole number of NICs.
    `nics_lower_bound`: no such plan uses fewer NICs.
    `proven`: whether no plan places more arrivals, and none that places as many costs less.
    `seconds`: time of the search, without queries of oracles.
    `oracle_seconds`: time of these queries.
    `scope`: which plans the bound covers, in words.
    `same_arrivals`: whether the bound covers only plans that place the same arrivals, not all that place as many.
    `duals`: prices that prove a bound over all co-locations; None where there are none.
    `shortfall`: what the fleet lacks where arrivals are rejected; None where all are placed."""

    plan: Plan
    nics: int
    cost: float
    lower_bound: float
    nics_lower_bound: int
    proven: bool
    seconds: float
    oracle_seconds: float
    scope: str
    same_arrivals: bool = False
    duals: Duals | None = None
    shortfall: Shortfall | None = None

    def take_bounds(self, optimistic: BoundedPlan, undecided: int) -> BoundedPlan:
        """This plan under the bounds of one that may use co-locations of GPUs for which the test is undecided."""
        fewer = optimistic.plan.losses < self.plan.losses
        bound = 0.0 if fewer else min(self.lower_bound, optimistic.lower_bound)
        return replace(
            self,
            lower_bound=bound,
            nics_lower_bound=0 if fewer else min(self.nics_lower_bound, optimistic.nics_lower_bound),
            proven=self.proven and not fewer and self.cost <= bound + 1e-9,
            seconds=self.seconds + optimistic.seconds,
            oracle_seconds=self.oracle_seconds + optimistic.oracle_seconds,
            scope=f"{self.scope}; {undecided:,} admission test{'s' * (undecided != 1)} undecided",
        )

    def choose_better(self, plan: Plan, kinds: Sequence[NicKind]) -> BoundedPlan:
        """The better of this and another plan without SLA violations, under the same bound."""
        cost = float(exact_peak_cost(plan, kinds))
        if (plan.losses, cost, buys(plan, kinds)) >= (self.plan.losses, self.cost, buys(self.plan, kinds)):
            return self
        more = any(one > other for one, other in zip(plan.losses, self.plan.losses, strict=True))
        if (self.lower_bound and more) or (self.same_arrivals and ids_of_rejected(plan) != ids_of_rejected(self.plan)):
            return replace(self, lower_bound=0.0, nics_lower_bound=0, same_arrivals=False).choose_better(plan, kinds)
        return replace(
            self,
            plan=replace(
                plan,
                strategy=OPTIMAL,
                predictor=None,
                peak_nics=self.plan.peak_nics,
                peak_rejected=self.plan.peak_rejected,
            ),
            nics=peak_nics(plan),
            cost=cost,
            proven=cost <= self.lower_bound + 1e-9 and plan.rejected == 0,
            shortfall=Shortfall(ids_of_rejected(plan), proven=False, everything=not plan.placed)
            if plan.rejected
            else None,
        )


def ids_of_rejected(plan: Plan) -> tuple[str, ...]:
    """Ids of the arrivals without a NIC."""
    return tuple(placement.arrival.id for placement in plan.placements if placement.nic is None)


def exact_peak_cost(plan: Plan, kinds: Sequence[NicKind]) -> Fraction:
    """`peak_cost` as a fraction, for comparisons with proven bounds."""
    return sum((exact_cost(kind) * peak_nics(plan, kind) for kind in kinds), start=Fraction(0))


def buys(plan: Plan, kinds: Sequence[NicKind]) -> int:
    """NICs of the plan that must be bought, by which plans of equal cost differ; 0 where no NIC is owned."""
    return sum(to_buy(plan, kinds).values()) if any(kind.owned for kind in kinds) else 0


def find_better(plans: Sequence[Plan], kinds: Sequence[NicKind]) -> Plan:
    """The plan that rejects least, higher priorities first, then costs least, then buys least; else the first."""
    return min(plans, key=lambda plan: (plan.losses, exact_peak_cost(plan, kinds), buys(plan, kinds)))


def restore_days(plan: Plan, arrivals: Sequence[Arrival]) -> Plan:
    """A plan that was made as if these had their peak all day, with the loads that they have."""
    day = {arrival.id: arrival.day for arrival in arrivals}
    given = (
        replace(placement, arrival=replace(placement.arrival, day=day[placement.arrival.id]))
        for placement in plan.placements
    )
    return replace(plan, placements=tuple(given))


def placements_of(
    arrivals: Sequence[Arrival], kinds: Sequence[NicKind], nics: Iterable[tuple[NicKind, Sequence[Tenant]]]
) -> tuple[Placement, ...]:
    """Where these NICs put each arrival, by the names that the fleet gives them."""
    fleet = Fleet(kinds)
    settle_running(arrivals, fleet)
    nic_of: dict[str, tuple[str, NicKind]] = {}
    for kind, tenants in nics:
        nic = next(filter(None, (fleet.nic_of(tenant.id) for tenant in tenants)), None) or fleet.open(kind)
        nic_of |= {tenant.id: (nic.id, kind) for tenant in tenants}
    return tuple(Placement(arrival, *nic_of.get(arrival.id, (None, None))) for arrival in arrivals)


def placements_on(
    arrivals: Sequence[Arrival], kinds: Sequence[NicKind], nics: Sequence[tuple[NicKind, Sequence[Tenant]]]
) -> tuple[Placement, ...]:
    """Where these NICs put each arrival, with the cores that it gets there."""
    workload = {tenant.id: tenant.workload for _, tenants in nics for tenant in tenants}
    given = [replace(arrival, workload=workload.get(arrival.id, arrival.workload)) for arrival in arrivals]
    return placements_of(given, kinds, nics)
