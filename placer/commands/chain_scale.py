"""`placer chain scale`: the smallest allocation of CPU with which a chain meets a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands import chain_options as options
from placer.commands.options import Quiet, one_of, take_option
from profiles import InputError
from profiles.faults import suggestion
from profiles.text import number_of

if TYPE_CHECKING:
    from placer.rack.files.measured_chains import ChainFiles

SCALE_FORMATS = ("table", "json")
MOST_AMOUNTS = 1000

Target = Annotated[
    float, take_option("The smallest throughput, or the longest response time, that the chain may have.")
]
Workload = Annotated[
    list[str] | None,
    take_option(
        "The workload at which the target must be met; repeatable: a workload column of the profiles, or nx.COLUMN.",
        metavar="COLUMN=VALUE",
    ),
]
Resource = Annotated[str, typer.Option(help="The profile column that is allocated.")]
Step = Annotated[float | None, take_option("Allocate in multiples of this; by default the profiled amounts.")]
Safe = Annotated[
    bool, typer.Option("--safe", help="Require that the worse end of the 90 % interval meets the target, too.")
]
Format = Annotated[str, typer.Option(help="table or json.")]


def command(
    profile: options.ProfileFiles,
    y: options.Measure,
    target: Target,
    order: options.Order = None,
    workload: Workload = None,
    resource: Resource = "cpu",
    step: Step = None,
    safe: Safe = False,
    measured: options.MeasuredFile = None,
    higher_is_better: options.Higher = True,
    cores: options.Cores = None,
    source: options.Source = None,
    passes: options.Passes = None,
    resizes: options.Resizes = None,
    regressor: options.RegressorName = None,
    ignore: options.Ignore = None,
    format: Format = "table",
    quiet: Quiet = False,
) -> None:
    """Find the smallest allocation of CPU with which a chain meets a target, in one shot and by greedy steps."""
    from placer.progress import Progress
    from placer.rack.files.measured_chains import read_chain_files
    from placer.report.rack.predicted_chain import scaling_report
    from predictor.chains.scaling import ScalingTarget, greedy_allocation, smallest_allocation

    one_of("--format", format, SCALE_FORMATS)
    if target <= 0:
        raise InputError.of("--target", f"{target:g} is not above 0")
    paths = options.profiles_by_nf(profile)
    nfs = options.read_order(order, paths)
    chain = options.describe_placed_chain(nfs, cores, passes, resizes)
    needed = [*nfs, *options.source_of(source, paths)]
    files = read_chain_files(paths, needed, y, measured=measured, ignored=ignore or ())
    amounts = _amounts(files, dict.fromkeys(nfs), resource, step)
    goal = ScalingTarget(target, _workload(files, needed, resource, workload or ()), resource, safe)
    progress = Progress(quiet=quiet)
    for note in files.notes:
        progress.say(note)
    model = options.fit(
        files, chain, progress, higher_is_better=higher_is_better, regressor=regressor,
        cores_are_known=cores is not None, source=source,
    )  # fmt: skip
    try:
        smallest = smallest_allocation(model, goal, amounts)
    except ValueError as error:
        raise InputError.of("--step", str(error), hint="give a larger step") from error
    greedy = greedy_allocation(model, goal, amounts)
    typer.echo(scaling_report(model, goal, smallest, greedy, y, format), nl=False)


def _workload(files: ChainFiles, nfs: Sequence[str], resource: str, given: Sequence[str]) -> dict[str, float]:
    """The values of `--workload`, which name every input but the resource."""
    from predictor.chains.stage_costs import column_of

    values: dict[str, float] = {}
    known = {name for nf in nfs for name in files.profiles[nf].inputs}
    known |= {f"{nf}.{name}" for nf in nfs for name in files.profiles[nf].inputs}
    for option in given:
        name, _, text = option.partition("=")
        value = number_of(text)
        if name not in known:
            raise InputError.of("--workload", f"'{name}' is not a column of the profiles", hint=suggestion(name, known))
        if value is None:
            raise InputError.of("--workload", f"{name}: '{text}' is not a number", hint=f"as in {name}=100")
        values[name] = value
    missing = [
        name
        for nf in nfs
        for name in files.profiles[nf].inputs
        if name != resource and column_of(nf, name, values) is None
    ]
    if missing:
        example = " ".join(f"--workload {name}=VALUE" for name in dict.fromkeys(missing))
        raise InputError.of("--workload", f"does not name {', '.join(dict.fromkeys(missing))}", hint=example)
    return values


def _amounts(files: ChainFiles, nfs: Mapping[str, object], resource: str, step: float | None) -> dict[str, list[float]]:
    """What can be allocated to each NF, within its profiled range."""
    import numpy as np

    amounts = {}
    for nf in nfs:
        columns = files.profiles[nf]
        if resource not in columns.inputs:
            raise InputError.of(
                "--resource", f"the profile of {nf} has no column {resource}", hint=suggestion(resource, columns.inputs)
            )
        profiled = np.unique(columns.at[:, columns.inputs.index(resource)])
        if step is None:
            amounts[nf] = profiled.tolist()
            continue
        if step <= 0 or (profiled[-1] - profiled[0]) / step > MOST_AMOUNTS:
            raise InputError.of("--step", f"{step:g} makes no or more than {MOST_AMOUNTS:,} amounts of {nf}")
        first, last = np.ceil(profiled[0] / step - 1e-9), np.floor(profiled[-1] / step + 1e-9)
        amounts[nf] = np.round(np.arange(first, last + 1) * step, 12).tolist()
        if not amounts[nf]:
            raise InputError.of("--step", f"no multiple of {step:g} is in the profiled range of {nf}")
    return amounts
