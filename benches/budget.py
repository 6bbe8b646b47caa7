"""SLA violations and wastage at budgets of 1, 2 and 5 %, on testbeds that nothing was tuned on.

Each testbed is profiled with 600 runs per NF and trained; then contention-aware with Tomur places 20 traces of 500
arrivals (defaults of `placer generate`, seeds 0 to 19) at each budget, and at no margin with the noise-free testbed
itself as the oracle. Wastage is against the proven optimum. The random testbeds are the first five seeds from 102 on;
101 has an accelerator that profiles cannot name. Profiles and models stay in build/budget and are used again.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.stats import t as student

from benches.bench import register
from placer.evaluate.evaluation import Evaluation, evaluate
from placer.evaluate.expected_violations import expected_violations
from placer.inputs.arrivals import read_arrivals
from placer.inputs.catalogue import Cards, open_catalogue
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.oracle import Oracle
from placer.optimal.trace_optimum import find_optimum
from placer.strategies.contention_aware import ContentionAware
from predictor import train
from profiler.profiling import profile
from profiler.testbeds import open_testbed
from profiles.profile import read_profile
from traces.arrivals import TABLE_2_NFS, Recipe, generate

DATA = Path("tests") / "data"
FOLDER = Path("build") / "budget"
RANDOM_SEEDS = (102, 103, 104, 105, 106)
TESTBEDS = {
    "simulated": "simulated",
    "simulated:contended": "simulated:contended",
    "foreign": f"exec:{sys.executable} {DATA / 'foreign_testbed.py'}",
    **{f"random {seed}": f"exec:{sys.executable} {DATA / 'random_testbed.py'} --seed {seed}" for seed in RANDOM_SEEDS},
}
"""SPECs by name."""

QUOTA = 600
TRACES, ARRIVALS = 20, 500
BUDGETS = (1.0, 2.0, 5.0)
TIME_LIMIT = 60.0
ORACLE = "oracle"


@register("budget")
def run() -> pd.DataFrame:
    """Per testbed and budget: wastage (%), and SLA violations (%) with their 95 % interval over traces."""
    rows = Parallel(n_jobs=2)(delayed(testbed_rows)(name, TESTBEDS[name]) for name in TESTBEDS)
    table = pd.DataFrame([row for of_testbed in rows for row in of_testbed])
    figures = ["wastage_pct", "violations_pct", "expected_pct"]
    means = table.groupby("budget_pct", sort=False)[figures].mean().reset_index().assign(testbed="mean")
    return pd.concat([table, means.round(2)]).fillna("")


def testbed_rows(name: str, spec: str) -> list[dict[str, object]]:
    """The rows of one testbed."""
    models = prepared(name, spec)
    with ExitStack() as stack:
        catalogue = open_catalogue(Cards(models=models, testbed=spec), stack, lambda message: None)
        truth = catalogue.truth() or ()
        results: dict[object, list[tuple[float, float, float]]] = {}
        for seed in range(TRACES):
            arrivals = trace(catalogue, seed)
            optimum = find_optimum(arrivals, catalogue, truth, time_limit=TIME_LIMIT)
            least = optimum.nics if optimum.proven else optimum.nics_lower_bound
            for budget, evaluation in evaluated(catalogue, truth, arrivals):
                results.setdefault(budget, []).append(
                    (
                        100.0 * (evaluation.nics / least - 1.0),
                        evaluation.violations_pct or 0.0,
                        evaluation.expected_violations_pct or 0.0,
                    )
                )
    return [_row(name, budget, np.array(of_budget)) for budget, of_budget in results.items()]


def profile_of(name: str) -> Path:
    """The folder of the testbed's profile."""
    return FOLDER / name.replace(" ", "-").replace(":", "-")


def prepared(name: str, spec: str, quota: int = QUOTA) -> Path:
    """The folder of the testbed's models, which are made where it is missing."""
    home = profile_of(name)
    models = home.with_name(f"{home.name}.models")
    if not models.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with open_testbed(spec) as testbed:
            profile(testbed, home, quota=quota)
        train(read_profile(home), ["tomur"]).save(models)
    return models


def trace(catalogue: Catalogue, seed: int) -> list[Arrival]:
    """The trace of that seed: the NFs of Tomur's experiments where the testbed hosts them, else all of it."""
    known = catalogue.models[0].nfs
    nfs = TABLE_2_NFS if set(TABLE_2_NFS) <= set(known) else tuple(known)
    text = "".join(generate(Recipe(count=ARRIVALS, nfs=nfs, seed=seed)))
    return read_arrivals(io.StringIO(text), catalogue.default_traffic, catalogue.check)


def evaluated(
    catalogue: Catalogue, truth: Sequence[Oracle], arrivals: Sequence[Arrival]
) -> Iterator[tuple[object, Evaluation]]:
    """The plans with the testbed as the oracle, and at each budget, evaluated."""
    plan = ContentionAware(catalogue, "tomur", oracles=truth).place(arrivals)
    yield ORACLE, evaluate(plan, catalogue.kinds, truth)
    for budget in BUDGETS:
        asked = replace(catalogue, budget_pct=budget)
        plan = ContentionAware(asked, "tomur").place(arrivals)
        expected = expected_violations(plan, catalogue, "tomur").mean_pct
        yield budget, replace(evaluate(plan, catalogue.kinds, truth), expected_violations_pct=expected)


def _row(name: str, budget: object, results: np.ndarray) -> dict[str, object]:
    """Means over traces; the interval is Student's, with a trace as the unit, since errors repeat within it."""
    wastage, violations, expected = results.mean(axis=0)
    half = float(student.ppf(0.975, len(results) - 1) * results[:, 1].std(ddof=1) / np.sqrt(len(results)))
    return {
        "testbed": name,
        "budget_pct": budget,
        "wastage_pct": round(float(wastage), 2),
        "violations_pct": round(float(violations), 2),
        "interval": f"{violations - half:.2f} to {violations + half:.2f}",
        "expected_pct": round(float(expected), 2),
    }
