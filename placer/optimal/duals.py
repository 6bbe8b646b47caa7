"""Dual values of the pattern program, told as prices of tenants and of NICs: a bound that anybody can check.

If the tenants of no NIC whatever are worth more than the NIC costs, then no plan costs less than all tenants are worth.
Where NICs of a kind are limited, each may have a price beside its cost, at the loss of that price for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placer.model.fleet import NicKind
from placer.optimal.demand import Demand, Floats
from placer.optimal.patterns import Patterns
from placer.optimal.program import Program, costs_in_units


@dataclass(frozen=True, eq=False)
class Duals:
    """Prices that are safe against rounding: they were lowered until every pattern costs what it is worth, or more.

    Parameters
    ----------
    demands
        The tenants.
    of_demands
        By demand, the price of each of its tenants, in the order of `Demand.tenants`.
    of_kinds
        By NIC kind, the price of one NIC beside its cost; 0 where there is no limit.
    """

    demands: tuple[Demand, ...]
    of_demands: tuple[Floats, ...]
    of_kinds: tuple[float, ...]

    def by_tenant(self) -> dict[str, float]:
        """The price of every tenant, by id."""
        return {
            tenant.id: price
            for demand, prices in zip(self.demands, self.of_demands, strict=True)
            for tenant, price in zip(demand.tenants, prices.tolist(), strict=True)
        }


SAFETY = 1e-9
"""Share by which prices are lowered, and NIC prices raised, so that sums in exact arithmetic keep their limits."""


def duals_of(
    program: Program, row_prices: Floats, patterns: Patterns, demands: Sequence[Demand], kinds: Sequence[NicKind]
) -> Duals:
    """The prices that the row prices of a pattern program make.

    A tenant beyond the easiest l earns the price of every row that asks for slots above a level up to l, and pays that
    of every row that asks for slots of such a level to be filled.
    """
    described = len(program.rows)
    prices = np.maximum(row_prices[:described], 0.0)
    prices[[row.says == "count" for row in program.rows]] = 0.0
    worth = (program.matrix[:described].T @ prices)[: program.patterns]
    cost = program.cost[: program.patterns]
    unit = float(costs_in_units(kinds)[1])
    unlimited = np.array([kind.count is None for kind in kinds])[patterns.kind]
    dear = unlimited & (worth > cost)
    share = float(np.min(cost[dear] / worth[dear], initial=1.0)) * (1 - SAFETY)
    over = worth * share - cost
    of_kinds = [
        0.0 if kind.count is None else float(np.max(over[patterns.kind == number], initial=0.0)) * unit * (1 + SAFETY)
        for number, kind in enumerate(kinds)
    ]
    of_demands = [np.zeros(len(demand.tenants)) for demand in demands]
    for row, price in zip(program.rows, (prices * share * unit).tolist(), strict=True):
        if row.says == "served":
            of_demands[row.number][row.level :] += price
        elif row.says == "filled":
            of_demands[row.number][: row.level] -= price
    return Duals(tuple(demands), tuple(of_demands), tuple(of_kinds))
