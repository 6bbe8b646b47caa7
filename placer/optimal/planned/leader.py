"""The linear program over all columns, and whole columns from it by diving.

Leader variables: x[p], how many NICs carry column p; d[c], places of class c that a tenant of the next less demanding
class of the same workload takes; u[c], tenants of class c that are left out; o, violations beyond the budget.

Leader formulation: minimise sum of cost x + high u + high o, such that every class is served: places of the class, less
those that a less demanding class takes, and places taken over from the next class are as many as its tenants; no more
NICs of a kind than there are; and the expected violations are at most the budget: sum of risk[p] x[p] - o <= budget. A
budget is a share of the tenants that are placed, so each one left out takes its share away.

ColumnWorker data: a price for every class, for a NIC of every kind, and for an expected violation.

ColumnWorker formulation: in every co-location each place takes the class whose price, less the price of its chance of a
violation there, is highest. All co-locations of the table are looked at, so the answer is exact.

Stopping rule: no column is worth more than it costs, or the bound is within `NEAR_BOUND` of the leader.

Prices swing from round to round where columns are few, so the worker is asked at prices between the best so far and the
leader's (Wentges, 1997). Prices at which no column is worth more than it costs prove a bound; others are lowered until
that holds (Farley, 1990).

References
----------
P. Wentges. Weighted Dantzig-Wolfe decomposition for linear mixed-integer programming. International Transactions in
Operational Research 4(2), 1997. https://doi.org/10.1111/j.1475-3995.1997.tb00071.x
A. A. Farley. A note on bounding a class of linear programming problems, including cutting stock problems. Operations
Research 38(5), 1990. https://doi.org/10.1287/opre.38.5.922"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from ortools.linear_solver import pywraplp  # type: ignore[attr-defined]

from placer.model.nic_kind import NicKind
from placer.optimal.planned.chances import Chances
from profiles.arrays import Floats, Ints

PROGRAM_LEVELS = (6, 24, 160)
"""Classes per workload of the programs that are solved one after the other: prices of one are where the next begins."""
NEAR_BOUND = 0.01  # a bound this share of a NIC below the leader ends the search for columns
STEADY_SHARE = 0.7  # the share of the best prices in those at which the worker is asked
WORTHY_SHARE = 0.98
"""Columns worth at least this share of their cost at the prices of the program before begin the next one."""
AT_ONCE = 80  # columns that are added in a round at most
LEFT_OUT_COST = 1_000.0
"""Cost of a tenant that is left out, in units of the most expensive NIC. With more tenants than that it is more,
so that no plan costs as much."""
EXCESS_COST = 3.0  # cost of an expected violation beyond the budget, in units of the most expensive NIC
LIKELY_SHORTFALL = 0.15
"""Between two looks at all co-locations, those are looked at that fall short of their cost by this share at most."""
IMPROVEMENT_TOLERANCE = 1e-7
WHOLE_TOLERANCE = 1e-6
USUAL_WAY = "use_preprocessing:false"  # the solver then goes on from where it was when columns are added
OTHER_WAYS = ("use_preprocessing:true use_dual_simplex:true", "use_preprocessing:true", USUAL_WAY)
"""Tried one after another where it fails for rounding."""
MAX_PROGRAMS = 4  # programs that are solved between two roundings, at most
ROUND_UP_ABOVE = 0.75  # diving rounds up every fraction above this
ROUND_UP_SHARE = 0.1  # where there is none, it rounds up the largest, up to this share of all NICs that are still open


class NicColumn(NamedTuple):
    """What a NIC carries: the co-location's number, and the row of the class at each place, ascending."""

    co_location: int
    rows: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ClassPrices:
    """What proves a bound.

    `of_classes`: per group, of a tenant of each class, shape (classes,). `of_kinds`: of a NIC of each limited kind,
    beyond its cost; not negative. `of_violations`: of an expected violation; not negative.
    """

    of_classes: tuple[Floats, ...]
    of_kinds: Floats
    of_violations: float


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Which classes are rows: all, or per group some that stand for the less demanding ones before them.

    `classes`: per group the class whose requirement each row has, ascending. `counts`: per group the tenants of each
    row.
    """

    classes: tuple[Ints, ...]
    counts: tuple[Ints, ...]

    @classmethod
    def most_demanding(cls, counts: Sequence[Ints], most: int) -> ClassRows:
        """At most so many rows per group, each with the requirement of the most demanding of its classes."""
        parts = [_parts(of_group, most) for of_group in counts]
        return cls(
            tuple(ends for _, ends in parts),
            tuple(_sums(of_group, starts) for of_group, (starts, _) in zip(counts, parts, strict=True)),
        )

    @classmethod
    def least_demanding(cls, counts: Sequence[Ints], most: int) -> ClassRows:
        """As `most_demanding`, each with the requirement of the least demanding: what proves a bound on all plans."""
        parts = [_parts(of_group, most) for of_group in counts]
        return cls(
            tuple(starts for starts, _ in parts),
            tuple(_sums(of_group, starts) for of_group, (starts, _) in zip(counts, parts, strict=True)),
        )

    @property
    def exact(self) -> bool:
        """Whether every class is a row."""
        return all(len(classes) == classes[-1] + 1 for classes in self.classes if len(classes))


def _parts(counts: Ints, most: int) -> tuple[Ints, Ints]:
    """The first and the last class of at most so many parts with about as many tenants each."""
    if len(counts) <= most:
        return np.arange(len(counts)), np.arange(len(counts))
    up_to = np.cumsum(counts)
    ends = np.unique(np.searchsorted(up_to, up_to[-1] * np.arange(1, most + 1) / most - 1e-9))
    ends[-1] = len(counts) - 1
    return np.append(0, ends[:-1] + 1), ends


def _sums(counts: Ints, starts: Ints) -> Ints:
    return np.add.reduceat(counts, starts) if len(counts) else counts


class ColumnWorker:
    """The best column of every co-location at given prices.

    `rows`: the classes that columns are made of. `among`: the co-locations that are looked at; all for None. Of others
    the worth has no meaning.
    """

    def __init__(self, chances: Chances, rows: ClassRows, among: Ints | None = None) -> None:
        self._members, self._kind = chances.members, chances.kind
        self._number = len(chances.members)
        self._counts = rows.counts
        self._offsets = np.cumsum([0, *map(len, rows.counts)])
        self._cases = [
            (at, times, table[:, classes])
            for (at, times, table), classes in zip(chances.of_group, rows.classes, strict=True)
        ]
        if among is not None:
            wanted = np.zeros(self._number, dtype=np.bool_)
            wanted[among] = True
            self._cases = [(at[wanted[at]], times[wanted[at]], table[wanted[at]]) for at, times, table in self._cases]

    def __call__(self, prices: ClassPrices) -> tuple[Floats, Floats, list[Ints]]:
        """Per co-location what it is worth and its expected violations; per group the classes of each of its cases."""
        worth, risk = np.full(self._number, -np.inf), np.zeros(self._number)
        for at, _, _ in self._cases:
            worth[at] = -prices.of_kinds[self._kind[at]]
        chosen: list[Ints] = []
        for (at, times, table), price, counts in zip(self._cases, prices.of_classes, self._counts, strict=True):
            with np.errstate(invalid="ignore"):
                value = price - prices.of_violations * table
            value = np.where(np.isfinite(table), value, -np.inf)
            width = int(times.max(initial=1))
            picked = np.full((len(at), width), -1, dtype=np.int64)
            if len(counts) and len(at):
                self._pick(value, table, times, counts, picked)
                taken = picked >= 0
                each = np.where(taken, np.take_along_axis(value, np.maximum(picked, 0), 1), 0.0)
                short = np.where(taken, np.take_along_axis(table, np.maximum(picked, 0), 1), 0.0)
                full = taken.sum(axis=1) == times
                np.add.at(worth, at, np.where(full, each.sum(axis=1), -np.inf))
                np.add.at(risk, at, short.sum(axis=1))
            else:
                worth[at] = -np.inf
            chosen.append(picked)
        return worth, risk, chosen

    @staticmethod
    def _pick(value: Floats, table: Floats, times: Ints, counts: Ints, picked: Ints) -> None:
        """Write the classes of the best tenants for each case: one class, or several where it has too few tenants."""
        best = value.argmax(axis=1)
        able = np.isfinite(value[np.arange(len(best)), best])
        place = np.arange(picked.shape[1])
        simple = able & (counts[best] >= times)
        picked[simple] = np.where(place < times[simple, None], best[simple, None], -1)
        for case in np.flatnonzero(able & ~simple).tolist():
            order = np.argsort(-value[case], kind="stable")
            order = order[np.isfinite(value[case, order])]
            several = np.repeat(order, np.minimum(counts[order], times[case]))[: times[case]]
            picked[case, : len(several)] = several

    def column(self, co_location: int, chosen: Sequence[Ints]) -> NicColumn:
        """The column of a co-location whose cases have these classes."""
        rows = [
            int(self._offsets[group]) + row
            for group in dict.fromkeys(self._members[co_location])
            for row in chosen[group][int(np.searchsorted(self._cases[group][0], co_location))].tolist()
            if row >= 0
        ]
        return NicColumn(co_location, tuple(sorted(rows)))


@dataclass(frozen=True, eq=False)
class Relaxed:
    """The end of column generation: the leader's cost, a lower bound, and the prices that prove it."""

    cost: float
    bound: float
    prices: ClassPrices


class Leader:
    """The program over the columns that are known, and the search for more.

    `allowed`: violations that may be expected where all tenants are placed. `share`: by how much fewer per tenant that
    is left out.
    """

    def __init__(
        self, chances: Chances, rows: ClassRows, kinds: Sequence[NicKind], allowed: float, share: float
    ) -> None:
        self.rows = rows
        self.kinds = kinds
        self._chances = chances
        self._worker = ColumnWorker(chances, rows)
        self._likely: ColumnWorker | None = None
        self.offsets = np.cumsum([0, *map(len, rows.counts)])
        self.needed = np.concatenate([*rows.counts, np.zeros(0, dtype=np.int64)]).astype(np.float64)
        self.least = np.zeros(len(kinds))
        self.limits = np.array([np.inf if kind.count is None else float(kind.count) for kind in kinds])
        self.unit = max((kind.cost for kind in kinds), default=1.0) or 1.0
        self.high = max(LEFT_OUT_COST, float(self.needed.sum()) + 1.0) * self.unit
        self.allowed, self.share = allowed, share
        self._kind = chances.kind
        self.columns: list[NicColumn] = []
        self.risks: list[float] = []
        self._known: set[NicColumn] = set()
        self._lower: list[float] = []
        self._build()

    def _build(self) -> None:
        self._solver = solver = pywraplp.Solver.CreateSolver("GLOP")
        solver.SetSolverSpecificParametersAsString(USUAL_WAY)
        infinite = solver.infinity()
        self._objective = solver.Objective()
        self._objective.SetMinimization()
        self._served = [solver.Constraint(float(count), infinite) for count in self.needed.tolist()]
        pools = len({kind.pool for kind in self.kinds}) > 1
        self._limited = {
            number: solver.Constraint(-infinite, float(limit))
            for number, limit in enumerate(self.limits.tolist())
            if np.isfinite(limit) or pools
        }
        self._budget = solver.Constraint(-infinite, float(self.allowed))
        self._over = solver.NumVar(0.0, infinite, "")
        self._objective.SetCoefficient(self._over, EXCESS_COST * self.unit)
        self._budget.SetCoefficient(self._over, -1.0)
        self._left_out = []
        for count, served in zip(self.needed.tolist(), self._served, strict=True):
            out = solver.NumVar(0.0, float(count), "")
            served.SetCoefficient(out, 1.0)
            self._budget.SetCoefficient(out, self.share)
            self._objective.SetCoefficient(out, self.high)
            self._left_out.append(out)
        for start, end in zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True):
            for row in range(start + 1, end):
                taken = solver.NumVar(0.0, infinite, "")
                self._served[row].SetCoefficient(taken, -1.0)
                self._served[row - 1].SetCoefficient(taken, 1.0)
        self._variables: list[pywraplp.Variable] = []

    def allow(self, allowed: float) -> None:
        """Change the violations that may be expected."""
        self._budget.SetUb(float(allowed))

    def between(self, least: Floats, most: Floats) -> None:
        """Change how many NICs of each kind there are at least and at most; only where there are pools."""
        self.least, self.limits = least, most
        for number, limited in self._limited.items():
            limited.SetBounds(float(least[number]), float(most[number]))

    def add_alone(self, chances: Chances) -> None:
        """Add the columns of one tenant each."""
        for group, ((at, _, table), classes) in enumerate(zip(chances.of_group, self.rows.classes, strict=True)):
            for case, co_location in enumerate(at.tolist()):
                if len(chances.members[co_location]) == 1:
                    for row, risk in enumerate(table[case, classes].tolist()):
                        if np.isfinite(risk):
                            self.add(NicColumn(co_location, (int(self.offsets[group]) + row,)), risk)

    def add(self, column: NicColumn, risk: float) -> bool:
        """Add a column; false where it is known already."""
        if column in self._known:
            return False
        self._known.add(column)
        kind = int(self._kind[column.co_location])
        variable = self._solver.NumVar(0.0, self._solver.infinity(), "")
        self._objective.SetCoefficient(variable, float(self.kinds[kind].cost))
        for row, times in Counter(column.rows).items():
            self._served[row].SetCoefficient(variable, float(times))
        if risk > 0:
            self._budget.SetCoefficient(variable, float(risk))
        if kind in self._limited:
            self._limited[kind].SetCoefficient(variable, 1.0)
        self.columns.append(column)
        self.risks.append(float(risk))
        self._variables.append(variable)
        self._lower.append(0.0)
        return True

    def _price(self, prices: ClassPrices, above: float, most: int) -> tuple[int, Floats]:
        """Add the columns that are worth more than a share `above` of their cost; how many are new, and all worths."""
        answer = self._worker(prices)
        cost = np.array([kind.cost for kind in self.kinds])[self._kind]
        likely = np.flatnonzero(answer[0] > (1.0 - LIKELY_SHORTFALL) * cost)
        self._likely = ColumnWorker(self._chances, self.rows, likely)
        return self._add_worthy(self._worker, answer, cost, above, most), answer[0]

    def _price_likely(self, prices: ClassPrices) -> int:
        """Add columns of the co-locations that were worth most when all were looked at; how many are new."""
        if self._likely is None:
            return 0
        cost = np.array([kind.cost for kind in self.kinds])[self._kind]
        return self._add_worthy(self._likely, self._likely(prices), cost, 1.0, AT_ONCE)

    def _add_worthy(
        self, worker: ColumnWorker, answer: tuple[Floats, Floats, list[Ints]], cost: Floats, above: float, most: int
    ) -> int:
        worth, risk, chosen = answer
        gain = worth - above * cost
        wanted = np.flatnonzero(gain > IMPROVEMENT_TOLERANCE)
        wanted = wanted[np.argsort(-(worth - cost)[wanted], kind="stable")][:most]
        return sum(self.add(worker.column(at, chosen), risk[at]) for at in wanted.tolist())

    def _solve(self) -> ClassPrices | None:
        if self._solver.Solve() != pywraplp.Solver.OPTIMAL and not self._solve_anew():
            return None
        self.cost = self._objective.Value()
        duals = np.maximum(np.array([row.dual_value() for row in self._served]), 0.0)
        of_kinds = np.zeros(len(self.kinds))
        for number, limited in self._limited.items():
            price = -limited.dual_value()  # below 0 where more NICs are asked for than are needed
            of_kinds[number] = max(price, 0.0) if self.least[number] == 0.0 else price
        return ClassPrices(self._by_group(duals), of_kinds, max(-self._budget.dual_value(), 0.0))

    def _solve_anew(self) -> bool:
        """Solve in other ways, where going on from the last basis came to nothing; whether one of them succeeds."""
        solved = False
        for parameters in OTHER_WAYS:
            self._solver.SetSolverSpecificParametersAsString(parameters)
            if solved := self._solver.Solve() == pywraplp.Solver.OPTIMAL:
                break
        self._solver.SetSolverSpecificParametersAsString(USUAL_WAY)
        return solved

    def _by_group(self, values: Floats) -> tuple[Floats, ...]:
        """ClassPrices of classes; a more demanding class is never worth less, so that a place of it serves both."""
        return tuple(
            np.maximum.accumulate(values[start:end]) if end > start else values[start:end]
            for start, end in zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True)
        )

    def _prove_bound(self, prices: ClassPrices, worth: Floats) -> tuple[float, ClassPrices]:
        """The bound of these prices, lowered until no column is worth more than it costs, and the lowered prices."""
        cost = np.array([kind.cost for kind in self.kinds])[self._kind]
        # of a NIC the price is part of the worth, so lowering all prices lowers that alike
        share = float(np.min(cost[worth > cost] / worth[worth > cost], initial=1.0))
        of_classes = tuple(
            np.minimum(share * price, self.high + share * prices.of_violations * self.share)
            for price in prices.of_classes
        )
        lowered = ClassPrices(
            of_classes, share * prices.of_kinds, min(share * prices.of_violations, EXCESS_COST * self.unit)
        )
        every = np.concatenate([*lowered.of_classes, np.zeros(0)])
        bound = float(every @ self.needed) - lowered.of_violations * self.allowed
        finite = np.isfinite(self.limits)
        bound -= float(np.maximum(lowered.of_kinds[finite], 0.0) @ self.limits[finite])
        return bound - float(np.minimum(lowered.of_kinds, 0.0) @ self.least), lowered

    def relax(self, start: ClassPrices | None, *, near: float, deadline: float) -> Relaxed:
        """Columns until none improves the program; `start` are prices near the best ones."""
        best, proof = (
            0.0,
            ClassPrices(tuple(np.zeros(len(c)) for c in self.rows.counts), np.zeros(len(self.kinds)), 0.0),
        )
        if start is not None:
            for factor in (0.5, 1.0, 2.0):
                prices = ClassPrices(start.of_classes, start.of_kinds, factor * start.of_violations)
                _, worth = self._price(prices, WORTHY_SHARE, len(self._kind))
                if factor == 1.0:
                    best, proof = self._prove_bound(prices, worth)
        while True:
            own = self._solve()
            if own is None:
                return Relaxed(np.inf, best, proof)
            steady = STEADY_SHARE if best > 0.9 * self.cost else 0.0
            fresh = self._price_likely(_between(proof, own, steady))
            while not fresh:
                prices = _between(proof, own, steady)
                added, worth = self._price(prices, 1.0, AT_ONCE)
                bound, lowered = self._prove_bound(prices, worth)
                if bound > best:
                    best, proof = bound, lowered
                fresh += added
                if steady == 0.0 or best >= self.cost - near:
                    break
                steady = max(steady - STEADY_SHARE / 2, 0.0)
            if not fresh or best >= self.cost - near or time.process_time() >= deadline:
                return Relaxed(self.cost, best, proof)

    def nics_of_kinds(self) -> Floats:
        """NICs of each kind in the program's solution, mostly no whole numbers, shape (kinds,)."""
        self._solve()  # again, since columns that were added make the last solution unreadable
        found = np.zeros(len(self.kinds))
        for column, variable in zip(self.columns, self._variables, strict=True):
            found[self._kind[column.co_location]] += variable.solution_value()
        return found

    def dive(self, deadline: float) -> Ints:
        """How often each column is taken, whole; what is decided so far where the program cannot be solved."""
        # forget what diving has rounded
        for at in np.flatnonzero(self._lower).tolist():
            self._variables[at].SetLb(0.0)
            self._lower[at] = 0.0
        while True:
            for again in range(MAX_PROGRAMS):
                own = self._solve()
                if own is None:
                    return np.array(self._lower, dtype=np.int64)
                # columns that are added make what was solved unreadable, so the last round adds none
                values = np.array([variable.solution_value() for variable in self._variables])
                if again == MAX_PROGRAMS - 1 or not self._price_likely(own):
                    break
            values = np.pad(values, (0, len(self._variables) - len(values)))
            whole = np.floor(values + WHOLE_TOLERANCE)
            fraction = values - whole
            if fraction.max(initial=0.0) <= WHOLE_TOLERANCE or time.process_time() >= deadline:
                return whole.astype(np.int64)
            self._round_up(whole, fraction)

    def _round_up(self, whole: Floats, fraction: Floats) -> None:
        lower = np.array(self._lower[: len(whole)])
        target = np.maximum(whole, lower)
        if not np.any(target > lower):
            chosen = np.flatnonzero(fraction > ROUND_UP_ABOVE)
            if not len(chosen):
                order = np.argsort(-fraction, kind="stable")
                few = max(int(ROUND_UP_SHARE * fraction.sum()), 1)
                chosen = order[:few]
            target[chosen] += 1.0
        for at in np.flatnonzero(target > lower).tolist():
            self._lower[at] = float(target[at])
            self._variables[at].SetLb(float(target[at]))


def _between(best: ClassPrices, own: ClassPrices, share: float) -> ClassPrices:
    if share == 0.0:
        return own
    of_classes = tuple(
        share * one + (1 - share) * other for one, other in zip(best.of_classes, own.of_classes, strict=True)
    )
    return ClassPrices(
        of_classes,
        share * best.of_kinds + (1 - share) * own.of_kinds,
        share * best.of_violations + (1 - share) * own.of_violations,
    )


def refine(prices: ClassPrices, before: ClassRows, after: ClassRows) -> ClassPrices:
    """The prices of rows, between those of other rows of the same classes."""
    of_classes = tuple(
        np.interp(new, old, price) if len(old) else np.zeros(len(new))
        for price, old, new in zip(prices.of_classes, before.classes, after.classes, strict=True)
    )
    return ClassPrices(of_classes, prices.of_kinds, prices.of_violations)
