"""The optimum of a trace: the plan that wastage is measured against, with its proof or its bound.

Without departures it is the static optimum over all arrivals. With departures it is a plan without migration. Its bound
is the highest static optimum of all moments: the tenants present at one moment need NICs at that moment, so no plan
needs fewer. A tenant that meets its SLA only with certain neighbours needs them from its arrival on.

Where plan and bound do not meet, all plans are searched, if they are few enough."""

import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

from placer.evaluate.checks import constraints_kept, peak_nics, slas_kept
from placer.model.arrival import Arrival, have_loads, have_priorities, loses_no_more, running_nics
from placer.model.catalogue import Catalogue
from placer.model.day import at_peak, has_days
from placer.model.fleet import Fleet
from placer.model.gpu_oracle import GpuOracle
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.plan import OPTIMAL, Placement, Plan
from placer.optimal import Optimum, optimal_plan
from placer.optimal.bounded_plan import (
    BoundedPlan,
    buys,
    exact_peak_cost,
    find_better,
    ids_of_rejected,
    placements_of,
    placements_on,
    restore_days,
)
from placer.optimal.dealing import LEAST_DEALING, deal_present
from placer.optimal.departures import bound_over_time, fullest_moment, plan_over_time
from placer.optimal.moment_search import search_moments
from placer.optimal.planned.by_loads import can_plan_rates, expected_judges, rate_planner, rates_scope
from placer.optimal.planned.judges import OracleJudge
from placer.optimal.shortfall import Shortfall, shortfall_of, shortfall_of_left_out
from placer.policy.rules import FIRST_FIT, LOOK_AHEAD
from placer.progress import Advance
from placer.strategies.contention_aware import ContentionAware

FIRST_EXPECTED = 0.004
"""The share of instances that may be expected to violate their SLA in the plan with which a search at loads begins."""
OPTIMUM_EFFORT = 6_400  # how often each instance may be judged by what is true


def find_optimum(
    arrivals: Sequence[Arrival],
    catalogue: Catalogue,
    oracles: Sequence[Oracle],
    *,
    time_limit: float,
    solver: str = "cp-sat",
    progress: Advance | None = None,
) -> BoundedPlan:
    """The cheapest plan for the trace without SLA violations by these oracles, with its proof or its bound.

    Co-locations of GPUs for which the admission test is undecided are in no plan, and the bound allows for them.
    """
    solve = partial(_find, arrivals, catalogue, time_limit=time_limit, solver=solver, progress=progress)
    found = solve(oracles)
    undecided = sum(
        oracle.unproven
        for oracle in {id(oracle): oracle for oracle in oracles if isinstance(oracle, GpuOracle)}.values()
    )
    if not undecided:
        return found
    optimistic = solve([oracle.optimistic_twin() if isinstance(oracle, GpuOracle) else oracle for oracle in oracles])
    return found.take_bounds(optimistic, undecided)


def _find(
    arrivals: Sequence[Arrival],
    catalogue: Catalogue,
    oracles: Sequence[Oracle],
    *,
    time_limit: float,
    solver: str,
    progress: Advance | None,
) -> BoundedPlan:
    deadline = time.monotonic() + time_limit
    found = None
    if have_loads(arrivals) and not catalogue.gpus:
        days = has_days(arrivals)
        found = _at_loads(arrivals, catalogue, oracles, time_limit * 2 / 3 if days else time_limit, progress)
        if days:
            at_peaks = _at_loads(at_peak(arrivals), catalogue, oracles, time_limit / 3, progress)
            plan = restore_days(at_peaks.plan, arrivals)
            if not any(slas_kept(plan, oracles)):
                found = found.choose_better(plan, catalogue.kinds)
            plan = replace(found.plan, peak_nics=at_peaks.nics, peak_rejected=at_peaks.plan.rejected)
            found = replace(found, plan=plan, seconds=found.seconds + at_peaks.seconds)
        return found
    if all(arrival.departure is None for arrival in arrivals):
        found = _static(arrivals, catalogue.kinds, oracles, time_limit, solver, progress)
    if found is None:
        found = _over_time(arrivals, catalogue, oracles, time_limit, solver, progress)
    if _chooses_cores(arrivals, catalogue.kinds):
        # beside GPUs each has the default number so far, of which others know nothing
        found = replace(
            found,
            lower_bound=0.0,
            nics_lower_bound=0,
            proven=False,
            duals=None,
            scope="no lower bound where cores are chosen beside GPUs",
            shortfall=replace(found.shortfall, proven=False) if found.shortfall else None,
        )
        found = found.choose_better(online_plan(arrivals, catalogue, oracles, progress), catalogue.kinds)
    if found.proven:
        return found
    return _exhaustive(found, arrivals, catalogue.kinds, oracles, deadline + found.oracle_seconds)


def _chooses_cores(arrivals: Sequence[Arrival], kinds: Sequence[NicKind]) -> bool:
    """Whether an arrival may have several numbers of cores on a kind of NIC."""
    new = [arrival for arrival in arrivals if arrival.nic is None]
    workloads = [arrival.workload for arrival in new]
    return any(kind.hosts(workload) and len(kind.choices(workload)) > 1 for workload in workloads for kind in kinds)


def _static(
    arrivals: Sequence[Arrival],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    time_limit: float,
    solver: str,
    progress: Advance | None,
) -> BoundedPlan | None:
    """The static optimum, or a plan as good without violations while the NICs fill up; None where neither is found."""
    tenants = [arrival.tenant for arrival in arrivals if arrival.nic is None]
    running = running_nics(arrivals, kinds)
    solve = partial(optimal_plan, tenants, kinds, oracles, solver=solver, running=running)
    optimum = solve(time_limit=time_limit, progress=progress)
    remaining = max(time_limit - optimum.seconds, time_limit / 10)
    plan = _plan(arrivals, kinds, optimum)
    if not optimum.departure_safe and any(slas_kept(plan, oracles)):
        safe = solve(time_limit=remaining, departure_safe=True)
        plan = _plan(arrivals, kinds, safe)
        if not loses_no_more(safe.unplaced, optimum.unplaced) or any(slas_kept(plan, oracles)):
            return None
        proven = optimum.proven and safe.cost <= optimum.lower_bound
        optimum = replace(optimum, nics=safe.nics, unplaced=safe.unplaced, cost=safe.cost, proven=proven)
    return BoundedPlan(
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
        shortfall=shortfall_of(optimum, tenants, kinds, oracles, running, seconds=remaining / 2, solver=solver),
    )


def _plan(arrivals: Sequence[Arrival], kinds: Sequence[NicKind], optimum: Optimum) -> Plan:
    return Plan(OPTIMAL, None, placements_of(arrivals, kinds, optimum.nics), optimum.seconds)


def _at_loads(
    arrivals: Sequence[Arrival],
    catalogue: Catalogue,
    oracles: Sequence[Oracle],
    time_limit: float,
    progress: Advance | None,
) -> BoundedPlan:
    """A plan for instances with rates: cores are chosen, too. The bound is that of cores and line rate.

    A search begins with what a predictor expects, and goes on with what is true. Where it does not place all, or an SLA
    is violated after a departure, the plans of the online rules are looked at, too.
    """
    began = time.monotonic()
    kinds = catalogue.kinds
    able = [name for name in catalogue.predictors() if catalogue.supports_loads(name)]
    plans, planner = [], None
    if able and can_plan_rates(catalogue):
        by_predictor = rate_planner(arrivals, catalogue, able[0], expected_judges(catalogue, able[0]))
        begin = by_predictor.plan(FIRST_EXPECTED, began + time_limit / 3)
        judges = [OracleJudge(oracle) for oracle in oracles]
        planner = rate_planner(arrivals, catalogue, able[0], judges, effort=OPTIMUM_EFFORT)
        nics = planner.shrink(begin, 0.0, began + time_limit)
        remaining = max(began + time_limit - time.monotonic(), LEAST_DEALING * time_limit)
        nics = deal_present(arrivals, nics, kinds, oracles, remaining)
        plans = [Plan(OPTIMAL, None, placements_on(arrivals, kinds, nics), 0.0)]
        plans = [plan for plan in plans if not any(slas_kept(plan, oracles)) and not any(constraints_kept(plan))]
    if not plans or plans[0].rejected:
        plans.append(online_plan(arrivals, catalogue, oracles, progress))
    plan = find_better(plans, kinds)
    plan = replace(plan, seconds=time.monotonic() - began)
    cost, used = float(exact_peak_cost(plan, kinds)), peak_nics(plan)
    bound = planner.bound_of(plan) if planner else None
    lowest = min(bound.cost, cost) if bound else 0.0
    found = BoundedPlan(
        plan=plan,
        nics=used,
        cost=cost,
        lower_bound=lowest,
        nics_lower_bound=min(bound.nics, used) if bound else 0,
        proven=bound is not None and not plan.rejected and cost <= lowest + 1e-9,
        seconds=time.monotonic() - began,
        oracle_seconds=0.0,
        scope=rates_scope(arrivals) if bound else "no lower bound where latency can be promised",
        same_arrivals=True,
        shortfall=Shortfall(ids_of_rejected(plan), proven=False, everything=not plan.placed) if plan.rejected else None,
    )
    return found if found.proven else _exhaustive(found, arrivals, kinds, oracles, began + time_limit)


def _over_time(
    arrivals: Sequence[Arrival],
    catalogue: Catalogue,
    oracles: Sequence[Oracle],
    time_limit: float,
    solver: str,
    progress: Advance | None,
) -> BoundedPlan:
    """The plan from the fullest moment outwards; where that is not proven, the online rules, and further moments."""
    began = time.monotonic()
    kinds = catalogue.kinds
    static = partial(fullest_moment, kinds=kinds, oracles=oracles, seconds=time_limit / 3, solver=solver)
    fullest = static(arrivals)
    base = fullest if fullest.departure_safe else static(arrivals, departure_safe=True)
    plan_moments = partial(plan_over_time, arrivals, kinds, oracles, base, deadline=began + time_limit / 2)
    placements = plan_moments()
    plans = [] if placements is None else [Plan(OPTIMAL, None, tuple(placements), time.monotonic() - began)]
    if plans and plans[0].rejected and have_priorities(arrivals) and (other := plan_moments(by_priority=True)):
        plans.append(Plan(OPTIMAL, None, tuple(other), time.monotonic() - began))
    if not plans or plans[0].rejected or exact_peak_cost(plans[0], kinds) > fullest.lower_bound + 1e-9:
        plans.append(online_plan(arrivals, catalogue, oracles, progress))
    plan = find_better(plans, kinds)
    cost = float(exact_peak_cost(plan, kinds))
    placed = [placement.arrival for placement in plan.placed]
    shortfall = None
    if plan.rejected:
        fullest = static(placed)
        left_out = [placement.arrival.tenant for placement in plan.placements if placement.nic is None]
        shortfall = shortfall_of_left_out(left_out, [arrival.tenant for arrival in arrivals], kinds, oracles)
    remaining = max(began + time_limit - time.monotonic(), time_limit / 10)
    bound = bound_over_time(placed, kinds, oracles, fullest, enough=cost, seconds=remaining, solver=solver)
    return BoundedPlan(
        plan=plan,
        nics=peak_nics(plan),
        cost=cost,
        lower_bound=bound.lower_bound,
        nics_lower_bound=bound.nics_lower_bound,
        proven=cost <= bound.lower_bound + 1e-9 and (shortfall is None or shortfall.proven),
        seconds=time.monotonic() - began - bound.oracle_seconds,
        oracle_seconds=bound.oracle_seconds,
        shortfall=shortfall,
        same_arrivals=True,
        scope=f"no tenant moves; lower bound from the {bound.examined} fullest of {bound.moments} moments",
    )


def _exhaustive(
    found: BoundedPlan,
    arrivals: Sequence[Arrival],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    deadline: float,
) -> BoundedPlan:
    """The best of all plans, proven, where the search of all is complete by the deadline; else what was found."""
    began = time.monotonic()
    search = partial(search_moments, arrivals, kinds, oracles, deadline=deadline)
    cheapest = search(better_than=(found.plan.losses, exact_peak_cost(found.plan, kinds), buys(found.plan, kinds)))
    if cheapest is None:
        return found
    plan = found.plan if cheapest.placements is None else Plan(OPTIMAL, None, tuple(cheapest.placements), 0.0)
    nics, cost = peak_nics(plan), float(exact_peak_cost(plan, kinds))
    fewest = search(better_than=(plan.losses, Fraction(nics), 0), fewest_nics=True)
    shortfall = found.shortfall
    if ids_of_rejected(plan) != ids_of_rejected(found.plan):
        left_out = [placement.arrival.tenant for placement in plan.placements if placement.nic is None]
        shortfall = shortfall_of_left_out(left_out, [arrival.tenant for arrival in arrivals], kinds, oracles)
    return replace(
        found,
        plan=plan,
        nics=nics,
        cost=cost,
        lower_bound=cost,
        nics_lower_bound=0 if fewest is None else _fewest_nics(nics, fewest.placements),
        proven=True,
        seconds=found.seconds + time.monotonic() - began,
        scope="no tenant moves; all plans were searched",
        same_arrivals=False,
        shortfall=replace(shortfall, proven=True) if shortfall and plan.rejected else None,
    )


def _fewest_nics(nics: int, better: Sequence[Placement] | None) -> int:
    return nics if better is None else peak_nics(Plan(OPTIMAL, None, tuple(better), 0.0))


# Plans of online rules with the oracles of the optimum: no tenant moves, and traces may be of any length.


def online_plan(
    arrivals: Sequence[Arrival], catalogue: Catalogue, oracles: Sequence[Oracle], progress: Advance | None
) -> Plan:
    """The better plan of two contention-aware rules; where departures make both violate SLAs, no NIC is shared."""
    shared = [
        ContentionAware(catalogue, oracles=oracles, rule=rule).place(arrivals, progress)
        for rule in (FIRST_FIT, LOOK_AHEAD)
    ]
    plans = [plan for plan in shared if not any(slas_kept(plan, oracles))]
    if not plans:
        plans = [_OneNicEach(catalogue, oracles=oracles).place(arrivals, progress)]
    kinds = catalogue.kinds
    best = find_better(plans, kinds)
    return replace(best, strategy=OPTIMAL, predictor=None)


class _OneNicEach(ContentionAware):
    """Every arrival that meets its SLA alone gets a NIC of its own."""

    def choose(self, fleet: Fleet, tenant: Tenant) -> NicKind | None:
        return self.cheapest_new(fleet, tenant, self.oracles)
