"""What a comparison holds, as tables: the numbers behind every chart of its page."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from placer.evaluate.evaluation import Evaluation
from placer.model.arrival import Arrival
from placer.model.fleet import Fleet, NicKind
from placer.model.oracle import CoLocation, PredictorOracle
from placer.model.plan import Plan
from placer.model.replay import events_of
from placer.run import Comparison

STEPS = 400
"""Moments at most that a curve over time is drawn through."""

Seated = Mapping[str, tuple[NicKind, CoLocation]]
"""Per NIC its kind and its company."""


def name_of(evaluation: Evaluation) -> str:
    """The strategy, with its predictor where it has one."""
    plan = evaluation.plan
    return f"{plan.strategy}, {plan.predictor}" if plan.predictor else plan.strategy


def strategies_table(comparison: Comparison) -> pd.DataFrame:
    """A row per strategy: NICs, wastage, broken SLAs, rejected, cost."""
    against = "optimum" if comparison.optimum.proven else "bound"
    return pd.DataFrame(
        {
            "strategy": one.plan.strategy,
            "predictor": one.plan.predictor or "-",
            "NICs": one.nics,
            f"over {against}, %": comparison.wastage_pct(one),
            "SLAs broken": one.violated,
            "SLAs broken, %": one.violations_pct,
            "rejected": one.plan.rejected,
            "cost": one.cost,
        }
        for one in comparison.evaluations
    )


def nics_over_time(comparison: Comparison) -> pd.DataFrame:
    """`strategy`, `time` (s) and `nics` in use from then on; of many moments the fullest of each stretch of time."""
    curves = []
    for one in comparison.evaluations:
        curve = pd.DataFrame([(time, len(fleet.nics)) for time, fleet in _replayed(one.plan)], columns=["time", "nics"])
        stretch = max(-(-len(curve) // STEPS), 1)
        fullest = curve.groupby(curve.index // stretch)["nics"].idxmax()
        curves.append(curve.loc[fullest].assign(strategy=name_of(one)))
    return pd.concat(curves, ignore_index=True)


def fullest(plan: Plan) -> Seated:
    """Who is where when most NICs are in use, and of such moments most instances are there."""
    peak, seated = (0, 0), {}
    for _, fleet in _replayed(plan):
        if (len(fleet.nics), fleet.tenants) > peak:
            peak = len(fleet.nics), fleet.tenants
            seated = {nic.id: (nic.kind, nic.co_location) for nic in fleet.nics.values()}
    return seated


def occupancy(comparison: Comparison) -> pd.DataFrame:
    """`strategy`, `nf` and the `cores` that NFs of that name take of the average NIC at the fullest moment."""
    rows = []
    for one in comparison.evaluations:
        seated = fullest(one.plan)
        cores: Counter[str] = Counter()
        for kind, co_location in seated.values():
            for workload in co_location:
                cores[workload.nf] += kind.cores_of[workload.nf]
        rows += [(name_of(one), nf, taken / len(seated)) for nf, taken in sorted(cores.items())]
    return pd.DataFrame(rows, columns=["strategy", "nf", "cores"])


def co_locations(plan: Plan) -> pd.DataFrame:
    """A row per company at the fullest moment, most frequent first."""
    seen: Counter[tuple[str, str]] = Counter()
    for kind, co_location in fullest(plan).values():
        nfs = Counter(workload.nf for workload in co_location)
        seen[kind.model, " + ".join(f"{count} {nf}" if count > 1 else nf for nf, count in nfs.items())] += 1
    rows = [
        (co_location, model, nics)
        for (model, co_location), nics in sorted(seen.items(), key=lambda one: (-one[1], one[0]))
    ]
    return pd.DataFrame(rows, columns=["NFs that share a NIC", "NIC model", "NICs"])


def predicted_and_true(comparison: Comparison) -> pd.DataFrame:
    """`strategy`, `nf`, `predicted` and `true` throughput at its lowest, in % of alone; equal rows counted."""
    rows = []
    for one in comparison.evaluations:
        if one.plan.predictor is None or one.stays is None or one.expected is None:
            continue
        for placement in one.plan.placed:
            expected, true = one.expected[placement.arrival.id], one.stays[placement.arrival.id]
            rows.append(
                (
                    name_of(one),
                    placement.arrival.workload.nf,
                    100 * expected.throughput_kpps / expected.solo_kpps,
                    100 * true.throughput_kpps / true.solo_kpps,
                )
            )
    columns = ["strategy", "nf", "predicted", "true"]
    table = pd.DataFrame(rows, columns=columns).round(2)
    return table.groupby(columns, as_index=False, sort=False).size().rename(columns={"size": "instances"})


def drops(plan: Plan, oracles: Sequence[PredictorOracle]) -> pd.DataFrame:
    """`nf`, `resource` and the mean predicted `drop`, in % of alone, that contention for it alone costs."""
    told: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for kind in dict.fromkeys(kind for kind, _ in fullest(plan).values()):
        seated = [co_location for of, co_location in fullest(plan).values() if of is kind]
        for co_location, answers in zip(seated, oracles[kind.index].predictor.predict(seated), strict=True):
            for workload, answer in zip(co_location, answers, strict=True):
                for resource, drop in answer.drops.items():
                    told[workload.nf, resource].append(100 * drop / answer.solo_kpps)
    rows = [(nf, resource, sum(values) / len(values)) for (nf, resource), values in sorted(told.items())]
    return pd.DataFrame(rows, columns=["nf", "resource", "drop"])


def broken(evaluation: Evaluation) -> pd.DataFrame:
    """A row per instance whose SLA breaks, the worst first."""
    beside = defaultdict(list)
    for placement in evaluation.plan.placed:
        beside[placement.nic].append(placement.arrival)
    rows = []
    for placement in evaluation.plan.placed:
        arrival, stay = placement.arrival, (evaluation.stays or {})[placement.arrival.id]
        if not stay.sla_met:
            expected = (evaluation.expected or {}).get(arrival.id)
            required = arrival.sla.required_kpps(stay.solo_kpps)
            others = [one.workload.nf for one in beside[placement.nic] if one is not arrival and _meet(one, arrival)]
            rows.append(
                {
                    "instance": arrival.id,
                    "NF": arrival.workload.nf,
                    "NIC": placement.nic,
                    "shares it with": ", ".join(others),
                    "SLA asks, kpps": required,
                    "predicted, kpps": expected.throughput_kpps if expected else None,
                    "true, kpps": stay.throughput_kpps,
                    "short by, %": 100 * (1 - stay.throughput_kpps / required),
                }
            )
    return pd.DataFrame(rows).sort_values("short by, %", ascending=False, kind="stable")


def _meet(one: Arrival, other: Arrival) -> bool:
    first, then = sorted((one, other), key=lambda arrival: arrival.time)
    return first.departure is None or first.departure > then.time


def _replayed(plan: Plan) -> Iterator[tuple[float, Fleet]]:
    """Time and fleet after every event."""
    kinds = {placement.kind.index: placement.kind for placement in plan.placed if placement.kind}
    fleet = Fleet(tuple(kinds[index] for index in sorted(kinds)))
    for event in events_of([placement.arrival for placement in plan.placements]):
        placement = plan.placements[event.index]
        if placement.nic is None or placement.kind is None:
            continue
        if event.departs:
            fleet.remove(placement.arrival.id)
        else:
            fleet.place(
                placement.arrival.tenant, fleet.nics.get(placement.nic) or fleet.open(placement.kind, placement.nic)
            )
        yield event.time, fleet
