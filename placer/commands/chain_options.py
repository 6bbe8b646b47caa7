"""What the subcommands of `placer chain` share: profiles, the chain, and the model of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands.options import take_option
from profiles import Fault, InputError
from profiles.faults import suggestion
from profiles.text import number_of

if TYPE_CHECKING:
    from placer.progress import Progress
    from placer.rack.files.measured_chains import ChainFiles
    from predictor.chains.chain_model import ChainModel
    from predictor.chains.placed_chain import PlacedChain, StageEffect
    from predictor.chains.profiled_nf import ProfiledNf

ProfileFiles = Annotated[
    list[str],
    take_option(
        "Measurements of one NF alone, CSV: its configuration, the workload and the metric. One for each NF.",
        "--profile",
        metavar="NF=FILE",
    ),
]
Order = Annotated[str | None, take_option("The NFs in the order in which packets pass them: nx,sc,sq.")]
Measure = Annotated[str, take_option("The column to predict.", "--y", metavar="COLUMN")]
MeasuredFile = Annotated[
    str | None,
    take_option(
        "CSV of measured runs of the chain, which correct predictions: nx.cpu, sc.cpu, ..., the workload and the "
        "metric.",
        "--measured",
    ),
]
Higher = Annotated[
    bool,
    typer.Option(
        "--higher-is-better/--lower-is-better",
        help="Whether the metric is a throughput (higher is better) or a response time (lower is better).",
    ),
]
RegressorName = Annotated[
    str | None,
    take_option(
        "How profiles are interpolated; by default the one of smooth, monotone and interpolation that predicts "
        "left-out settings of a profile best. `placer chain predict --compare` lists all.",
        "--regressor",
    ),
]
Cores = Annotated[
    str | None,
    take_option("NFs that share a core, joined by +: nx+sc,sq. On a core, costs add up. By default unknown."),
]
Source = Annotated[
    str | None,
    take_option(
        "The profile of an NF that does nothing: its cost is the traffic source's, which every profile contains."
    ),
]
Passes = Annotated[list[str] | None, take_option("The share of its packets that an NF passes on.", metavar="NF=SHARE")]
Resizes = Annotated[
    list[str] | None,
    take_option(
        "How an NF changes the size of packets: +50 adds bytes, x0.6 compresses. It changes the workload column "
        "packet_size of the NFs after it.",
        metavar="NF=CHANGE",
    ),
]
Ignore = Annotated[list[str] | None, take_option("A column of the profiles to ignore; repeatable.")]


def profiles_by_nf(given: Sequence[str]) -> dict[str, str]:
    """Paths by NF, of `NF=FILE`. Raises `InputError` for what is not of that form, and NFs given twice."""
    paths: dict[str, str] = {}
    faults = []
    for text in given:
        nf, equals, path = text.partition("=")
        if not (nf and equals and path):
            faults.append(Fault("--profile", None, None, f"'{text}' is not of the form NF=FILE", "as in nx=nx.csv"))
        elif nf in paths:
            faults.append(Fault("--profile", None, None, f"'{nf}' is given twice", "put all its rows into one file"))
        else:
            paths[nf] = path
    if faults:
        raise InputError(faults)
    return paths


def read_order(order: str | None, paths: Mapping[str, str]) -> list[str]:
    """The NFs of `--order`. Raises `InputError` when it is missing, or names an NF without profile."""
    if order is None:
        if len(paths) > 1:
            raise InputError.of("--order", "is missing", hint=f"the order of the packets: --order {','.join(paths)}")
        return list(paths)
    nfs = [nf.strip() for nf in order.split(",")]
    _refuse_unknown("--order", nfs, paths)
    return nfs


def source_of(source: str | None, paths: Mapping[str, str]) -> list[str]:
    """The NF of `--source`, if one is given. Raises `InputError` when it has no profile."""
    _refuse_unknown("--source", [source] if source else [], paths)
    return [source] if source else []


def describe_placed_chain(
    nfs: Sequence[str], cores: str | None, passes: Sequence[str] | None, resizes: Sequence[str] | None
) -> PlacedChain:
    """The chain that the options describe. Raises `InputError` for what they do not describe."""
    from predictor.chains.placed_chain import PlacedChain

    return PlacedChain.of(nfs, cores=_cores(nfs, cores), effects=_effects(nfs, passes or (), resizes or ()))


def fit(
    files: ChainFiles,
    chain: PlacedChain,
    progress: Progress,
    *,
    higher_is_better: bool,
    regressor: str | None,
    cores_are_known: bool = False,
    source: str | None = None,
) -> ChainModel:
    """The model of the chain, described on stderr."""
    from placer.report.rack.predicted_chain import describe
    from predictor.chains.chain_fitting import fit_chain

    needed = dict.fromkeys([stage.nf for stage in chain.stages] + ([source] if source else []))
    with progress.waiting("fitting the profiles ..."):
        profiles = {nf: _profile(files, nf, regressor) for nf in needed}
    with progress.waiting("fitting the chain to its runs ..."):
        model = fit_chain(
            profiles, chain, higher_is_better=higher_is_better, measured_at=files.measured_at, measured=files.measured,
            cores_are_known=cores_are_known, source=source,
        )  # fmt: skip
    for line in describe(model):
        progress.say(line)
    return model


def _profile(files: ChainFiles, nf: str, regressor: str | None) -> ProfiledNf:
    from predictor.chains.profiled_nf import ProfiledNf

    columns = files.profiles[nf]
    return ProfiledNf.fit(nf, columns.inputs, columns.at, columns.measured, regressor=regressor)


def _refuse_unknown(option: str, nfs: Sequence[str], paths: Mapping[str, str]) -> None:
    faults = [
        Fault(option, None, None, f"'{nf}' has no profile", f"--profile {nf}=FILE, or {suggestion(nf, paths)}")
        for nf in dict.fromkeys(nfs)
        if nf not in paths
    ]
    if faults:
        raise InputError(faults)


def _cores(nfs: Sequence[str], cores: str | None) -> list[list[int]] | None:
    """Stages by core; an NF that is several times in the chain is named once for each."""
    if cores is None:
        return None
    left = {nf: [at for at, one in enumerate(nfs) if one == nf] for nf in nfs}
    placed = []
    for core in cores.split(","):
        names = [nf.strip() for nf in core.split("+")]
        for nf in names:
            if not left.get(nf):
                what = "is named more often than in --order" if nf in left else "is not in --order"
                raise InputError.of("--cores", f"'{nf}' {what}", hint=f"--order is {','.join(nfs)}")
        placed.append([left[nf].pop(0) for nf in names])
    if missing := [nf for nf, stages in left.items() if stages]:
        raise InputError.of("--cores", f"no core runs {', '.join(missing)}", hint="as in --cores nx+sc,sq")
    return placed


def _effects(nfs: Sequence[str], passes: Sequence[str], resizes: Sequence[str]) -> list[StageEffect]:
    from predictor.chains.placed_chain import StageEffect

    share, change = _by_nf("--passes", passes, nfs), _by_nf("--resizes", resizes, nfs)
    shares = {nf: _share(nf, text) for nf, text in share.items()}
    changes = {nf: _change(nf, text) for nf, text in change.items()}
    return [StageEffect(shares.get(nf, 1.0), *changes.get(nf, (1.0, 0.0))) for nf in nfs]


def _by_nf(option: str, given: Sequence[str], nfs: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for text in given:
        nf, _, value = text.partition("=")
        if nf not in nfs:
            raise InputError.of(option, f"'{nf}' is not in --order", hint=suggestion(nf, nfs))
        if nf in values:
            raise InputError.of(option, f"'{nf}' is given twice")
        values[nf] = value
    return values


def _share(nf: str, text: str) -> float:
    value = number_of(text)
    if value is None or not 0 < value <= 1:
        raise InputError.of("--passes", f"{nf}={text}: is not above 0 and at most 1", hint=f"as in {nf}=0.7")
    return value


def _change(nf: str, text: str) -> tuple[float, float]:
    """Factor and added bytes."""
    value = number_of(text[1:])
    if text[:1] == "+" and value is not None and value >= 0:
        return 1.0, value
    if text[:1] == "x" and value is not None and value > 0:
        return value, 0.0
    hint = f"{nf}=+50 adds 50 bytes to each packet, {nf}=x0.6 compresses to 60 %"
    raise InputError.of("--resizes", f"{nf}={text}: is not understood", hint=hint)
