"""Figure 8: accuracy over the profiling quota, for FlowClassifier."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.profiling_cost import CHEAPER, METHODS, Judged, errors, full_errors, quotas
from experiments.registry import Result, Setting, experiment

NF = "FlowClassifier"
SHARES = (0.5, 1.0, 1.5)
SEEDS = 5
PUBLISHED = {("full", 1.0): 2.3, ("random", 1.0): 14.4, ("adaptive", 1.0): 2.9, ("adaptive", 1.5): 2.4}
"""MAPE (%); of the rest the figure shows boxes and the text no numbers."""


@experiment("figure8", "Accuracy over the profiling quota, FlowClassifier")
def run(setting: Setting) -> Result:
    """Each method at 0.5, 1 and 1.5 times the default quota under five seeds, beside a full grid."""
    runs = setting.count(CHEAPER * quotas(1.0), least=2000)
    rows = [_row("full", 1.0, [full_errors(NF, runs)])]
    for share in SHARES:
        setting.say(f"{NF}: {len(METHODS)} methods with {quotas(share)} runs under {SEEDS} seeds")
        for method in METHODS:
            told = [errors(NF, method, quotas(share), setting.seed + seed, runs) for seed in range(SEEDS)]
            rows.append(_row(method, share, told))
    table = pd.DataFrame(rows)
    return Result(
        table,
        ("the simulated BlueField-2: everything.", "BlueField-2: nothing; its measurements hold no FlowClassifier."),
        partial(_draw, table=table),
        ("as table 8; the median is over all runs and seeds.",),
    )


def _row(method: str, share: float, judged: Sequence[Judged]) -> dict[str, object]:
    mapes = [float(one.likely.mean()) for one in judged]
    return {
        "method": method,
        "quota_share": share,
        "mape_pct": float(np.mean(mapes)),
        "spread": float(np.std(mapes, ddof=1)) if len(mapes) > 1 else np.nan,
        "beyond_mape_pct": float(np.mean([one.beyond.mean() for one in judged])),
        "median_pct": float(np.median(np.concatenate([one.likely for one in judged]))),
        "published_mape_pct": PUBLISHED.get((method, share), np.nan),
    }


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    """MAPE over the quota, a line per method."""
    axes = figure.subplots()
    for method in METHODS:
        of = table[table["method"] == method]
        axes.errorbar(of["quota_share"], of["mape_pct"], yerr=of["spread"], label=method, capsize=3)
    axes.axhline(float(table["mape_pct"].iloc[0]), color="gray", label="full")
    axes.set_xlabel("quota, as a multiple of the default")
    axes.set_ylabel("MAPE (%)")
    axes.set_yscale("log")
    axes.legend()
