"""Figure 13: errors at all loads after retraining with samples at random loads, of predicted and measured chains."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from experiments.registry import Result, Setting, experiment
from experiments.vnf_chains import PAPER
from experiments.vnf_chains.methodology.loads import load_runs
from experiments.vnf_chains.methodology.retraining import (
    EVERYWHERE,
    LOAD_NOTE,
    MAPE,
    NAMES,
    OF_THE_PAPER,
    OURS,
    RMSE,
    all_others,
    ascending_order,
    averages,
    before_retraining,
    error_table,
    on_measured,
    on_predicted,
    random_orders,
)
from experiments.vnf_chains.table3 import NOT_PRINTED

COUNTS = (5, 10, 20, 50)
"""Random samples."""
DRAWS = 5
"""Sets of random samples, as in the paper."""
PREDICTED, MEASURED = "predicted", "measured"
APART = 2
"""By how many ranks a regressor may differ between predicted and measured chains."""
EQUAL_PCT = 0.5
"""Regressors whose errors differ by less have the same rank: the noise of the tests is about as large."""
PUBLISHED = "as good on both"
"""What the text says of every regressor; the figure prints no numbers."""


@experiment(PAPER, "chains-figure13", "Retraining with samples at random loads, by regressor")
def run(setting: Setting) -> Result:
    """Every regressor after random samples of the predicted (13a) and of the measured chain (13b)."""
    runs = load_runs(setting)
    draws = setting.count(DRAWS, least=2)
    curves = {}
    for name, retrained in ((PREDICTED, on_predicted(runs)), (MEASURED, on_measured(runs))):
        setting.say(f"{name} chains: {len(retrained)}, {len(NAMES)} regressors, {draws} sets of random samples")
        orders = random_orders(setting.rng(f"figure13 {name}"), draws)
        errors = error_table(retrained, NAMES, orders, COUNTS, all_others)
        curves[name] = averages(errors, ("regressor", "samples"))
    before = averages(error_table(before_retraining(runs), NAMES, ascending_order, [EVERYWHERE], all_others))
    of_all = {name: ranks(curve) for name, curve in curves.items()}
    table = pd.DataFrame([_row(name, before, curves, of_all) for name in NAMES])
    data = pd.concat([curve.reset_index().assign(trained=name) for name, curve in curves.items()], ignore_index=True)
    return Result(
        table,
        (runs.testbed,),
        lambda figure: _draw(figure, curves[MEASURED].reset_index()),
        NOTES,
        {"by_samples": data},
    )


NOTES = (
    LOAD_NOTE,
    "All errors are of all loads but those of training, mean over chains and sets of samples. before: trained with "
    "what the functions alone predict of the chain by the weakest link, at all loads. Numbers are of random samples, "
    "single runs of the chain; predicted: of what the functions alone predict, trained and tested on it (figure 13a).",
    f"The rank is the number of regressors whose MAPE after {COUNTS[-1]} samples is lower by at least {EQUAL_PCT:g} "
    "percentage points. The paper finds the same regressors best on predicted and on measured chains: the verdict is "
    f"on ranks that differ by more than {APART}.",
)


def ranks(curve: pd.DataFrame) -> dict[str, int]:
    """Per regressor, how many are better by more than what counts as equal; `curve` by regressor and samples."""
    errors = {name: float(curve[MAPE][name, COUNTS[-1]]) for name in NAMES}
    return {name: sum(other < error - EQUAL_PCT for other in errors.values()) for name, error in errors.items()}


def _row(
    name: str, before: pd.DataFrame, curves: Mapping[str, pd.DataFrame], of_all: Mapping[str, Mapping[str, int]]
) -> dict[str, object]:
    measured, predicted = curves[MEASURED], curves[PREDICTED]
    last = COUNTS[-1]
    of_ranks = {of: of_all[of][name] for of in (PREDICTED, MEASURED)}
    apart = abs(of_ranks[PREDICTED] - of_ranks[MEASURED])
    return {
        "regressor": name,
        **{f"before_{error}": round(float(before[error][name]), 2) for error in (RMSE, MAPE)},
        **{f"{count}_mape_pct": round(float(measured[MAPE][name, count]), 2) for count in COUNTS},
        f"{last}_rmse_ms": round(float(measured[RMSE][name, last]), 2),
        f"predicted_{last}_mape_pct": round(float(predicted[MAPE][name, last]), 2),
        "predicted_rank": of_ranks[PREDICTED],
        "rank": of_ranks[MEASURED],
        "published": PUBLISHED if name in OF_THE_PAPER else NOT_PRINTED,
        "published_mape_pct": NOT_PRINTED,
        "verdict": f"differs: {apart} ranks apart" if apart > APART and name in OF_THE_PAPER else "",
    }


def _draw(figure: Figure, curve: pd.DataFrame) -> None:
    axes = figure.subplots()
    for name, of in curve.groupby("regressor", sort=False):
        axes.plot(of["samples"], of[MAPE], marker="o", label=str(name), linestyle="--" if name in OURS else "-")
    axes.set_yscale("log")
    axes.set_xlabel("random samples")
    axes.set_ylabel("MAPE at all other loads (%)")
    axes.legend(frameon=False, ncols=2)
