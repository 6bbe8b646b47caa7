"""Plans for more workloads than all companies can be asked of, and a bound, by column generation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import Oracle
from placer.optimal.co_location_pricing import CoLocations
from placer.optimal.column_generation import Column, Task, dive, generate
from placer.optimal.incumbent import Incumbent
from placer.optimal.program import costs_in_units


def generated_plan(
    incumbent: Incumbent, kinds: Sequence[NicKind], oracles: Sequence[Oracle], *, deadline: float
) -> tuple[Incumbent, Fraction]:
    """The draft or a better plan, and what no plan that places all of its tenants costs less than.

    Who is left out by the draft stays out, and there is then no bound. The plan is found by diving, so nothing but the
    bound proves it.
    """
    members: defaultdict[tuple[object, object], list[Tenant]] = defaultdict(list)
    for _, housed in incumbent.houses:
        for tenant in housed:
            members[tenant.workload, tenant.sla].append(tenant)
    rows = {key: row for row, key in enumerate(members)}
    costs, unit = costs_in_units(kinds)
    needed = np.array([len(group) for group in members.values()], dtype=np.int64)
    counts = [needed.sum() if kind.count is None else kind.count for kind in kinds]
    task = Task(needed, costs, np.array(counts, dtype=np.int64), exactly=True)
    worker = CoLocations([group[0] for group in members.values()], kinds, oracles, costs)
    start = [Column(kind, tuple(sorted(rows[t.workload, t.sla] for t in housed))) for kind, housed in incumbent.houses]
    cost = sum(int(costs[column.kind]) for column in start)
    generated = generate(task, start, worker, enough=cost, deadline=deadline)
    plan = None
    if generated.bound < cost:
        plan, _ = dive(task, generated.columns, worker, below=cost, deadline=deadline)
    bound = Fraction(0) if incumbent.unplaced else generated.bound * unit
    return (incumbent if plan is None else _housed(plan, list(members.values()), incumbent)), bound


def _housed(plan: Sequence[Column], members: Sequence[Sequence[Tenant]], incumbent: Incumbent) -> Incumbent:
    """The columns with a tenant in the place of every row."""
    waiting = [iter(group) for group in members]
    houses = tuple((column.kind, tuple(next(waiting[row]) for row in column.rows)) for column in plan)
    return Incumbent(houses, incumbent.unplaced)
