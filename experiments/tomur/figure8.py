"""Figure 8: accuracy for FlowClassifier over the profiling quota."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology.profiling_cost import (
    COMPARED_METHODS,
    GRID_QUOTAS,
    GridErrors,
    errors,
    full_errors,
    quota_of,
)

PROFILED_NF = "FlowClassifier"
QUOTA_SHARES = (0.5, 1.0, 1.5)
SEED_COUNT = 5
PUBLISHED_MAPES = {("full", 1.0): 2.3, ("random", 1.0): 14.4, ("adaptive", 1.0): 2.9, ("adaptive", 1.5): 2.4}
"""MAPE (%). Of the others, the paper only draws boxes."""


@experiment(PAPER, "figure8", "Prediction accuracy for FlowClassifier over the profiling quota")
def run(setting: Setting) -> Result:
    """Each method with 0.5, 1 and 1.5 times the default quota and five seeds, compared with the full grid."""
    runs = setting.count(GRID_QUOTAS * quota_of(1.0), least=2000)
    rows = [_row("full", 1.0, [full_errors(PROFILED_NF, runs)])]
    for share in QUOTA_SHARES:
        setting.say(
            f"{PROFILED_NF}: {len(COMPARED_METHODS)} methods with {quota_of(share)} runs and {SEED_COUNT} seeds"
        )
        for method in COMPARED_METHODS:
            by_seed = [
                errors(PROFILED_NF, method, quota_of(share), setting.seed + seed, runs) for seed in range(SEED_COUNT)
            ]
            rows.append(_row(method, share, by_seed))
    table = pd.DataFrame(rows)
    return Result(
        table,
        (f"{SIMULATED_CARD}: all runs.", f"{HARDWARE_CARD}: no runs; the measurements contain no FlowClassifier."),
        partial(_draw, table=table),
        ("Models and columns as in table8; the median is over all held-out runs and seeds.",),
    )


def _row(method: str, share: float, by_seed: Sequence[GridErrors]) -> dict[str, object]:
    mapes = [float(seed_errors.realistic.mean()) for seed_errors in by_seed]
    return {
        "method": method,
        "quota_share": share,
        "mape_pct": float(np.mean(mapes)),
        "std_dev": float(np.std(mapes, ddof=1)) if len(mapes) > 1 else np.nan,
        "stronger_mape_pct": float(np.mean([seed_errors.stronger.mean() for seed_errors in by_seed])),
        "median_pct": float(np.median(np.concatenate([seed_errors.realistic for seed_errors in by_seed]))),
        "published_mape_pct": PUBLISHED_MAPES.get((method, share), np.nan),
    }


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    """MAPE over the quota, a line per method."""
    axes = figure.subplots()
    for method in COMPARED_METHODS:
        of = table[table["method"] == method]
        axes.errorbar(of["quota_share"], of["mape_pct"], yerr=of["std_dev"], label=method, capsize=3)
    axes.axhline(float(table["mape_pct"].iloc[0]), color="gray", label="full")
    axes.set(xlabel="quota, as a multiple of the default", ylabel="MAPE (%)", yscale="log")
    axes.legend()
