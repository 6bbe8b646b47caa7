"""The optimum of tenants that are all present at once: a plan, its cost, and a lower bound on the cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.optimal.patterns import Patterns, TenantGroup
from placer.optimal.program import IntegerProgram, costs_in_units
from placer.progress import Advance
from profiles import CoLocation
from profiles.arrays import Floats
from profiles.shown import Shown


@dataclass(frozen=True, eq=False)
class Optimum:
    """A plan in which every SLA is met, and lower bounds on all such plans that place as many tenants.

    `nics`: NICs in use: the kind of each, and its tenants.
    `unplaced`: tenants without a NIC: their SLA cannot be met, or the fleet has too few NICs.
    `lower_bound`: no plan that places as many tenants costs less; at unit cost a whole number of NICs.
    `nics_lower_bound`: no such plan uses fewer NICs, whatever its cost.
    `proven`: whether no plan places more tenants, and none that places as many costs less.
    `duals`: prices that prove this bound, or the lower one of the relaxation; None where not all co-locations were
        queried.
    `departure_safe`: whether every SLA is known to be met by any part of a NIC's tenants, too, before arrivals and
        after departures.
    `seconds`: time of the search, without queries of oracles.
    `oracle_seconds`: time of these queries."""

    nics: list[tuple[NicKind, tuple[Tenant, ...]]]
    unplaced: list[Tenant]
    cost: float
    lower_bound: float
    nics_lower_bound: int
    proven: bool
    duals: Duals | None = None
    departure_safe: bool = False
    seconds: float = 0.0
    oracle_seconds: float = 0.0


# An oracle that measures the seconds that its queries take.


QUERY_SIZE = 256


class TimedOracle(Oracle):
    """Another oracle, and the seconds that its queries took."""

    def __init__(self, oracle: Oracle, progress: Advance | None = None) -> None:
        super().__init__()
        self.oracle = oracle
        self.progress = progress
        self.seconds = 0.0

    def throughput(self, co_locations: Sequence[CoLocation]) -> list[tuple[float, ...]]:
        began = time.monotonic()
        if self.progress is None or len(co_locations) <= QUERY_SIZE:
            answers = self.oracle.throughput(co_locations)
        else:
            answers = []
            for first in range(0, len(co_locations), QUERY_SIZE):
                answers += self.oracle.throughput(co_locations[first : first + QUERY_SIZE])
                self.progress(len(answers), len(co_locations))
        self.seconds += time.monotonic() - began
        return answers

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return self.oracle.throughput(co_locations)


# Dual values of the pattern program as prices of tenants and NICs: a bound that is easy to check.
#
# If the prices of the tenants on any NIC add up to no more than the NIC costs, no plan costs less than the sum of the
# prices of all tenants. Where the NICs of a kind are limited, each may have a price on top of its cost; the bound is
# then lower by that price for every NIC of the kind.


@dataclass(frozen=True, eq=False, repr=False)
class Duals(Shown):
    """Prices that are safe against rounding: lowered until no pattern is worth more than it costs.

    `of_groups`: by group, the price of each of its tenants, in the order of `TenantGroup.tenants`. `of_kinds`: by NIC
    kind, the price of one NIC on top of its cost; 0 where there is no limit.
    """

    groups: tuple[TenantGroup, ...]
    of_groups: tuple[Floats, ...]
    of_kinds: tuple[float, ...]

    def by_tenant(self) -> dict[str, float]:
        """The price of every tenant, by id."""
        return {
            tenant.id: price
            for group, prices in zip(self.groups, self.of_groups, strict=True)
            for tenant, price in zip(group.tenants, prices.tolist(), strict=True)
        }


PRICE_SAFETY = 1e-9
"""Share by which prices are lowered, and NIC prices raised, so that sums in exact arithmetic keep their limits."""


def duals_of(
    program: IntegerProgram,
    row_prices: Floats,
    patterns: Patterns,
    groups: Sequence[TenantGroup],
    kinds: Sequence[NicKind],
) -> Duals:
    """Prices of tenants and NICs from the row prices of a pattern program.

    The price of a tenant after the first l of its group is the sum over the rows that require slots above a level up to
    l, less the sum over the rows that require slots of such a level to be filled.
    """
    described = len(program.rows)
    prices = np.maximum(row_prices[:described], 0.0)
    prices[[row.requires == "count" for row in program.rows]] = 0.0
    worth = (program.matrix[:described].T @ prices)[: program.patterns]
    cost = program.cost[: program.patterns]
    unit = float(costs_in_units(kinds)[1])
    unlimited = np.array([kind.count is None for kind in kinds])[patterns.kind]
    too_high = unlimited & (worth > cost)
    share = float(np.min(cost[too_high] / worth[too_high], initial=1.0)) * (1 - PRICE_SAFETY)
    over = worth * share - cost
    of_kinds = [
        0.0
        if kind.count is None
        else float(np.max(over[patterns.kind == number], initial=0.0)) * unit * (1 + PRICE_SAFETY)
        for number, kind in enumerate(kinds)
    ]
    of_groups = [np.zeros(len(group.tenants)) for group in groups]
    for row, price in zip(program.rows, (prices * share * unit).tolist(), strict=True):
        if row.requires == "served":
            of_groups[row.number][row.level :] += price
        elif row.requires == "filled":
            of_groups[row.number][: row.level] -= price
    return Duals(tuple(groups), tuple(of_groups), tuple(of_kinds))
