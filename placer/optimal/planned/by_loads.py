"""The plan where instances have rates: cores are chosen, too, and the expected violations decide how full NICs get.

`rate_search.py` searches. Where latency can be promised, or some NICs are GPUs, the plan is that of the online rule,
mended where it exceeds the budget."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from placer.evaluate.checks import peak_nics
from placer.evaluate.expected_violations import ExpectedViolations, expected_violations
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.day import at_peak, has_days
from placer.model.plan import PLANNED, Plan, Within
from placer.optimal.bounded_plan import exact_peak_cost, find_better, placements_on, restore_days
from placer.optimal.dealing import deal_present
from placer.optimal.planned.chances import LIKELIEST_VIOLATION
from placer.optimal.planned.judges import ChanceJudge, DayJudge, Judge
from placer.optimal.planned.mend import mend
from placer.optimal.planned.rate_nics import KnownKind
from placer.optimal.planned.rate_search import USUAL_EFFORT, RatePlanner
from placer.optimal.planned.reserve import SELECTED_RESERVE, planned_pct, reserve_pct
from placer.progress import Advance
from placer.strategies.contention_aware import ContentionAware
from predictor.regression.compiled import running_s
from profiles import COUNTERS, Workload

FIRST_SHARE = 0.9 / (1.0 + SELECTED_RESERVE)
"""The share of the budget that may be expected at first; the rest is the reserve."""
MAX_REPLANS = 3
LEAST_DEALING_S = 1.0  # seconds in which tenants are dealt where the search took all the time
ACCESS_COUNTERS = tuple(COUNTERS.index(name) for name in ("l2crd", "l2cwr"))
MANY_ACCESSES = 1e8  # cache accesses per second that count as one NIC's share where instances are dealt out evenly


def plan_by_loads(
    arrivals: Sequence[Arrival], catalogue: Catalogue, predictor: str, seconds: float, progress: Advance | None
) -> Plan:
    """The plan within the budget that rejects least, then costs least, of those that are found, with its bound."""
    began = running_s()
    budget_pct = 100.0 if catalogue.budget_pct is None else catalogue.budget_pct
    make = partial(_make_plan, catalogue=catalogue, predictor=predictor, budget_pct=budget_pct, progress=progress)
    deadline, days = time.monotonic() + seconds, has_days(arrivals)
    plan, expected, planner = make(arrivals, deadline=deadline - seconds / 3 if days else deadline)
    if days:
        by_peaks = restore_days(make(at_peak(arrivals), deadline=deadline)[0], arrivals)
        if find_better([plan, by_peaks], catalogue.kinds) is by_peaks:
            known = expected_violations(by_peaks, catalogue, predictor)
            if planned_pct(known) <= budget_pct + 1e-9:
                plan, expected = by_peaks, known
        plan = replace(plan, peak_nics=peak_nics(by_peaks), peak_rejected=by_peaks.rejected)
    cost, nics = float(exact_peak_cost(plan, catalogue.kinds)), peak_nics(plan)
    bound = planner.bound_of(plan) if planner else None
    lowest = min(bound.cost, cost) if bound else 0.0
    within = Within(
        reserve_pct(expected),
        lowest,
        min(bound.nics, nics) if bound else 0,
        plan.rejected == 0 and bound is not None and cost <= lowest + 1e-9,
        rates_scope(arrivals) if bound else "no lower bound where latency can be promised or some NICs are GPUs",
    )
    return replace(plan, strategy=PLANNED, within=within, seconds=running_s() - began)


def _make_plan(
    arrivals: Sequence[Arrival],
    catalogue: Catalogue,
    predictor: str,
    budget_pct: float,
    progress: Advance | None,
    deadline: float,
) -> tuple[Plan, ExpectedViolations, RatePlanner | None]:
    """A plan within the budget, what to expect of it, and what searched it, if anything did."""
    planner = None
    if can_plan_rates(catalogue):
        planner = rate_planner(arrivals, catalogue, predictor, expected_judges(catalogue, predictor))
        plan, expected = _search(planner, arrivals, catalogue, predictor, budget_pct, deadline)
    else:
        plan = ContentionAware(catalogue, predictor).place(arrivals, progress)
        expected = expected_violations(plan, catalogue, predictor)
    over = planned_pct(expected) > budget_pct + 1e-9
    if over and all(arrival.nic is None for arrival in arrivals):
        plan, expected = mend(plan, catalogue, predictor, budget_pct)
    return plan, expected, planner


def _search(
    planner: RatePlanner,
    arrivals: Sequence[Arrival],
    catalogue: Catalogue,
    predictor: str,
    budget_pct: float,
    deadline: float,
) -> tuple[Plan, ExpectedViolations]:
    """The plan of a search, and what to expect of it; where needed, it is changed until it expects less."""
    risky = catalogue.budget_pct is None
    share = 0.0 if risky else FIRST_SHARE * budget_pct / 100.0
    nics = planner.plan(share, deadline)
    oracles = replace(catalogue, risk=catalogue.risk or LIKELIEST_VIOLATION, budget_pct=None).oracles(predictor)
    for tried in range(MAX_REPLANS):
        remaining = max(deadline - time.monotonic(), LEAST_DEALING_S)
        dealt = deal_present(arrivals, nics, catalogue.kinds, oracles, remaining)
        placements = placements_on(arrivals, catalogue.kinds, dealt)
        plan = Plan(PLANNED, predictor, placements, 0.0, risk=catalogue.risk)
        expected = expected_violations(plan, catalogue, predictor)
        together = planned_pct(expected)
        if risky or together <= budget_pct + 1e-9 or tried == MAX_REPLANS - 1 or time.monotonic() >= deadline:
            break
        share *= 0.95 * budget_pct / together
        nics = planner.shrink(nics, share, deadline)
    return plan, expected


# What a search knows of the NICs.


def can_plan_rates(catalogue: Catalogue) -> bool:
    """Whether a search knows these kinds of NIC: not where latency is promised, which the judges do not."""
    return not catalogue.gpus and not catalogue.curves


def rates_scope(arrivals: Sequence[Arrival]) -> str:
    """Which plans the bound covers, in words."""
    moves = any(arrival.departure is not None for arrival in arrivals)
    return f"{'no instance moves' if moves else 'all arrivals at once'}; lower bound from cores and line rate"


def expected_judges(catalogue: Catalogue, predictor: str) -> list[Judge]:
    """Per kind of NIC, what a predictor expects there."""
    risk = catalogue.risk if catalogue.budget_pct is None else None
    return [ChanceJudge(models.predictors[predictor], risk) for models in catalogue.models]


def rate_planner(
    arrivals: Sequence[Arrival],
    catalogue: Catalogue,
    predictor: str,
    judges: Sequence[Judge],
    effort: int = USUAL_EFFORT,
) -> RatePlanner:
    """What searches a plan by these judges, one per kind of NIC; the predictor only says where a search begins."""

    def shares(number: int, workload: Workload) -> dict[str, float]:
        counters = catalogue.models[number].solo_behaviour([workload]).counters[0]
        accesses = sum(float(counters[at]) for at in ACCESS_COUNTERS)
        return {**catalogue.shares(catalogue.kinds[number], workload), "memory": accesses / MANY_ACCESSES}

    def alone(number: int, workloads: Sequence[Workload]) -> Sequence[float]:
        found: list[float] = catalogue.models[number].predictors[predictor].solo(workloads).tolist()
        return found

    known = [
        KnownKind(
            kind,
            DayJudge(judge) if has_days(arrivals) else judge,
            partial(shares, kind.index),
            partial(alone, kind.index),
        )
        for kind, judge in zip(catalogue.kinds, judges, strict=True)
    ]
    return RatePlanner(arrivals, known, effort=effort)
