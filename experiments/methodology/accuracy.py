"""Error metrics of predictors, and tables that compare them with the published ones (Tomur, section 7.1)."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from profiles.arrays import Floats

Scores = tuple[float, float, float]  # MAPE, and the shares of predictions within 5 % and within 10 %; all in %

ACCURACY_METRICS = ("mape_pct", "acc5_pct", "acc10_pct")
METRIC_NAMES = ("MAPE", "±5 %", "±10 %")
PUBLISHED_PREFIX = "published_"
METRICS_NOTE = (
    "MAPE is the mean absolute percentage error; acc5 and acc10 are the shares of predictions within ±5 % and ±10 %."
)


def errors_pct(predicted: Floats, truth: Floats) -> Floats:
    """Absolute percentage errors."""
    errors: Floats = 100 * np.abs(predicted / truth - 1)
    return errors


def scores(errors: Floats) -> Scores:
    """MAPE, and the shares of predictions within 5 % and within 10 %."""
    return float(errors.mean()), float(100 * (errors <= 5).mean()), float(100 * (errors <= 10).mean())


def score_table(
    errors: Mapping[tuple[str, str, str], Floats], published: Mapping[tuple[str, str], Scores]
) -> pd.DataFrame:
    """A row per (NF, predictor, testbed): our scores, the published ones, and the verdict."""
    unknown = (np.nan,) * len(ACCURACY_METRICS)
    rows = []
    for (nf, predictor, testbed), values in errors.items():
        ours, theirs = scores(values), published.get((nf, predictor), unknown)
        rows.append(_row(nf, predictor, testbed, len(values), ours, theirs))
    return pd.DataFrame(rows)


def with_means(table: pd.DataFrame, published: Mapping[str, Scores]) -> pd.DataFrame:
    """The table with one more row per testbed and predictor: the means over its NFs."""
    rows = []
    for key, of in table.groupby(["testbed", "predictor"], sort=False):
        testbed, predictor = map(str, key)
        ours = tuple(float(of[metric].mean()) for metric in ACCURACY_METRICS)
        rows.append(_row("mean", predictor, testbed, int(of["runs"].sum()), ours, published[predictor]))
    return pd.concat([table, pd.DataFrame(rows)], ignore_index=True)


def _row(
    nf: str, predictor: str, testbed: str, runs: int, ours: Sequence[float], theirs: Sequence[float]
) -> dict[str, object]:
    return {
        "nf": nf,
        "predictor": predictor,
        "testbed": testbed,
        "runs": runs,
        **dict(zip(ACCURACY_METRICS, ours, strict=True)),
        **{PUBLISHED_PREFIX + metric: value for metric, value in zip(ACCURACY_METRICS, theirs, strict=True)},
        "verdict": verdict_on(
            name
            for name, our, their, higher in zip(METRIC_NAMES, ours, theirs, (False, True, True), strict=True)
            if is_worse(our, their, higher_is_better=higher)
        ),
    }


def verdict_on(worse: Iterable[str]) -> str:
    """The cell of the column `verdict` for these worse metrics."""
    metrics = ", ".join(worse)
    return f"worse: {metrics}" if metrics else ""


def is_worse(ours: float, published: float, *, higher_is_better: bool = False) -> bool:
    """Whether our number is worse at one decimal, the published precision; False where none is published (NaN)."""
    if np.isnan(published):
        return False
    return round(ours, 1) < round(published, 1) if higher_is_better else round(ours, 1) > round(published, 1)


def draw_scores(figure: Figure, table: pd.DataFrame) -> None:
    """Bars of the MAPE per NF and predictor, ours next to the published one."""
    figure.set_figheight(1.2 + 0.3 * len(table))
    axes = figure.subplots()
    places, bar = np.arange(len(table)), 0.4
    axes.barh(places - bar / 2, table["mape_pct"], bar, label="ours", color="tab:blue")
    axes.barh(places + bar / 2, table[PUBLISHED_PREFIX + "mape_pct"], bar, label="published", color="lightgray")
    axes.set_yticks(places, (table["nf"] + ", " + table["predictor"] + ", " + table["testbed"]).tolist())
    axes.invert_yaxis()
    axes.set_xlabel("MAPE (%)")
    axes.legend(ncols=2, frameon=False, loc="lower left", bbox_to_anchor=(0, 1))


def quantiles(values: Floats) -> dict[str, float]:
    """The five quantiles of a box plot."""
    names = ("p5", "p25", "median", "p75", "p95")
    return dict(zip(names, np.quantile(values, (0.05, 0.25, 0.5, 0.75, 0.95)).tolist(), strict=True))


def box_table(errors: Mapping[tuple[str, str], Floats], keys: Sequence[str]) -> pd.DataFrame:
    """Quantiles, a row per key of `errors`."""
    return pd.DataFrame(
        [
            {**dict(zip(keys, key, strict=True)), "runs": len(values), **quantiles(values)}
            for key, values in errors.items()
        ]
    )


def flatten(errors: Mapping[tuple[str, str], Floats], keys: Sequence[str], column: str) -> pd.DataFrame:
    """Every value, a row each, with its key."""
    rows: Iterable[dict[str, object]] = (
        {**dict(zip(keys, key, strict=True)), column: value}
        for key, values in errors.items()
        for value in values.tolist()
    )
    return pd.DataFrame(rows)
