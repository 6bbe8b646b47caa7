"""Loads and cores: how well capacities are predicted, and how many NICs a trace needs that says what it is offered.

Each testbed is profiled with 600 runs per NF over the numbers of cores that it gives. Accuracy is of co-locations that
were not trained on: 1 to 8 NFs at 5 to 110 % of what each carries alone, on as many cores as are drawn, half at default
and half at random traffic. Placement is of 500 instances whose rates are log-uniform from 5 to 100 % of what two cores
carry: `saturated` is the optimum as if each were offered more than it can carry on its default cores, with the rate as
its SLA; the other rows know the rates and choose the cores. Wastage is against the bound of cores and line rate.

Fewer: `python -m benches loads --testbeds simulated --traces 1`. Profiles and models stay in build/loads.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pandas as pd

from benches.bench import register
from benches.budget import TESTBEDS, spec_of
from placer.evaluate.evaluation import evaluate
from placer.inputs.catalogue import Cards, open_catalogue
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.sla import Sla
from placer.optimal.planned.strategy import Planned
from placer.optimal.trace_optimum import find_optimum
from placer.strategies import STRATEGIES
from placer.strategies.contention_aware import ContentionAware
from predictor import train
from profiler.profiling import profile
from profiler.testbeds import open_testbed
from profiles import TrafficProfile, Workload
from profiles.profile import read_profile
from traces.arrivals import TABLE_2_NFS

FOLDER = Path("build") / "loads"
PACED = [name for name in TESTBEDS if name != "foreign"]  # testbeds that offer NFs a rate
QUOTA = 600
PREDICTOR = "tomur"
INSTANCES, CO_LOCATIONS = 500, 400
LOADS, SHARES = (0.05, 1.0), (0.05, 1.1)
"""Of what two cores carry, in traces; of what its own cores carry, where accuracy is measured."""
MOST_MEMBERS = 8
TIME_LIMIT = 60.0


@register("loads")
def run(testbeds: str = ",".join(PACED), traces: int = 2) -> pd.DataFrame:
    """Per testbed the accuracy, and per trace and strategy NICs, wastage (%), SLA violations (%) and seconds."""
    rows: list[dict[str, object]] = []
    for name in testbeds.split(","):
        with ExitStack() as stack:
            cards = Cards(models=prepared(name), testbed=spec_of(name), budget_pct=2.0)
            catalogue = open_catalogue(cards, stack, lambda message: None)
            rows.append(_accuracy(name, catalogue))
            print(rows[-1], file=sys.stderr, flush=True)
            for seed in range(traces):
                for row in _placed(name, catalogue, seed):
                    rows.append(row)
                    print(row, file=sys.stderr, flush=True)
    return pd.DataFrame(rows).fillna("")


def prepared(name: str) -> Path:
    """The models of a testbed, profiled and trained where they are not there yet."""
    home = FOLDER / name.replace(" ", "-").replace(":", "-")
    models = home.with_name(f"{home.name}.models")
    if not models.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with open_testbed(spec_of(name)) as testbed:
            counts = sorted({count for nf in testbed.describe().nfs for count in nf.counts})
            profile(testbed, home, quota=QUOTA, cores=counts)
        train(read_profile(home), [PREDICTOR]).save(models)
    return models


def _accuracy(name: str, catalogue: Catalogue) -> dict[str, object]:
    """Mean absolute errors of capacities and of what is carried, %, by the testbed without noise."""
    kind, models, testbed = catalogue.kinds[0], catalogue.models[0], catalogue.testbeds[0]
    assert testbed is not None
    predictor, rng = models.predictors[PREDICTOR], np.random.default_rng(7)
    asked: list[tuple[tuple[Workload, ...], int]] = []
    while len(asked) < CO_LOCATIONS:
        drawn = []
        for nf in rng.choice(models.nfs, int(rng.integers(1, MOST_MEMBERS + 1))):
            counts = kind.core_counts[str(nf)]
            traffic = models.default_traffic if rng.random() < 0.5 else _random_traffic(models.testbed, rng)
            drawn.append(Workload(str(nf), traffic, cores=int(rng.choice(counts))))
        if kind.cores_taken(drawn) <= kind.cores:
            alone = [
                run.measurements[0].throughput_kpps
                for run in testbed.run_many([[workload] for workload in drawn], noise=False)
            ]
            loads = [
                replace(workload, rate_kpps=float(kpps * rng.uniform(*SHARES)))
                for workload, kpps in zip(drawn, alone, strict=True)
            ]
            asked.append((tuple(loads), int(rng.integers(len(loads)))))
    probes = [
        tuple(replace(load, rate_kpps=inf) if place == at else load for place, load in enumerate(loads))
        for loads, at in asked
    ]
    capacity, carried = [], []
    measured = testbed.run_many([*probes, *(loads for loads, _ in asked)], noise=False)
    predicted = predictor.throughput([*probes, *(loads for loads, _ in asked)])
    for number, (together, at) in enumerate(asked):
        capacity.append(predicted[number][at] / measured[number].measurements[at].throughput_kpps - 1.0)
        both = zip(together, predicted[len(asked) + number], measured[len(asked) + number].measurements, strict=True)
        carried += [min(kpps, load.rate_kpps) / found.throughput_kpps - 1.0 for load, kpps, found in both]
    return {
        "testbed": name,
        "capacity_error_pct": round(100.0 * float(np.abs(capacity).mean()), 2),
        "carried_error_pct": round(100.0 * float(np.abs(carried).mean()), 2),
    }


def _random_traffic(described: object, rng: np.random.Generator) -> TrafficProfile:
    values = {}
    for attribute in ("flows", "packet_size", "mtbr"):
        low, high = described.range_of(attribute)  # type: ignore[attr-defined]
        values[attribute] = float(round(np.exp(rng.uniform(np.log(max(low, 1.0)), np.log(max(high, 1.0))))))
    return TrafficProfile.from_mapping(values)


def arrivals_of(catalogue: Catalogue, seed: int) -> list[Arrival]:
    """Instances with rates, drawn for the NFs that the models have."""
    models, rng = catalogue.models[0], np.random.default_rng([seed, 44])
    nfs = TABLE_2_NFS if set(TABLE_2_NFS) <= set(models.nfs) else models.nfs
    two = {nf: Workload(nf, models.default_traffic, cores=2) for nf in nfs}
    most = dict(zip(nfs, models.predictors[PREDICTOR].solo([two[nf] for nf in nfs]).tolist(), strict=True))
    arrivals = []
    for number, nf in enumerate(rng.choice(nfs, INSTANCES)):
        rate = float(f"{most[str(nf)] * np.exp(rng.uniform(*np.log(LOADS))):.4g}")
        workload = Workload(str(nf), models.default_traffic, rate)
        arrivals.append(Arrival(str(number), float(number), workload, Sla(max_drop=0.0)))
    return arrivals


def _placed(name: str, catalogue: Catalogue, seed: int) -> Iterator[dict[str, object]]:
    arrivals, truth = arrivals_of(catalogue, seed), catalogue.truth() or ()
    best = find_optimum(arrivals, catalogue, truth, time_limit=TIME_LIMIT)
    today = [
        replace(arrival, workload=arrival.workload.saturated, sla=Sla(min_kpps=arrival.workload.rate_kpps * 0.995))
        for arrival in arrivals
    ]
    saturated = find_optimum(today, catalogue, truth, time_limit=TIME_LIMIT)
    known = {"testbed": name, "trace": seed, "bound": best.nics_lower_bound}
    yield {**known, "strategy": "saturated", "nics": saturated.nics, "rejected": saturated.plan.rejected}
    plans = {"optimal": best.plan, "greedy": STRATEGIES.find("greedy")(catalogue).place(arrivals)}
    plans |= {"planned": Planned(catalogue, PREDICTOR).place(arrivals)}
    plans |= {"contention-aware": ContentionAware(catalogue, PREDICTOR).place(arrivals)}
    for strategy, plan in plans.items():
        found = evaluate(plan, catalogue.kinds, truth)
        yield {
            **known,
            "strategy": strategy,
            "nics": found.nics,
            "rejected": plan.rejected,
            "wastage_pct": round(100.0 * (found.nics / best.nics_lower_bound - 1.0), 1),
            "violations_pct": round(found.violations_pct or 0.0, 2),
            "seconds": round(plan.seconds, 1),
        }
