"""Figure 2: errors of models of a single resource, and of simple compositions of them."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.accuracy import box_table, errors_pct, flatten
from experiments.methodology.findings import NOT_PUBLISHED, Finding, findings_table
from experiments.methodology.plots import boxes
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology import bluefield2
from experiments.tomur.methodology.co_locations import co_locations_of
from experiments.tomur.methodology.simulated_card import CARD as HOSTED
from experiments.tomur.methodology.simulated_card import drop_corrections, tomur, train, truth
from experiments.tomur.methodology.slomo import slomo
from experiments.tomur.methodology.synthetic_nfs import SYNTHETIC_CARD, name_of, train_synthetic
from predictor import Predictor, TomurPredictor
from profiles import COUNTERS, Workload
from profiles.arrays import Floats

CO_LOCATIONS = 300
OFFERED_PER_USED = 3
"""Co-locations drawn for each that is used; about two in three have another user of the regex accelerator."""
TARGET_NF = "FlowMonitor"
SINGLE_RESOURCE_MODELS = ("memory only (SLOMO)", "regex only")
NF_VERSIONS = {"NF1": name_of("NF1", "run-to-completion"), "NF2": name_of("NF2", "pipeline")}
PUBLISHED_MEDIAN, PUBLISHED_WORST = 20.0, 60.0  # of (a): rough numbers of the text, for both models together
PUBLISHED_SUM = 17.0  # of (b): for the pipeline NF2
COMPOSITION_OF_MODEL = {"sum": "sum", "min": "min", "tomur": None}


@experiment(PAPER, "figure2", "Errors of single-resource models and of their compositions")
def run(setting: Setting) -> Result:
    """FlowMonitor predicted from one resource (a), NF1 and NF2 by compositions (b); all with up to three other NFs."""
    errors = {("simulated", name): values for name, values in _single_resource(setting).items()}
    real = bluefield2.measurements(setting)
    if real:
        errors |= {(bluefield2.CARD_NAME, name): values for name, values in _single_resource_measured(real).items()}
    mapes = _compositions(setting)
    findings = [
        Finding(f"{what} error of FlowMonitor, {name}, {testbed}", how(values), published)
        for (testbed, name), values in errors.items()
        for what, how, published in (("median", np.median, PUBLISHED_MEDIAN), ("worst", np.max, PUBLISHED_WORST))
    ]
    findings += [
        Finding(
            f"MAPE of {nf} ({NF_VERSIONS[nf].removeprefix(nf + '-')}), {composition}",
            mape,
            PUBLISHED_SUM if (nf, composition) == ("NF2", "sum") else NOT_PUBLISHED,
        )
        for (nf, composition), mape in mapes.items()
    ]

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        boxes(left, {f"{name}\n{testbed}": values for (testbed, name), values in errors.items()}, "error (%)")
        for at, composition in enumerate(COMPOSITION_OF_MODEL):
            right.bar(np.arange(2) + 0.25 * at, [mapes[nf, composition] for nf in NF_VERSIONS], 0.25, label=composition)
        right.set_xticks(np.arange(2) + 0.25, list(NF_VERSIONS.values()))
        right.set_ylabel("MAPE (%)")
        right.legend()

    return Result(
        findings_table(findings),
        (
            f"{SIMULATED_CARD}: FlowMonitor, NF1 and NF2, each with one to three NFs of which at least one uses regex.",
            f"{HARDWARE_CARD}: {len(real.runs)} measured runs of FlowMonitor with benches instead of NFs (a)."
            if real
            else bluefield2.MISSING_NOTE,
        ),
        draw,
        (
            "The paper's text gives rough numbers for (a), for both models together; for (b) only the sum composition "
            "of NF2.",
            "A drop of 62 %, the largest of figure 1, is an error of 163 % for a model that predicts no drop. The "
            "paper's largest error of 60 % corresponds to a missed drop of 38 %.",
        ),
        {
            "errors": box_table(errors, ("testbed", "model")),
            "single-resource": flatten(errors, ("testbed", "model"), "error_pct"),
            "compositions": pd.DataFrame(
                [{"nf": nf, "composition": name, "mape_pct": mape} for (nf, name), mape in mapes.items()]
            ),
        },
    )


def _single_resource(setting: Setting) -> Mapping[str, Floats]:
    co_locations = _draw_contended(TARGET_NF, setting)
    measured, predictor = truth(co_locations), tomur(setting)
    parts = [co_location[0] for co_location in predictor.predict(co_locations)]
    regex_only = np.array([part.solo_kpps - part.drops["regex"] for part in parts])
    return {
        SINGLE_RESOURCE_MODELS[0]: errors_pct(_first(slomo(setting), co_locations), measured),
        SINGLE_RESOURCE_MODELS[1]: errors_pct(regex_only, measured),
    }


def _single_resource_measured(real: bluefield2.FlowMonitorRuns) -> Mapping[str, Floats]:
    predictors, measured = real.trained.predictors, bluefield2.throughput(real.runs)
    no_memory = real.runs.assign(**dict.fromkeys(COUNTERS, 0.0))
    inputs = {SINGLE_RESOURCE_MODELS[0]: ("slomo", real.runs), SINGLE_RESOURCE_MODELS[1]: ("tomur", no_memory)}
    return {
        model: errors_pct(predictors[name].predict_contention(bluefield2.MEASURED_NF, table), measured)
        for model, (name, table) in inputs.items()
    }


def _compositions(setting: Setting) -> Mapping[tuple[str, str], float]:
    models = {**drop_corrections(train(setting)), **drop_corrections(train_synthetic(setting))}
    mapes = {}
    for nf, version in NF_VERSIONS.items():
        co_locations = _draw_contended(version, setting)
        measured = truth(co_locations, SYNTHETIC_CARD)
        for name, way in COMPOSITION_OF_MODEL.items():
            predicted = _first(TomurPredictor(models, composition=way), co_locations)
            mapes[nf, name] = float(errors_pct(predicted, measured).mean())
    return mapes


def _draw_contended(nf: str, setting: Setting) -> list[list[Workload]]:
    """Co-locations in which another NF also uses the regex accelerator, so that both resources are contended."""
    hosted = {nf.name: "regex" in nf.accelerators for nf in HOSTED.describe().nfs}
    drawn = co_locations_of(
        nf, OFFERED_PER_USED * setting.count(CO_LOCATIONS), setting.rng(f"figure2 {nf}"), others=list(hosted)
    )
    return [group for group in drawn if any(hosted[other.nf] for other in group[1:])][: setting.count(CO_LOCATIONS)]


def _first(predictor: Predictor, co_locations: Sequence[Sequence[Workload]]) -> Floats:
    return np.array([rates[0] for rates in predictor.throughput(co_locations)])
