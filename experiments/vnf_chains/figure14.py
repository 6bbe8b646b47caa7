"""Figure 14: errors in the upper half of the load after retraining with canary samples from the lower half."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.accuracy import verdict_on
from experiments.registry import Result, Setting, experiment
from experiments.vnf_chains import PAPER
from experiments.vnf_chains.methodology.loads import load_runs
from experiments.vnf_chains.methodology.retraining import (
    ALL_REGRESSORS,
    ALL_SAMPLES,
    LOAD_NOTE,
    MAPE,
    OUR_REGRESSORS,
    RMSE,
    ascending_order,
    averages,
    before_retraining,
    canary_order,
    error_table,
    on_measured,
    on_predicted,
    random_orders,
    upper_half,
)
from experiments.vnf_chains.table3 import NOT_PRINTED

SAMPLE_COUNTS = (5, 10, 20, 50, 100)  # Canary samples; the last number is the whole lower half
SAMPLE_DRAWS = 3
TARGET_PCT = 10.0
BEST_TEXT, SLOWER_TEXT, WORST_TEXT = "best, with fewest samples", "needs more samples", "worst, not drawn"
PUBLISHED_TEXTS = {
    "lasso-1": BEST_TEXT, "lasso-2": BEST_TEXT, "gaussian-process": BEST_TEXT,
    "interpolation": SLOWER_TEXT, "elastic-net-3": SLOWER_TEXT,
    "lasso-3": WORST_TEXT, "neural-network": WORST_TEXT,
}  # fmt: skip
"""What the text says of figure 14, which prints no numbers."""
CHOSEN_REGRESSOR = "chosen"
LARGEST_PCT = 100.0
"""In the order of regressors, errors count up to this, so that one far extrapolation does not decide."""


@experiment(PAPER, "chains-figure14", "Retraining with canary samples from the lower half of the load, by regressor")
def run(setting: Setting) -> Result:
    """Every regressor before and after retraining, always tested on the upper half of the load."""
    runs = load_runs(setting)
    names = ALL_REGRESSORS
    setting.say(f"{len(runs.chains)} chains, {len(names)} regressors: canary samples")
    measured = error_table(on_measured(runs), names, canary_order, SAMPLE_COUNTS, upper_half)
    predicted = error_table(on_predicted(runs), names, canary_order, SAMPLE_COUNTS[-1:], upper_half)
    setting.say("before retraining, and random samples")
    before = error_table(before_retraining(runs), names, ascending_order, [ALL_SAMPLES], upper_half)
    draws = random_orders(setting.rng("figure14"), setting.count(SAMPLE_DRAWS, least=1))
    random = error_table(on_measured(runs), names, draws, SAMPLE_COUNTS[-1:], upper_half)
    last = SAMPLE_COUNTS[-1]
    columns = {
        "before": averages(before),
        "random": averages(random),
        "canary": averages(measured[measured["samples"] == last]),
        "predicted": averages(predicted),
    }
    curve = averages(measured, ("regressor", "samples")).reset_index()
    rows = [_row(name, columns, curve[curve["regressor"] == name]) for name in names]
    table = pd.DataFrame([*_judge(rows, curve), _choose(rows)])
    return Result(
        table, (runs.testbed,), lambda figure: _draw(figure, curve), FIGURE_NOTES, _data(measured, before, predicted)
    )


FIGURE_NOTES = (
    LOAD_NOTE,
    "All errors are those in the upper half of the load, mean over chains. before: trained with what the functions "
    "alone predict of the chain by the weakest link, at all loads. canary: trained with single runs of the chain, in "
    f"ascending order up to the middle of the load, {SAMPLE_COUNTS[-1]}. random: with as many single runs at random "
    "loads, also in the upper half. predicted: trained and tested as canary, but on what the functions alone predict "
    "(figure 14a).",
    f"samples_to_target is the number of canary samples from which on the error stays within {TARGET_PCT:g} %.",
    "chosen is the regressor with the least error on what the functions alone predict: no run of the chain, and none "
    "in the upper half, is needed to choose it. It may not miss the target.",
)


def _row(name: str, columns: dict[str, pd.DataFrame], curve: pd.DataFrame) -> dict[str, Any]:
    """A row of one regressor; `curve` are its errors by number of canary samples."""
    row: dict[str, Any] = {"regressor": name}
    for of, errors in columns.items():
        row |= {f"{of}_{error}": round(float(errors[error][name]), 2) for error in (RMSE, MAPE)}
    return row | {
        "samples_to_target": samples_to_target(curve),
        "published": PUBLISHED_TEXTS.get(name, NOT_PRINTED),
        "published_mape_pct": NOT_PRINTED,
        "verdict": "",
    }


def samples_to_target(curve: pd.DataFrame) -> int | str:
    """The number of samples from which on the error stays within the target."""
    kept: int | str = "never"
    for samples, error in zip(curve["samples"][::-1], curve[MAPE][::-1], strict=True):
        if error > TARGET_PCT:
            break
        kept = int(samples)
    return kept


def _judge(rows: Sequence[dict[str, Any]], curve: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows, with a verdict where the order is another than published, over all numbers of samples."""
    order = [BEST_TEXT, SLOWER_TEXT, WORST_TEXT]
    means = curve.assign(error=curve[MAPE].clip(upper=LARGEST_PCT)).groupby("regressor")["error"].mean()

    def better(name: str) -> list[str]:
        """Regressors that are published as worse, and are better here."""
        rank = order.index(PUBLISHED_TEXTS[name])
        return [other for other, of in PUBLISHED_TEXTS.items() if order.index(of) > rank and means[other] < means[name]]

    judged = []
    for row in rows:
        beaten = better(row["regressor"]) if row["regressor"] in PUBLISHED_TEXTS else []
        judged.append(row | {"verdict": f"differs: {', '.join(beaten)} better" if beaten else ""})
    return judged


def _choose(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The row of the regressor that the predicted chain recommends."""
    best = min(rows, key=lambda row: row["predicted_mape_pct"])
    missed = [f"above {TARGET_PCT:g} %"] if best["canary_mape_pct"] > TARGET_PCT else []
    return best | {"regressor": f"{CHOSEN_REGRESSOR}: {best['regressor']}", "verdict": verdict_on(missed)}


def _data(measured: pd.DataFrame, before: pd.DataFrame, predicted: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """All errors, by chain and placement."""
    of = {"canary": measured, "before": before.drop(columns="samples"), "predicted": predicted}
    return {"chains": pd.concat([errors.assign(trained=name) for name, errors in of.items()], ignore_index=True)}


def _draw(figure: Figure, curve: pd.DataFrame) -> None:
    axes = figure.subplots()
    for name, of in curve.groupby("regressor", sort=False):
        axes.plot(
            of["samples"], of[MAPE], marker="o", label=str(name), linestyle="--" if name in OUR_REGRESSORS else "-"
        )
    axes.axhline(TARGET_PCT, color="0.6", linewidth=1)
    axes.set(yscale="log", xlabel="canary samples", ylabel="MAPE in the upper half (%)")
    axes.legend(frameon=False, ncols=2)
