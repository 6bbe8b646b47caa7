"""The bound from cores alone, as if there were no contention."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice
from math import inf

import numpy as np

from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.sla import Sla
from placer.optimal import patterns as pattern_list
from placer.optimal.merged_kinds import MergedKinds
from placer.optimal.optimum import Duals, duals_of
from placer.optimal.program import IntegerProgram, program_of
from placer.optimal.solvers import relaxation
from profiles import CoLocation, Workload

MOST_CO_LOCATIONS = 20_000  # with more co-locations than this, nothing is proven


class NoContention(Oracle):
    """Every workload is as fast with neighbours as alone."""

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return [[1.0] * len(co_location) for co_location in co_locations]


def cores_bounds(
    tenants: Sequence[Tenant], kinds: Sequence[NicKind], left_out: int, seconds: float, in_use: Collection[int] = ()
) -> tuple[int, int]:
    """Bounds on the cost, in units, and on the NICs of every plan that leaves out no more than `left_out` tenants.

    NFs that take as many cores on every kind are treated as one, and every SLA as met. So few workloads remain that the
    relaxed pattern program is small, and each plan for the tenants is a plan of it. `in_use` as of `pattern_plan`.
    """
    found = _program(tenants, kinds)
    if found is None:
        return 0, 0
    program, anyway = found[0].leaving_out_at_most(left_out), np.isin(found[1].kind, list(in_use))
    by_cost = relaxation(program, seconds).proof.bound
    return by_cost, relaxation(program.at_unit_cost(anyway), seconds).proof.bound


def cores_duals(tenants: Sequence[Tenant], kinds: Sequence[NicKind], seconds: float) -> Duals | None:
    """The prices that prove the bound on the cost of every plan that places all tenants; None where there is none."""
    merged = MergedKinds.of(kinds, [NoContention()] * len(kinds))
    found = _program(tenants, merged.kinds)
    if found is None:
        return None
    program, patterns, groups = found
    prices = relaxation(program.leaving_out_at_most(0), seconds).proof.prices
    return merged.separate_prices(duals_of(program, prices, patterns, groups, merged.kinds))


def _program(
    tenants: Sequence[Tenant], kinds: Sequence[NicKind]
) -> tuple[IntegerProgram, pattern_list.Patterns, Sequence[pattern_list.TenantGroup]] | None:
    representative: dict[tuple[int | None, ...], Workload] = {}
    equal_cores = [
        Tenant(
            tenant.id,
            representative.setdefault(_cores(tenant.workload, kinds), tenant.workload),
            Sla(max_drop=0.0),
            constraints=tenant.constraints,
        )
        for tenant in tenants
    ]
    oracles = [NoContention() for _ in kinds]
    groups = pattern_list.group_tenants(equal_cores, kinds, oracles)
    parts = []
    for number, (kind, oracle) in enumerate(zip(kinds, oracles, strict=True)):
        portless = replace(kind, line_rate_gbps=inf)  # tenants of a group are offered different rates
        co_locations = list(islice(pattern_list.co_locations_within(portless, groups), MOST_CO_LOCATIONS + 1))
        if len(co_locations) > MOST_CO_LOCATIONS:
            return None
        parts.append(
            pattern_list.patterns_of(
                number, co_locations, *pattern_list.slots_and_levels(number, co_locations, groups, oracle)
            )
        )
    patterns = pattern_list.join(parts)
    return program_of(patterns, groups, kinds), patterns, groups


def _cores(workload: Workload, kinds: Sequence[NicKind]) -> tuple[int | None, ...]:
    """Cores that the workload takes on each kind; None where it is not known there."""
    if not workload.is_plain or any(kind.paced for kind in kinds):
        return tuple(kind.cores_for(workload) if kind.hosts(workload) else None for kind in kinds)
    return tuple(kind.cores_of.get(workload.nf) for kind in kinds)
