"""Table 6: wastage and SLA violations of every strategy, compared with the proven optimum."""

from __future__ import annotations

from collections import defaultdict
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.accuracy import is_worse, verdict_on
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE, PAPER, SIMULATED
from experiments.tomur.methodology.arrival_sequences import ARRIVALS, each_sequence, sequence
from placer.progress import Progress
from placer.run import Comparison, RunRequest
from placer.run import run as compare

PUBLISHED = {
    ("monopolization", "-"): (196.3, 0.0),
    ("greedy", "-"): (19.0, 16.5),
    ("contention-aware", "slomo"): (-21.8, 24.4),
    ("contention-aware", "tomur"): (0.5, 1.9),
}


@experiment(PAPER, "table6-optimal", "Wastage against the proven optimum and SLA violations of every strategy")
def run(setting: Setting) -> Result:
    """Random sequences of 500 arrivals of nine NFs at default traffic, each with an SLA of 5 to 20 % drop."""
    scores: defaultdict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    optima = []
    for comparison in each_sequence(setting, _compared):
        optima.append(comparison.optimum)
        for one in comparison.evaluations:
            score = comparison.wastage_pct(one) or 0.0, one.violations_pct or 0.0
            scores[one.plan.strategy, one.plan.predictor or "-"].append(score)
    table = pd.DataFrame([_row(*key, np.array(values)) for key, values in scores.items()])
    seconds = [optimum.seconds for optimum in optima]
    return Result(
        table,
        (f"{SIMULATED}: all runs, training and ground truth.", f"{HARDWARE}: no runs; no card was available."),
        partial(_draw, table=table),
        (
            f"{len(optima)} sequences of {ARRIVALS} arrivals. {sum(optimum.proven for optimum in optima)} optima are "
            f"proven. Solving took {np.median(seconds):.2f} s (median) and at most {max(seconds):.2f} s. The mean "
            f"optimum is {np.mean([optimum.nics for optimum in optima]):.1f} NICs.",
            "Our greedy also counts accelerator time and cache, so it violates few SLAs but needs more NICs. The paper "
            "does not publish what its greedy counts. Wastage depends on how strongly the NFs of a card contend.",
            "Column std_dev: standard deviation of the wastage over the sequences.",
            "A plan with a wastage below zero uses fewer NICs than the optimum because it violates SLAs.",
        ),
    )


def _compared(seed: int) -> Comparison:
    return compare(RunRequest(arrivals=sequence(seed), seed=seed), Progress(quiet=True))


def _row(strategy: str, predictor: str, values: np.ndarray) -> dict[str, object]:
    wastage, violations = values.mean(axis=0).tolist()
    theirs = PUBLISHED.get((strategy, predictor), (np.nan, np.nan))
    worse = [("wastage", abs(wastage), abs(theirs[0])), ("violations", violations, theirs[1])]
    return {
        "strategy": strategy,
        "predictor": predictor,
        "wastage_pct": wastage,
        "std_dev": float(values[:, 0].std(ddof=1)) if len(values) > 1 else np.nan,
        "sla_violations_pct": violations,
        "published_wastage_pct": theirs[0],
        "published_sla_violations_pct": theirs[1],
        "verdict": verdict_on(name for name, ours, their in worse if is_worse(ours, their)),
    }


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    """Bars of wastage and of violations, ours next to the published ones."""
    names = [f"{row.strategy}\n{row.predictor}".replace("-a", "-\na") for row in table.itertuples()]
    places = np.arange(len(table))
    for axes, column, label in zip(
        figure.subplots(1, 2),
        ("wastage_pct", "sla_violations_pct"),
        ("wastage, %", "SLA violations, % of NF instances"),
        strict=True,
    ):
        axes.bar(places - 0.2, table[column], 0.4, label="ours, simulated BlueField-2")
        axes.bar(places + 0.2, table[f"published_{column}"], 0.4, label="published", color="lightgray")
        axes.set_xticks(places, names, fontsize=7)
        axes.set_ylabel(label)
    figure.axes[0].legend(frameon=False)
