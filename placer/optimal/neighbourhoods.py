"""Large neighbourhood search, with a bound, for more workloads than all co-locations can be queried for.

NICs are emptied one after another while that succeeds. In between, the pattern program places the tenants of a few NICs
again and optimally, as all their co-locations can be queried. These NICs are chosen at random, preferably with free
cores, and the new plan is kept if it is no worse. Halfway, column generation looks for a different plan and another
bound. Nothing is assumed of co-locations that were not queried, so that bound, too, is seldom above the one from cores,
and the plan is proven only when it reaches one of them.

References
----------
P. Shaw. Using constraint programming and local search methods to solve vehicle routing problems. CP 1998.
https://doi.org/10.1007/3-540-49481-2_30"""

import math
import random
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from fractions import Fraction

from placer.model.feasibility import feasible
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.optimal.co_location_pricer import generate_plan
from placer.optimal.cores_bound import cores_bounds
from placer.optimal.incumbent import Incumbent, NicAssignment, first_incumbent
from placer.optimal.optimum import Optimum
from placer.optimal.pattern_plan import pattern_plan
from placer.optimal.patterns import co_locations_on, co_locations_within, group_tenants
from placer.optimal.program import costs_in_units, exact_cost

WITH_FREE_CORES = 2
ANY_NICS = 2  # NICs whose tenants are placed again at once: preferably with free cores, and any others

MAX_EJECTIONS = 400
MOST_ON_GPU = 3_000  # with more co-locations on a kind of GPU, the chosen NICs are left as they are

PROGRAM_SECONDS = 2.0
COLUMNS_AFTER_SHARE = 0.5  # share of the time after which columns are generated, for half of the remaining time


def neighbourhood_plan(
    tenants: Sequence[Tenant],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    start: Incumbent | None,
    *,
    deadline: float,
    solver: str,
    in_use: Collection[int] = (),
) -> Optimum:
    """The best plan found until `deadline` (of `time.monotonic`), no worse than `start`.

    `in_use` as of `pattern_plan`.
    """
    incumbent = start or first_incumbent(tenants, kinds, oracles, deadline)
    search = _NeighbourhoodSearch(kinds, oracles, solver, deadline, in_use)
    while not search.is_over(incumbent):
        incumbent = search.improve(incumbent)
    cost, bound = incumbent.cost(kinds), search.bound(incumbent)
    return Optimum(
        nics=[(kinds[kind], on_nic) for kind, on_nic in incumbent.nics],
        unplaced=list(incumbent.unplaced),
        cost=float(cost),
        lower_bound=float(min(cost, bound)),
        nics_lower_bound=search.nics_bound(incumbent),
        proven=search.is_proven(incumbent),
    )


class _NeighbourhoodSearch:
    """The bounds and the remaining time while an incumbent is improved."""

    def __init__(
        self, kinds: Sequence[NicKind], oracles: Sequence[Oracle], solver: str, deadline: float, in_use: Collection[int]
    ) -> None:
        self.kinds = kinds
        self.in_use = in_use
        self.oracles = oracles
        self.solver = solver
        self.deadline = deadline
        self.unit = costs_in_units(kinds)[1]
        self.chance = random.Random(0)
        self.ejections = EjectionSearch(kinds, oracles, self.chance)
        self.by_cores: dict[int, tuple[int, int]] = {}
        self.generated: Fraction | None = None
        self.generating_at = time.monotonic() + COLUMNS_AFTER_SHARE * self.remaining

    @property
    def remaining(self) -> float:
        return self.deadline - time.monotonic()

    def bound(self, incumbent: Incumbent) -> Fraction:
        """A lower bound on the cost of every plan that leaves out as many tenants."""
        return max(self._cores(incumbent)[0] * self.unit, self._generate(incumbent))

    def nics_bound(self, incumbent: Incumbent) -> int:
        """A lower bound on the NICs of every plan that leaves out as many tenants."""
        fewest = self._cores(incumbent)[1]
        costs = {exact_cost(kind) for kind in self.kinds}
        highest = max(costs)
        return max(fewest, math.ceil(self._generate(incumbent) / highest)) if highest else fewest

    def is_proven(self, incumbent: Incumbent) -> bool:
        """Whether the incumbent places every tenant, and its cost is the bound."""
        return not incumbent.unplaced and incumbent.cost(self.kinds) <= self.bound(incumbent)

    def is_over(self, incumbent: Incumbent) -> bool:
        return self.is_proven(incumbent) or self.remaining <= 0

    def improve(self, incumbent: Incumbent) -> Incumbent:
        """The incumbent after one more step, no worse: a NIC emptied, or a few placed again, or once by columns."""
        if self.generated is None and time.monotonic() >= self.generating_at:
            until = time.monotonic() + self.remaining / 2
            incumbent, self.generated = generate_plan(incumbent, self.kinds, self.oracles, deadline=until)
            return incumbent
        until = self.deadline if self.generated is not None else self.generating_at
        emptied = self.ejections.with_one_nic_fewer(incumbent, steps=MAX_EJECTIONS, deadline=until)
        return emptied or _improve(incumbent, self.kinds, self.oracles, self.chance, self.solver, self.in_use)

    def _cores(self, incumbent: Incumbent) -> tuple[int, int]:
        left_out = len(incumbent.unplaced)
        if left_out not in self.by_cores:
            tenants = [*incumbent.unplaced, *(tenant for _, on_nic in incumbent.nics for tenant in on_nic)]
            self.by_cores[left_out] = cores_bounds(tenants, self.kinds, left_out, max(self.remaining, 1.0), self.in_use)
        return self.by_cores[left_out]

    def _generate(self, incumbent: Incumbent) -> Fraction:
        return Fraction(0) if incumbent.unplaced or self.generated is None else self.generated


def _improve(
    incumbent: Incumbent,
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    chance: random.Random,
    solver: str,
    in_use: Collection[int],
) -> Incumbent:
    """The incumbent after placing the tenants of a few NICs again, where that is no worse."""

    def free(nic: NicAssignment) -> int:
        return kinds[nic[0]].cores - kinds[nic[0]].cores_taken(tenant.workload for tenant in nic[1])

    everywhere = range(len(incumbent.nics))
    with_free_cores = sorted(everywhere, key=lambda i: -free(incumbent.nics[i]) * chance.random())[:WITH_FREE_CORES]
    others = sorted(set(everywhere) - set(with_free_cores))
    chosen = {*with_free_cores, *chance.sample(others, min(len(others), ANY_NICS))}
    kept = [nic for i, nic in enumerate(incumbent.nics) if i not in chosen]
    emptied = [nic for i, nic in enumerate(incumbent.nics) if i in chosen]
    added = chance.sample(incumbent.unplaced, min(len(incumbent.unplaced), 2))
    movers = [*added, *(tenant for _, on_nic in emptied for tenant in on_nic)]
    still_free = [
        kind if kind.count is None else replace(kind, count=kind.count - sum(used == number for used, _ in kept))
        for number, kind in enumerate(kinds)
    ]
    if in_use:  # of NICs that are in use anyway, and carry no further tenants, a few are enough at once
        looked_at = {*(used for used, _ in emptied), *chance.sample(sorted(in_use), min(len(in_use), ANY_NICS))}
        still_free = [
            replace(kind, count=0) if number in in_use and number not in looked_at else kind
            for number, kind in enumerate(still_free)
        ]
    groups = group_tenants(movers, still_free, oracles)
    co_locations = [
        []
        if kind.count == 0
        else co_locations_on(kind, groups, oracle, MOST_ON_GPU)
        if kind.paced
        else list(co_locations_within(kind, groups))
        for kind, oracle in zip(still_free, oracles, strict=True)
    ]
    if any(kind.paced and len(found) > MOST_ON_GPU for kind, found in zip(still_free, co_locations, strict=True)):
        return incumbent
    found = pattern_plan(
        groups, still_free, oracles, co_locations, seconds=PROGRAM_SECONDS, solver=solver, in_use=in_use
    )
    before = Incumbent(tuple(emptied), tuple(added))
    after = Incumbent(tuple((kind.index, on_nic) for kind, on_nic in found.nics), tuple(found.unplaced))
    if (len(after.unplaced), after.cost(kinds)) > (len(before.unplaced), before.cost(kinds)):
        return incumbent
    waiting = tuple(tenant for tenant in incumbent.unplaced if tenant not in added)
    return Incumbent((*kept, *after.nics), (*waiting, *after.unplaced))


# Ejection search: empties a NIC by moving its tenants to others, and tenants that block them further on.
#
# The tenants of one NIC are the pool. One of them is put on a NIC that can take one more. Otherwise it replaces a
# tenant,
# which joins the pool: of those that can be replaced, the one that was seldom hard to place so far. When the pool is
# empty, one NIC is saved. In between, other tenants swap NICs at random, so that the search does not repeat itself.
# Every
# co-location is checked before it is formed.
#
# References
# ----------
# Y. Nagata, O. Bräysy. A powerful route minimization heuristic for the vehicle routing problem with time windows.
# Operations Research Letters 37(5), 2009. https://doi.org/10.1016/j.orl.2009.04.006


QUERY_SIZE = 64  # Co-locations of one query, those first that eject the tenants easiest to place
MAX_SWAPS = 16  # pairs of NICs that may swap tenants after an ejection

Tenants = tuple[Tenant, ...]

Move = tuple[int, Tenant | None]  # the number of a NIC, and the tenant that is ejected from it, None for no ejection


class EjectionSearch:
    """Empties one NIC after another, and counts how often each tenant is hard to place.

    `oracles`: by kind, the throughputs in a co-location; repeated queries cost nothing.
    """

    def __init__(self, kinds: Sequence[NicKind], oracles: Sequence[Oracle], chance: random.Random) -> None:
        self.kinds = kinds
        self.oracles = oracles
        self.chance = chance
        self.difficulty: Counter[str] = Counter()

    def with_one_nic_fewer(self, incumbent: Incumbent, *, steps: int, deadline: float) -> Incumbent | None:
        """The incumbent with one NIC fewer or one more tenant placed; None where `steps` are not enough."""
        nics = list(incumbent.nics)
        waiting = list(incumbent.unplaced)
        if waiting and (not nics or self.chance.random() < 0.5):
            pool = [waiting.pop(self.chance.randrange(len(waiting)))]
        elif nics:
            pool = list(nics.pop(self._emptiest(nics))[1])
        else:
            return None
        for _ in range(steps):
            if not pool:
                return Incumbent(tuple(nics), tuple(waiting))
            if time.monotonic() >= deadline:
                return None
            tenant = pool.pop()
            move = self._move(tenant, nics)
            if move is None:
                return None
            number, ejected = move
            kind, on_nic = nics[number]
            nics[number] = kind, (*(member for member in on_nic if member is not ejected), tenant)
            if ejected is not None:
                pool.append(ejected)
                self._swap_at_random(nics)
        return None

    def _emptiest(self, nics: Sequence[NicAssignment]) -> int:
        """The NIC with the fewest tenants, of equal ones the most expensive; one without cost comes last."""
        costs = [self.kinds[kind].cost for kind, _ in nics]
        return min(range(len(nics)), key=lambda i: (not costs[i], len(nics[i][1]), -costs[i], self.chance.random()))

    def _move(self, tenant: Tenant, nics: Sequence[NicAssignment]) -> Move | None:
        """A NIC for the tenant, and the tenant it replaces there, if any; None if no NIC can take it."""
        if found := self._feasible(tenant, [(number, None) for number in range(len(nics))], nics):
            return self.chance.choice(found)
        self.difficulty[tenant.id] += 1
        ejections: list[Move] = [
            (number, other)
            for number, (_, on_nic) in enumerate(nics)
            for other in on_nic
            if (other.workload, other.sla) != (tenant.workload, tenant.sla)
        ]
        self.chance.shuffle(ejections)
        ejections.sort(key=self._difficulty)
        for first in range(0, len(ejections), QUERY_SIZE):
            if found := self._feasible(tenant, ejections[first : first + QUERY_SIZE], nics):
                return min(found, key=self._difficulty)
        return None

    def _feasible(self, tenant: Tenant, moves: Sequence[Move], nics: Sequence[NicAssignment]) -> list[Move]:
        """The moves after which the NIC meets every SLA."""
        able: list[Move] = []
        for kind, oracle in zip(self.kinds, self.oracles, strict=True):
            on_kind = [(number, ejected) for number, ejected in moves if nics[number][0] == kind.index]
            groups = [(*(member for member in nics[number][1] if member is not out), tenant) for number, out in on_kind]
            able += [move for move, fits in zip(on_kind, feasible(kind, oracle, groups), strict=True) if fits]
        return able

    def _swap_at_random(self, nics: list[NicAssignment]) -> None:
        """Swap tenants of NICs of one kind at random where both NICs still meet every SLA."""
        for kind, oracle in zip(self.kinds, self.oracles, strict=True):
            numbers = [number for number, (used, _) in enumerate(nics) if used == kind.index]
            self.chance.shuffle(numbers)
            pairs = list(zip(numbers[::2], numbers[1::2], strict=False))[:MAX_SWAPS]
            swapped = [self._swap(nics[one][1], nics[other][1]) for one, other in pairs]
            able = feasible(kind, oracle, [group for both in swapped for group in both])
            for at, (pair, groups) in enumerate(zip(pairs, swapped, strict=True)):
                if all(able[2 * at : 2 * at + 2]):
                    for number, group in zip(pair, groups, strict=True):
                        nics[number] = kind.index, group

    def _swap(self, one: Tenants, other: Tenants) -> tuple[Tenants, Tenants]:
        first, second = self.chance.randrange(len(one)), self.chance.randrange(len(other))
        return ((*one[:first], *one[first + 1 :], other[second]), (*other[:second], *other[second + 1 :], one[first]))

    def _difficulty(self, move: Move) -> int:
        return 0 if move[1] is None else self.difficulty[move[1].id]
