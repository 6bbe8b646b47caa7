"""Tenant groups: tenants of one workload, in order of how much throughput they require."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import Oracle
from placer.optimal.arrays import Floats, Ints
from profiles import Workload


@dataclass(frozen=True, eq=False)
class TenantGroup:
    """Tenants of one workload, sorted so that every slot of every NIC kind is good enough for the first of them.

    The *level* of a slot is the number of tenants, the least demanding first, whose SLA it meets. Levels compare slots
    of different NIC kinds, and two throughputs between which no tenant's requirement lies have the same level.

    Parameters
    ----------
    workload
        The workload of all of them.
    tenants
        The least demanding first.
    required
        By NIC kind, the throughput (kpps) that each of `tenants` requires there, ascending; None where the kind cannot
        run the workload.
    """

    workload: Workload
    tenants: tuple[Tenant, ...]
    required: tuple[Floats | None, ...]

    def levels(self, kind: int, throughputs: Floats) -> Ints:
        """For each of `throughputs` (kpps) on NIC kind number `kind`, how many of the tenants it is enough for."""
        required = self.required[kind]
        if required is None:
            return np.zeros(len(throughputs), dtype=np.int64)
        return np.searchsorted(required, throughputs, side="right")


def group_tenants(tenants: Sequence[Tenant], kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> list[TenantGroup]:
    """The tenants as groups, sorted by workload.

    One group per workload, unless drops and throughputs order its tenants differently on two NIC kinds: then tenants
    with `max_drop` and tenants with `min_kpps` are two groups, each of which has the same order on all kinds.
    """
    by_workload: defaultdict[Workload, list[Tenant]] = defaultdict(list)
    for tenant in tenants:
        by_workload[tenant.workload].append(tenant)
    groups = []
    for workload in sorted(by_workload):
        members = by_workload[workload]
        group = _sorted_group(workload, members, kinds, oracles)
        if group is not None:
            groups.append(group)
            continue
        for by_drop in (True, False):
            half = [tenant for tenant in members if (tenant.sla.max_drop is not None) is by_drop]
            group = _sorted_group(workload, half, kinds, oracles)
            if group is None:
                raise AssertionError(f"Tenants of {workload} with one kind of SLA have one order on every NIC.")
            groups.append(group)
    return groups


def _sorted_group(
    workload: Workload, members: Sequence[Tenant], kinds: Sequence[NicKind], oracles: Sequence[Oracle]
) -> TenantGroup | None:
    """The tenants as one group, or None when no order of them is ascending on every kind."""
    required: list[Floats | None] = []
    for kind, oracle in zip(kinds, oracles, strict=True):
        if kind.hosts(workload):
            solo = oracle.solo(workload)
            required.append(np.array([tenant.sla.required_kpps(solo) for tenant in members], dtype=np.float64))
        else:
            required.append(None)
    keys = [values for values in required if values is not None]
    order = np.lexsort(keys[::-1]) if keys else np.arange(len(members))
    ascending = tuple(None if values is None else values[order] for values in required)
    if any(values is not None and np.any(np.diff(values) < 0) for values in ascending):
        return None
    return TenantGroup(workload, tuple(members[i] for i in order.tolist()), ascending)
