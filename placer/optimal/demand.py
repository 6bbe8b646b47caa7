"""Demands: tenants of one workload in one order of difficulty."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import Oracle
from profiles import Workload

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Demand:
    """Tenants of one workload, sorted so that every slot of every NIC kind is good enough for a prefix of them.

    The length of that prefix is the *level* of the slot: how many of the tenants, the easiest first, accept it. Levels
    compare slots of different NIC kinds, and two throughputs between which no tenant lies have the same level.

    Parameters
    ----------
    workload
        What all of them run.
    tenants
        Easiest first.
    required
        By NIC kind, the throughput (kpps) that each of `tenants` needs there, ascending; None where the kind cannot
        host the workload.
    """

    workload: Workload
    tenants: tuple[Tenant, ...]
    required: tuple[Floats | None, ...]

    def levels(self, kind: int, throughputs: Floats) -> Ints:
        """How many of the tenants accept each of `throughputs` (kpps) on NIC kind number `kind`."""
        required = self.required[kind]
        if required is None:
            return np.zeros(len(throughputs), dtype=np.int64)
        return np.searchsorted(required, throughputs, side="right")


def demands_of(tenants: Sequence[Tenant], kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> list[Demand]:
    """The tenants as demands, sorted by workload.

    One demand a workload, unless drops and throughputs order its tenants differently on two NIC kinds: then those
    with `max_drop` and those with `min_kpps` are two demands, within each of which the order is the same everywhere.
    """
    by_workload: defaultdict[Workload, list[Tenant]] = defaultdict(list)
    for tenant in tenants:
        by_workload[tenant.workload].append(tenant)
    demands = []
    for workload in sorted(by_workload):
        group = by_workload[workload]
        demand = _ordered(workload, group, kinds, oracles)
        if demand is not None:
            demands.append(demand)
            continue
        for by_drop in (True, False):
            half = [tenant for tenant in group if (tenant.sla.max_drop is not None) is by_drop]
            ordered = _ordered(workload, half, kinds, oracles)
            if ordered is None:
                raise AssertionError(f"Tenants of {workload} with one kind of SLA have one order on every NIC.")
            demands.append(ordered)
    return demands


def _ordered(
    workload: Workload, group: Sequence[Tenant], kinds: Sequence[NicKind], oracles: Sequence[Oracle]
) -> Demand | None:
    """The group as one demand, or None when no order of its tenants is ascending on every kind."""
    required: list[Floats | None] = []
    for kind, oracle in zip(kinds, oracles, strict=True):
        if kind.hosts(workload):
            solo = oracle.solo(workload)
            required.append(np.array([tenant.sla.required_kpps(solo) for tenant in group], dtype=np.float64))
        else:
            required.append(None)
    keys = [values for values in required if values is not None]
    order = np.lexsort(keys[::-1]) if keys else np.arange(len(group))
    ascending = tuple(None if values is None else values[order] for values in required)
    if any(values is not None and np.any(np.diff(values) < 0) for values in ascending):
        return None
    return Demand(workload, tuple(group[i] for i in order.tolist()), ascending)
