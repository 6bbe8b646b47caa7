"""Which co-locations the plans of some arrivals use, and on how many NICs.

The arrivals are one sample of those to come, so plans are also made for resampled ones: the same times, with workloads,
SLAs and durations drawn from the arrivals. Plans keep the budget of SLA violations; further ones are less careful, and
use co-locations that would be used if they were measured and found a little faster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from placer.evaluate.checks import peak_nics
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.fleet import Fleet, Tenant
from placer.model.plan import Plan
from placer.model.replay import replay_plan
from placer.model.sla import Sla
from placer.strategies.contention_aware import ContentionAware
from profiles import Workload

RESAMPLED = 2
"""Traces like the arrivals that are planned besides them."""
LESS_CAREFUL = (0.5, 0.25)
"""Risks of less careful plans, made where the budget allows less."""
WEIGHT_LESS_CAREFUL = 1.0
"""The weight of their NICs, relative to those of the plan within the budget."""

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


def usage_of(arrivals: Sequence[Arrival], catalogue: Catalogue, predictor: str, seed: int) -> Usage:
    """What is used by plans of the arrivals, and of traces like them."""
    plan = ContentionAware(catalogue, predictor).place(arrivals)
    careful = replace(catalogue, risk=plan.risk, budget_pct=None)
    plans = [(1.0, plan)]
    plans += [(1.0, ContentionAware(careful, predictor).place(trace)) for trace in _resampled(arrivals, seed)]
    for risk in LESS_CAREFUL:
        if risk > (plan.risk or 0.0):
            careless = replace(catalogue, risk=risk, budget_pct=None)
            plans.append((WEIGHT_LESS_CAREFUL, ContentionAware(careless, predictor).place(arrivals)))
    weights: Counter[Use] = Counter()
    for weight, other in plans:
        for use, nics in _uses(other, catalogue).items():
            weights[use] += weight * nics  # type: ignore[assignment]
    return Usage(plan, dict(weights))


def _resampled(arrivals: Sequence[Arrival], seed: int) -> Iterator[list[Arrival]]:
    rng = np.random.default_rng([seed, len(arrivals)])
    for _ in range(RESAMPLED):
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
