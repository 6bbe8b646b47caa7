"""The optimum: the plan of least cost without SLA violations, and its proof.

    tenants -> tenant groups -> co-locations -> patterns (throughputs from the oracles) -> integer program -> plan

A plan depends on tenants only through their workloads and SLAs. So a plan is a number of NICs for every co-location
pattern, and an integer program over the patterns finds the best one, whatever the number of tenants. Where there are
too many workloads to query all their co-locations, the same program improves a plan a few NICs at a time."""

import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from placer.model.arrival import RunningNic, loses_no_more
from placer.model.constraints import by_pool_only
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.optimal.dealing import LEAST_DEALING, keep_groups
from placer.optimal.incumbent import better_of, valid_incumbent
from placer.optimal.merged_kinds import KindsBesideRunning, MergedKinds
from placer.optimal.neighbourhoods import neighbourhood_plan
from placer.optimal.optimum import Optimum, TimedOracle
from placer.optimal.pattern_plan import pattern_plan
from placer.optimal.patterns import co_locations_on, group_tenants
from placer.optimal.program import exact_cost
from placer.optimal.solvers import SOLVERS, refuse_unknown
from placer.progress import Advance

__all__ = ["SOLVERS", "Optimum", "optimal_plan", "refuse_unknown"]

MOST_CO_LOCATIONS = 20_000  # with more co-locations than this, not all of them are queried
MORE_BY_PRIORITY = 5  # times as many, where most differ in the priorities of their tenants alone
MOST_ON_GPU = 1_000  # as `MOST_CO_LOCATIONS`, of one kind of GPU, whose admission test takes longer than a prediction


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
    running: Sequence[RunningNic] = (),
) -> Optimum:
    """The plan without SLA violations that places the most tenants and, of those, costs least.

    With few workloads it is proven. With more than all co-locations can be queried for, it is the best plan found, with
    a bound that is mostly the one from cores, as nothing is known of co-locations that were not queried.

    `kinds`: the kinds of NIC in the fleet, numbered by their `index`.
    `oracles`: by kind, the throughputs in a co-location. They need not be monotone: a departure may slow down other
        tenants. Where one returns different throughputs for equal workloads, the lowest counts for all of them.
    `time_limit`: seconds of search after which the best plan so far is returned with its bound. Queries of oracles
        count only with too many workloads.
    `solver`: the integer solver: one of `SOLVERS`.
    `start`: a plan that is returned if it has no SLA violation and the search finds no better one.
    `departure_safe`: whether only plans count in which no tenant needs a neighbour to meet its SLA; bounds are of such
        plans then. Ignored with too many workloads to query all co-locations.
    `progress`: called with the number of co-locations queried so far, and of all to query.
    `running`: NICs on which other tenants already run and stay; they are in use whatever is placed."""
    began = time.monotonic()
    timed = {id(oracle): TimedOracle(oracle, progress) for oracle in oracles}
    all_kinds, all_oracles = kinds, oracles
    beside = KindsBesideRunning.of(kinds, [timed[id(oracle)] for oracle in oracles], running)
    merged = MergedKinds.of(beside.kinds, beside.oracles, keep_domains=not by_pool_only(tenants))
    in_use = frozenset(number for number, (first, *_) in enumerate(merged.members) if first.index in beside.in_use)
    kinds, oracles = merged.kinds, merged.oracles
    incumbent = valid_incumbent(merged.merge(start), tenants, kinds, oracles) if start else None
    optimum, ordered = None, False
    for by_priority in (False, True):
        groups = group_tenants(tenants, kinds, oracles, by_priority=by_priority)
        most = MOST_CO_LOCATIONS * (MORE_BY_PRIORITY if by_priority else 1)
        co_locations = [
            co_locations_on(kind, groups, oracle, MOST_ON_GPU if kind.paced else most)
            for kind, oracle in zip(kinds, oracles, strict=True)
        ]
        too_many = any(kind.paced and len(found) > MOST_ON_GPU for kind, found in zip(kinds, co_locations, strict=True))
        if too_many or sum(map(len, co_locations)) > most:
            break
        optimum = pattern_plan(
            groups, kinds, oracles, co_locations, seconds=time_limit, solver=solver, departure_safe=departure_safe,
            in_use=in_use,
        )  # fmt: skip
        ordered = by_priority or not _rejects_out_of_order(optimum, tenants)
        if ordered:
            break
    if optimum is not None and not ordered:
        optimum = replace(optimum, lower_bound=0.0, nics_lower_bound=0, proven=False, duals=None)
    if optimum is None:
        deadline = began + time_limit
        first = sorted(tenants, key=lambda tenant: -tenant.priority)
        optimum = neighbourhood_plan(first, kinds, oracles, incumbent, deadline=deadline, solver=solver, in_use=in_use)
    oracle_seconds = sum(oracle.seconds for oracle in timed.values())
    found = merged.separate(optimum if incumbent is None else better_of(optimum, incumbent, kinds))
    found = beside.restore(found) if running else found
    remaining = max(began + time_limit + oracle_seconds - time.monotonic(), LEAST_DEALING * time_limit)
    return replace(
        _keep_groups(found, all_kinds, all_oracles, running, remaining),
        seconds=time.monotonic() - began - oracle_seconds,
        oracle_seconds=oracle_seconds,
    )


def _rejects_out_of_order(optimum: Optimum, tenants: Sequence[Tenant]) -> bool:
    """Whether more than tenants of the lowest priority are left out, so that the fewest are perhaps not the best."""
    lowest = min((tenant.priority for tenant in tenants), default=0)
    return any(tenant.priority > lowest for tenant in optimum.unplaced)


def _keep_groups(
    optimum: Optimum, kinds: Sequence[NicKind], oracles: Sequence[Oracle], running: Sequence[RunningNic], seconds: float
) -> Optimum:
    """The optimum with tenants dealt so that no group meets itself, under the bound without groups."""
    fixed = {tenant.id for nic in running for tenant in nic.tenants}
    nics, unplaced = keep_groups(
        optimum.nics, optimum.unplaced, kinds, oracles, fixed, departure_safe=optimum.departure_safe, seconds=seconds
    )
    if nics is optimum.nics:
        return optimum
    cost = sum((exact_cost(kind) for kind, _ in nics), start=Fraction(0))
    as_many = loses_no_more(unplaced, optimum.unplaced)
    bound = optimum.lower_bound if as_many else 0.0
    return replace(
        optimum,
        nics=nics,
        unplaced=unplaced,
        cost=float(cost),
        lower_bound=bound,
        nics_lower_bound=optimum.nics_lower_bound if as_many else 0,
        proven=optimum.proven and as_many and cost <= Fraction(repr(bound)),
        duals=optimum.duals if as_many else None,
    )
