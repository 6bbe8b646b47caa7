"""The optimum and its peers: naive assignment models for CP-SAT and HiGHS, first-fit and best-fit decreasing.

The peers know the throughputs in every co-location beforehand. The assignment models start from as many NICs as first
fit takes, stop after ten seconds, and then count with the best plan that they have; gaps are to the bound of ours.
"""

import csv
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from ortools.sat.python import cp_model
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from benches.bench import register
from placer.inputs.arrivals import read_arrivals
from placer.model.arrival import Arrival
from placer.model.feasibility import feasible
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle, TestbedOracle
from placer.optimal import Optimum, optimal_plan
from placer.optimal.packing import pack, read_vbp
from profiler.testbed import Testbed
from profiler.testbeds import open_testbed
from profiles import CoLocation, Workload
from traces.arrivals import Recipe, generate


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


SEEDS = 100
MANY = 1_000_000
PEER_SEEDS = 3
PEER_SECONDS = 10.0
SHARED = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "vectorpack"
"""Published packing instances, if they are there: next to the project."""


@register("optimal")
def run() -> pd.DataFrame:
    """Per case and method: NICs, bound, gap (%), share proven (%), seconds of search, of queries and of reading."""
    rows: list[dict[str, object]] = []
    with open_testbed("simulated") as testbed:
        rows += _thirty(testbed)
        rows += _five_hundred(testbed)
        rows += _different_traffic(testbed)
        rows += _a_million(testbed)
    rows += _packings()
    return pd.DataFrame(rows).fillna("")


@dataclass(frozen=True, eq=False)
class BenchTrace:
    """Arrivals, the one kind of NIC, and the seconds that it took to read them."""

    arrivals: list[Arrival]
    kind: NicKind
    seconds: float


def _trace(testbed: Testbed, count: int, seed: int, traffic: str = "default") -> BenchTrace:
    described = testbed.describe()
    kind = NicKind(0, described.nic.model, described.nic.cores, {nf.name: nf.cores for nf in described.nfs})
    recipe = Recipe(count=count, seed=seed, traffic=traffic, attributes=dict(described.attributes))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "arrivals.csv"
        with file.open("w", encoding="utf-8") as lines:
            lines.writelines(generate(recipe))
        began = time.monotonic()
        arrivals = read_arrivals(str(file), described.traffic, lambda workload: ())
        return BenchTrace(arrivals, kind, time.monotonic() - began)


def _row(case: str, method: str, found: Sequence[Optimum], **more: object) -> dict[str, object]:
    seconds = [optimum.seconds for optimum in found]
    nics = float(np.mean([len(optimum.nics) for optimum in found]))
    bound = float(np.mean([optimum.lower_bound for optimum in found]))
    return {
        "case": case,
        "method": method,
        "nics": round(nics, 2),
        "bound": round(bound, 2),
        "gap_pct": round(100 * (nics / bound - 1), 4),
        "proven_pct": round(100 * float(np.mean([optimum.proven for optimum in found]))),
        "median_s": round(float(np.median(seconds)), 3),
        "worst_s": round(max(seconds), 3),
        "queries_s": round(max(optimum.oracle_seconds for optimum in found), 3),
        **more,
    }


def _thirty(testbed: Testbed) -> Iterator[dict[str, object]]:
    """Few enough for the assignment models."""
    oracle = TestbedOracle(testbed)
    traces = [_trace(testbed, 30, seed) for seed in range(PEER_SEEDS)]
    yield from _with_peers(f"30 default traffic, {PEER_SEEDS} seeds", traces, oracle, DECREASING | ASSIGNMENT)


def _five_hundred(testbed: Testbed) -> Iterator[dict[str, object]]:
    """The first trace queries the testbed; then its throughputs are known."""
    oracle = TestbedOracle(testbed)
    traces = [_trace(testbed, 500, seed) for seed in range(SEEDS)]
    case = f"500 default traffic, {SEEDS} seeds"
    yield from _with_peers(case, traces, oracle, DECREASING)
    yield _row(case, "placer with HiGHS", [_solved(trace, oracle, solver="highs") for trace in traces])
    slow = {"CP-SAT assignment": ASSIGNMENT["CP-SAT assignment"]}
    yield from _with_peers("500 default traffic, 1 seed", traces[:1], oracle, slow)


def _with_peers(
    case: str, traces: Sequence[BenchTrace], oracle: Oracle, peers: Mapping[str, Peer]
) -> Iterator[dict[str, object]]:
    found = [_solved(trace, oracle) for trace in traces]
    yield _row(case, "placer", found)
    bound = float(np.mean([optimum.lower_bound for optimum in found]))
    for name, peer in peers.items():
        plans = [peer([a.tenant for a in one.arrivals], one.kind, oracle, PEER_SECONDS) for one in traces]
        nics = float(np.mean([plan.nics for plan in plans]))
        yield {
            "case": case,
            "method": name,
            "nics": round(nics, 2),
            "bound": round(float(np.mean([plan.bound for plan in plans])), 2),
            "gap_pct": round(100 * (nics / bound - 1), 4),
            "proven_pct": round(100 * float(np.mean([plan.bound > plan.nics - 1 for plan in plans]))),
            "median_s": round(float(np.median([plan.seconds for plan in plans])), 3),
            "worst_s": round(max(plan.seconds for plan in plans), 3),
        }


def _solved(trace: BenchTrace, oracle: Oracle, solver: str = "cp-sat") -> Optimum:
    return optimal_plan([arrival.tenant for arrival in trace.arrivals], [trace.kind], [oracle], solver=solver)


def _different_traffic(testbed: Testbed) -> Iterator[dict[str, object]]:
    traces = [_trace(testbed, 500, seed, "unique") for seed in range(3)]
    found = [_solved(trace, TestbedOracle(testbed)) for trace in traces]
    yield _row("500 all different traffic, 3 seeds", "placer", found)


def _a_million(testbed: Testbed) -> Iterator[dict[str, object]]:
    trace = _trace(testbed, MANY, 0)
    found = _solved(trace, TestbedOracle(testbed))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    slower = _solved(trace, TestbedOracle(testbed), solver="highs")
    case = f"{MANY:,} default traffic"
    yield _row(case, "placer", [found], reading_s=round(trace.seconds, 1), peak_mb=round(peak))
    yield _row(case, "placer with HiGHS", [slower])


def _packings() -> Iterator[dict[str, object]]:
    """The published instances by number of items: how many are proven, and how many above the best heuristic."""
    if not SHARED.is_dir():
        return
    with (SHARED / "optima.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    packings = {row["instance"]: read_vbp(SHARED / f"{row['instance']}.vbp") for row in rows}
    for case, small in (("packings up to 60 items", True), ("packings of 120 items", False)):
        results = [
            (pack(packings[row["instance"]]), int(row["optimum"]), int(row["best_heuristic_published"]))
            for row in rows
            if (len(packings[row["instance"]].sizes) <= 60) is small
        ]
        seconds = [packed.seconds for packed, *_ in results]
        yield {
            "case": f"{len(results)} {case}",
            "method": "placer",
            "nics": sum(len(packed.assignment) for packed, *_ in results),
            "bound": sum(packed.lower_bound for packed, *_ in results),
            "gap_pct": round(
                100 * (sum(len(p.assignment) for p, *_ in results) / sum(o for _, o, _ in results) - 1), 4
            ),
            "proven_pct": round(100 * float(np.mean([packed.proven for packed, *_ in results]))),
            "median_s": round(float(np.median(seconds)), 3),
            "worst_s": round(max(seconds), 3),
            "above_published": sum(len(packed.assignment) > published for packed, _, published in results),
        }
        yield {
            "case": f"{len(results)} {case}",
            "method": "best of 100 published heuristics",
            "nics": sum(published for *_, published in results),
            "gap_pct": round(100 * (sum(p for *_, p in results) / sum(o for _, o, _ in results) - 1), 4),
        }
