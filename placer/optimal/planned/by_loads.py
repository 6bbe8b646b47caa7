"""The plan where instances have rates: cores are chosen, too, and the expected violations decide how full NICs get.

`rate_search.py` searches. Where instances leave or already run, or there are several kinds of NIC, the plan is
that of the online rule, mended where it exceeds the budget.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from placer.evaluate.checks import peak_nics
from placer.evaluate.expected_violations import ExpectedViolations, expected_violations
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.day import at_peak, has_days
from placer.model.plan import PLANNED, Plan, Within
from placer.optimal.bounded_plan import exact_peak_cost, find_better, placements_on, restore_days
from placer.optimal.planned.judges import ChanceJudge
from placer.optimal.planned.mend import mend
from placer.optimal.planned.rate_search import LoadPlanner, kind_of_loads, load_planner
from placer.optimal.planned.reserve import SELECTED_RESERVE, reserve_pct
from placer.progress import Advance
from placer.strategies.contention_aware import ContentionAware

FIRST_SHARE = 0.9 / (1.0 + SELECTED_RESERVE)
"""The share of the budget that may be expected at first; the rest is the reserve."""
MAX_REPLANS = 3


def plan_by_loads(
    arrivals: Sequence[Arrival], catalogue: Catalogue, predictor: str, seconds: float, progress: Advance | None
) -> Plan:
    """The plan within the budget that rejects least, then costs least, of those that are found, with its bound."""
    began = time.perf_counter()
    kind = kind_of_loads(arrivals, catalogue)
    plan, expected, bound = _make_plan(arrivals, catalogue, predictor, seconds, progress)
    if has_days(arrivals):
        of_peaks, _, _ = _make_plan(at_peak(arrivals), catalogue, predictor, seconds, progress)
        of_peaks = restore_days(of_peaks, arrivals)
        if find_better([plan, of_peaks], catalogue.kinds) is of_peaks:
            known = expected_violations(of_peaks, catalogue, predictor)
            if known.mean_pct + reserve_pct(known) <= _budget_pct(catalogue) + 1e-9:
                plan, expected = of_peaks, known
        plan = replace(plan, peak_nics=peak_nics(of_peaks))
    cost = float(exact_peak_cost(plan, catalogue.kinds))
    unit = catalogue.kinds[0].cost if kind is not None and not plan.rejected else 0.0
    bound = min(bound, peak_nics(plan)) if unit else 0
    within = Within(
        reserve_pct(expected),
        min(bound * unit, cost),
        bound,
        bool(unit) and cost <= bound * unit + 1e-9,
        "all arrivals at once; bound from cores and line rate"
        if kind is not None
        else "no bound where instances leave",
    )
    return replace(plan, strategy=PLANNED, within=within, seconds=time.perf_counter() - began)


def _budget_pct(catalogue: Catalogue) -> float:
    return 100.0 if catalogue.budget_pct is None else catalogue.budget_pct


def _make_plan(
    arrivals: Sequence[Arrival], catalogue: Catalogue, predictor: str, seconds: float, progress: Advance | None
) -> tuple[Plan, ExpectedViolations, int]:
    """A plan within the budget, what to expect of it, and the bound on its NICs, 0 for none."""
    deadline, bound = time.monotonic() + seconds, 0
    if kind_of_loads(arrivals, catalogue) is None:
        plan = ContentionAware(catalogue, predictor).place(arrivals, progress)
        expected = expected_violations(plan, catalogue, predictor)
    else:
        judge = ChanceJudge(catalogue.models[0].predictors[predictor])
        planner = load_planner([arrival.tenant for arrival in arrivals], catalogue, predictor, judge)
        plan, expected, bound = _search(planner, arrivals, catalogue, predictor, deadline)
    if expected.mean_pct + reserve_pct(expected) > _budget_pct(catalogue) + 1e-9:
        plan, expected = mend(plan, catalogue, predictor, _budget_pct(catalogue))
    return plan, expected, bound


def _search(
    planner: LoadPlanner,
    arrivals: Sequence[Arrival],
    catalogue: Catalogue,
    predictor: str,
    deadline: float,
) -> tuple[Plan, ExpectedViolations, int]:
    """The plan of a search, what to expect of it, and the bound; where needed, less of the budget is tried."""
    share, budget_pct = FIRST_SHARE, _budget_pct(catalogue)
    for _ in range(MAX_REPLANS):
        found = planner.plan(share * budget_pct / 100.0, deadline)
        placements = placements_on(arrivals, catalogue.kinds, [(planner.kind, nic) for nic in found.nics])
        plan = Plan(PLANNED, predictor, placements, 0.0, risk=catalogue.risk)
        expected = expected_violations(plan, catalogue, predictor)
        together = expected.mean_pct + reserve_pct(expected)
        if together <= budget_pct + 1e-9 or time.monotonic() >= deadline:
            break
        share *= 0.95 * budget_pct / together
    return plan, expected, found.bound
