"""`placer chain predict`: throughput or response time of a chain from the profiles of its NFs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands import chain_options as options
from placer.commands.options import Quiet, one_of, take_option
from profiles import InputError
from profiles.files.lines import STDIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.rack.files.measured_chains import ChainFiles
    from predictor.chains.chain_model import ChainModel, ClosedLoopModel

PREDICTION_FORMATS = ("csv", "table", "json")

AskedFile = Annotated[
    str | None,
    take_option("CSV of the settings to predict: nx.cpu, sc.cpu, ... and the workload; - reads stdin.", "--at"),
]
Compare = Annotated[
    bool, typer.Option("--compare", help="Print the error of every regressor for every profile, and exit.")
]
Throughput = Annotated[
    str | None,
    take_option(
        "For a latency with a fixed number of requests under way: the column of the throughput in the same files, by "
        "which the latency goes in steps.",
        metavar="COLUMN",
    ),
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
    throughput: Throughput = None,
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
    from placer.report.rack.predicted_chain import predictions
    from predictor.chains.chain_model import ClosedLoopModel

    one_of("--format", format, PREDICTION_FORMATS)
    paths = options.profiles_by_nf(profile)
    progress = Progress(quiet=quiet)
    if compare:
        if throughput is not None:
            hint = "the profiles of the throughput are compared by --y"
            raise InputError.of("--throughput", "is of no use with --compare", hint=f"{hint} {throughput}")
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
    if throughput == y:
        raise InputError.of("--throughput", f"{y} is the latency of --y", hint="it names the column of the throughput")
    if throughput is not None:
        _refuse_throughput(higher_is_better, measured, [*paths.values(), measured, at])

    def read(column: str, other: str | None) -> ChainFiles:
        ignored = [*(ignore or ()), *([other] if other else [])]
        option = "--throughput" if column == throughput else "--y"
        files = read_chain_files(paths, needed, column, option=option, measured=measured, asked=at, ignored=ignored)
        for note in files.notes:
            progress.say(note)
        return files

    def fit(files: ChainFiles, higher: bool) -> ChainModel:
        return options.fit(
            files, chain, progress, higher_is_better=higher, regressor=regressor,
            cores_are_known=cores is not None, source=source,
        )  # fmt: skip

    files = read(y, throughput)
    by_throughput = None if throughput is None else read(throughput, y)
    if by_throughput is not None and not (files.kept & by_throughput.kept).any():
        raise InputError.of(str(measured), f"no row has both {y} and {throughput}")
    model = fit(files, higher_is_better)
    asking: ChainModel | ClosedLoopModel = model
    if by_throughput is not None:
        asking = ClosedLoopModel(model, fit(by_throughput, True))
    predicted = asking.predict(files.asked_at, coverage=coverage)
    if outside := int(predicted.extrapolated.sum()):
        beyond = "" if throughput is None else ", or beyond the throughput of all runs"
        progress.say(
            f"{outside} of {len(predicted.extrapolated)} rows are outside what was profiled{beyond}: "
            "their predictions are marked `extrapolated`"
        )
    assert files.asked is not None
    typer.echo(predictions(model, files.asked, predicted, y, format), nl=False)


def _refuse_throughput(higher_is_better: bool, measured: str | None, sources: Sequence[str | None]) -> None:
    """Refuse `--throughput` without runs of a latency, and a file that can be read only once."""
    if measured is None or higher_is_better:
        hint = "--measured FILE.csv has both columns; --lower-is-better is for a latency"
        raise InputError.of("--throughput", "needs measured runs of a latency", hint=hint)
    if STDIN in sources:
        raise InputError.of("--throughput", "reads files twice, and `-` can be read once", hint="name a file for `-`")


def _comparison(files: ChainFiles, form: str) -> str:
    from placer.report.rack.predicted_chain import comparison
    from predictor.chains.profiled_nf import compare_regressors
    from predictor.chains.settings import settings_of, without_strange

    errors = {
        nf: compare_regressors(without_strange(settings_of(columns.inputs, columns.at, columns.measured)))
        for nf, columns in files.profiles.items()
    }
    return comparison(errors, form)
