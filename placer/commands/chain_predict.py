"""`placer chain predict`: throughput or response time of a chain from the profiles of its NFs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands import chain_options as options
from placer.commands.options import Quiet, one_of, take_option
from profiles import InputError

if TYPE_CHECKING:
    from placer.progress import Progress
    from placer.rack.files.measured_chains import ChainFiles
    from predictor.chains.chain_model import ChainModel

PREDICTION_FORMATS = ("csv", "table", "json")

AskedFile = Annotated[
    str | None,
    take_option("CSV of the settings to predict: nx.cpu, sc.cpu, ... and the workload; - reads stdin.", "--at"),
]
Compare = Annotated[
    bool, typer.Option("--compare", help="Print the error of every regressor for every profile, and exit.")
]
Coverage = Annotated[
    float, typer.Option(min=0.01, max=0.999, help="The probability that an interval contains a measurement.")
]
Format = Annotated[str, typer.Option(help="csv, table or json.")]


def command(
    profile: options.ProfileFiles,
    y: options.Measure,
    order: options.Order = None,
    measured: options.MeasuredFile = None,
    at: AskedFile = None,
    higher_is_better: options.Higher = True,
    cores: options.Cores = None,
    source: options.Source = None,
    passes: options.Passes = None,
    resizes: options.Resizes = None,
    regressor: options.RegressorName = None,
    compare: Compare = False,
    ignore: options.Ignore = None,
    coverage: Coverage = 0.9,
    format: Format = "csv",
    quiet: Quiet = False,
) -> None:
    """Predict a chain of NFs from the profile of each, corrected by measured runs of the chain."""
    from placer.progress import Progress
    from placer.rack.files.measured_chains import read_chain_files

    one_of("--format", format, PREDICTION_FORMATS)
    paths = options.profiles_by_nf(profile)
    progress = Progress(quiet=quiet)
    if compare:
        files = read_chain_files(paths, list(paths) if at else [], y, asked=at, ignored=ignore or ())
        with progress.waiting("comparing all regressors, which may take minutes ..."):
            text = _comparison(files, format)
        typer.echo(text, nl=False)
        return
    if at is None:
        raise InputError.of("--at", "is missing", hint="--at FILE.csv lists what to predict; --compare needs none")
    nfs = options.read_order(order, paths)
    chain = options.describe_placed_chain(nfs, cores, passes, resizes)
    needed = [*nfs, *options.source_of(source, paths)]
    files = read_chain_files(paths, needed, y, measured=measured, asked=at, ignored=ignore or ())
    for note in files.notes:
        progress.say(note)
    model = options.fit(
        files, chain, progress, higher_is_better=higher_is_better, regressor=regressor,
        cores_are_known=cores is not None, source=source,
    )  # fmt: skip
    typer.echo(_predictions(model, files, y, format, coverage, progress), nl=False)


def _comparison(files: ChainFiles, form: str) -> str:
    from placer.report.rack.predicted_chain import comparison
    from predictor.chains.profiled_nf import compare_regressors
    from predictor.chains.settings import settings_of, without_strange

    errors = {
        nf: compare_regressors(without_strange(settings_of(columns.inputs, columns.at, columns.measured)))
        for nf, columns in files.profiles.items()
    }
    return comparison(errors, form)


def _predictions(model: ChainModel, files: ChainFiles, y: str, form: str, coverage: float, progress: Progress) -> str:
    from placer.report.rack.predicted_chain import predictions

    predicted = model.predict(files.asked_at, coverage=coverage)
    if outside := int(predicted.extrapolated.sum()):
        progress.say(
            f"{outside} of {len(predicted.extrapolated)} rows are outside what was profiled: "
            "their predictions are marked `extrapolated`"
        )
    assert files.asked is not None
    return predictions(model, files.asked, predicted, y, form)
