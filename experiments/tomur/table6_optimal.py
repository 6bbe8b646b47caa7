"""Table 6: wastage and SLA violations of every strategy, compared with the proven optimum."""

from collections import defaultdict
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.accuracy import is_worse, verdict_on
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology.arrival_sequences import ARRIVAL_COUNT, LENGTH_NOTE, each_sequence, sequence
from experiments.tomur.methodology.simulated_card import CARD_SPECS
from placer.inputs.catalogue import Cards
from placer.model.catalogue import DEFAULT_BUDGET_PCT
from placer.model.plan import OPTIMAL
from placer.progress import Progress
from placer.run import RunRequest
from placer.run import run as compare

PUBLISHED_RESULTS = {
    ("monopolization", "-"): (196.3, 0.0),
    ("greedy", "-"): (19.0, 16.5),
    ("contention-aware", "slomo"): (-21.8, 24.4),
    ("contention-aware", "tomur"): (0.5, 1.9),
}
PUBLISHED_NFS_PER_NIC = {"monopolization": 1.0, OPTIMAL: 2.96}  # the second follows from the wastage of monopolization
Key = tuple[str, str, str]  # testbed, strategy, predictor


@dataclass(frozen=True)
class _Compared:
    """All strategies on one sequence and one card: NICs, wastage (%) and SLA violations (%) of each; the optimum."""

    scores: dict[Key, tuple[float, float, float]]
    proven: bool
    seconds: float


@experiment(PAPER, "table6-optimal", "Wastage against the proven optimum and SLA violations of every strategy")
def run(setting: Setting) -> Result:
    """Random sequences of 500 arrivals of nine NFs at default traffic, each with an SLA of 5 to 20 % drop."""
    scores: defaultdict[Key, list[tuple[float, float, float]]] = defaultdict(list)
    optima: list[_Compared] = []
    for of_sequence in each_sequence(setting, _compare):
        optima += of_sequence
        for compared in of_sequence:
            for key, score in compared.scores.items():
                scores[key].append(score)
    ordered = sorted(scores, key=lambda key: CARD_SPECS.index(key[0]))
    table = pd.DataFrame([_row(key, np.array(scores[key])) for key in ordered])
    seconds = [optimum.seconds for optimum in optima]
    return Result(
        table,
        (
            f"{SIMULATED_CARD}: all runs, training and ground truth, on both simulated cards.",
            f"{HARDWARE_CARD}: no runs; no card was available.",
        ),
        partial(_draw, table=table),
        (
            f"{len(optima) // len(CARD_SPECS)} sequences of {ARRIVAL_COUNT} arrivals on each card. "
            f"{sum(optimum.proven for optimum in optima)} of {len(optima)} optima are proven. Solving took "
            f"{np.median(seconds):.2f} s (median) and at most {max(seconds):.2f} s.",
            f"Contention-aware with Tomur places for the default budget of {DEFAULT_BUDGET_PCT:g} % SLA violations.",
            LENGTH_NOTE,
            "Our greedy also counts accelerator time and cache. The paper does not publish what its greedy counts. "
            "Wastage depends on how strongly the NFs of a card contend.",
            "Column nfs_per_nic: arrivals per NIC. The published number follows from the wastage of monopolization.",
            "Column std_dev: standard deviation of the wastage over the sequences.",
            "A plan with a wastage below zero uses fewer NICs than the optimum because it violates SLAs.",
        ),
    )


def _compare(seed: int) -> list[_Compared]:
    """Every strategy on one sequence, per card."""
    return [_compare_on(testbed, seed) for testbed in CARD_SPECS]


def _compare_on(testbed: str, seed: int) -> _Compared:
    request = RunRequest(arrivals=sequence(seed), cards=Cards(testbed=testbed), seed=seed)
    comparison = compare(request, Progress(quiet=True))
    scores = {
        (testbed, evaluation.plan.strategy, evaluation.plan.predictor or "-"): (
            float(evaluation.nics),
            comparison.wastage_pct(evaluation) or 0.0,
            evaluation.violations_pct or 0.0,
        )
        for evaluation in comparison.evaluations
    }
    return _Compared(scores, comparison.optimum.proven, comparison.optimum.seconds)


def _row(key: Key, values: np.ndarray) -> dict[str, object]:
    testbed, strategy, predictor = key
    nics, wastage, violations = values.mean(axis=0).tolist()
    theirs = PUBLISHED_RESULTS.get((strategy, predictor), (np.nan, np.nan))
    worse = [("wastage", abs(wastage), abs(theirs[0])), ("violations", violations, theirs[1])]
    return {
        "testbed": testbed,
        "strategy": strategy,
        "predictor": predictor,
        "nfs_per_nic": f"{ARRIVAL_COUNT / nics:.2f}",
        "wastage_pct": wastage,
        "std_dev": float(values[:, 1].std(ddof=1)) if len(values) > 1 else np.nan,
        "sla_violations_pct": violations,
        "published_nfs_per_nic": f"{PUBLISHED_NFS_PER_NIC[strategy]:.2f}" if strategy in PUBLISHED_NFS_PER_NIC else "-",
        "published_wastage_pct": theirs[0],
        "published_sla_violations_pct": theirs[1],
        "verdict": verdict_on(name for name, ours, their in worse if is_worse(ours, their)),
    }


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    """Bars of wastage and of violations: both cards, and the published ones."""
    of_cards = [table[table["testbed"] == testbed].reset_index(drop=True) for testbed in CARD_SPECS]
    first = of_cards[0]
    names = [f"{row.strategy}\n{row.predictor}".replace("-a", "-\na") for row in first.itertuples()]
    places, bar = np.arange(len(first)), 0.27
    for axes, column, label in zip(
        figure.subplots(1, 2),
        ("wastage_pct", "sla_violations_pct"),
        ("wastage, %", "SLA violations, % of NF instances"),
        strict=True,
    ):
        for number, (testbed, rows) in enumerate(zip(CARD_SPECS, of_cards, strict=True)):
            axes.bar(places + (number - 1) * bar, rows[column], bar, label=f"ours, {testbed}")
        axes.bar(places + bar, first[f"published_{column}"], bar, label="published", color="lightgray")
        axes.set_xticks(places, names, fontsize=7)
        axes.set_ylabel(label)
    figure.axes[0].legend(frameon=False)
