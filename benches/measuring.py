"""Wastage and SLA violations by the number of further runs that arrivals choose (`placer profile --for`).

On the testbeds of `benches.budget`, with 600 runs per NF: 0, 50, 100 and 200 further runs are chosen by one trace, and
contention-aware with Tomur then places 20 others of 500 arrivals (seeds 0 to 19) at a budget of 1 %. The trace that
chooses is drawn as they are, with another seed. Each number of runs continues the one before. Wastage is against the
proven optimum, as is that of the same rule with the noise-free testbed as the oracle: what no measuring can avoid.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from benches.bench import register
from benches.budget import TESTBEDS, TIME_LIMIT, TRACES, prepared, trace
from placer.budget.rounds import MeasuringRounds, retrain
from placer.evaluate.evaluation import Evaluation, evaluate
from placer.inputs.catalogue import Cards, open_catalogue
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.oracle import Oracle
from placer.optimal.trace_optimum import find_optimum
from placer.strategies.contention_aware import ContentionAware
from profiler.further import profile_further
from profiler.profiling import journal_of

FOLDER = Path("build") / "measuring"
FURTHER = (0, 50, 100, 200)
BUDGET = 1.0
CHOOSING = 1000  # the seed of the trace that chooses the runs
ORACLE = "oracle"
PREDICTOR = "tomur"


@register("measuring")
def run() -> pd.DataFrame:
    """Per testbed and number of further runs: wastage (%), its standard error over traces, and SLA violations (%)."""
    rows = Parallel(n_jobs=2)(delayed(testbed_rows)(name, TESTBEDS[name]) for name in TESTBEDS)
    return with_means([row for of_testbed in rows for row in of_testbed])


def with_means(rows: Sequence[dict[str, object]]) -> pd.DataFrame:
    """The rows of all testbeds, then their means."""
    table = pd.DataFrame(rows)
    means = table.groupby("further_runs", sort=False)[["wastage_pct", "violations_pct"]].mean().reset_index()
    return pd.concat([table, means.round(2).assign(testbed="mean")]).fillna("")


def testbed_rows(name: str, spec: str, traces: int = TRACES) -> list[dict[str, object]]:
    """The rows of one testbed."""
    models = prepared(name, spec)
    with ExitStack() as stack:
        cards = Cards(models=models, testbed=spec, budget_pct=BUDGET)
        catalogue = open_catalogue(cards, stack, lambda message: None)
        truth = catalogue.truth() or ()
        judged = [trace(catalogue, seed) for seed in range(traces)]
        optima = [find_optimum(arrivals, catalogue, truth, time_limit=TIME_LIMIT) for arrivals in judged]
        least = [one.nics if one.proven else one.nics_lower_bound for one in optima]
        plans = [ContentionAware(catalogue, PREDICTOR, oracles=truth).place(arrivals) for arrivals in judged]
        rows = [_row(name, ORACLE, least, [evaluate(plan, catalogue.kinds, truth) for plan in plans])]
        for runs, measured in measured_catalogues(catalogue, models.with_suffix("")):
            rows.append(_row(name, runs, least, evaluated(measured, truth, judged)))
    return rows


def measured_catalogues(catalogue: Catalogue, profile: Path) -> Iterator[tuple[int, Catalogue]]:
    """The catalogue with models after each number of further runs on a copy of the profile."""
    out = FOLDER / profile.name
    FOLDER.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(profile, out)
    journal_of(out).unlink(missing_ok=True)
    arrivals, before = trace(catalogue, CHOOSING), 0
    for runs in FURTHER:
        if more := runs - before:
            rounds = MeasuringRounds(arrivals, catalogue, PREDICTOR, lambda message: None)
            (testbed,) = catalogue.testbeds
            assert testbed is not None
            after = profile_further(testbed, out, rounds.choose, key=f"to {runs}", most=more)
            catalogue = replace(catalogue, models=(retrain(catalogue.models[0], after, PREDICTOR),))
        before = runs
        yield runs, catalogue


def evaluated(catalogue: Catalogue, truth: Sequence[Oracle], judged: Sequence[Sequence[Arrival]]) -> list[Evaluation]:
    """The plans of the traces within the budget, evaluated."""
    plans = [ContentionAware(catalogue, PREDICTOR).place(arrivals) for arrivals in judged]
    return [evaluate(plan, catalogue.kinds, truth) for plan in plans]


def _row(name: str, runs: object, least: Sequence[int], evaluations: Sequence[Evaluation]) -> dict[str, object]:
    wastage = 100.0 * (np.array([one.nics for one in evaluations]) / np.array(least) - 1.0)
    violations = [one.violations_pct or 0.0 for one in evaluations]
    return {
        "testbed": name,
        "further_runs": runs,
        "wastage_pct": round(float(wastage.mean()), 2),
        "standard_error": round(float(wastage.std(ddof=1) / np.sqrt(len(wastage))), 2),
        "violations_pct": round(float(np.mean(violations)), 2),
    }
