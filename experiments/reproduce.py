"""`placer reproduce NAME`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from placer.commands.options import Quiet, Seed
from profiles import InputError

Name = Annotated[
    str | None,
    typer.Argument(
        help="An experiment, a table or figure with several experiments, or `all`. Without NAME, lists them.",
        show_default=False,
    ),
]
Out = Annotated[Path, typer.Option(help="Folder for tables (CSV) and plots (SVG, PNG).")]
Scale = Annotated[float, typer.Option(min=0.001, help="Share of the full number of runs, such as 0.1.")]
Measurements = Annotated[
    Path | None,
    typer.Option(
        help="Folder with measurements of FlowMonitor on a BlueField-2: a profile and validation.csv.",
        show_default=False,
    ),
]
Chains = Annotated[
    Path | None,
    typer.Option(
        help="Folder with chains measured at shares of cores, by `python -m benches chains`; by default they run on "
        "the simulated server.",
        show_default=False,
    ),
]
Sweep = Annotated[
    Path | None,
    typer.Option(
        help="Folder of `placer sweep` over table entries, flows or rules; by default, flows are swept on the "
        "simulated card.",
        show_default=False,
    ),
]
List = Annotated[bool, typer.Option("--list", help="List the experiments.")]


def command(
    name: Name = None,
    out: Out = Path("results"),
    scale: Scale = 1.0,
    measurements: Measurements = None,
    chains: Chains = None,
    sweep: Sweep = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    list_: List = False,
) -> None:
    """Reproduce tables and figures of papers, and compare them with the published numbers.

    `all` also writes one page of all results: index.html and index.md. Experiments that cannot run here are skipped;
    the page gives the reason.
    """
    import experiments
    from placer.progress import Progress

    if seed < 0:
        raise InputError.of("--seed", f"{seed} is negative")
    known = experiments.all_experiments()
    if list_ or name is None:
        _list(known)
        return
    chosen = experiments.find_experiments(name, known)
    progress = Progress(quiet=quiet)
    setting = experiments.Setting(seed=seed, scale=scale, say=progress.say, **_name(measurements, chains, sweep))

    def save(one: Any, result: Any) -> None:
        written = experiments.write_result(one, result, out)
        typer.echo(experiments.as_text(one, result))
        progress.say(f"written: {', '.join(map(str, written))}")

    outcomes, index = [], []
    for outcome in experiments.outcomes_of(chosen, setting, save):
        outcomes.append(outcome)
        if quiet and outcome.failed:
            typer.echo(f"error: {outcome.experiment.name}: {outcome.reason}", err=True)
        if name == "all":  # after each experiment: an interrupt leaves a page of all results so far
            index = experiments.write_index(outcomes, setting, out)
    if index:
        progress.say(f"written: {', '.join(map(str, index))}")
    none_ran = not any(outcome.result for outcome in outcomes)
    if none_ran or any(outcome.failed for outcome in outcomes):
        raise typer.Exit(1)


def _list(known: Sequence[Any]) -> None:
    """Print the name and title of every experiment under the title of its paper."""
    widest = max(len(experiment.name) for experiment in known)
    paper = None
    for experiment in known:
        if experiment.paper != paper:
            typer.echo(str(experiment.paper))
            paper = experiment.paper
        typer.echo(f"  {experiment.name:<{widest}}  {experiment.title}")


def _name(measurements: Path | None, chains: Path | None, sweep: Path | None) -> dict[str, Path]:
    """The folders of measurements; those that are named must exist, the default one may be missing."""
    named = {}
    for option, folder, file in (
        ("measurements", measurements, "validation.csv"),
        ("chains", chains, "chains.csv"),
        ("sweep", sweep, "measurements.csv"),
    ):
        if folder is not None:
            if not (folder / file).is_file():
                raise InputError.of(f"--{option}", f"{folder} has no {file}")
            named[option] = folder
    return named
