"""The budget's curve: wastage and SLA violations over the budget of SLA violations that placement is asked to keep. The
paper places without a budget: its 0.5 % wastage and 1.9 % SLA violations are one point, nearest to a budget of 2 %."""

from collections import defaultdict
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.accuracy import is_worse, verdict_on
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology.arrival_sequences import (
    ARRIVAL_COUNT,
    LENGTH_NOTE,
    SEQUENCE_COUNT,
    each_sequence,
    fleet_of,
)
from experiments.tomur.methodology.simulated_card import CARD_SPECS
from placer.evaluate.expected_violations import expected_violations
from placer.strategies.contention_aware import ContentionAware

BUDGETS_PCT = (0.5, 1.0, 2.0, 5.0, 10.0)
JUDGED_PREDICTOR = "tomur"
PUBLISHED_BY_BUDGET = {2.0: (0.5, 1.9)}
"""Wastage and SLA violations (%) with Tomur, next to the budget that they are nearest to."""


class Score(NamedTuple):
    """One plan: wastage and SLA violations (%), the violations that were expected (%), and the risk it was placed at.
    With the noise-free oracle nothing is expected (NaN)."""

    wastage_pct: float
    violations_pct: float
    expected_pct: float = np.nan
    risk: float = np.nan


Key = tuple[str, float | None]  # testbed, and budget (%); None stands for exact throughputs


@experiment(PAPER, "budget", "Wastage and SLA violations over the budget of SLA violations")
def run(setting: Setting) -> Result:
    """The sequences of table 6, placed by look-ahead with Tomur at five budgets, and with exact throughputs."""
    scores: defaultdict[Key, list[Score]] = defaultdict(list)
    for of_sequence in each_sequence(setting, _scores):
        for key, score in of_sequence.items():
            scores[key].append(score)
    table = pd.DataFrame(
        [
            _row(testbed, budget, np.array(scores[testbed, budget]), np.array(scores[testbed, None]))
            for testbed in CARD_SPECS
            for budget in BUDGETS_PCT
        ]
    )
    return Result(
        table,
        (
            f"{SIMULATED_CARD}: all runs, training and ground truth, on both simulated cards.",
            f"{HARDWARE_CARD}: no runs; no card was available.",
        ),
        partial(_draw, table=table),
        (
            f"{setting.count(SEQUENCE_COUNT)} sequences of {ARRIVAL_COUNT} arrivals on each card. Wastage is relative "
            "to the proven optimum.",
            LENGTH_NOTE,
            "Column noise_free_wastage_pct: the wastage of the same rule with the card's exact throughputs. It places "
            "without SLA violations; what it wastes is due to placing NFs one by one.",
            "Column expected_violations_pct: what the predictor's own errors let expect. Placement chooses the largest "
            "risk at which this, with a reserve, stays within the budget.",
            "Column std_error: standard error of the mean SLA violations over the sequences.",
            "Column kept_pct: the share of sequences whose SLA violations stay within the budget.",
            "Column risk: the median of the risks that were chosen.",
            "The published numbers were measured without a budget; they stand next to the budget that they are nearest "
            "to.",
        ),
    )


def _scores(seed: int, count: int = ARRIVAL_COUNT) -> dict[Key, Score]:
    """One sequence on both cards: at every budget, and with exact throughputs."""
    scores: dict[Key, Score] = {}
    for testbed in CARD_SPECS:
        fleet = fleet_of(testbed)
        arrivals = fleet.arrivals(seed, count)
        fewest = fleet.fewest_nics(arrivals)
        exact = ContentionAware(fleet.catalogue, oracles=fleet.truth).place(arrivals)
        scores[testbed, None] = Score(*fleet.score(exact, fewest))
        for budget in BUDGETS_PCT:
            catalogue = replace(fleet.catalogue, budget_pct=budget)
            plan = ContentionAware(catalogue, JUDGED_PREDICTOR).place(arrivals)
            expected = expected_violations(plan, catalogue, JUDGED_PREDICTOR).mean_pct
            risk = np.nan if plan.risk is None else plan.risk
            scores[testbed, budget] = Score(*fleet.score(plan, fewest), expected, risk)
    return scores


def _row(testbed: str, budget: float, values: np.ndarray, exact: np.ndarray) -> dict[str, object]:
    """A row of the table; of `values` and `exact`, each row is the `Score` of one sequence."""
    wastage, violations, expected, _ = values.mean(axis=0).tolist()
    theirs = PUBLISHED_BY_BUDGET.get(budget, (np.nan, np.nan))
    worse = [("wastage", wastage, theirs[0]), ("violations", violations, theirs[1])]
    spread = float(values[:, 1].std(ddof=1)) if len(values) > 1 else np.nan
    return {
        "testbed": testbed,
        "budget_pct": budget,
        "risk": f"{np.median(values[:, 3]):g}",
        "wastage_pct": wastage,
        "noise_free_wastage_pct": float(exact[:, 0].mean()),
        "sla_violations_pct": violations,
        "std_error": spread / len(values) ** 0.5,
        "expected_violations_pct": expected,
        "kept_pct": 100.0 * float((values[:, 1] <= budget).mean()),
        "published_wastage_pct": theirs[0],
        "published_sla_violations_pct": theirs[1],
        "verdict": verdict_on(name for name, ours, their in worse if is_worse(ours, their)),
    }


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    """Wastage beside that with exact throughputs, and SLA violations beside the expected ones, over the budget."""
    wastage, violations = figure.subplots(1, 2)
    for number, (testbed, rows) in enumerate(table.groupby("testbed", sort=False)):
        color, budgets = f"C{number}", rows["budget_pct"]
        wastage.plot(budgets, rows["wastage_pct"], "o-", color=color, label=str(testbed))
        wastage.plot(budgets, rows["noise_free_wastage_pct"], "--", color=color, label=f"{testbed}, exact throughputs")
        violations.errorbar(
            budgets, rows["sla_violations_pct"], rows["std_error"], fmt="o-", color=color, label=str(testbed)
        )
        violations.plot(budgets, rows["expected_violations_pct"], ":", color=color, label=f"{testbed}, expected")
    violations.plot(BUDGETS_PCT, BUDGETS_PCT, color="gray", linewidth=1, label="the budget")
    for axes, label in ((wastage, "wastage, %"), (violations, "SLA violations, % of NF instances")):
        axes.set_xscale("log")
        axes.set_xticks(BUDGETS_PCT, [f"{budget:g}" for budget in BUDGETS_PCT])
        axes.minorticks_off()
        axes.set(xlabel="budget of SLA violations, %", ylabel=label)
        axes.legend(frameon=False, fontsize=7)
