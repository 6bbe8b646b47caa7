"""`placer chain predict`: throughput or response time of a chain from the profiles of its NFs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands.options import Quiet, one_of
from profiles import InputError
from profiles.faults import suggestion

if TYPE_CHECKING:
    from placer.inputs.chain_files import ChainFiles
    from placer.progress import Progress
    from predictor.chains.chain_model import ChainModel
    from predictor.chains.profiled_nf import ProfiledNf

FORMATS = ("csv", "table", "json")

ProfileFiles = Annotated[
    list[str],
    typer.Option(
        "--profile",
        metavar="NF=FILE",
        help="Measurements of one NF alone, CSV: its configuration, the workload and the measure. One for each NF.",
        show_default=False,
    ),
]
Order = Annotated[str | None, typer.Option(help="The NFs in the order of the packets: nx,sc,sq.", show_default=False)]
Measure = Annotated[str, typer.Option("--y", metavar="COLUMN", help="The column to predict.", show_default=False)]
MeasuredFile = Annotated[
    str | None,
    typer.Option(
        "--measured",
        help="CSV of measured runs of the chain, by which predictions are corrected: nx.cpu, sc.cpu, ..., the workload "
        "and the measure.",
        show_default=False,
    ),
]
AskedFile = Annotated[
    str | None,
    typer.Option(
        "--at", help="CSV of what to predict: nx.cpu, sc.cpu, ... and the workload; - reads stdin.", show_default=False
    ),
]
Higher = Annotated[
    bool,
    typer.Option(
        "--higher-is-better/--lower-is-better",
        help="Throughput, where the least counts, or response time, the largest.",
    ),
]
RegressorName = Annotated[
    str | None,
    typer.Option(
        "--regressor",
        help="How profiles are interpolated; by default what predicts settings of each profile best that were left "
        "out. --compare lists them.",
        show_default=False,
    ),
]
Compare = Annotated[
    bool, typer.Option("--compare", help="Print the error of every regressor for every profile, and end.")
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(help="A column of the profiles that is no input, repeatable.", show_default=False),
]
Coverage = Annotated[
    float, typer.Option(min=0.01, max=0.999, help="The probability that an interval contains a measurement.")
]
Format = Annotated[str, typer.Option(help="csv, table or json.")]


def command(
    profile: ProfileFiles,
    y: Measure,
    order: Order = None,
    measured: MeasuredFile = None,
    at: AskedFile = None,
    higher_is_better: Higher = True,
    regressor: RegressorName = None,
    compare: Compare = False,
    ignore: Ignore = None,
    coverage: Coverage = 0.9,
    format: Format = "csv",
    quiet: Quiet = False,
) -> None:
    """Predict a chain of NFs from the profile of each, corrected by measured runs of the chain."""
    from placer.inputs.chain_files import read_chain_files
    from placer.progress import Progress

    one_of("--format", format, FORMATS)
    paths = profiles_by_nf(profile)
    if at is None and not compare:
        raise InputError.of("--at", "is missing", hint="--at FILE.csv lists what to predict; --compare needs none")
    nfs = ordered(order, paths, needed=not compare)
    progress = Progress(quiet=quiet)
    files = read_chain_files(paths, nfs, y, measured=measured, asked=at, ignored=ignore or ())
    for note in files.notes:
        progress.say(note)
    if compare:
        text = _comparison(files, format)
    else:
        model = fitted(files, nfs, progress, higher_is_better=higher_is_better, regressor=regressor)
        text = _predictions(model, files, y, format, coverage, progress)
    typer.echo(text, nl=False)


def profiles_by_nf(given: list[str]) -> dict[str, str]:
    """Paths by NF, of `NF=FILE`.

    Raises
    ------
    InputError
        For what is not of that form, and NFs given twice.
    """
    from profiles import Fault

    paths: dict[str, str] = {}
    faults = []
    for one in given:
        nf, equals, path = one.partition("=")
        if not (nf and equals and path):
            faults.append(Fault("--profile", None, None, f"'{one}' is not of the form NF=FILE", "as in nx=nx.csv"))
        elif nf in paths:
            faults.append(Fault("--profile", None, None, f"'{nf}' is given twice", "put all its rows into one file"))
        else:
            paths[nf] = path
    if faults:
        raise InputError(faults)
    return paths


def ordered(order: str | None, paths: Mapping[str, str], *, needed: bool = True) -> list[str]:
    """The NFs of `--order`.

    Raises
    ------
    InputError
        When it is missing, or names an NF without profile.
    """
    from profiles import Fault

    if order is None:
        if needed and len(paths) > 1:
            raise InputError.of("--order", "is missing", hint=f"the order of the packets: --order {','.join(paths)}")
        return list(paths)
    nfs = [nf.strip() for nf in order.split(",")]
    faults = [
        Fault("--order", None, None, f"'{nf}' has no profile", f"--profile {nf}=FILE, or {suggestion(nf, paths)}")
        for nf in dict.fromkeys(nfs)
        if nf not in paths
    ]
    if faults:
        raise InputError(faults)
    return nfs


def fitted(
    files: ChainFiles, nfs: list[str], progress: Progress, *, higher_is_better: bool, regressor: str | None
) -> ChainModel:
    """The model of the chain, described on stderr."""
    from placer.report.text.chain import described
    from predictor.chains.chain_fitting import fit_chain
    from predictor.chains.placed_chain import PlacedChain

    profiles = {nf: _profiled(files, nf, regressor) for nf in dict.fromkeys(nfs)}
    model = fit_chain(
        profiles,
        PlacedChain.of(nfs),
        higher_is_better=higher_is_better,
        measured_at=files.measured_at,
        measured=files.measured,
    )
    for line in described(model):
        progress.say(line)
    return model


def _profiled(files: ChainFiles, nf: str, regressor: str | None) -> ProfiledNf:
    from predictor.chains.profiled_nf import ProfiledNf

    columns = files.profiles[nf]
    return ProfiledNf.fit(nf, columns.inputs, columns.at, columns.measured, regressor=regressor)


def _comparison(files: ChainFiles, form: str) -> str:
    from placer.report.text.chain import comparison
    from predictor.chains.selection import compared
    from predictor.chains.settings import settings_of, without_strange

    errors = {
        nf: compared(without_strange(settings_of(columns.inputs, columns.at, columns.measured)))
        for nf, columns in files.profiles.items()
    }
    return comparison(errors, form)


def _predictions(model: ChainModel, files: ChainFiles, y: str, form: str, coverage: float, progress: Progress) -> str:
    from placer.report.text.chain import predictions

    predicted = model.predict(files.asked_at, coverage=coverage)
    if outside := int(predicted.extrapolated.sum()):
        progress.say(
            f"{outside} of {len(predicted.extrapolated)} rows are outside what was profiled: "
            "their predictions are marked `extrapolated`"
        )
    assert files.asked is not None
    return predictions(model, files.asked, predicted, y, form)
