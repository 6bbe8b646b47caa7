"""Peers of the optimum: naive assignment models, and the two classics of bin packing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from placer.model.feasibility import feasible
from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import Oracle
from profiles import CoLocation, Workload


@dataclass(frozen=True)
class PeerPlan:
    """NICs of the best plan, the peer's own bound, and the seconds from known answers to it."""

    nics: int
    bound: float
    seconds: float


Peer = Callable[[Sequence[Tenant], NicKind, Oracle, float], PeerPlan]


def _decreasing(tenants: Sequence[Tenant], kind: NicKind, oracle: Oracle, best_fit: bool) -> PeerPlan:
    """Tenants of many cores first, of those the strictest SLA; each where all keep their SLA."""
    began = time.monotonic()
    hardest = sorted(tenants, key=lambda one: (-kind.cores_of[one.workload.nf], one.sla.max_drop or 0.0, one.id))
    nics: list[list[Tenant]] = []
    free: list[int] = []
    for tenant in hardest:
        cores = kind.cores_of[tenant.workload.nf]
        order = sorted(range(len(nics)), key=lambda nic: free[nic]) if best_fit else range(len(nics))
        fits = (nic for nic in order if free[nic] >= cores and feasible(kind, oracle, [[*nics[nic], tenant]])[0])
        place = next(fits, None)
        if place is None:
            place = len(nics)
            nics.append([])
            free.append(kind.cores)
        nics[place].append(tenant)
        free[place] -= cores
    return PeerPlan(len(nics), 0.0, time.monotonic() - began)


def first_fit_decreasing(tenants: Sequence[Tenant], kind: NicKind, oracle: Oracle, seconds: float) -> PeerPlan:
    """Each on the first NIC that can take it."""
    return _decreasing(tenants, kind, oracle, best_fit=False)


def best_fit_decreasing(tenants: Sequence[Tenant], kind: NicKind, oracle: Oracle, seconds: float) -> PeerPlan:
    """Each on the fullest NIC that can take it."""
    return _decreasing(tenants, kind, oracle, best_fit=True)


@dataclass(frozen=True, eq=False)
class _Known:
    """All co-locations within the cores, the empty one first: counts and drops by workload."""

    workloads: list[Workload]
    counts: np.ndarray
    drops: np.ndarray


def _known(tenants: Sequence[Tenant], kind: NicKind, oracle: Oracle) -> _Known:
    workloads = sorted({tenant.workload for tenant in tenants})
    co_locations: list[CoLocation] = [()]
    for co_location in co_locations:  # grows while it is walked
        places = range(workloads.index(co_location[-1]) if co_location else 0, len(workloads))
        larger = [(*co_location, workloads[place]) for place in places]
        co_locations.extend(one for one in larger if kind.cores_taken(one) <= kind.cores)
    counts = np.array([[Counter(co_location)[workload] for workload in workloads] for co_location in co_locations])
    drops = np.zeros(counts.shape)
    for row, co_location in enumerate(co_locations[1:], start=1):
        for workload, kpps in oracle.by_workload(co_location).items():
            drops[row, workloads.index(workload)] = 1.0 - kpps / oracle.solo(workload)
    return _Known(workloads, counts, drops)


def cp_sat_assignment(tenants: Sequence[Tenant], kind: NicKind, oracle: Oracle, seconds: float) -> PeerPlan:
    """A Boolean for every tenant and NIC; a table of co-locations and a drop to tolerate for every NIC."""
    known = _known(tenants, kind, oracle)
    first_fit = first_fit_decreasing(tenants, kind, oracle, seconds)
    began = time.monotonic()
    thousandths = np.ceil(np.maximum(known.drops, 0.0) * 1e6 - 1e-3).astype(int)
    rows = np.column_stack([known.counts, thousandths]).tolist()
    model = cp_model.CpModel()
    used = []
    on = [[model.new_bool_var("") for _ in range(first_fit.nics)] for _ in tenants]
    for nic in range(first_fit.nics):
        counts = [model.new_int_var(0, kind.cores, "") for _ in known.workloads]
        drops = [model.new_int_var(0, 10**6, "") for _ in known.workloads]
        model.add_allowed_assignments([*counts, *drops], rows)
        used.append(model.new_bool_var(""))
        for number, tenant in enumerate(tenants):
            bears = int((tenant.sla.max_drop or 0.0) * 1e6)
            drop = drops[known.workloads.index(tenant.workload)]
            model.add(drop <= bears).only_enforce_if(on[number][nic])
            model.add_implication(on[number][nic], used[nic])
        for workload, count in zip(known.workloads, counts, strict=True):
            model.add(sum(on[i][nic] for i, tenant in enumerate(tenants) if tenant.workload == workload) == count)
    for number in range(len(tenants)):
        model.add_exactly_one(on[number])
    for nic in range(1, first_fit.nics):
        model.add_implication(used[nic], used[nic - 1])
    model.minimize(sum(used))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    status = solver.solve(model)
    found = int(solver.objective_value) if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else first_fit.nics
    return PeerPlan(found, solver.best_objective_bound, time.monotonic() - began)


def highs_assignment(tenants: Sequence[Tenant], kind: NicKind, oracle: Oracle, seconds: float) -> PeerPlan:
    """A binary for every tenant and NIC, and for every co-location and NIC; a tenant needs one that it tolerates."""
    known = _known(tenants, kind, oracle)
    nics = first_fit_decreasing(tenants, kind, oracle, seconds).nics
    began = time.monotonic()
    co_locations, members = len(known.counts), len(tenants)
    column = np.array([known.workloads.index(tenant.workload) for tenant in tenants])
    bears = np.array([tenant.sla.max_drop or 0.0 for tenant in tenants])
    borne = (known.counts[:, column] > 0) & (known.drops[:, column] <= bears + 1e-9)
    workload = (column[None, :] == np.arange(len(known.workloads))[:, None]).astype(float)
    each = sparse.eye_array(nics)
    chosen = sparse.hstack([sparse.kron(each, np.ones((1, co_locations))), sparse.csr_array((nics, nics * members))])
    content = sparse.hstack([sparse.kron(each, -borne.T.astype(float)), sparse.eye_array(nics * members)])
    complete = sparse.hstack([sparse.kron(each, -known.counts.T.astype(float)), sparse.kron(each, workload)])
    placed = sparse.hstack(
        [sparse.csr_array((members, nics * co_locations)), sparse.kron(np.ones((1, nics)), sparse.eye_array(members))]
    )
    cost = np.concatenate([np.tile((np.arange(co_locations) > 0).astype(float), nics), np.zeros(nics * members)])
    solved = milp(
        cost,
        constraints=[
            LinearConstraint(chosen, 1, 1),
            LinearConstraint(content, -np.inf, 0),
            LinearConstraint(complete, 0, 0),
            LinearConstraint(placed, 1, 1),
        ],
        integrality=np.ones_like(cost),
        bounds=Bounds(0, 1),
        options={"time_limit": seconds},
    )
    found = nics if solved.x is None else round(float(cost @ solved.x))
    bound = getattr(solved, "mip_dual_bound", None)
    return PeerPlan(found, 0.0 if bound is None else float(bound), time.monotonic() - began)


DECREASING: dict[str, Peer] = {"first-fit decreasing": first_fit_decreasing, "best-fit decreasing": best_fit_decreasing}
ASSIGNMENT: dict[str, Peer] = {"CP-SAT assignment": cp_sat_assignment, "HiGHS assignment": highs_assignment}
