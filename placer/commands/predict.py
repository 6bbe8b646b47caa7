"""`placer predict`: throughput of whole co-locations (`--scenarios`), or of one NF under given contention."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands.options import ModelsDir, RecordedCard, complete_nf, one_of, take_option
from profiles import InputError, Workload
from profiles.faults import suggestion

if TYPE_CHECKING:
    from placer.progress import Progress
    from predictor import Models, Prediction

SCENARIO_FORMATS, CONTENTION_FORMATS = ("json", "table"), ("csv", "table", "json")

ScenariosFile = Annotated[Path | None, take_option("JSON Lines: {workloads: [...]} as in the testbed protocol.")]
Nf = Annotated[str | None, take_option("The NF of --contention.", autocompletion=complete_nf)]
Contention = Annotated[
    Path | None, take_option("CSV: traffic, the competitors' summed counters, competitor_service_ms.")
]
PredictorName = Annotated[
    str, typer.Option("--predictor", help="A predictor in the models; tomur and slomo come with placer.")
]
Format = Annotated[
    str | None,
    take_option("With --scenarios: json (default) or table. With --contention: csv (default), table or json."),
]
Extrapolate = Annotated[
    bool,
    typer.Option(
        "--extrapolate",
        help="Also predict traffic outside the profiled range, and co-locations that need more cores than the NIC has.",
    ),
]
Coverage = Annotated[
    float, typer.Option(min=0.01, max=0.999, help="The probability that an interval contains the throughput.")
]


def command(
    models: ModelsDir = None,
    testbed: RecordedCard = None,
    scenarios: ScenariosFile = None,
    nf: Nf = None,
    contention: Contention = None,
    predictor: PredictorName = "tomur",
    format: Format = None,
    extrapolate: Extrapolate = False,
    coverage: Coverage = 0.9,
) -> None:
    """Predict the throughput of every NF of a co-location, or of one NF under given contention; on a GPU, latency."""
    from placer.inputs.models import find_recorded, open_models
    from placer.progress import Progress
    from predictor.gpu.store import holds_gpu_models

    if (scenarios is None) == (contention is None):
        raise InputError.of("placer predict", "give either --scenarios FILE, or --nf NAME --contention FILE")
    if scenarios is not None and nf is not None:
        raise InputError.of("--nf", "needs --contention; scenarios name their NFs")
    if contention is not None and nf is None:
        raise InputError.of("--nf", "is missing", hint="--contention needs the NF: --nf NAME")
    formats = SCENARIO_FORMATS if scenarios else CONTENTION_FORMATS
    chosen = one_of("--format", format or formats[0], formats)
    progress = Progress()
    if models is not None and holds_gpu_models(models):
        if scenarios is None:
            raise InputError.of("--contention", "is not for models of a GPU server", hint="give --scenarios FILE")
        typer.echo(_on_gpu(models, scenarios, chosen, progress, extrapolate=extrapolate, coverage=coverage), nl=False)
        return
    trained = open_models(models, progress.say, find_recorded(testbed))
    if predictor not in trained.predictors:
        hint = suggestion(predictor, trained.predictors)
        raise InputError.of("--predictor", f"'{predictor}' is not in the models", hint=hint)
    if scenarios is not None:
        text = _scenarios(trained, predictor, scenarios, chosen, progress, extrapolate=extrapolate, coverage=coverage)
    elif contention is not None and nf is not None:
        rows = (trained, predictor, nf, contention)
        text = _contention(*rows, chosen, progress, extrapolate=extrapolate, coverage=coverage)
    typer.echo(text, nl=False)


def _scenarios(
    models: Models, predictor: str, path: Path, form: str, progress: Progress, *, extrapolate: bool, coverage: float
) -> str:
    from placer.inputs.scenarios import read_scenarios, refuse_loads
    from placer.report.text.prediction import json_lines, scenario_table

    scenarios = read_scenarios(models, path, extrapolate=extrapolate)
    if not models.predictors[predictor].supports_loads:
        able = [name for name, other in models.predictors.items() if other.supports_loads]
        refuse_loads(scenarios, path, predictor, able)
    predictions = models.predictors[predictor].predict(scenarios.co_locations, coverage=coverage)
    _warn_of_extrapolation([workload for co_location in predictions for workload in co_location], progress)
    if scenarios.overfull:
        lines = ", ".join(map(str, scenarios.overfull[:5])) + (", ..." if len(scenarios.overfull) > 5 else "")
        progress.say(f"{path}: the NIC has too few cores for the co-locations of these lines: {lines}")
    if form == "table":
        return scenario_table(scenarios.co_locations, predictions, coverage)
    return json_lines(scenarios.co_locations, predictions)


def _on_gpu(directory: Path, path: Path, form: str, progress: Progress, *, extrapolate: bool, coverage: float) -> str:
    from placer.inputs.gpu.scenarios import read_gpu_scenarios
    from placer.report.text.prediction import PredictedScenario, gpu_json_lines, gpu_scenario_table
    from predictor.gpu.models import load_gpu_models
    from predictor.gpu.prediction import Overload
    from predictor.regression.compiled import announce_compiling

    announce_compiling(progress.say)
    models = load_gpu_models(directory)
    predicted = []
    for loads in read_gpu_scenarios(models, path, extrapolate=extrapolate):
        try:
            found = models.predict(loads, coverage=coverage, extrapolate=extrapolate)
            predicted.append(PredictedScenario(loads, found))
        except Overload as overload:
            predicted.append(PredictedScenario(loads, None, overload.causes))
    if overloaded := sum(scenario.predictions is None for scenario in predicted):
        progress.say(f"{path}: the server is overloaded in {overloaded} of {len(predicted)} scenarios")
    return gpu_scenario_table(predicted, coverage) if form == "table" else gpu_json_lines(predicted)


def _contention(
    models: Models,
    predictor: str,
    nf: str,
    path: Path,
    form: str,
    progress: Progress,
    *,
    extrapolate: bool,
    coverage: float,
) -> str:
    from placer.inputs.scenarios import read_contention
    from placer.report.text.prediction import contention_csv, contention_table, json_lines

    contention = read_contention(models, nf, path, extrapolate=extrapolate)
    predictions = models.predictors[predictor].contention_details(nf, contention.rows, coverage=coverage)
    _warn_of_extrapolation(predictions, progress)
    if corrected := sum(prediction.calibrated for prediction in predictions):
        progress.say(f"measured co-runs corrected {corrected} of {len(predictions)} predictions")
    if form == "json":
        workload = Workload(nf, models.default_traffic)
        return json_lines([[workload]] * len(predictions), [[prediction] for prediction in predictions])
    written = contention_table if form == "table" else contention_csv
    return written(contention.written, predictions, mark_extrapolated=extrapolate or models.testbed is None)


def _warn_of_extrapolation(predictions: Sequence[Prediction], progress: Progress) -> None:
    if any(prediction.extrapolated for prediction in predictions):
        progress.say("some workloads are outside what was measured: their predictions are marked `extrapolated`")
