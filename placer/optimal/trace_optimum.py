"""The optimum of a trace: the plan against which wastage is told, with its proof or its bound.

Without departures it is the static optimum over all arrivals. With departures it is a plan without migration, and the
bound is the highest static optimum of its moments: whoever is present at one time must be housed at that time, so no
plan can do with fewer NICs. Where an oracle has it that somebody needs company to meet an SLA, that must be there from
the first moment on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from placer.evaluate.checks import peak_nics, slas_kept
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.fleet import Fleet, NicKind, Tenant
from placer.model.oracle import Oracle
from placer.model.plan import Placement, Plan
from placer.optimal import Optimum, optimal_plan
from placer.optimal.departures import bound_over_time, fullest_moment, resolved_plan
from placer.optimal.duals import Duals
from placer.optimal.program import exact_cost
from placer.optimal.shortfall import Shortfall, left_out_of, shortfall_of
from placer.policy.rules import FIRST_FIT, LOOK_AHEAD
from placer.progress import Advance
from placer.strategies.contention_aware import ContentionAware

NAME = "optimal"


@dataclass(frozen=True)
class Certified:
    """A plan and how far from the best possible it can be.

    Parameters
    ----------
    plan
        Breaks no SLA by the oracle it was made with.
    nics, cost
        Of the plan, at the peak.
    lower_bound
        No plan that breaks no SLA and places as many costs less (with departures: and places the same arrivals); whole
        NICs at unit cost.
    nics_lower_bound
        No such plan uses fewer NICs.
    proven
        Whether plan and bound meet.
    seconds
        From oracle answers known to the plan and its proof.
    oracle_seconds
        Asking the oracle.
    scope
        What the bound is of, in words.
    of_the_same
        Whether the bound is of plans that place the same arrivals, not of all that place as many.
    duals
        Prices that prove a bound over all companies; None where there are none.
    shortfall
        What is lacking where somebody has no place; None where everybody has one.
    """

    plan: Plan
    nics: int
    cost: float
    lower_bound: float
    nics_lower_bound: int
    proven: bool
    seconds: float
    oracle_seconds: float
    scope: str
    of_the_same: bool = False
    duals: Duals | None = None
    shortfall: Shortfall | None = None

    def improved_by(self, plan: Plan, kinds: Sequence[NicKind]) -> Certified:
        """The better of this and another plan that breaks no SLA, under the same bound."""
        cost = _cost(plan, kinds)
        if (plan.rejected, cost) >= (self.plan.rejected, self.cost):
            return self
        if self.of_the_same and _rejected(plan) != _rejected(self.plan):
            return replace(self, lower_bound=0.0, nics_lower_bound=0, of_the_same=False).improved_by(plan, kinds)
        return replace(
            self,
            plan=replace(plan, strategy=NAME, predictor=None),
            nics=peak_nics(plan),
            cost=cost,
            proven=cost <= self.lower_bound + 1e-9 and plan.rejected == 0,
            shortfall=_left_out(plan),
        )


def _rejected(plan: Plan) -> list[str]:
    return [placement.arrival.id for placement in plan.placements if placement.nic is None]


def _left_out(plan: Plan) -> Shortfall | None:
    return Shortfall(tuple(_rejected(plan)), smallest=False) if plan.rejected else None


def find_optimum(
    arrivals: Sequence[Arrival],
    catalogue: Catalogue,
    oracles: Sequence[Oracle],
    *,
    time_limit: float,
    solver: str = "cp-sat",
    progress: Advance | None = None,
) -> Certified:
    """The cheapest plan for the trace that breaks no SLA by these oracles, with its proof or its bound."""
    if all(arrival.departure is None for arrival in arrivals):
        static = _static(arrivals, catalogue.kinds, oracles, time_limit, solver, progress)
        if static is not None:
            return static
    return _over_time(arrivals, catalogue, oracles, time_limit, solver, progress)


def _static(
    arrivals: Sequence[Arrival],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    time_limit: float,
    solver: str,
    progress: Advance | None,
) -> Certified | None:
    """The static optimum, or one as good that is sound while it fills up; None where neither is."""
    tenants = [arrival.tenant for arrival in arrivals]
    solve = partial(optimal_plan, tenants, kinds, oracles, time_limit=time_limit, solver=solver)
    optimum = solve(progress=progress)
    plan = _plan(arrivals, optimum)
    if not optimum.steady and any(slas_kept(plan, oracles)):
        steady = solve(steady=True)
        plan = _plan(arrivals, steady)
        if len(steady.unplaced) > len(optimum.unplaced) or any(slas_kept(plan, oracles)):
            return None
        proven = optimum.proven and steady.cost <= optimum.lower_bound
        optimum = replace(optimum, nics=steady.nics, unplaced=steady.unplaced, cost=steady.cost, proven=proven)
    return Certified(
        plan=plan,
        nics=peak_nics(plan),
        cost=optimum.cost,
        lower_bound=optimum.lower_bound,
        nics_lower_bound=optimum.nics_lower_bound,
        proven=optimum.proven,
        seconds=optimum.seconds,
        oracle_seconds=optimum.oracle_seconds,
        scope="all arrivals at once",
        duals=optimum.duals,
        shortfall=shortfall_of(optimum, tenants, kinds, oracles, seconds=time_limit / 2, solver=solver),
    )


def _plan(arrivals: Sequence[Arrival], optimum: Optimum) -> Plan:
    return Plan(NAME, None, tuple(_placements(arrivals, optimum)), optimum.seconds)


def _placements(arrivals: Sequence[Arrival], optimum: Optimum) -> list[Placement]:
    homes = {
        tenant.id: (f"nic-{number}", kind)
        for number, (kind, tenants) in enumerate(optimum.nics, start=1)
        for tenant in tenants
    }
    return [Placement(arrival, *homes.get(arrival.id, (None, None))) for arrival in arrivals]


def _over_time(
    arrivals: Sequence[Arrival],
    catalogue: Catalogue,
    oracles: Sequence[Oracle],
    time_limit: float,
    solver: str,
    progress: Advance | None,
) -> Certified:
    """The plan from the fullest moment outwards; where that is not proven, the online rules, and further moments."""
    began = time.monotonic()
    kinds = catalogue.kinds
    moment = partial(fullest_moment, kinds=kinds, oracles=oracles, seconds=time_limit / 3, solver=solver)
    fullest = moment(arrivals)
    base = fullest if fullest.steady else moment(arrivals, steady=True)
    placements = resolved_plan(arrivals, kinds, oracles, base, deadline=began + time_limit / 2)
    plans = [] if placements is None else [Plan(NAME, None, tuple(placements), time.monotonic() - began)]
    if not plans or plans[0].rejected or _cost(plans[0], kinds) > fullest.lower_bound + 1e-9:
        plans.append(_without_migration(arrivals, catalogue, oracles, progress))
    plan = min(plans, key=lambda plan: (plan.rejected, _cost(plan, kinds)))
    cost = _cost(plan, kinds)
    placed = [placement.arrival for placement in plan.placed]
    shortfall = None
    if plan.rejected:
        fullest = moment(placed)
        left_out = [placement.arrival.tenant for placement in plan.placements if placement.nic is None]
        shortfall = left_out_of(left_out, [arrival.tenant for arrival in arrivals], kinds, oracles)
    remaining = max(began + time_limit - time.monotonic(), time_limit / 10)
    bound = bound_over_time(placed, kinds, oracles, fullest, enough=cost, seconds=remaining, solver=solver)
    return Certified(
        plan=plan,
        nics=peak_nics(plan),
        cost=cost,
        lower_bound=bound.lower_bound,
        nics_lower_bound=bound.nics_lower_bound,
        proven=cost <= bound.lower_bound + 1e-9 and (shortfall is None or shortfall.smallest),
        seconds=time.monotonic() - began - bound.oracle_seconds,
        oracle_seconds=bound.oracle_seconds,
        shortfall=shortfall,
        of_the_same=True,
        scope=f"nobody moves; bound of the {bound.looked_at} fullest of {bound.moments} moments",
    )


def _without_migration(
    arrivals: Sequence[Arrival], catalogue: Catalogue, oracles: Sequence[Oracle], progress: Advance | None
) -> Plan:
    """The better of both contention-aware rules; where a departure harms those who stay, nobody shares."""
    shared = [
        ContentionAware(catalogue, oracles=oracles, rule=rule).place(arrivals, progress)
        for rule in (FIRST_FIT, LOOK_AHEAD)
    ]
    faultless = [plan for plan in shared if not any(slas_kept(plan, oracles))]
    if not faultless:
        faultless = [_Alone(catalogue, oracles=oracles).place(arrivals, progress)]
    best = min(faultless, key=lambda plan: (plan.rejected, _cost(plan, catalogue.kinds)))
    return replace(best, strategy=NAME, predictor=None)


class _Alone(ContentionAware):
    """Everybody who can meet the SLA alone gets a NIC alone."""

    def choose(self, fleet: Fleet, tenant: Tenant) -> NicKind | None:
        return self.cheapest_new(fleet, tenant, self.oracles)


def _cost(plan: Plan, kinds: Sequence[NicKind]) -> float:
    return float(sum((exact_cost(kind) * peak_nics(plan, kind) for kind in kinds), start=Fraction(0)))
