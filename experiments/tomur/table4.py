"""Table 4: Tomur's composition by execution pattern, compared with the sum of all drops and with the largest drop."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.accuracy import PUBLISHED_PREFIX, errors_pct, is_worse, verdict_on
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology import bluefield2
from experiments.tomur.methodology.benches import random_accelerator_bench, random_mem_bench, run_with_benches
from experiments.tomur.methodology.simulated_card import DEFAULT_TRAFFIC, drop_corrections
from experiments.tomur.methodology.synthetic_nfs import NF1_AND_NF2, SYNTHETIC_CARD, train_synthetic
from predictor import Models, TomurPredictor
from profiler.simulated.card import NfSpec

RUNS_PER_NF = 200
COMPOSITION_OF_MODEL = {"sum": "sum", "min": "min", "tomur": None}
PUBLISHED_MAPE = {
    ("NF1", "pipeline"): (9.8, 0.7, 0.7),
    ("NF1", "run-to-completion"): (8.7, 12.4, 1.3),
    ("NF2", "pipeline"): (21.9, 1.8, 1.8),
    ("NF2", "run-to-completion"): (14.6, 7.6, 1.6),
}


@experiment(PAPER, "table4", "Accuracy of compositions of per-resource models, by execution pattern")
def run(setting: Setting) -> Result:
    """Synthetic NFs of both patterns, with one and two accelerators, co-located with a bench of each resource."""
    models = train_synthetic(setting)
    rows = [_on_card(models, nf, setting) for nf in NF1_AND_NF2]
    real = bluefield2.measurements(setting)
    if real:
        rows.append(_on_bluefield2(real))
    table = pd.DataFrame(rows)
    return Result(
        table,
        (
            f"{SIMULATED_CARD}: NF1 and NF2, profiled there; training infers their patterns and queues.",
            f"{HARDWARE_CARD}: {len(real.runs)} measured runs of FlowMonitor, which the paper's table does not contain."
            if real
            else bluefield2.MISSING_NOTE,
        ),
        lambda figure: _draw(figure, table),
        (
            "The paper does not publish what NF1 and NF2 compute. Ours have flow state that fills the cache, and "
            "accelerator requests that take about as long as their work on the cores.",
            "sum adds the drops of all resources, min takes the lowest throughput of any resource, tomur composes by "
            "the detected execution pattern.",
        ),
    )


def _on_card(models: Models, nf: NfSpec, setting: Setting) -> dict[str, object]:
    rng = setting.rng(f"table4 {nf.name}")
    used = [accelerator for accelerator, _ in nf.queues]
    runs = [
        (DEFAULT_TRAFFIC, (random_mem_bench(rng), *(random_accelerator_bench(name, rng) for name in used)))
        for _ in range(setting.count(RUNS_PER_NF))
    ]
    measured = run_with_benches(nf.name, runs, setting, SYNTHETIC_CARD)
    mapes = {
        name: errors_pct(
            measured.predicted(TomurPredictor(drop_corrections(models), composition=way)), measured.truth
        ).mean()
        for name, way in COMPOSITION_OF_MODEL.items()
    }
    group = nf.name.split("-")[0]
    return _row(group, nf.pattern, models.models[nf.name].execution.pattern, "simulated", len(runs), mapes)


def _on_bluefield2(real: bluefield2.FlowMonitorRuns) -> dict[str, object]:
    models = real.trained
    mapes = {
        name: errors_pct(
            TomurPredictor(models.models, composition=way).predict_contention(bluefield2.MEASURED_NF, real.runs),
            bluefield2.throughput(real.runs),
        ).mean()
        for name, way in COMPOSITION_OF_MODEL.items()
    }
    return _row(bluefield2.MEASURED_NF, "pipeline", "assumed", bluefield2.CARD_NAME, len(real.runs), mapes)


def _row(nf: str, pattern: str, detected: str, testbed: str, runs: int, mapes: dict[str, float]) -> dict[str, object]:
    theirs = dict(zip(COMPOSITION_OF_MODEL, PUBLISHED_MAPE.get((nf, pattern), (np.nan,) * 3), strict=True))
    return {
        "nf": nf,
        "pattern": pattern,
        "detected": detected,
        "testbed": testbed,
        "runs": runs,
        **{f"{name}_mape_pct": mape for name, mape in mapes.items()},
        **{f"{PUBLISHED_PREFIX}{name}_mape_pct": mape for name, mape in theirs.items()},
        "verdict": verdict_on(["tomur"] if is_worse(mapes["tomur"], theirs["tomur"]) else []),
    }


def _draw(figure: Figure, table: pd.DataFrame) -> None:
    axes = figure.subplots()
    places, bar = np.arange(len(table)), 0.13
    for at, name in enumerate(COMPOSITION_OF_MODEL):
        axes.bar(places + (2 * at - 2.5) * bar, table[f"{name}_mape_pct"], bar, label=f"{name}, ours", color=f"C{at}")
        axes.bar(
            places + (2 * at - 1.5) * bar,
            table[f"{PUBLISHED_PREFIX}{name}_mape_pct"],
            bar,
            label=f"{name}, published",
            color=f"C{at}",
            alpha=0.35,
        )
    axes.set_xticks(places, [f"{row.nf}\n{row.pattern}\n{row.testbed}" for row in table.itertuples()])
    axes.set_ylabel("MAPE (%)")
    axes.legend(ncols=3, frameon=False, loc="lower left", bbox_to_anchor=(0, 1))
