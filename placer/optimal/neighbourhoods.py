"""Large neighbourhood search, with a bound, for more workloads than all co-locations can be queried for.

NICs are emptied one after another while that succeeds. In between, the pattern program places the tenants of a few NICs
again and optimally, as all their co-locations can be queried. These NICs are chosen at random, preferably with free
cores, and the new plan is kept if it is no worse. Halfway, column generation looks for a different plan and another
bound. Nothing is assumed of co-locations that were not queried, so that bound, too, is seldom above the one from cores,
and the plan is proven only when it reaches one of them.

References
----------
P. Shaw. Using constraint programming and local search methods to solve vehicle routing problems. CP 1998.
https://doi.org/10.1007/3-540-49481-2_30
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import Oracle
from placer.optimal.cores_bound import cores_bounds
from placer.optimal.ejection_search import EjectionSearch
from placer.optimal.generated_plan import generated_plan
from placer.optimal.incumbent import Incumbent, NicAssignment, first_incumbent
from placer.optimal.optimum import Optimum
from placer.optimal.pattern_plan import pattern_plan
from placer.optimal.patterns import co_locations_on, co_locations_within
from placer.optimal.program import costs_in_units, exact_cost
from placer.optimal.tenant_groups import group_tenants

WITH_FREE_CORES = 2
ANY = 2
"""NICs whose tenants are placed again at once: preferably with free cores, and any others."""

EJECTIONS = 400
"""Ejections after which the attempt to empty a NIC ends."""

MOST_ON_GPU = 3_000
"""With more co-locations on a kind of GPU, the chosen NICs are left as they are."""

PROGRAM_SECONDS = 2.0
"""Time limit of one pattern program."""

SHARE = 0.5
"""Share of the time after which columns are generated, for half of the remaining time."""


def neighbourhood_plan(
    tenants: Sequence[Tenant],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    start: Incumbent | None,
    *,
    deadline: float,
    solver: str,
) -> Optimum:
    """The best plan found until `deadline` (of `time.monotonic`), no worse than `start`."""
    incumbent = start or first_incumbent(tenants, kinds, oracles, deadline)
    search = _NeighbourhoodSearch(kinds, oracles, solver, deadline)
    while not search.ended(incumbent):
        incumbent = search.improved(incumbent)
    cost, bound = incumbent.cost(kinds), search.bound(incumbent)
    return Optimum(
        nics=[(kinds[kind], on_nic) for kind, on_nic in incumbent.nics],
        unplaced=list(incumbent.unplaced),
        cost=float(cost),
        lower_bound=float(min(cost, bound)),
        nics_lower_bound=search.nics_bound(incumbent),
        proven=search.proven(incumbent),
    )


class _NeighbourhoodSearch:
    """The bounds and the remaining time while an incumbent is improved."""

    def __init__(self, kinds: Sequence[NicKind], oracles: Sequence[Oracle], solver: str, deadline: float) -> None:
        self.kinds = kinds
        self.oracles = oracles
        self.solver = solver
        self.deadline = deadline
        self.unit = costs_in_units(kinds)[1]
        self.chance = random.Random(0)
        self.ejections = EjectionSearch(kinds, oracles, self.chance)
        self.by_cores: dict[int, tuple[int, int]] = {}
        self.generated: Fraction | None = None
        self.generating_at = time.monotonic() + SHARE * self.remaining

    @property
    def remaining(self) -> float:
        """Remaining seconds."""
        return self.deadline - time.monotonic()

    def bound(self, incumbent: Incumbent) -> Fraction:
        """A lower bound on the cost of every plan that leaves out as many tenants."""
        return max(self._cores(incumbent)[0] * self.unit, self._generated(incumbent))

    def nics_bound(self, incumbent: Incumbent) -> int:
        """A lower bound on the NICs of every plan that leaves out as many tenants."""
        fewest = self._cores(incumbent)[1]
        costs = {exact_cost(kind) for kind in self.kinds}
        highest = max(costs)
        return max(fewest, math.ceil(self._generated(incumbent) / highest)) if highest else fewest

    def proven(self, incumbent: Incumbent) -> bool:
        """Whether the incumbent places every tenant, and its cost is the bound."""
        return not incumbent.unplaced and incumbent.cost(self.kinds) <= self.bound(incumbent)

    def ended(self, incumbent: Incumbent) -> bool:
        """Whether the time is over, or the incumbent proven."""
        return self.proven(incumbent) or self.remaining <= 0

    def improved(self, incumbent: Incumbent) -> Incumbent:
        """The incumbent after one more step, no worse: a NIC emptied, or a few placed again, or once by columns."""
        if self.generated is None and time.monotonic() >= self.generating_at:
            until = time.monotonic() + self.remaining / 2
            incumbent, self.generated = generated_plan(incumbent, self.kinds, self.oracles, deadline=until)
            return incumbent
        until = self.deadline if self.generated is not None else self.generating_at
        emptied = self.ejections.with_one_nic_fewer(incumbent, steps=EJECTIONS, deadline=until)
        return emptied or _improved(incumbent, self.kinds, self.oracles, self.chance, self.solver)

    def _cores(self, incumbent: Incumbent) -> tuple[int, int]:
        left_out = len(incumbent.unplaced)
        if left_out not in self.by_cores:
            tenants = [*incumbent.unplaced, *(tenant for _, on_nic in incumbent.nics for tenant in on_nic)]
            self.by_cores[left_out] = cores_bounds(tenants, self.kinds, left_out, max(self.remaining, 1.0))
        return self.by_cores[left_out]

    def _generated(self, incumbent: Incumbent) -> Fraction:
        return Fraction(0) if incumbent.unplaced or self.generated is None else self.generated


def _improved(
    incumbent: Incumbent, kinds: Sequence[NicKind], oracles: Sequence[Oracle], chance: random.Random, solver: str
) -> Incumbent:
    """The incumbent after placing the tenants of a few NICs again, where that is no worse."""

    def free(nic: NicAssignment) -> int:
        return kinds[nic[0]].cores - kinds[nic[0]].cores_taken(tenant.workload for tenant in nic[1])

    everywhere = range(len(incumbent.nics))
    with_free_cores = sorted(everywhere, key=lambda i: -free(incumbent.nics[i]) * chance.random())[:WITH_FREE_CORES]
    others = sorted(set(everywhere) - set(with_free_cores))
    chosen = {*with_free_cores, *chance.sample(others, min(len(others), ANY))}
    kept = [nic for i, nic in enumerate(incumbent.nics) if i not in chosen]
    emptied = [nic for i, nic in enumerate(incumbent.nics) if i in chosen]
    added = chance.sample(incumbent.unplaced, min(len(incumbent.unplaced), 2))
    movers = [*added, *(tenant for _, on_nic in emptied for tenant in on_nic)]
    still_free = [
        kind if kind.count is None else replace(kind, count=kind.count - sum(used == number for used, _ in kept))
        for number, kind in enumerate(kinds)
    ]
    groups = group_tenants(movers, still_free, oracles)
    co_locations = [
        co_locations_on(kind, groups, oracle, MOST_ON_GPU) if kind.paced else list(co_locations_within(kind, groups))
        for kind, oracle in zip(still_free, oracles, strict=True)
    ]
    if any(kind.paced and len(found) > MOST_ON_GPU for kind, found in zip(still_free, co_locations, strict=True)):
        return incumbent
    found = pattern_plan(groups, still_free, oracles, co_locations, seconds=PROGRAM_SECONDS, solver=solver)
    before = Incumbent(tuple(emptied), tuple(added))
    after = Incumbent(tuple((kind.index, on_nic) for kind, on_nic in found.nics), tuple(found.unplaced))
    if (len(after.unplaced), after.cost(kinds)) > (len(before.unplaced), before.cost(kinds)):
        return incumbent
    waiting = tuple(tenant for tenant in incumbent.unplaced if tenant not in added)
    return Incumbent((*kept, *after.nics), (*waiting, *after.unplaced))
