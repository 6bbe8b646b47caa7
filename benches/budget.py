"""SLA violations and wastage at budgets of 1, 2 and 5 %, on testbeds that nothing was tuned on.

Each testbed is profiled with 600 runs per NF and trained; then Tomur places 20 traces of 500 arrivals (defaults of
`placer generate`, seeds 0 to 19) at each budget: `planned`, which knows all arrivals, and `contention-aware`, which
does not; `planned` also with 200 runs at a budget of 1 %; and contention-aware without a margin, with the noise-free
testbed itself as the oracle. Wastage is against the proven optimum. The random testbeds are the first five seeds from
102 on; 101 has an accelerator that profiles cannot name. The last testbed is `simulated:contended` with the models that
ship (400 runs per NF); it is not in the means. Profiles and models stay in build/budget and are used again.

Fewer traces, testbeds and strategies: `python -m benches budget --traces 3 --testbeds simulated --only planned`.
Results are appended to `--record FILE` (build/budget/results.jsonl) and not measured again: remove it after a change.
"""

import io
import json
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
from placer.budget.measured_plan import plan_by_measuring
from placer.evaluate.evaluation import Evaluation, evaluate
from placer.evaluate.expected_violations import expected_violations
from placer.inputs.arrivals import read_arrivals
from placer.inputs.catalogue import Cards, open_catalogue
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.oracle import Oracle
from placer.model.plan import Plan
from placer.optimal.planned.strategy import Planned
from placer.optimal.trace_optimum import find_optimum
from placer.strategies.contention_aware import ContentionAware
from predictor import train
from profiler.profiling import profile
from profiler.testbeds import open_testbed
from profiles import InputError
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
"""SPECs by name; those that a bench takes unasked."""

QUOTA = 600
TRACES, ARRIVALS = 20, 500
BUDGETS = (1.0, 2.0, 5.0)
TIME_LIMIT = 60.0
ORACLE, ONLINE, PLANNED, MEASURED = "oracle", "contention-aware", "planned", "planned measured"
RUNS = 200  # runs of the measured plan, whose budget is the smallest
STRATEGIES = (ORACLE, ONLINE, PLANNED, MEASURED)
SHIPPED = "contended as shipped"


@register("budget")
def run(
    traces: int = TRACES,
    testbeds: str = ",".join((*TESTBEDS, SHIPPED)),
    only: str = ",".join(STRATEGIES),
    record: Path = FOLDER / "results.jsonl",
    jobs: int = 2,
) -> pd.DataFrame:
    """Per testbed, strategy and budget: wastage (%), and SLA violations (%) with their 95 % interval over traces."""
    names, strategies = testbeds.split(","), only.split(",")
    Parallel(n_jobs=jobs)(delayed(_prepared)(name) for name in names)
    done = _recorded(record)
    asked = [(seed, name, strategy) for seed in range(traces) for name in names for strategy in strategies]
    missing = [one for one in asked if one not in {of for of, *_ in done}]
    for new in Parallel(n_jobs=jobs, return_as="generator")(delayed(_results)(*one) for one in missing):
        with record.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(result) + "\n" for result in new)
        done += [(tuple(of), budget, figures) for of, budget, figures in new]
    by_case: dict[tuple[str, str, object], list[tuple[float, ...]]] = {}
    for of, budget, figures in done:
        if of in asked:
            by_case.setdefault((of[1], of[2], budget), []).append(tuple(figures))
    table = pd.DataFrame([_row(*case, np.array(figures)) for case, figures in sorted(by_case.items(), key=str)])
    figures = ["wastage_pct", "violations_pct", "expected_pct"]
    of_all = table[table["testbed"] != SHIPPED]
    means = of_all.groupby(["strategy", "budget_pct"], sort=False)[figures].mean().reset_index().assign(testbed="mean")
    return pd.concat([table, means.round(2)]).fillna("")


Case = tuple[int, str, str]  # seed of the trace, testbed, strategy
Result = tuple[Case, object, tuple[float, ...]]
"""Case, budget (%); wastage, violations, expected violations (%) and seconds of the plan."""


def _recorded(record: Path) -> list[Result]:
    """The results in the file, which a later call continues."""
    if not record.exists():
        return []
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    return [(tuple(of), budget, tuple(figures)) for of, budget, figures in lines]


def spec_of(name: str) -> str:
    """The SPEC of a testbed. Raises InputError when its name is neither in TESTBEDS nor `random` and a seed."""
    if name in TESTBEDS:
        return TESTBEDS[name]
    kind, _, seed = name.partition(" ")
    if kind != "random" or not seed.isdecimal():
        raise InputError.of("--testbeds", f"'{name}' is not known", hint=f"{', '.join(TESTBEDS)}, or random SEED")
    return TESTBEDS[f"random {RANDOM_SEEDS[0]}"].replace(f"--seed {RANDOM_SEEDS[0]}", f"--seed {seed}")


def _prepared(name: str) -> None:
    if name != SHIPPED:
        prepared(name, spec_of(name))


def _results(seed: int, name: str, strategy: str) -> list[Result]:
    """The results of a strategy on a trace, at each budget."""
    shipped = name == SHIPPED
    spec = "simulated:contended" if shipped else spec_of(name)
    models = None if shipped else prepared(name, spec)
    results: list[Result] = []
    with ExitStack() as stack:
        catalogue = open_catalogue(Cards(models=models, testbed=spec), stack, lambda message: None)
        truth = catalogue.truth() or ()
        arrivals = trace(catalogue, seed)
        optimum = find_optimum(arrivals, catalogue, truth, time_limit=TIME_LIMIT)
        least = optimum.nics if optimum.proven else optimum.nics_lower_bound
        for _, budget, evaluation in evaluated(catalogue, truth, arrivals, [strategy]):
            figures = (
                100.0 * (evaluation.nics / least - 1.0),
                evaluation.violations_pct or 0.0,
                evaluation.expected_violations_pct or 0.0,
                evaluation.plan.seconds,
            )
            results.append(((seed, name, strategy), budget, figures))
            print(f"{name}, trace {seed}: {strategy} {budget}: {figures}", file=sys.stderr, flush=True)
    return results


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
    catalogue: Catalogue, truth: Sequence[Oracle], arrivals: Sequence[Arrival], only: Sequence[str]
) -> Iterator[tuple[str, object, Evaluation]]:
    """The plans with the testbed as the oracle, and of each strategy at each budget, evaluated."""
    if ORACLE in only:
        plan = ContentionAware(catalogue, "tomur", oracles=truth).place(arrivals)
        yield ORACLE, "-", evaluate(plan, catalogue.kinds, truth)
    for budget in BUDGETS:
        asked = replace(catalogue, budget_pct=budget)
        if ONLINE in only:
            yield ONLINE, budget, _judged(ContentionAware(asked, "tomur").place(arrivals), asked, truth)
        if PLANNED in only:
            yield PLANNED, budget, _judged(Planned(asked, "tomur").place(arrivals), asked, truth)
        if MEASURED in only and budget == min(BUDGETS):
            found = plan_by_measuring(arrivals, asked, "tomur", RUNS, seed=0)
            yield MEASURED, budget, _judged(found.plan, found.catalogue, truth)


def _judged(plan: Plan, catalogue: Catalogue, truth: Sequence[Oracle]) -> Evaluation:
    expected = expected_violations(plan, catalogue, "tomur").mean_pct
    return replace(evaluate(plan, catalogue.kinds, truth), expected_violations_pct=expected)


def _row(name: str, strategy: str, budget: object, results: np.ndarray) -> dict[str, object]:
    """Means over traces; the interval is Student's, with a trace as the unit, since errors repeat within it."""
    wastage, violations, expected, seconds = results.mean(axis=0)
    spread = results[:, 1].std(ddof=1) if len(results) > 1 else float("nan")
    half = float(student.ppf(0.975, max(len(results) - 1, 1)) * spread / np.sqrt(len(results)))
    return {
        "testbed": name,
        "strategy": strategy,
        "budget_pct": budget,
        "wastage_pct": round(float(wastage), 2),
        "violations_pct": round(float(violations), 2),
        "interval": f"{violations - half:.2f} to {violations + half:.2f}",
        "expected_pct": round(float(expected), 2),
        "seconds": round(float(seconds), 2),
    }
