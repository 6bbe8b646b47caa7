"""`placer predict`: of whole companies (`--scenarios`), or of one NF beside measured contention (`--contention`)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from placer.commands.options import ModelsDir, one_of
from profiles import InputError

Scenarios = Annotated[
    Path | None, typer.Option(help="JSON Lines: {workloads: [...]} as in the testbed protocol.", show_default=False)
]
Nf = Annotated[str | None, typer.Option(help="The NF of --contention.", show_default=False)]
Contention = Annotated[
    Path | None,
    typer.Option(help="CSV: traffic, the competitors' summed counters, competitor_service_ms.", show_default=False),
]
Predictor = Annotated[str, typer.Option(help="tomur or slomo.")]
Format = Annotated[
    str | None,
    typer.Option(
        help="table, or json of --contention; by default JSON Lines of --scenarios, CSV of --contention.",
        show_default=False,
    ),
]
Extrapolate = Annotated[bool, typer.Option("--extrapolate", help="Answer traffic outside the profiled range, too.")]

Coverage = Annotated[
    float,
    typer.Option(min=0.01, max=0.999, help="The share of throughputs that intervals are to hold."),
]


def command(
    models: ModelsDir = None,
    scenarios: Scenarios = None,
    nf: Nf = None,
    contention: Contention = None,
    predictor: Predictor = "tomur",
    format: Format = None,
    extrapolate: Extrapolate = False,
    coverage: Coverage = 0.9,
) -> None:
    """Predict throughputs: of every NF of a company, or of one NF beside measured contention."""
    from placer.inputs.models import open_models
    from placer.progress import Progress
    from placer.report.text.prediction import predict_contention, predict_scenarios

    progress = Progress()
    if (scenarios is None) == (contention is None):
        raise InputError.of("placer predict", "give --scenarios FILE, or --nf NAME --contention FILE")
    if contention is not None and nf is None:
        raise InputError.of("--nf", "is missing", hint="--contention is of one NF")
    trained = open_models(models, progress.say)
    one_of("--predictor", predictor, trained.predictors)
    if scenarios is not None:
        chosen = one_of("--format", format or "json", ("json", "table"))
        typer.echo(
            predict_scenarios(
                trained, predictor, scenarios, chosen, progress.say, extrapolate=extrapolate, coverage=coverage
            ),
            nl=False,
        )
    elif contention is not None and nf is not None:
        chosen = one_of("--format", format or "csv", ("csv", "table", "json"))
        typer.echo(
            predict_contention(
                trained, predictor, nf, contention, chosen, progress.say, extrapolate=extrapolate, coverage=coverage
            ),
            nl=False,
        )
