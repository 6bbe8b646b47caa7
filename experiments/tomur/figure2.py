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
from experiments.tomur.methodology.multi_resource import LIMITING_SHARE, REGEX_ONLY, errors_at_balance
from experiments.tomur.methodology.simulated_card import CARD as HOSTED
from experiments.tomur.methodology.simulated_card import drop_corrections, train, truth
from experiments.tomur.methodology.synthetic_nfs import SYNTHETIC_CARD, name_of, train_synthetic
from predictor import Predictor, TomurPredictor
from profiles import COUNTERS, Workload
from profiles.arrays import Floats

CO_LOCATIONS = 300
OFFERED_PER_USED = 3
"""Co-locations drawn for each that is used; about two in three have another user of the regex accelerator."""
TARGET_NFS = {"FlowMonitor": "pipeline", "NIDS": "run-to-completion"}
MODEL_OF = {"memory only (SLOMO)": "slomo", REGEX_ONLY: REGEX_ONLY, "tomur": "tomur"}
NF_VERSIONS = {"NF1": name_of("NF1", "run-to-completion"), "NF2": name_of("NF2", "pipeline")}
PUBLISHED_MEDIAN, PUBLISHED_WORST = 20.0, 60.0  # of (a): rough numbers of the text, for both models together
PUBLISHED_SUM = 17.0  # of (b): for the pipeline NF2
COMPOSITION_OF_MODEL = {"sum": "sum", "min": "min", "tomur": None}


@experiment(PAPER, "figure2", "Errors of single-resource models and of their compositions")
def run(setting: Setting) -> Result:
    """FlowMonitor and NIDS predicted from one resource (a), NF1 and NF2 by compositions (b)."""
    balanced = {nf: errors_at_balance(nf, setting) for nf in TARGET_NFS}
    errors = {
        (f"{nf} ({pattern})", model): balanced[nf].errors[name]
        for nf, pattern in TARGET_NFS.items()
        for model, name in MODEL_OF.items()
    }
    real = bluefield2.measurements(setting)
    if real:
        errors |= {(bluefield2.CARD_NAME, name): values for name, values in _single_resource_measured(real).items()}
    mapes = _compositions(setting)
    findings = [
        Finding(f"{what} error, {target}, {model}", how(values), NOT_PUBLISHED if model == "tomur" else published)
        for (target, model), values in errors.items()
        for what, how, published in (("median", np.median, PUBLISHED_MEDIAN), ("worst", np.max, PUBLISHED_WORST))
    ]
    findings += [
        Finding(f"runs of {nf} ({TARGET_NFS[nf]}) that {limit}", 100 * share.mean())
        for nf, of in balanced.items()
        for limit, share in (
            ("memory limits", of.limiting["memory"]),
            ("regex limits", of.limiting["regex"]),
            ("both limit at once", of.limiting["memory"] & of.limiting["regex"]),
        )
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
        boxes(left, {f"{model}\n{target}": values for (target, model), values in errors.items()}, "error (%)")
        for at, composition in enumerate(COMPOSITION_OF_MODEL):
            right.bar(np.arange(2) + 0.25 * at, [mapes[nf, composition] for nf in NF_VERSIONS], 0.25, label=composition)
        right.set_xticks(np.arange(2) + 0.25, list(NF_VERSIONS.values()))
        right.set_ylabel("MAPE (%)")
        right.legend()

    return Result(
        findings_table(findings),
        (
            f"{SIMULATED_CARD}: on the contended card, FlowMonitor and NIDS with mem-bench and regex-bench (a); NF1 "
            "and NF2, each with one to three NFs of which at least one uses regex (b).",
            f"{HARDWARE_CARD}: {len(real.runs)} measured runs of FlowMonitor with benches instead of NFs (a)."
            if real
            else bluefield2.MISSING_NOTE,
        ),
        draw,
        (
            "The paper's text gives rough numbers for (a), for both models together; for (b) only the sum composition "
            "of NF2. It co-locates FlowMonitor with NFs. On our cards, each NF with regex takes whole turns of the "
            "accelerator, so that memory never limits FlowMonitor beside one; benches set both levels.",
            f"A resource limits a run if the NF would gain {LIMITING_SHARE:.0%} without contention for it. A pipeline "
            "is as fast as its slowest stage, so that either limits it; in a run-to-completion NF, both waits add up.",
        ),
        {
            "errors": box_table(errors, ("target", "model")),
            "single-resource": flatten(errors, ("target", "model"), "error_pct"),
            "compositions": pd.DataFrame(
                [{"nf": nf, "composition": name, "mape_pct": mape} for (nf, name), mape in mapes.items()]
            ),
        },
    )


def _single_resource_measured(real: bluefield2.FlowMonitorRuns) -> Mapping[str, Floats]:
    predictors, measured = real.trained.predictors, bluefield2.throughput(real.runs)
    no_memory = real.runs.assign(**dict.fromkeys(COUNTERS, 0.0))
    inputs = dict(zip(MODEL_OF, (("slomo", real.runs), ("tomur", no_memory)), strict=False))
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
