"""The plan where instances leave or already run, or where there are too many co-locations to look at each.

No instance moves, so an NF's place must suit its neighbours of its whole stay. Plans are made as the optimum's are, at
one risk after the other, the least careful first: every prediction is lowered to the throughput that such a share of
cases falls short of. The first that keeps the budget, reserve included, is taken, or the online rule's plan if that
costs less. Where none keeps it, doubtful instances get NICs of their own (`mend.py`). The bound is that of the fullest
moments: the instances present need NICs then, and no more of them can be expected to violate their SLA than the budget
allows of all."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from placer.evaluate.checks import peak_nics
from placer.evaluate.expected_violations import expected_violations
from placer.model.arrival import Arrival, running_nics
from placer.model.catalogue import Catalogue
from placer.model.nic import Tenant
from placer.model.plan import PLANNED, Plan, Within
from placer.optimal.bounded_plan import exact_peak_cost
from placer.optimal.departures import fullest_moment, peaks, plan_over_time, present_at
from placer.optimal.planned.mend import mend
from placer.optimal.planned.reserve import reserve_pct
from placer.optimal.planned.static import StaticPlanner, cores_bound, cores_proof
from placer.optimal.program import exact_cost
from placer.progress import Advance
from placer.strategies.contention_aware import ContentionAware
from predictor.regression.compiled import running_s

TRIED_RISKS = (0.3, 0.15, 0.07, 0.03, 0.012, 0.005)
FULLEST_MOMENTS = 3
RISK_TIME_SHARE = 0.4
Planner = Callable[[Sequence[Tenant], float, float], StaticPlanner | None]


def plan_by_risks(
    arrivals: Sequence[Arrival],
    catalogue: Catalogue,
    predictor: str,
    planner: Planner,
    deadline: float,
    progress: Advance | None,
) -> Plan:
    """The cheapest of these plans within the budget, else the most careful one, with its bound."""
    began = running_s()
    budget = math.inf if catalogue.budget_pct is None else catalogue.budget_pct
    made: list[tuple[bool, tuple[int, ...], float, float, Plan]] = []
    for plan, careful in _plans(arrivals, catalogue, predictor, deadline, progress):
        expected = expected_violations(plan, catalogue, predictor)
        kept_back = reserve_pct(expected)
        over = max(expected.mean_pct + kept_back - budget, 0.0)
        cost = float(exact_peak_cost(plan, catalogue.kinds))
        made.append((over > 0, plan.losses, over if over > 0 else cost, kept_back, plan))
        if careful and over == 0.0:
            break
    over, _, _, kept_back, plan = min(made, key=lambda one: one[:3])
    if over and all(arrival.nic is None for arrival in arrivals):
        plan, expected = mend(plan, catalogue, predictor, budget)
        kept_back = reserve_pct(expected)
    within = _find_bound(plan, kept_back, arrivals, catalogue, planner, deadline)
    return replace(plan, strategy=PLANNED, within=within, seconds=running_s() - began)


def _plans(
    arrivals: Sequence[Arrival], catalogue: Catalogue, predictor: str, deadline: float, progress: Advance | None
) -> Iterator[tuple[Plan, bool]]:
    """The plans to choose from, and of each whether later ones are more careful and cost more."""
    yield ContentionAware(catalogue, predictor).place(arrivals, progress), False
    kinds = catalogue.kinds
    for risk in TRIED_RISKS if catalogue.risk is None else (catalogue.risk,):
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return
        oracles = replace(catalogue, risk=risk, budget_pct=None).oracles(predictor)
        base = fullest_moment(
            arrivals, kinds, oracles, seconds=RISK_TIME_SHARE * remaining, solver="cp-sat", departure_safe=True
        )
        placements = plan_over_time(arrivals, kinds, oracles, base, deadline=deadline)
        if placements is not None:
            yield Plan(PLANNED, predictor, tuple(placements), 0.0, risk=catalogue.risk), True


def _find_bound(
    plan: Plan, kept_back: float, arrivals: Sequence[Arrival], catalogue: Catalogue, planner: Planner, deadline: float
) -> Within:
    """The bound of the fullest moments on plans that place the same arrivals; NICs that already run are in all of them.

    The planner forbids places that an instance may already have, so that it bounds nothing while one runs.
    """
    kinds = catalogue.kinds
    placed = [placement.arrival for placement in plan.placed]
    budget = 1.0 if catalogue.budget_pct is None else catalogue.budget_pct / 100.0
    moments = peaks(placed, kinds)
    cost = float(exact_peak_cost(plan, kinds))
    bound, examined = float(sum((exact_cost(nic.kind) for nic in running_nics(placed, kinds)), start=Fraction(0))), 0
    for moment in moments[:FULLEST_MOMENTS]:
        present = [placed[index] for index in present_at(placed, moment)]
        tenants = [arrival.tenant for arrival in present]
        bound = max(bound, cores_bound(tenants, kinds))
        examined += 1
        if bound >= cost - 1e-9 or time.monotonic() >= deadline:
            break
        if any(arrival.nic is not None for arrival in present):
            continue
        found = planner(tenants, budget * len(placed) / max(len(tenants), 1), max(deadline - time.monotonic(), 1.0))
        bound = max(bound, 0.0 if found is None or found.fewest_left_out else found.bound)
    unit = kinds[0].cost if len({kind.cost for kind in kinds}) == 1 else 0.0
    nics = math.ceil(bound / unit - 1e-6) if unit else 0
    bound = min(nics * unit if unit else bound, cost)
    scope, proof = "all arrivals at once", None
    if any(arrival.departure is not None for arrival in arrivals):
        scope = f"no instance moves; lower bound from the {examined} fullest of {len(moments)} moments"
    elif all(arrival.nic is None for arrival in arrivals):
        proof = cores_proof([arrival.tenant for arrival in arrivals], kinds)
    proven = plan.rejected == 0 and cost <= bound + 1e-9
    return Within(kept_back, bound, min(nics, peak_nics(plan)), proven, scope, proof)
