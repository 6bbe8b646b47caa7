"""Plans and bounds by column generation, for more workloads than all co-locations can be queried for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import Oracle
from placer.optimal.co_location_pricer import CoLocationPricer
from placer.optimal.column_generation import Column, Task, dive, generate
from placer.optimal.incumbent import Incumbent
from placer.optimal.program import costs_in_units


def generated_plan(
    incumbent: Incumbent, kinds: Sequence[NicKind], oracles: Sequence[Oracle], *, deadline: float
) -> tuple[Incumbent, Fraction]:
    """The incumbent or a better plan, and a lower bound on the cost of every plan that places all of its tenants.

    Tenants that the incumbent leaves out stay out, and the bound is then 0. The plan is found by diving, a heuristic:
    only the bound can prove it.
    """
    members: defaultdict[tuple[object, object], list[Tenant]] = defaultdict(list)
    for _, on_nic in incumbent.nics:
        for tenant in on_nic:
            members[tenant.workload, tenant.sla].append(tenant)
    rows = {key: row for row, key in enumerate(members)}
    costs, unit = costs_in_units(kinds)
    needed = np.array([len(group) for group in members.values()], dtype=np.int64)
    counts = [needed.sum() if kind.count is None else kind.count for kind in kinds]
    task = Task(needed, costs, np.array(counts, dtype=np.int64), exactly=True)
    worker = CoLocationPricer([group[0] for group in members.values()], kinds, oracles, costs)
    start = [Column(kind, tuple(sorted(rows[t.workload, t.sla] for t in on_nic))) for kind, on_nic in incumbent.nics]
    cost = sum(int(costs[column.kind]) for column in start)
    generated = generate(task, start, worker, enough=cost, deadline=deadline)
    plan = None
    if generated.bound < cost:
        plan, _ = dive(task, generated.columns, worker, below=cost, deadline=deadline)
    bound = Fraction(0) if incumbent.unplaced else generated.bound * unit
    return (incumbent if plan is None else _with_tenants(plan, list(members.values()), incumbent)), bound


def _with_tenants(plan: Sequence[Column], members: Sequence[Sequence[Tenant]], incumbent: Incumbent) -> Incumbent:
    """The columns as NICs, with a tenant for every row."""
    waiting = [iter(group) for group in members]
    nics = tuple((column.kind, tuple(next(waiting[row]) for row in column.rows)) for column in plan)
    return Incumbent(nics, incumbent.unplaced)
