"""The plan where nobody leaves: columns from the leader, then tenants moved until fewer NICs keep the budget."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from placer.model.catalogue import Catalogue
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.plan import BudgetProof
from placer.optimal.planned import search
from placer.optimal.planned.chances import Chances
from placer.optimal.planned.leader import NEAR_BOUND, PROGRAM_LEVELS, ClassPrices, ClassRows, Leader, Relaxed, refine
from placer.optimal.planned.reserve import REPEATED_RESERVE, SELECTED_RESERVE
from predictor.regression.compiled import running_s
from profiles import Workload
from profiles.arrays import Ints

SEARCH_EFFORTS = (400, 1_200, 1_200, 3_600)
"""Moves a tenant of a search for a plan with a NIC less, and of the next ones where it finds none."""
SETTLING_MOVES = 100  # moves a tenant of the search that lowers the reserve, too
LEAST_STEPS = 20_000
WARM_TEMPERATURE, COOL_TEMPERATURE = 0.6, 0.05
"""First temperatures, in violations: of the search for a plan, and of that which lowers the reserve."""
FEW_TENANTS = 100
"""Tenants up to which a plan is sought by its reserve, too, where none is found by its expected violations."""
DOUBTFUL_BUDGETS = 2.0
"""A tenant gets another NIC where it would add more violations on those in use, in budgets of a tenant."""
MAX_SEARCHED_TENANTS = 5_000  # tenants up to which the search moves all; of more, those that the program takes in part
MAX_TRIES = 4  # plans of more tenants that are made, each with a smaller budget, until one keeps it with its reserve
LEAD_LEVEL = 1  # the level of `PROGRAM_LEVELS` whose columns are taken
REPEATING_RESERVE = 0.35  # the reserve for errors that repeat, per expected violation, where no plan shows it yet
EXPECTED_SHARE = 1.0 / (1.0 + SELECTED_RESERVE + REPEATING_RESERVE)
"""What may then be expected of a budget, without the reserve."""
MAX_BRANCHES = 60  # programs of whole NICs per kind that are solved in pairs at most
ROUGH_GAP = 0.05  # how near to its bound the program must be whose columns are taken, in NICs
ROUNDING_ERROR, WHOLE_TOLERANCE = 1e-9, 1e-6

Nics = list[tuple[int, list[int]]]  # the kind of each NIC, and its tenants by number


@dataclass(frozen=True, eq=False)
class StaticPlan:
    """A plan of tenants that are all present.

    `nics`: the kind of each NIC in use, and its tenants. `bound`: no plan within the budget, reserve aside, that leaves
    out as few costs less. `fewest_left_out`: no plan within the budget leaves out fewer.
    """

    nics: list[tuple[NicKind, tuple[Tenant, ...]]]
    left_out: list[Tenant]
    bound: float
    fewest_left_out: int
    proof: BudgetProof


def cores_bound(tenants: Sequence[Tenant], kinds: Sequence[NicKind]) -> float:
    """What the cores of these tenants cost at least, where every NIC is full; 0 where NICs are limited or GPUs."""
    if any(kind.count is not None or kind.paced for kind in kinds):
        return 0.0
    total = 0.0
    for workload, number in Counter(tenant.workload for tenant in tenants).items():
        each = cost_of_cores(workload, kinds)
        if each is None:
            return 0.0
        total += number * each
    costs = {kind.cost for kind in kinds}
    if len(costs) == 1 and (cost := costs.pop()):
        return float(np.ceil(total / cost - 1e-6) * cost)
    return total


def cost_of_cores(workload: Workload, kinds: Sequence[NicKind]) -> float | None:
    """What the cores of a workload cost at least; None where no kind can run it."""
    shares = [kind.cost * kind.cores_for(workload) / kind.cores for kind in kinds if kind.hosts(workload)]
    return min(shares, default=None)


def cores_proof(tenants: Sequence[Tenant], kinds: Sequence[NicKind]) -> BudgetProof:
    """What proves the bound of `cores_bound`: every tenant is worth what its cores cost at least."""
    workloads = {tenant.workload for tenant in tenants}
    of_workloads = {workload: cost_of_cores(workload, kinds) or 0.0 for workload in workloads}
    of_tenants = {tenant.id: of_workloads[tenant.workload] for tenant in tenants}
    return BudgetProof(of_tenants, (0.0,) * len(kinds), 0.0, over_cores=True)


@dataclass(frozen=True, eq=False)
class _State:
    """The kind of each NIC, and the NIC of each tenant, `NO_TENANT` for those left out."""

    kind: Ints
    nic: Ints

    def with_nics(self, tenants: Ints, nics: Ints) -> _State:
        """With these tenants on these NICs."""
        nic = self.nic.copy()
        nic[tenants] = nics
        return _State(self.kind, nic)


class StaticPlanner:
    """Plans for one table of chances.

    `budget`: the share of tenants placed that may be expected to violate their SLA, reserve included. `seconds`:
    processor time of the search, not wall time: a busy machine finds the same plan. Half of it is for columns. `began`:
    when planning began, predictions being known, of `running_s`. `complete`: whether there was time for all
    columns that improve the program.
    """

    def __init__(self, chances: Chances, catalogue: Catalogue, budget: float, seconds: float) -> None:
        self.began = running_s()
        started = time.process_time()
        self.deadline = started + seconds / 2
        self.chances, self.kinds, self.budget = chances, catalogue.kinds, budget
        self.classes = chances.classes
        self.number = self.classes.tenants
        groups = self.classes.groups
        self.tenants = [tenant for group in groups for tenant in group.tenants]
        self.group = np.repeat(np.arange(len(groups)), [len(group.tenants) for group in groups]).astype(np.int64)
        self.class_of = np.concatenate(
            [*(np.repeat(np.arange(len(count)), count) for count in self.classes.counts), np.zeros(0, dtype=np.int64)]
        ).astype(np.int64)
        self.arrived = np.concatenate([*self.classes.arrived, np.zeros(0, dtype=np.int64)])
        self._relax()
        self.complete = time.process_time() < self.deadline
        self.deadline = started + seconds

    def _relax(self) -> None:
        """Columns level by level, down to single classes: the leaders, and the bound."""
        counts = self.classes.counts
        enough = cores_bound(self.tenants, self.kinds)
        rows = ClassRows.most_demanding(counts, PROGRAM_LEVELS[0])
        leader = self._leader(rows)
        leader.add_alone(self.chances)
        self.leaders = [leader]
        found = leader.relax(None, near=self._near(rows), deadline=self.deadline)
        before = rows
        for most in PROGRAM_LEVELS[1:]:
            if rows.exact or found.cost <= enough + ROUNDING_ERROR:
                break
            rows = ClassRows.most_demanding(counts, most)
            leader = self._leader(rows)
            self.leaders.append(leader)
            start = refine(found.prices, before, rows)
            found = leader.relax(start, near=self._near(rows), deadline=self.deadline)
            before = rows
        if not rows.exact and found.cost > enough + ROUNDING_ERROR:
            rows = ClassRows.least_demanding(counts, PROGRAM_LEVELS[-1])
            start = refine(found.prices, before, rows)
            leader = self._leader(rows)
            found = leader.relax(start, near=self._near(rows), deadline=self.deadline)
        # the program of most demanding tenants bounds nothing, and is the last only where cores alone cost as much
        bounds = rows.exact or found.cost > enough + ROUNDING_ERROR
        self.bound = max(self._branch(leader, found, self._near(rows)) if bounds else found.bound, enough)
        costs = {kind.cost for kind in self.kinds}
        unit = costs.pop() if len(costs) == 1 else 0.0
        self.least = float(np.ceil(self.bound / unit - 1e-6) * unit) if unit else self.bound
        """The bound, rounded up where all NICs cost alike."""
        self.fewest_left_out = int(self.bound // leader.high)  # tenants that no plan within the budget places
        self.proof = (
            cores_proof(self.tenants, self.kinds)
            if enough >= self.least - ROUNDING_ERROR
            else self._proof(found.prices, rows)
        )

    def _branch(self, leader: Leader, found: Relaxed, near: float) -> float:
        """The program's bound, where there are pools with a whole number of NICs of each kind.

        A tenant goes to no other pool, so every pool rounds up by itself, as far as the budget they share allows.
        """
        if len({kind.pool for kind in self.kinds}) < 2:
            return found.bound
        unlimited = leader.limits
        waiting = [(found.bound, 0, np.zeros(len(self.kinds)), unlimited, leader.nics_of_kinds())]
        for node in range(1, MAX_BRANCHES):
            _, _, least, most, nics = waiting[0]
            fraction = np.abs(nics - np.rint(nics))
            if fraction.max() <= WHOLE_TOLERANCE or time.process_time() >= self.deadline:
                break
            heappop(waiting)
            kind = int(fraction.argmax())
            for low, high in ((0.0, np.floor(nics[kind])), (np.ceil(nics[kind]), np.inf)):
                above, below = least.copy(), most.copy()
                above[kind], below[kind] = max(above[kind], low), min(below[kind], high)
                leader.between(above, below)
                part = leader.relax(None, near=near, deadline=self.deadline)
                heappush(waiting, (part.bound, 2 * node + int(low > 0), above, below, leader.nics_of_kinds()))
        leader.between(np.zeros(len(self.kinds)), unlimited)
        return max(found.bound, waiting[0][0])  # without time for its columns, a part has a lower bound than the whole

    def _near(self, rows: ClassRows) -> float:
        """How far a bound may be below the leader; the first programs only lead to the last one."""
        last = rows.exact or max(map(len, rows.counts), default=0) > PROGRAM_LEVELS[-2]
        unit = max((kind.cost for kind in self.kinds), default=1.0) or 1.0
        return unit * NEAR_BOUND * (1 if last else 10)

    def _leader(self, rows: ClassRows) -> Leader:
        return Leader(self.chances, rows, self.kinds, self.budget * self.number, self.budget)

    def _proof(self, prices: ClassPrices, rows: ClassRows) -> BudgetProof:
        """Every class has the price of its row, whose requirement is at most its own."""
        of_tenants: dict[str, float] = {}
        start = 0
        for group, of_rows, first in zip(self.classes.groups, prices.of_classes, rows.classes, strict=True):
            end = start + len(group.tenants)
            row = np.searchsorted(first, self.class_of[start:end], side="right") - 1
            of_tenants |= {tenant.id: float(of_rows[at]) for tenant, at in zip(group.tenants, row, strict=True)}
            start = end
        return BudgetProof(of_tenants, tuple(prices.of_kinds.tolist()), float(prices.of_violations), over_cores=False)

    def plan(
        self, keep: float = 0.0, beginning: Sequence[tuple[NicKind, Sequence[Tenant]]] | None = None
    ) -> StaticPlan:
        """The plan that keeps back a further share `keep` of the budget.

        It is sought from the program's columns, or from the NICs of another plan as the `beginning`.
        """
        target = (1.0 - keep) * self.budget
        if self.number > MAX_SEARCHED_TENANTS:
            nics, left = self._without_search(target)
        else:
            begun = self._by_columns(target, EXPECTED_SHARE)[0] if beginning is None else self._number(beginning)
            nics, left = _Search(self, np.arange(self.number), target).plan(begun)
        return StaticPlan(
            [(self.kinds[kind], tuple(self.tenants[tenant] for tenant in these)) for kind, these in nics],
            [self.tenants[tenant] for tenant in left],
            max(self.bound - self.leaders[0].high * len(left), 0.0),
            self.fewest_left_out,
            self.proof,
        )

    def _number(self, nics: Sequence[tuple[NicKind, Sequence[Tenant]]]) -> Nics:
        number = {tenant.id: at for at, tenant in enumerate(self.tenants)}
        return [(kind.index, [number[tenant.id] for tenant in these]) for kind, these in nics]

    def _without_search(self, target: float) -> tuple[Nics, list[int]]:
        """Tenants on whole columns, of which a search places only those that are left."""
        share = EXPECTED_SHARE
        for _ in range(MAX_TRIES):
            nics, left = self._by_columns(target, share)
            if left:
                more, left = _Search(self, np.array(left, dtype=np.int64), target).plan([], nics)
                nics = [*nics, *more]
            placed = np.array([tenant for _, these in nics for tenant in these], dtype=np.int64)
            value = _Search(self, placed, target).value(nics)
            if value <= target * len(placed):
                break
            share *= 0.99 * target * len(placed) / value
        return nics, left

    def _by_columns(self, target: float, share: float) -> tuple[Nics, list[int]]:
        """Tenants on whole columns, where this share of the budget may be expected to violate their SLA."""
        leader = self.leaders[min(LEAD_LEVEL, len(self.leaders) - 1)]
        leader.allow(target * share * self.number)
        leader.relax(None, near=ROUGH_GAP * leader.unit, deadline=self.deadline)
        return self._assign(leader, leader.dive(self.deadline))

    def _assign(self, leader: Leader, times: Ints) -> tuple[Nics, list[int]]:
        """Tenants on the leader's columns: of each group, the most demanding on the best places."""
        nics: Nics = []
        places: list[list[tuple[int, int]]] = [[] for _ in leader.rows.counts]
        group_of = np.repeat(np.arange(len(leader.rows.counts)), [len(rows) for rows in leader.rows.counts])
        for column, often in zip(leader.columns, times.tolist(), strict=False):
            for _ in range(often):
                nics.append((int(self.chances.kind[column.co_location]), []))
                for row in column.rows:
                    group = int(group_of[row])
                    able = int(leader.rows.classes[group][row - leader.offsets[group]])
                    places[group].append((able, len(nics) - 1))
        left: list[int] = []
        start = 0
        for group, of_group in enumerate(places):
            number = len(self.classes.groups[group].tenants)
            waiting = list(range(start, start + number))
            # the best places first, each with the most demanding tenant left that it is good enough for
            for able, nic in sorted(of_group, reverse=True):
                while waiting and self.class_of[waiting[-1]] > able:
                    left.append(waiting.pop())
                if waiting:
                    nics[nic][1].append(waiting.pop())
            left += waiting
            start += number
        return [nic for nic in nics if nic[1]], left


class _Search:
    """Searches from plan to plan.

    `target`: the share of tenants placed that may be expected to violate their SLA, reserve included.
    """

    def __init__(self, planner: StaticPlanner, tenants: Ints, target: float) -> None:
        self.planner, self.target = planner, target
        self.tenants = tenants[np.argsort(planner.arrived[tenants], kind="stable")]
        self.kinds = planner.kinds
        self.graph = search.graph_of(planner.chances, len(planner.kinds), max(target * len(tenants), 1.0) + 1.0)
        self.movers = search.Movers(planner.group[self.tenants], planner.class_of[self.tenants])
        self.share = EXPECTED_SHARE
        """What the expected violations may be of what is allowed, as the last plan had it; the rest is the reserve."""
        self.least = planner.least
        self.taken: Counter[int] = Counter()
        self._seed = 0

    def plan(self, nics: Nics, taken: Sequence[tuple[int, list[int]]] = ()) -> tuple[Nics, list[int]]:
        """The NICs and tenants of a plan that begins with these NICs, and who is left out; others are `taken`."""
        self.least = self.planner.least - sum(self.kinds[kind].cost for kind, _ in taken)
        self.taken = Counter(kind for kind, _ in taken)
        state = self.begin(self._state(nics))
        state = self.settle(self.shrink(self.place(state)))
        carried: list[list[int]] = [[] for _ in state.kind]
        for tenant, at in zip(self.tenants.tolist(), state.nic.tolist(), strict=True):
            if at != search.NO_TENANT:
                carried[at].append(tenant)
        found = [(kind, these) for kind, these in zip(state.kind.tolist(), carried, strict=True) if these]
        return found, self.tenants[state.nic == search.NO_TENANT].tolist()

    def _state(self, nics: Nics) -> _State:
        number = {tenant: at for at, tenant in enumerate(self.tenants.tolist())}
        nic = np.full(len(self.tenants), search.NO_TENANT, dtype=np.int64)
        for at, (_, these) in enumerate(nics):
            nic[[number[tenant] for tenant in these]] = at
        return _State(np.array([kind for kind, _ in nics], dtype=np.int64), nic)

    def value(self, nics: Nics) -> float:
        """The violations to expect of a plan of all tenants, with their reserve."""
        return self._value_plan(self._state(nics), np.arange(len(self.tenants)), 0.0, 0)[0]

    def begin(self, state: _State) -> _State:
        """A plan that keeps the budget: as long as it does not, the most doubtful tenants get NICs, or are left out.

        They must leave by hand, since no move of the search may pass a co-location that is far worse than all others.
        """
        state = self._fill(state, np.argsort(-self.movers.of_class, kind="stable"))
        placed = np.flatnonzero(state.nic != search.NO_TENANT)
        kept = self._by_value(state, placed, self.target * len(placed))[1] if len(placed) else None
        if kept is not None:  # a plan that is good is not heated up
            return kept
        many = 1
        while (found := self._lower(state, SEARCH_EFFORTS[0])) is None:
            chance = search.chances_now(self.graph, self.movers, state.kind, state.nic)
            state = self._apart(state, np.argsort(-chance, kind="stable")[: min(many, np.count_nonzero(chance > 0))])
            many *= 2
        return found

    def _apart(self, state: _State, doubtful: Ints) -> _State:
        """Each of these tenants alone on a NIC; left out where it is alone already, or no NIC is to be had."""
        kind, nic = state.kind.tolist(), state.nic.copy()
        together = np.bincount(nic[nic != search.NO_TENANT], minlength=len(kind)).tolist()
        for tenant in doubtful.tolist():
            at = int(nic[tenant])
            nic[tenant] = search.NO_TENANT
            together[at] -= 1
            opened = self._openable(np.array(kind, dtype=np.int64), tenant, min(together[at], 1))
            if len(opened):
                nic[tenant] = len(kind)
                kind.append(int(opened[0]))
                together.append(1)
        return _drop_empty_nics(_State(np.array(kind, dtype=np.int64), nic))

    def place(self, state: _State) -> _State:
        """With each of the tenants left out that can be placed."""
        for tenant in sorted(
            np.flatnonzero(state.nic == search.NO_TENANT).tolist(), key=lambda one: self.movers.of_class[one]
        ):
            larger = self._fill(state, np.array([tenant]))
            found = self._lower(larger, SEARCH_EFFORTS[0]) if larger.nic[tenant] != search.NO_TENANT else None
            state = found or state
        return state

    def shrink(self, state: _State) -> _State:
        """With fewer NICs, as long as one can be emptied."""
        costs = np.array([kind.cost for kind in self.kinds])
        while len(state.kind) > 1 and time.process_time() < self.planner.deadline:
            if costs[state.kind].sum() <= self.least + ROUNDING_ERROR:
                return state
            number = np.bincount(state.nic[state.nic != search.NO_TENANT], minlength=len(state.kind))
            order = np.lexsort((number, -costs[state.kind]))
            for effort, at in zip(SEARCH_EFFORTS, order.tolist(), strict=False):
                found = self._without(state, at, effort)
                if found is not None:
                    state = found
                    break
            else:
                return state
        return state

    def settle(self, state: _State) -> _State:
        """On the same NICs with as few violations to expect, and as many different co-locations, as are found."""
        placed = np.flatnonzero(state.nic != search.NO_TENANT)
        if not len(placed):
            return state
        _, least, found = self._value_plan(state, placed, 0.0, max(SETTLING_MOVES * len(placed), LEAST_STEPS))
        return found if np.isfinite(least) else state

    def _without(self, state: _State, at: int, effort: int) -> _State | None:
        """The plan within the budget without one of the NICs; None for none."""
        moved = np.flatnonzero(state.nic == at)
        nic = state.nic - (state.nic > at)
        nic[moved] = search.NO_TENANT
        smaller = _State(np.delete(state.kind, at), nic)
        place = search.co_locations(self.graph, self.movers, smaller.kind, smaller.nic)
        search.add(
            self.graph, self.movers, smaller.kind, nic, place, moved[np.argsort(-self.movers.of_class[moved])], 0.0
        )
        return None if np.any(nic[moved] == search.NO_TENANT) else self._lower(smaller, effort)

    def _fill(self, state: _State, order: Ints) -> _State:
        """With these tenants where they can be placed; on further NICs where they were too doubtful on the others."""
        nic, kind = state.nic.copy(), state.kind
        order = order[nic[order] == search.NO_TENANT]
        while len(order):
            at = search.co_locations(self.graph, self.movers, kind, nic)
            opened = self._openable(kind, int(order[0]), len(order))
            kind, at = np.append(kind, opened), np.append(at, self.graph.empty[opened])
            search.add(self.graph, self.movers, kind, nic, at, order, DOUBTFUL_BUDGETS * self.target)
            used = _drop_empty_nics(_State(kind, nic))
            kind, nic = used.kind, used.nic
            waiting = order[nic[order] == search.NO_TENANT]
            if len(waiting) and waiting[0] == order[0]:  # it has no place on any NIC
                waiting = waiting[1:]
            order = waiting
        return _State(kind, nic)

    def _openable(self, used: Ints, tenant: int, most: int) -> Ints:
        """The kinds of so many further NICs at most: the cheapest that can carry the tenant and are to be had."""
        number = np.bincount(used, minlength=len(self.kinds))
        group = self.movers.group[tenant]
        found: list[int] = []
        for kind in sorted(self.kinds, key=lambda one: one.cost):
            if self.graph.larger[self.graph.empty[kind.index], group] != search.NO_TENANT:
                free = most if kind.count is None else kind.count - self.taken[kind.index] - int(number[kind.index])
                found += [kind.index] * min(free, most - len(found))
        return np.array(found, dtype=np.int64)

    def _lower(self, state: _State, effort: int) -> _State | None:
        """The plan within the budget that is found from this one by so many moves a tenant; None for none."""
        placed = np.flatnonzero(state.nic != search.NO_TENANT)
        if not len(placed):
            return state
        allowed = self.target * len(placed)
        at = search.co_locations(self.graph, self.movers, state.kind, state.nic)
        self._seed += 1
        draw = np.random.default_rng(self._seed)
        steps = max(effort * len(placed), LEAST_STEPS)
        target = allowed * self.share * (1.0 - ROUNDING_ERROR)
        total, found = search.lower_sum(
            self.graph, self._only(placed), state.kind, state.nic[placed], at, draw, steps, WARM_TEMPERATURE, target,
            search.UPHILL_DRAWS,
        )  # fmt: skip
        lowered = state.with_nics(placed, found)
        if total > target:
            return self._by_value(lowered, placed, allowed)[1] if len(placed) <= FEW_TENANTS else None
        value, kept = self._by_value(lowered, placed, allowed)
        self.share *= min(max(allowed / max(value, ROUNDING_ERROR), 0.8), 1.1)
        self.share = min(self.share, 1.0 / (1.0 + SELECTED_RESERVE))
        return kept

    def _by_value(self, state: _State, placed: Ints, allowed: float) -> tuple[float, _State | None]:
        """The value of a plan, and a plan near it of at most `allowed`; None where none is found."""
        steps = max(SETTLING_MOVES * len(placed), LEAST_STEPS)
        before, value, found = self._value_plan(state, placed, allowed * (1.0 - ROUNDING_ERROR), steps)
        return before, found if value <= allowed else None

    def _value_plan(self, state: _State, placed: Ints, target: float, steps: int) -> tuple[float, float, _State]:
        """The violations to expect of a plan with their reserve, their least in so many moves, and the plan of these.

        The least is infinite where no plan keeps each tenant from places that it must not have.
        """
        at = search.co_locations(self.graph, self.movers, state.kind, state.nic)
        self._seed += 1
        draw, weights = np.random.default_rng(self._seed), np.array([SELECTED_RESERVE, REPEATED_RESERVE])
        before, value, found = search.lower_value(
            self.graph, self._only(placed), state.kind, state.nic[placed], at, draw, steps, COOL_TEMPERATURE, weights,
            target,
        )  # fmt: skip
        return float(before), float(value), state.with_nics(placed, found)

    def _only(self, placed: Ints) -> search.Movers:
        return search.Movers(self.movers.group[placed], self.movers.of_class[placed])


def _drop_empty_nics(state: _State) -> _State:
    used = np.unique(state.nic[state.nic != search.NO_TENANT])
    renumbered = np.full(len(state.kind) + 1, search.NO_TENANT, dtype=np.int64)  # the last one is that of `NO_TENANT`
    renumbered[used] = np.arange(len(used))
    return _State(state.kind[used], renumbered[state.nic])
