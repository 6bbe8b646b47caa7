"""Which co-locations the plans of some arrivals use, and on how many NICs.

The arrivals are one sample of those to come, so plans are also made for resampled ones: the same times, with workloads,
SLAs and durations drawn from the arrivals. Plans keep the budget of SLA violations; further ones are less careful, and
use co-locations that would be used if they were measured and found a little faster.

Planning again after a round, little has changed: the risk moves by one step at most, what the plans of the round before
used counts half, and fewer plans are made, of other resampled arrivals.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from placer.evaluate.checks import peak_nics
from placer.evaluate.expected_violations import expected_violations
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.fleet import Fleet, Tenant
from placer.model.plan import Plan
from placer.model.replay import replay_plan
from placer.model.sla import Sla
from placer.strategies.budget import RISKS, with_reserves
from placer.strategies.contention_aware import ContentionAware
from placer.strategies.replay import Replayed
from profiles import Workload

RESAMPLED = 2
"""Traces like the arrivals that are planned besides them in the first round; one in each later round."""
LESS_CAREFUL = (0.5, 0.25)
"""Risks of less careful plans, made where the budget allows less: both in the first round, later in turn."""
WEIGHT_LESS_CAREFUL = 1.0
"""The weight of their NICs, relative to those of the plan within the budget."""
WEIGHT_FORMER = 0.5
"""The weight of what the round before used."""

Use = tuple[tuple[Workload, Sla], ...]
"""The tenants of a NIC: workload and SLA of each, sorted by workload."""


@dataclass(frozen=True)
class Usage:
    """What plans use.

    Parameters
    ----------
    plan
        The plan of the arrivals within the budget.
    weights
        NICs per set of tenants, summed over all plans.
    """

    plan: Plan
    weights: dict[Use, float]

    @property
    def nics(self) -> int:
        """NICs of the plan at its peak."""
        return peak_nics(self.plan)


def usage_of(
    arrivals: Sequence[Arrival],
    catalogue: Catalogue,
    predictor: str,
    seed: int,
    former: Usage | None = None,
    number: int = 0,
) -> Usage:
    """What is used by plans of the arrivals, and of traces like them.

    Parameters
    ----------
    arrivals
        What will be placed.
    catalogue, predictor
        The NICs, and the predictor to plan by.
    seed
        Of resampling.
    former
        The usage of the round before.
    number
        Rounds before this one.
    """
    plan = _planned(arrivals, catalogue, predictor, former)
    traces = _resampled(arrivals, seed, number, 1 if former else RESAMPLED)
    risks = LESS_CAREFUL[number % 2 :][:1] if former else LESS_CAREFUL
    less_careful = [risk for risk in risks if risk > (plan.risk or 0.0)]
    plans = [
        (1.0, plan),
        *((1.0, _place_at(plan.risk, trace, catalogue, predictor)) for trace in traces),
        *((WEIGHT_LESS_CAREFUL, _place_at(risk, arrivals, catalogue, predictor)) for risk in less_careful),
    ]
    weights: defaultdict[Use, float] = defaultdict(float)
    for use, nics in former.weights.items() if former else ():
        weights[use] += WEIGHT_FORMER * nics
    for weight, other in plans:
        for use, nics in _uses(other, catalogue).items():
            weights[use] += weight * nics
    return Usage(plan, dict(weights))


def _planned(arrivals: Sequence[Arrival], catalogue: Catalogue, predictor: str, former: Usage | None) -> Plan:
    """The plan within the budget, at the risk of the round before or one step from it where there was one."""
    if former is None or catalogue.budget_pct is None or former.plan.risk not in RISKS:
        return ContentionAware(catalogue, predictor).place(arrivals)
    at = RISKS.index(former.plan.risk)
    plan = _place_at(RISKS[at], arrivals, catalogue, predictor)
    expected = expected_violations(plan, catalogue, predictor)
    careful = with_reserves(expected, Replayed())  # replays would take longer than the round gains by them
    if careful > catalogue.budget_pct:
        step = 1
    else:  # violations grow about as the risk does
        step = -1 if at and careful * RISKS[at - 1] / RISKS[at] <= catalogue.budget_pct else 0
    moved = min(at + step, len(RISKS) - 1)
    return plan if moved == at else _place_at(RISKS[moved], arrivals, catalogue, predictor)


def _place_at(risk: float | None, arrivals: Sequence[Arrival], catalogue: Catalogue, predictor: str) -> Plan:
    return ContentionAware(replace(catalogue, risk=risk, budget_pct=None), predictor).place(arrivals)


def _resampled(arrivals: Sequence[Arrival], seed: int, number: int, traces: int) -> Iterator[list[Arrival]]:
    rng = np.random.default_rng([seed, len(arrivals), *([number] if number else [])])
    for _ in range(traces):
        drawn = [arrivals[index] for index in rng.integers(len(arrivals), size=len(arrivals)).tolist()]
        yield [
            Arrival(
                at.id,
                at.time,
                like.workload,
                like.sla,
                None if like.departure is None else at.time + (like.departure - like.time),
            )
            for at, like in zip(arrivals, drawn, strict=True)
        ]


def _uses(plan: Plan, catalogue: Catalogue) -> Counter[Use]:
    """How many NICs hold each set of tenants, the largest sets only: before a departure, and at the end.

    A NIC that is filled holds every part of its last set before it.
    """
    last: dict[str, frozenset[Tenant]] = {}
    found: Counter[Use] = Counter()
    for _, changed in replay_plan(plan, Fleet(catalogue.kinds)):
        for nic in changed:
            now = frozenset(nic.tenants)
            before = last.get(nic.id, frozenset())
            if not before <= now:
                found[_use(before)] += 1
            last[nic.id] = now
    found.update(_use(tenants) for tenants in last.values() if tenants)
    return found


def _use(tenants: frozenset[Tenant]) -> Use:
    ordered = sorted(tenants, key=lambda tenant: (tenant.workload, str(tenant.sla)))
    return tuple((tenant.workload, tenant.sla) for tenant in ordered)
