"""What a co-location costs its tenants: what a search over plans asks, and knows of throughputs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from placer.model.day import parts_of
from placer.model.nic import Tenant
from placer.model.oracle import Oracle
from placer.optimal.planned.chances import LIKELIEST_VIOLATION
from predictor import Predictor

UNUSABLE = 10.0  # what a place counts at which an instance is further from its SLA than any search passes
SHORTFALL_COST = 10.0
"""What an instance that is short counts besides one violation, per unit of the logarithm by which it is."""


class Judge(Protocol):
    """What a co-location costs each of its tenants: the violations to expect, and more where it may not be used."""

    def costs(self, co_locations: Sequence[Sequence[Tenant]]) -> list[list[float]]:
        """Per co-location and tenant."""


@dataclass(frozen=True)
class OracleJudge:
    """Throughputs are certain: an instance is short or not."""

    oracle: Oracle

    def costs(self, co_locations: Sequence[Sequence[Tenant]]) -> list[list[float]]:
        # an oracle takes workloads in order
        orders = [sorted(range(len(of)), key=lambda at: of[at].workload) for of in co_locations]
        answers = self.oracle.throughput(
            [tuple(of[at].workload for at in order) for of, order in zip(co_locations, orders, strict=True)]
        )
        found = []
        for tenants, order, kpps in zip(co_locations, orders, answers, strict=True):
            costs = [0.0] * len(tenants)
            for at, got in zip(order, kpps, strict=True):
                costs[at] = _short(got, tenants[at].required_kpps(self.oracle.solo(tenants[at].workload)))
            found.append(costs)
        return found


def _short(kpps: float, required_kpps: float) -> float:
    if kpps >= required_kpps:
        return 0.0
    return min(1.0 + SHORTFALL_COST * math.log(required_kpps / max(kpps, 1e-9)), UNUSABLE)


@dataclass(frozen=True)
class ChanceJudge:
    """An instance is short with the probability that a predictor's error model says.

    `risk`: where it is given, what is no likelier costs nothing, and what is likelier may not be.
    """

    predictor: Predictor
    risk: float | None = None

    def costs(self, co_locations: Sequence[Sequence[Tenant]]) -> list[list[float]]:
        together = [tuple(tenant.workload for tenant in tenants) for tenants in co_locations]
        alone = {workload for co_location in together for workload in co_location}
        solo = dict(zip(alone, self.predictor.solo(list(alone)).tolist(), strict=True))
        required = [[tenant.required_kpps(solo[tenant.workload]) for tenant in tenants] for tenants in co_locations]
        chances = self.predictor.shortfall(together, required)
        kpps = self.predictor.throughput(together)
        most, counted = (LIKELIEST_VIOLATION, 1.0) if self.risk is None else (self.risk, 0.0)
        return [
            [
                counted * chance if chance <= most else max(_short(got, need), 1.0) + 1.0
                for chance, got, need in zip(chances_of.tolist(), kpps_of.tolist(), needs, strict=True)
            ]
            for chances_of, kpps_of, needs in zip(chances, kpps, required, strict=True)
        ]


@dataclass(frozen=True)
class DayJudge:
    """Another judge asked for the parts of the day, of which the costliest counts for each instance.

    Only parts that are less busy than no other are asked: less load in all costs less, but for what a judge errs.
    """

    judge: Judge

    def costs(self, co_locations: Sequence[Sequence[Tenant]]) -> list[list[float]]:
        parts = [parts_of(tenants, busiest=True) for tenants in co_locations]
        answers = iter(self.judge.costs([part for of_day in parts for part in of_day]))
        found = []
        for tenants, of_day in zip(co_locations, parts, strict=True):
            cost = dict.fromkeys((tenant.id for tenant in tenants), 0.0)
            for part in of_day:
                for tenant, of_part in zip(part, next(answers), strict=True):
                    cost[tenant.id] = max(cost[tenant.id], of_part)
            found.append(list(cost.values()))
        return found
