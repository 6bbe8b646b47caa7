"""The optimum of tenants that are all present at once: a plan, its cost, and a lower bound on the cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import Oracle
from placer.optimal.duals import Duals
from placer.progress import Advance
from profiles import CoLocation


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
    `oracle_seconds`: time of these queries.
    """

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
