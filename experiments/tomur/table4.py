"""Table 4: Tomur's composition by execution pattern against adding all losses and against the worst loss alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology import bluefield2
from experiments.methodology.accuracy import PUBLISHED, errors_pct, is_worse
from experiments.methodology.benches import beside_benches, random_accelerator_bench, random_mem_bench
from experiments.methodology.card import DEFAULT
from experiments.methodology.synthetic import CARD, NF1_AND_NF2, trained_synthetic
from experiments.registry import Result, Setting, experiment
from predictor import Models, TomurPredictor
from profiler.simulated.nfs import NfSpec

RUNS = 200
COMPOSITIONS = {"sum": "sum", "min": "min", "tomur": None}
PUBLISHED_MAPE = {
    ("NF1", "pipeline"): (9.8, 0.7, 0.7),
    ("NF1", "run-to-completion"): (8.7, 12.4, 1.3),
    ("NF2", "pipeline"): (21.9, 1.8, 1.8),
    ("NF2", "run-to-completion"): (14.6, 7.6, 1.6),
}


@experiment("table4", "Composition of single-resource models, by execution pattern")
def run(setting: Setting) -> Result:
    """Synthetic NFs of both patterns, with one and two accelerators, beside a bench of each resource."""
    models = trained_synthetic(setting)
    rows = [_on_card(models, nf, setting) for nf in NF1_AND_NF2]
    real = bluefield2.measurements(setting)
    if real:
        rows.append(_on_bluefield2(real))
    table = pd.DataFrame(rows)
    return Result(
        table,
        (
            "the simulated BlueField-2: NF1 and NF2, profiled there; neither pattern nor queues are told.",
            f"BlueField-2: {len(real.runs)} measured runs of FlowMonitor, which the paper's table has not."
            if real
            else bluefield2.SKIPPED,
        ),
        lambda figure: _draw(figure, table),
        (
            "the paper does not say what NF1 and NF2 compute; ours have flow state that fills the cache, and requests "
            "that take about as long as their cores.",
        ),
    )


def _on_card(models: Models, nf: NfSpec, setting: Setting) -> dict[str, object]:
    rng = setting.rng(f"table4 {nf.name}")
    used = [accelerator for accelerator, _ in nf.queues]
    runs = [
        (DEFAULT, (random_mem_bench(rng), *(random_accelerator_bench(name, rng) for name in used)))
        for _ in range(setting.count(RUNS))
    ]
    beside = beside_benches(nf.name, runs, setting, CARD)
    mapes = {
        name: errors_pct(beside.predicted(TomurPredictor(models.models, composition=way)), beside.truth).mean()
        for name, way in COMPOSITIONS.items()
    }
    group = nf.name.split("-")[0]
    return _row(group, nf.pattern, models.models[nf.name].execution.pattern, "simulated", len(runs), mapes)


def _on_bluefield2(real: bluefield2.Measured) -> dict[str, object]:
    models = real.trained
    mapes = {
        name: errors_pct(
            TomurPredictor(models.models, composition=way).predict_contention(bluefield2.NF, real.runs),
            bluefield2.throughput(real.runs),
        ).mean()
        for name, way in COMPOSITIONS.items()
    }
    return _row(bluefield2.NF, "pipeline", "assumed", bluefield2.TESTBED, len(real.runs), mapes)


def _row(nf: str, pattern: str, detected: str, testbed: str, runs: int, mapes: dict[str, float]) -> dict[str, object]:
    theirs = dict(zip(COMPOSITIONS, PUBLISHED_MAPE.get((nf, pattern), (np.nan,) * 3), strict=True))
    return {
        "nf": nf,
        "pattern": pattern,
        "detected": detected,
        "testbed": testbed,
        "runs": runs,
        **{f"{name}_mape_pct": mape for name, mape in mapes.items()},
        **{f"{PUBLISHED}{name}_mape_pct": mape for name, mape in theirs.items()},
        "worse": "tomur" if is_worse(mapes["tomur"], theirs["tomur"]) else "",
    }


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    axes = figure.subplots()
    places, bar = np.arange(len(table)), 0.13
    for at, name in enumerate(COMPOSITIONS):
        axes.bar(places + (2 * at - 2.5) * bar, table[f"{name}_mape_pct"], bar, label=f"{name}, ours", color=f"C{at}")
        axes.bar(
            places + (2 * at - 1.5) * bar,
            table[f"{PUBLISHED}{name}_mape_pct"],
            bar,
            label=f"{name}, published",
            color=f"C{at}",
            alpha=0.35,
        )
    axes.set_xticks(places, [f"{row.nf}\n{row.pattern}\n{row.testbed}" for row in table.itertuples()])
    axes.set_ylabel("MAPE (%)")
    axes.legend(ncols=3, frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
