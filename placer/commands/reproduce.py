"""`placer reproduce NAME`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from placer.commands.options import Quiet, Seed
from profiles import InputError

Name = Annotated[
    str | None,
    typer.Argument(
        help="An experiment, a table with several, or `all`; without one they are listed.", show_default=False
    ),
]
Out = Annotated[Path, typer.Option(help="The folder for tables (CSV) and plots (SVG, PNG).")]
Scale = Annotated[float, typer.Option(min=0.001, help="Share of the runs: 0.1 is a quick look.")]
Measurements = Annotated[
    Path | None,
    typer.Option(help="FlowMonitor on a BlueField-2: a profile with validation.csv in it.", show_default=False),
]
List = Annotated[bool, typer.Option("--list", help="List the experiments.")]


def command(
    name: Name = None,
    out: Out = Path("results"),
    scale: Scale = 1.0,
    measurements: Measurements = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    list_: List = False,
) -> None:
    """Repeat tables and figures of the Tomur paper; ours beside the published numbers.

    `all` writes one page of everything, too: index.html, and index.md. What cannot run here is skipped and told.
    """
    # the experiments stand on top of this package: it may call on them, not lean on them
    experiments = import_module("experiments")
    from placer.progress import Progress

    if seed < 0:
        raise InputError.of("--seed", f"{seed} is negative")
    known = experiments.all_experiments()
    if list_ or name is None:
        widest = max(len(one.name) for one in known)
        for one in known:
            typer.echo(f"{one.name:<{widest}}  {one.title}")
        return
    exact = [one for one in known if one.name == name]
    variants = [one for one in known if one.name.startswith(f"{name}-")]
    chosen = known if name == "all" else exact or variants or [experiments.find_experiment(name)]
    progress = Progress(quiet=quiet)
    setting = experiments.Setting(seed=seed, scale=scale, say=progress.say, **_named(measurements))

    def keep(one: Any, result: Any) -> None:
        written = experiments.write_result(one, result, out)
        typer.echo(experiments.as_text(one, result))
        progress.say(f"written: {', '.join(map(str, written))}")

    outcomes, index = [], []
    for outcome in experiments.outcomes_of(chosen, setting, keep):
        outcomes.append(outcome)
        if name == "all":  # each time, so that an interrupt leaves a page of what there was
            index = experiments.write_index(outcomes, setting, out)
    if index:
        progress.say(f"written: {', '.join(map(str, index))}")
    nothing = not any(outcome.result for outcome in outcomes)
    if nothing or any(outcome.failed for outcome in outcomes):
        raise typer.Exit(1)


def _named(measurements: Path | None) -> dict[str, Path]:
    """The folder, if one is named; what is named has to be there, what lies beside the project need not."""
    if measurements is None:
        return {}
    if not (measurements / "validation.csv").is_file():
        raise InputError.of("--measurements", f"{measurements} holds no validation.csv")
    return {"measurements": measurements}
