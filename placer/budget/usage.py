"""Which co-locations the plans of some arrivals use, and on how many NICs.

The arrivals are one sample of those to come, so plans are also made for resampled ones: the same times, with workloads,
SLAs and durations drawn from the arrivals. Plans keep the budget of SLA violations; further ones are less careful, and
use co-locations that would be used if they were measured and found a little faster.

Planning again after a round, little has changed: the risk moves by one step at most, what the plans of the round before
used counts half, and fewer plans are made, of other resampled arrivals."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from placer.evaluate.checks import peak_nics
from placer.evaluate.expected_violations import expected_violations
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.plan import Plan, replay_plan
from placer.model.sla import Sla
from placer.strategies.budget import RISKS_TRIED, Replayed, with_reserves
from placer.strategies.contention_aware import ContentionAware
from profiles import CoLocation, Workload

RESAMPLED_TRACES = 2
"""Traces like the arrivals that are planned besides them in the first round; one in each later round."""
LESS_CAREFUL = (0.5, 0.25)
"""Risks of less careful plans, made where the budget allows less: both in the first round, later in turn."""
WEIGHT_LESS_CAREFUL = 1.0  # the weight of their NICs, relative to those of the plan within the budget
WEIGHT_FORMER = 0.5  # the weight of what the round before used
Use = tuple[tuple[Workload, Sla], ...]  # the tenants of a NIC: workload and SLA of each, sorted by workload


@dataclass(frozen=True)
class Usage:
    """What plans use. `plan`: the plan of the arrivals within the budget. `weights`: NICs per set of tenants, summed
    over all plans."""

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
    """What is used by plans of the arrivals, and of traces like them. `arrivals`: what will be placed. `catalogue`,
    `predictor`: the NICs, and the predictor to plan by. `seed`: of resampling. `former`: the usage of the round before.
    `number`: rounds before this one."""
    plan = _plan(arrivals, catalogue, predictor, former)
    traces = _resample(arrivals, seed, number, 1 if former else RESAMPLED_TRACES)
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


def _plan(arrivals: Sequence[Arrival], catalogue: Catalogue, predictor: str, former: Usage | None) -> Plan:
    """The plan within the budget, at the risk of the round before or one step from it where there was one."""
    if former is None or catalogue.budget_pct is None or former.plan.risk not in RISKS_TRIED:
        return ContentionAware(catalogue, predictor).place(arrivals)
    at = RISKS_TRIED.index(former.plan.risk)
    plan = _place_at(RISKS_TRIED[at], arrivals, catalogue, predictor)
    expected = expected_violations(plan, catalogue, predictor)
    careful = with_reserves(expected, Replayed())  # replays would take longer than the round gains by them
    if careful > catalogue.budget_pct:
        step = 1
    else:  # violations grow about as the risk does
        step = -1 if at and careful * RISKS_TRIED[at - 1] / RISKS_TRIED[at] <= catalogue.budget_pct else 0
    moved = min(at + step, len(RISKS_TRIED) - 1)
    return plan if moved == at else _place_at(RISKS_TRIED[moved], arrivals, catalogue, predictor)


def _place_at(risk: float | None, arrivals: Sequence[Arrival], catalogue: Catalogue, predictor: str) -> Plan:
    return ContentionAware(replace(catalogue, risk=risk, budget_pct=None), predictor).place(arrivals)


def _resample(arrivals: Sequence[Arrival], seed: int, number: int, traces: int) -> Iterator[list[Arrival]]:
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
    """How many NICs hold each set of tenants, the largest sets only: before a departure, and at the end. A NIC that is
    filled holds every part of its last set before it."""
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


# Which co-locations must be measured before a plan rests on measurements, and which of them to run first.


OnCard = tuple[int, CoLocation]
"""A co-location and the card that it is on, by the index of the first kind of NIC with that testbed."""


@dataclass(frozen=True)
class Needs:
    """What the instances of a plan need. `groups`: how many instances need each set of co-locations: those of their NIC
    at every moment of their stay, and themselves alone where their SLA is relative to that."""

    groups: Counter[frozenset[OnCard]]

    @property
    def all(self) -> set[OnCard]:
        """Every co-location that an instance needs."""
        return set().union(*self.groups)

    def measured_pct(self, measured: Collection[OnCard]) -> float:
        """The share of instances (%) all of whose co-locations were measured; 100 % of no instances."""
        placed = self.groups.total()
        on = sum(instances for group, instances in self.groups.items() if all(use in measured for use in group))
        return 100.0 * on / placed if placed else 100.0

    def next_runs(self, measured: Collection[OnCard], most: int) -> list[OnCard]:
        """At most `most` unmeasured co-locations: those that complete most instances per run come first."""
        left = {group: set(group.difference(measured)) for group in self.groups}
        order = sorted(left, key=lambda group: sorted(group))
        chosen: list[OnCard] = []
        while most > len(chosen):
            open_groups = [group for group in order if left[group]]
            if not open_groups:
                break
            weight: Counter[frozenset[OnCard]] = Counter()
            for group in open_groups:
                weight[frozenset(left[group])] += self.groups[group]
            fitting = [group for group in open_groups if len(left[group]) <= most - len(chosen)] or open_groups
            best = max(fitting, key=lambda group: weight[frozenset(left[group])] / len(left[group]))
            runs = sorted(left[best])[: most - len(chosen)]
            chosen += runs
            for missing in left.values():
                missing.difference_update(runs)
        return chosen


def needs_of(plan: Plan, kinds: Sequence[NicKind], cards: Sequence[int]) -> Needs:
    """The needs of a plan's instances. `plan`: the plan. `kinds`: the kinds of NIC. `cards`: per kind, the index of the
    first kind with the same testbed."""
    needed: defaultdict[str, set[OnCard]] = defaultdict(set)
    for _, changed in replay_plan(plan, Fleet(kinds)):
        for nic in changed:
            card = cards[nic.kind.index]
            for tenant in nic.tenants:
                needed[tenant.id].add((card, nic.co_location))
                if tenant.relative_drop is not None:
                    needed[tenant.id].add((card, (tenant.workload,)))
    return Needs(Counter(map(frozenset, needed.values())))
