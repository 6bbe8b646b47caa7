"""The pattern program: how many NICs carry each co-location pattern, whatever the number of tenants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, lcm
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from placer.model.nic_kind import NicKind
from placer.optimal.patterns import Patterns, TenantGroup
from profiles.arrays import Floats, Ints

BOUND_ROUNDING = 1e-6  # a bound this little above a whole number is not rounded up past it

LARGEST_COST = 10**6
"""Costs are whole numbers of the fleet's cost unit, at most this many, so that integer solvers are exact."""


class Row(NamedTuple):
    """A row requires enough slots above a level, or tenants in all slots up to it, or no more NICs than there are."""

    requires: Literal["served", "filled", "count"]
    number: int
    level: int


@dataclass(frozen=True, eq=False)
class IntegerProgram:
    """Minimise `cost @ v` over whole `v` between 0 and `upper`, subject to `matrix @ v >= least`.

    The first variables are how many NICs carry each pattern, the last ones how many tenants of each group are left
    out, the most demanding first. The rows are Hall's condition, twice. For every group and level l, only slots of a
    level above l are good enough for the tenants after the first l: there must be as many as such tenants, less those
    left out. And since the slots of strict patterns must be taken, those of a level up to l must be no more than l, and
    all of them no more than the tenants placed. A matching that saturates the tenants and another that saturates the
    strict slots make one that does both (Mendelsohn and Dulmage, 1958). Limited kinds add a row each.

    `matrix`, `least`, `cost`, `upper`: as above; all whole numbers. `patterns`: how many of the variables are patterns;
    the others are tenants left out. `rows`: what the first rows require; limits come after them.
    """

    matrix: sparse.csr_array
    least: Ints
    cost: Ints
    upper: Ints
    patterns: int
    rows: tuple[Row, ...] = ()

    def left_out(self, groups: npt.NDArray[np.bool_] | None = None) -> Ints:
        """The objective that counts the tenants left out, of all groups or of these."""
        objective = np.zeros_like(self.cost)
        objective[self.patterns :] = 1 if groups is None else groups
        return objective

    def placing_first(self, groups: npt.NDArray[np.bool_] | None = None) -> IntegerProgram:
        """The same program with the number of tenants left out as its cost, of all groups or of these."""
        return replace(self, cost=self.left_out(groups))

    def leaving_out_at_most(self, tenants: int, groups: npt.NDArray[np.bool_] | None = None) -> IntegerProgram:
        objective = self.left_out(groups)
        return replace(
            self,
            matrix=sparse.csr_array(sparse.vstack([self.matrix, sparse.csr_array(-objective[None, :])])),
            least=np.append(self.least, -tenants),
            upper=np.where(objective > 0, np.minimum(self.upper, tenants), self.upper),
        )

    def costing_at_most(self, cost: int) -> IntegerProgram:
        return replace(
            self,
            matrix=sparse.csr_array(sparse.vstack([self.matrix, sparse.csr_array(-self.cost[None, :])])),
            least=np.append(self.least, -cost),
        )

    def only(self, variables: Ints) -> IntegerProgram:
        """The program with these variables alone, the others being zero; ascending."""
        return IntegerProgram(
            matrix=sparse.csr_array(self.matrix[:, variables]),
            least=self.least,
            cost=self.cost[variables],
            upper=self.upper[variables],
            patterns=int(np.searchsorted(variables, self.patterns)),
        )

    def at_unit_cost(self, in_use: npt.NDArray[np.bool_] | None = None) -> IntegerProgram:
        """The same program with the number of NICs as its cost; patterns of NICs in use anyway cost nothing."""
        cost = 1 - self.left_out()
        if in_use is not None:
            cost[: self.patterns][in_use] = 0
        return replace(self, cost=cost)

    def is_feasible(self, values: Ints) -> bool:
        """Whether `values` satisfy every row and bound."""
        within = bool(np.all(values >= 0) and np.all(values <= self.upper))
        return within and bool(np.all(self.matrix @ values >= self.least))


def program_of(patterns: Patterns, groups: Sequence[TenantGroup], kinds: Sequence[NicKind]) -> IntegerProgram:
    rows = _RowBuilder()
    for i, group in enumerate(groups):
        tenants, out = len(group.tenants), np.array([len(patterns) + i])
        offering = np.flatnonzero(patterns.slots[:, i])
        slots, levels = patterns.slots[offering, i], patterns.levels[offering, i]
        served = 0
        for level in np.unique(np.append(levels, tenants)).tolist():
            if served < tenants:
                better = levels > served
                row = Row("served", i, served)
                rows.add(row, np.append(offering[better], out), np.append(slots[better], 1), tenants - served)
            served = level
        strict = patterns.strict[offering]
        for level in np.unique(levels[strict]).tolist():
            if level < tenants:
                low = strict & (levels <= level)
                rows.add(Row("filled", i, level), offering[low], -slots[low], -level)
        if strict.any():
            row = Row("filled", i, tenants)
            rows.add(row, np.append(offering[strict], out), -np.append(slots[strict], 1), -tenants)
    for number, kind in enumerate(kinds):
        if kind.count is not None:
            used = np.flatnonzero(patterns.kind == number)
            rows.add(Row("count", number, kind.count), used, np.full(len(used), -1), -kind.count)
    members = np.array([len(group.tenants) for group in groups], dtype=np.int64)
    total = int(members.sum())
    counts = np.array([total if kind.count is None else min(kind.count, total) for kind in kinds], dtype=np.int64)
    none_out = np.zeros(len(groups), dtype=np.int64)
    return IntegerProgram(
        matrix=rows.matrix(len(patterns) + len(groups)),
        least=np.array(rows.least, dtype=np.int64),
        cost=np.concatenate([costs_in_units(kinds)[0][patterns.kind], none_out]),
        upper=np.concatenate([counts[patterns.kind], members]),
        patterns=len(patterns),
        rows=tuple(rows.rows),
    )


class _RowBuilder:
    """Rows of a sparse matrix and their right-hand sides, one after the other."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.least: list[int] = []
        self._variables: list[Ints] = []
        self._values: list[Ints] = []

    def add(self, row: Row, variables: Ints, values: Ints, least: int) -> None:
        self.rows.append(row)
        self._variables.append(variables)
        self._values.append(values)
        self.least.append(least)

    def matrix(self, width: int) -> sparse.csr_array:
        if not self.least:
            return sparse.csr_array((0, width), dtype=np.int64)
        ends = np.cumsum([0, *(len(variables) for variables in self._variables)])
        entries = (np.concatenate(self._values), np.concatenate(self._variables), ends)
        return sparse.csr_array(entries, shape=(len(self.least), width))


def costs_in_units(kinds: Sequence[NicKind]) -> tuple[Ints, Fraction]:
    """The cost of every kind as a whole number of units, and the unit; rounded down where the unit would be tiny.

    The unit is as large as the costs allow: every plan costs a whole number of them, so a bound may be rounded up to
    one. Kinds without any NIC do not count.
    """
    exact = [exact_cost(kind) for kind in kinds]
    usable = [cost for cost, kind in zip(exact, kinds, strict=True) if kind.count != 0 and cost] or [Fraction(1)]
    whole = lcm(*(cost.denominator for cost in usable))
    unit = Fraction(gcd(*(int(cost * whole) for cost in usable)), whole)
    unit = max(unit, max(usable) / LARGEST_COST)
    return np.array([min(int(cost / unit), LARGEST_COST) for cost in exact], dtype=np.int64), unit


def exact_cost(kind: NicKind) -> Fraction:
    """The cost of a NIC of the kind, exactly as the decimal number in its file."""
    return Fraction(repr(float(kind.cost)))


@dataclass(frozen=True, eq=False)
class WeakDuality:
    """The bound that row prices prove, exact or not: prices below zero count as zero, and rounding lowers the bound.

    `value`: a lower bound on the program's cost, not rounded. `reduced`: what one more of each variable adds to that
    bound. `prices`: the row prices that prove it, none below zero.
    """

    value: float
    reduced: Floats
    prices: Floats

    @classmethod
    def of(cls, program: IntegerProgram, duals: Floats) -> WeakDuality:
        """The higher of two bounds: with variables of negative reduced cost at their limits, or with all prices lowered
        until there are none (Farley, 1990), which makes the prices of a few columns valid for all.
        """
        prices = np.maximum(duals, 0.0)
        worth = program.matrix.T @ prices
        too_high = worth > program.cost
        share = float(np.min(program.cost[too_high] / worth[too_high], initial=1.0))
        return max(cls._at(program, prices), cls._at(program, prices * share), key=lambda proof: proof.value)

    @classmethod
    def _at(cls, program: IntegerProgram, prices: Floats) -> WeakDuality:
        reduced = program.cost - program.matrix.T @ prices
        value = float(prices @ program.least + np.minimum(reduced, 0.0) @ program.upper)
        return cls(value, np.maximum(reduced, 0.0), prices)

    @property
    def _error(self) -> float:
        """An upper limit of the rounding error of the value."""
        return BOUND_ROUNDING * max(1.0, abs(self.value) * 1e-6)

    @property
    def bound(self) -> int:
        """The lower bound, rounded up, as every cost is whole."""
        return math.ceil(self.value - self._error)

    def limits(self, program: IntegerProgram, cost: int) -> Ints:
        """How often each variable can be used at most by a solution that costs no more than `cost`."""
        room = max(cost - self.value, 0.0) + self._error
        most = np.divide(
            room, self.reduced, out=np.full_like(self.reduced, np.inf), where=self.reduced > BOUND_ROUNDING
        )
        return np.minimum(program.upper, np.floor(np.minimum(most, program.upper) + BOUND_ROUNDING)).astype(np.int64)
