"""A comparison as tables: the numbers behind every chart of its page."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import inf

import pandas as pd

from placer.evaluate.evaluation import Evaluation
from placer.explain.waste import Waste
from placer.model.arrival import Arrival
from placer.model.fleet import Fleet, NicKind
from placer.model.oracle import CoLocation, PredictorOracle
from placer.model.plan import Plan
from placer.model.replay import replay_plan
from placer.report.text.recommendation import plan_name
from placer.report.wastage import (
    MARK,
    costs_differ,
    is_marked,
)
from placer.run import Comparison

STEPS = 400
"""Points at most that a curve over time has."""

NicStates = Mapping[str, tuple[NicKind, CoLocation]]
"""Per NIC its kind and its co-location."""


def strategies_table(comparison: Comparison) -> pd.DataFrame:
    """A row per strategy: NICs, wastage, SLA violations, rejected arrivals, cost; `note` marks unfair comparisons."""
    costs = costs_differ(comparison)
    return pd.DataFrame(
        {
            "strategy": one.plan.strategy,
            "predictor": one.plan.predictor or "-",
            "NICs": one.nics,
            "wastage, %": comparison.wastage_pct(one),
            "note": f"{MARK} not comparable" if is_marked(comparison, one) else None,
            "SLA violations": one.violated,
            "SLA violations, %": one.violations_pct,
            "expected, %": one.expected_violations_pct,
            "rejected": one.plan.rejected,
            "cost": one.cost,
            **({"cost wastage, %": comparison.cost_wastage_pct(one)} if costs else {}),
        }
        for one in comparison.plans
    )


def nics_over_time(comparison: Comparison) -> pd.DataFrame:
    """`strategy`, `time` (s) and `nics` in use from then on; of many moments, the maximum of each interval."""
    curves = [pd.DataFrame(columns=["time", "nics", "strategy"])]
    for one in comparison.plans:
        fleet = _empty_fleet(one.plan)
        moments = [(time, len(fleet.nics)) for time, _ in replay_plan(one.plan, fleet)]
        curve = pd.DataFrame(moments, columns=["time", "nics"])
        interval = max(-(-len(curve) // STEPS), 1)
        maxima = curve.groupby(curve.index // interval)["nics"].idxmax()
        curves.append(curve.loc[maxima].assign(strategy=plan_name(one)))
    return pd.concat([curve for curve in curves if len(curve)] or curves[:1], ignore_index=True)


def peak_co_locations(plan: Plan) -> NicStates:
    """Kind and co-location of every NIC when most NICs are in use, and of such moments when most instances run."""
    fleet = _empty_fleet(plan)
    peak: tuple[int, int] = (0, 0)
    nics: NicStates = {}
    for _ in replay_plan(plan, fleet):
        if (len(fleet.nics), fleet.tenants) > peak:
            peak = len(fleet.nics), fleet.tenants
            nics = {nic.id: (nic.kind, nic.co_location) for nic in fleet.nics.values()}
    return nics


def occupancy(comparison: Comparison) -> pd.DataFrame:
    """`strategy`, `nf` and the `cores` that NFs of that name use on the average NIC at the peak."""
    rows = []
    for one in comparison.plans:
        nics = peak_co_locations(one.plan)
        cores: Counter[str] = Counter()
        for kind, co_location in nics.values():
            for workload in co_location:
                cores[workload.nf] += kind.cores_of[workload.nf]
        rows += [(plan_name(one), nf, used / len(nics)) for nf, used in sorted(cores.items())]
    return pd.DataFrame(rows, columns=["strategy", "nf", "cores"])


def co_locations(plan: Plan) -> pd.DataFrame:
    """A row per co-location at the peak, the most frequent first."""
    seen: Counter[tuple[str, str]] = Counter()
    for kind, co_location in peak_co_locations(plan).values():
        nfs = Counter(workload.nf for workload in co_location)
        seen[kind.model, " + ".join(f"{count} {nf}" if count > 1 else nf for nf, count in nfs.items())] += 1
    rows = [
        (co_location, model, nics)
        for (model, co_location), nics in sorted(seen.items(), key=lambda one: (-one[1], one[0]))
    ]
    return pd.DataFrame(rows, columns=["NFs that share a NIC", "NIC model", "NICs"])


def predicted_and_true(comparison: Comparison) -> pd.DataFrame:
    """`strategy`, `nf`, lowest `predicted` and `true` throughput in % of alone, and how many `instances` are equal."""
    rows = []
    for one in comparison.plans:
        if one.plan.predictor is None or one.stays is None or one.expected is None:
            continue
        for placement in one.plan.placed:
            expected, true = one.expected[placement.arrival.id], one.stays[placement.arrival.id]
            rows.append(
                (
                    plan_name(one),
                    placement.arrival.workload.nf,
                    100 * expected.throughput_kpps / (expected.solo_kpps or inf),
                    100 * true.throughput_kpps / (true.solo_kpps or inf),
                )
            )
    columns = ["strategy", "nf", "predicted", "true"]
    table = pd.DataFrame(rows, columns=columns).round(2)
    return table.groupby(columns, as_index=False, sort=False).size().rename(columns={"size": "instances"})


def drops(plan: Plan, oracles: Sequence[PredictorOracle]) -> pd.DataFrame:
    """`nf`, `resource` and the mean predicted `drop` (% of alone) that contention for it alone causes at the peak."""
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    nics = peak_co_locations(plan).values()
    for kind in dict.fromkeys(kind for kind, _ in nics):
        of_kind = [co_location for other, co_location in nics if other is kind]
        for co_location, answers in zip(of_kind, oracles[kind.index].predictor.predict(of_kind), strict=True):
            for workload, answer in zip(co_location, answers, strict=True):
                for resource, drop in answer.drops.items():
                    found[workload.nf, resource].append(100 * drop / answer.solo_kpps)
    rows = [(nf, resource, sum(values) / len(values)) for (nf, resource), values in sorted(found.items())]
    return pd.DataFrame(rows, columns=["nf", "resource", "drop"])


def idle_capacity(waste: Waste) -> pd.DataFrame:
    """`cause`, idle capacity in `NICs` and as `pct` of all NICs in use."""
    rows = [(cause, idle, 100 * idle / waste.nics) for cause, idle in waste.idle.items()]
    return pd.DataFrame(rows, columns=["cause", "NICs", "pct"])


VIOLATION_COLUMNS = (
    "instance", "NF", "NIC", "co-located with", "required, kpps", "predicted, kpps", "true, kpps", "short by, %",
)  # fmt: skip


def violations(evaluation: Evaluation) -> pd.DataFrame:
    """A row per instance whose SLA is violated, the worst first."""
    tenants = defaultdict(list)
    for placement in evaluation.plan.placed:
        tenants[placement.nic].append(placement.arrival)
    rows = []
    for placement in evaluation.plan.placed:
        arrival, stay = placement.arrival, (evaluation.stays or {}).get(placement.arrival.id)
        if stay is None or stay.sla_met:
            continue
        expected = (evaluation.expected or {}).get(arrival.id)
        required = arrival.sla.required_kpps(stay.solo_kpps)
        others = [one.workload.nf for one in tenants[placement.nic] if one is not arrival and _overlap(one, arrival)]
        rows.append(
            (
                arrival.id,
                arrival.workload.nf,
                placement.nic,
                ", ".join(others),
                required,
                expected.throughput_kpps if expected else None,
                stay.throughput_kpps,
                100 * (1 - stay.throughput_kpps / required),
            )
        )
    table = pd.DataFrame(rows, columns=list(VIOLATION_COLUMNS))
    return table.sort_values("short by, %", ascending=False, kind="stable")


def _overlap(one: Arrival, other: Arrival) -> bool:
    """Whether both run at some moment."""
    first, second = sorted((one, other), key=lambda arrival: arrival.time)
    return first.departure is None or first.departure > second.time


def _empty_fleet(plan: Plan) -> Fleet:
    kinds = {placement.kind.index: placement.kind for placement in plan.placed if placement.kind}
    return Fleet([kinds[index] for index in sorted(kinds)])
