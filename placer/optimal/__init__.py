"""The optimum: the plan of least cost in which no SLA is broken, and the proof.

    tenants -> demands -> companies -> patterns (asking the oracles) -> program -> solution -> tenants on NICs

A plan depends on tenants only through the workload they run and what they accept. So a plan is a number of NICs for
every co-location pattern, and an integer program over patterns finds the best one, whatever the number of tenants.
Where there are too many workloads to ask of all their companies, the same program improves a plan piece by piece.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from placer.model.feasibility import feasible
from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import Oracle
from placer.optimal.demand import demands_of
from placer.optimal.incumbent import Incumbent
from placer.optimal.merged_kinds import MergedKinds
from placer.optimal.neighbourhoods import neighbourhood_plan
from placer.optimal.optimum import Optimum
from placer.optimal.pattern_plan import pattern_plan
from placer.optimal.patterns import co_locations_within
from placer.optimal.solvers import SOLVERS, refuse_unknown
from placer.optimal.timed_oracle import TimedOracle
from placer.progress import Advance

__all__ = ["SOLVERS", "Optimum", "optimal_plan", "refuse_unknown"]

MOST_CO_LOCATIONS = 20_000
"""Companies that are asked at most to have all of them."""


def optimal_plan(
    tenants: Sequence[Tenant],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    *,
    time_limit: float = 60.0,
    solver: str = "cp-sat",
    start: Sequence[tuple[NicKind, Sequence[Tenant]]] | None = None,
    departure_safe: bool = False,
    progress: Advance | None = None,
) -> Optimum:
    """The plan that places the most tenants with no SLA broken and, of those, costs least.

    With few workloads it is proven. With more than all companies can be asked of, it is the best found, beside a bound
    that is mostly the one by cores, as nothing is known of companies that were not asked.

    Parameters
    ----------
    tenants
        Who is to be placed, all present at once.
    kinds
        The NICs that can be had, numbered by their `index`.
    oracles
        By kind, the throughput in company. Not assumed to be monotone: leaving a NIC may slow down who stays. Where
        one tells equal workloads of a company different throughputs, the lowest counts for all of them.
    time_limit
        Seconds of search, oracle answers known, after which the best plan so far is returned with its bound. With too
        many workloads the asking is part of the search, and of these seconds.
    solver
        The integer solver: one of `SOLVERS`, `pulp` (its own choice) or `pulp:NAME`.
    start
        A plan to beat: if it keeps every SLA and nothing better is found, it is returned.
    departure_safe
        Whether to look only among plans in which nobody needs company to meet an SLA; bounds are of such plans then.
        With more workloads than all companies can be asked of, it is disregarded.
    progress
        Told how many companies were asked and how many are to be asked.
    """
    began = time.monotonic()
    timed = {id(oracle): TimedOracle(oracle, progress) for oracle in oracles}
    merged = MergedKinds.of(kinds, [timed[id(oracle)] for oracle in oracles])
    kinds, oracles = merged.kinds, merged.oracles
    given = _valid_incumbent(merged.merge(start), tenants, kinds, oracles) if start else None
    demands = demands_of(tenants, kinds, oracles)
    co_locations = [list(islice(co_locations_within(kind, demands), MOST_CO_LOCATIONS + 1)) for kind in kinds]
    if sum(map(len, co_locations)) <= MOST_CO_LOCATIONS:
        optimum = pattern_plan(
            demands, kinds, oracles, co_locations, seconds=time_limit, solver=solver, departure_safe=departure_safe
        )
    else:
        optimum = neighbourhood_plan(tenants, kinds, oracles, given, deadline=began + time_limit, solver=solver)
    oracle_seconds = sum(oracle.seconds for oracle in timed.values())
    return replace(
        merged.separate(optimum if given is None else _better(optimum, given, kinds)),
        seconds=time.monotonic() - began - oracle_seconds,
        oracle_seconds=oracle_seconds,
    )


def _valid_incumbent(
    plan: Sequence[tuple[NicKind, Sequence[Tenant]]],
    tenants: Sequence[Tenant],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
) -> Incumbent | None:
    """The plan as a draft, if it keeps every SLA, the cores and the counts."""
    for number, kind in enumerate(kinds):
        groups = [housed for used, housed in plan if used.index == number]
        if kind.count is not None and len(groups) > kind.count:
            return None
        if not all(feasible(kind, oracles[number], groups)):
            return None
    placed = {tenant.id for _, housed in plan for tenant in housed}
    houses = tuple((kind.index, tuple(housed)) for kind, housed in plan if housed)
    return Incumbent(houses, tuple(tenant for tenant in tenants if tenant.id not in placed))


def _better(optimum: Optimum, incumbent: Incumbent, kinds: Sequence[NicKind]) -> Optimum:
    """The optimum, or the draft where the search ended before it found as good a plan."""
    cost = float(incumbent.cost(kinds))
    if optimum.proven or (len(optimum.unplaced), optimum.cost) <= (len(incumbent.unplaced), cost):
        return optimum
    nics = [(kinds[kind], housed) for kind, housed in incumbent.houses]
    known = len(incumbent.unplaced) == len(optimum.unplaced)
    return replace(
        optimum,
        nics=nics,
        unplaced=list(incumbent.unplaced),
        departure_safe=False,
        cost=cost,
        lower_bound=min(cost, optimum.lower_bound) if known else 0.0,
        nics_lower_bound=min(len(nics), optimum.nics_lower_bound) if known else 0,
    )
