"""The optimum and its peers: naive assignment models for CP-SAT and HiGHS, first-fit and best-fit decreasing.

The peers know the throughputs in every co-location beforehand. The assignment models start from as many NICs as first
fit takes, stop after ten seconds, and then count with the best plan that they have; gaps are to the bound of ours.
"""

from __future__ import annotations

import csv
import resource
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benches.bench import register
from benches.optimal_peers import ASSIGNMENT, DECREASING, Peer
from placer.inputs.arrivals import read_arrivals
from placer.model.arrival import Arrival
from placer.model.fleet import NicKind
from placer.model.oracle import Oracle, TestbedOracle
from placer.optimal import Optimum, optimal_plan
from placer.optimal.packing import pack, read_vbp
from profiler.testbed import Testbed
from profiler.testbeds import open_testbed
from traces.arrivals import Recipe, generate

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
