"""Plans for more workloads than all companies can be asked of: large neighbourhood search, bounded by cores.

The worker is the pattern program itself: the tenants of a few NICs, among whom all companies can be asked, are placed
anew and provably well. The leader chooses these NICs, those with free cores first, and keeps what is no worse.
Nothing is assumed of companies that were not asked, so the bound counts cores only and the plan is proven only when it
reaches that.

References
----------
P. Shaw. Using constraint programming and local search methods to solve vehicle routing problems. CP 1998.
https://doi.org/10.1007/3-540-49481-2_30
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from placer.fleet import NicKind, Tenant
from placer.optimal.asking import serves
from placer.optimal.cores_bound import cores_bounds
from placer.optimal.demand import demands_of
from placer.optimal.optimum import Optimum
from placer.optimal.pattern_plan import pattern_plan
from placer.optimal.patterns import companies_within
from placer.optimal.program import costs_in_units, exact_cost
from placer.oracle import Oracle

ROOMY = 2
ANY = 2
"""NICs whose tenants are placed anew at once: with free cores if there are such, and whichever."""

TRIED = 32
"""Tenants among whom the first plan looks for one more to put on a NIC."""

WORKER_SECONDS = 2.0

House = tuple[int, tuple[Tenant, ...]]
"""A NIC in use: the number of its kind, and its tenants."""


@dataclass(frozen=True, eq=False)
class Draft:
    """A plan that breaks no SLA, and may be improved."""

    houses: tuple[House, ...]
    unplaced: tuple[Tenant, ...]

    def cost(self, kinds: Sequence[NicKind]) -> Fraction:
        """What its NICs cost."""
        return sum((exact_cost(kinds[kind]) for kind, _ in self.houses), start=Fraction(0))


def neighbourhood_plan(
    tenants: Sequence[Tenant],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    start: Draft | None,
    *,
    deadline: float,
    solver: str,
) -> Optimum:
    """The best plan found until `deadline` (of `time.monotonic`), no worse than `start`."""
    draft = start or first_draft(tenants, kinds, oracles, deadline)
    unit = costs_in_units(kinds)[1]
    bounds: dict[int, tuple[int, int]] = {}
    chance = random.Random(0)
    while True:
        left_out = len(draft.unplaced)
        if left_out not in bounds:
            bounds[left_out] = cores_bounds(tenants, kinds, left_out, max(deadline - time.monotonic(), 1.0))
        cost, bound = draft.cost(kinds), bounds[left_out][0] * unit
        if time.monotonic() >= deadline or (cost <= bound and not left_out):
            break
        draft = _improved(draft, kinds, oracles, chance, solver)
    return Optimum(
        nics=[(kinds[kind], housed) for kind, housed in draft.houses],
        unplaced=list(draft.unplaced),
        cost=float(cost),
        lower_bound=float(min(cost, bound)),
        nics_lower_bound=bounds[left_out][1],
        proven=cost <= bound and not left_out,
    )


def first_draft(
    tenants: Sequence[Tenant], kinds: Sequence[NicKind], oracles: Sequence[Oracle], deadline: float
) -> Draft:
    """NICs filled one after the other, cheapest kind first, each with whom it can take of the next `TRIED` waiting.

    When time is over, nobody shares any more.
    """
    waiting = list(tenants)
    houses: list[House] = []
    for number in sorted(range(len(kinds)), key=lambda number: (kinds[number].cost, number)):
        kind, oracle = kinds[number], oracles[number]
        skipped: list[Tenant] = []
        used = 0
        while waiting and used != kind.count:
            housed: list[Tenant] = []
            while joiner := next(_joiners(housed, waiting, kind, oracle), None):
                housed.append(joiner)
                waiting.remove(joiner)
                if time.monotonic() >= deadline:
                    break
            if housed:
                houses.append((number, tuple(housed)))
                used += 1
            else:
                skipped += waiting[:TRIED]
                waiting = waiting[TRIED:]
        waiting = skipped + waiting
    return Draft(tuple(houses), tuple(waiting))


def _joiners(housed: Sequence[Tenant], waiting: Sequence[Tenant], kind: NicKind, oracle: Oracle) -> Iterator[Tenant]:
    """Those first in line who can join the tenants of a NIC."""
    line = waiting[:TRIED]
    able = serves(kind, oracle, [(*housed, tenant) for tenant in line])
    return (tenant for tenant, fits in zip(line, able, strict=True) if fits)


def _improved(
    draft: Draft, kinds: Sequence[NicKind], oracles: Sequence[Oracle], chance: random.Random, solver: str
) -> Draft:
    """The draft after placing the tenants of a few NICs anew, where that is no worse."""

    def free(house: House) -> int:
        return kinds[house[0]].cores - kinds[house[0]].cores_taken(tenant.workload for tenant in house[1])

    everywhere = range(len(draft.houses))
    roomy = sorted(everywhere, key=lambda i: -free(draft.houses[i]) * chance.random())[:ROOMY]
    others = sorted(set(everywhere) - set(roomy))
    chosen = {*roomy, *chance.sample(others, min(len(others), ANY))}
    kept = [house for i, house in enumerate(draft.houses) if i not in chosen]
    opened = [house for i, house in enumerate(draft.houses) if i in chosen]
    homeless = chance.sample(draft.unplaced, min(len(draft.unplaced), 2))
    movers = [*homeless, *(tenant for _, housed in opened for tenant in housed)]
    still_free = [
        kind if kind.count is None else replace(kind, count=kind.count - sum(used == number for used, _ in kept))
        for number, kind in enumerate(kinds)
    ]
    demands = demands_of(movers, still_free, oracles)
    companies = [list(companies_within(kind, demands)) for kind in still_free]
    found = pattern_plan(demands, still_free, oracles, companies, seconds=WORKER_SECONDS, solver=solver)
    before = Draft(tuple(opened), tuple(homeless))
    after = Draft(tuple((kind.index, housed) for kind, housed in found.nics), tuple(found.unplaced))
    if (len(after.unplaced), after.cost(kinds)) > (len(before.unplaced), before.cost(kinds)):
        return draft
    waiting = tuple(tenant for tenant in draft.unplaced if tenant not in homeless)
    return Draft((*kept, *after.houses), (*waiting, *after.unplaced))
