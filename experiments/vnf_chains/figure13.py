"""Figure 13: errors at all loads after retraining with samples at random loads, of predicted and measured chains."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from experiments.registry import Result, Setting, experiment
from experiments.vnf_chains import PAPER
from experiments.vnf_chains.methodology.loads import load_runs
from experiments.vnf_chains.methodology.retraining import (
    ALL_REGRESSORS,
    ALL_SAMPLES,
    LOAD_NOTE,
    MAPE,
    OF_THE_PAPER,
    OUR_REGRESSORS,
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

SAMPLE_COUNTS = (5, 10, 20, 50)  # random samples
SAMPLE_DRAWS = 5  # sets of random samples, as in the paper
PREDICTED_CHAINS, MEASURED_CHAINS = "predicted", "measured"
RANKS_APART = 2  # by how many ranks a regressor may differ between predicted and measured chains
EQUAL_PCT = 0.5  # regressors whose errors differ by less have the same rank: the noise of the tests is about as large
PUBLISHED_TEXT = "as good on both"  # what the text says of every regressor; the figure prints no numbers


@experiment(PAPER, "chains-figure13", "Retraining with samples at random loads, by regressor")
def run(setting: Setting) -> Result:
    """Every regressor after random samples of the predicted (13a) and of the measured chain (13b)."""
    runs = load_runs(setting)
    draws = setting.count(SAMPLE_DRAWS, least=2)
    curves = {}
    for name, retrained in ((PREDICTED_CHAINS, on_predicted(runs)), (MEASURED_CHAINS, on_measured(runs))):
        setting.say(
            f"{name} chains: {len(retrained)}, {len(ALL_REGRESSORS)} regressors, {draws} sets of random samples"
        )
        orders = random_orders(setting.rng(f"figure13 {name}"), draws)
        errors = error_table(retrained, ALL_REGRESSORS, orders, SAMPLE_COUNTS, all_others)
        curves[name] = averages(errors, ("regressor", "samples"))
    before = averages(error_table(before_retraining(runs), ALL_REGRESSORS, ascending_order, [ALL_SAMPLES], all_others))
    of_all = {name: ranks(curve) for name, curve in curves.items()}
    table = pd.DataFrame([_row(name, before, curves, of_all) for name in ALL_REGRESSORS])
    data = pd.concat([curve.reset_index().assign(trained=name) for name, curve in curves.items()], ignore_index=True)
    return Result(
        table,
        (runs.testbed,),
        lambda figure: _draw(figure, curves[MEASURED_CHAINS].reset_index()),
        FIGURE_NOTES,
        {"by_samples": data},
    )


FIGURE_NOTES = (
    LOAD_NOTE,
    "All errors are of all loads but those of training, mean over chains and sets of samples. before: trained with "
    "what the functions alone predict of the chain by the weakest link, at all loads. Numbers are of random samples, "
    "single runs of the chain; predicted: of what the functions alone predict, trained and tested on it (figure 13a).",
    f"The rank is the number of regressors whose MAPE after {SAMPLE_COUNTS[-1]} samples is lower by at least "
    f"{EQUAL_PCT:g} percentage points. The paper finds the same regressors best on predicted and on measured chains: "
    f"the verdict is on ranks that differ by more than {RANKS_APART}.",
)


def ranks(curve: pd.DataFrame) -> dict[str, int]:
    """Per regressor, how many are better by more than what counts as equal; `curve` by regressor and samples."""
    errors = {name: float(curve[MAPE][name, SAMPLE_COUNTS[-1]]) for name in ALL_REGRESSORS}
    return {name: sum(other < error - EQUAL_PCT for other in errors.values()) for name, error in errors.items()}


def _row(
    name: str, before: pd.DataFrame, curves: Mapping[str, pd.DataFrame], of_all: Mapping[str, Mapping[str, int]]
) -> dict[str, object]:
    measured, predicted = curves[MEASURED_CHAINS], curves[PREDICTED_CHAINS]
    last = SAMPLE_COUNTS[-1]
    of_ranks = {of: of_all[of][name] for of in (PREDICTED_CHAINS, MEASURED_CHAINS)}
    apart = abs(of_ranks[PREDICTED_CHAINS] - of_ranks[MEASURED_CHAINS])
    return {
        "regressor": name,
        **{f"before_{error}": round(float(before[error][name]), 2) for error in (RMSE, MAPE)},
        **{f"{count}_mape_pct": round(float(measured[MAPE][name, count]), 2) for count in SAMPLE_COUNTS},
        f"{last}_rmse_ms": round(float(measured[RMSE][name, last]), 2),
        f"predicted_{last}_mape_pct": round(float(predicted[MAPE][name, last]), 2),
        "predicted_rank": of_ranks[PREDICTED_CHAINS],
        "rank": of_ranks[MEASURED_CHAINS],
        "published": PUBLISHED_TEXT if name in OF_THE_PAPER else NOT_PRINTED,
        "published_mape_pct": NOT_PRINTED,
        "verdict": f"differs: {apart} ranks apart" if apart > RANKS_APART and name in OF_THE_PAPER else "",
    }


def _draw(figure: Figure, curve: pd.DataFrame) -> None:
    axes = figure.subplots()
    for name, of in curve.groupby("regressor", sort=False):
        axes.plot(
            of["samples"], of[MAPE], marker="o", label=str(name), linestyle="--" if name in OUR_REGRESSORS else "-"
        )
    axes.set(yscale="log", xlabel="random samples", ylabel="MAPE at all other loads (%)")
    axes.legend(frameon=False, ncols=2)
