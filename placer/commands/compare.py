"""`placer compare STUDY`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from placer.commands.options import (
    Cluster,
    Jobs,
    Parallel,
    Plots,
    Quiet,
    Report,
    command_line,
    one_of,
    refuse_unwritable,
)

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="What to compare, as TOML.", show_default=False)]
Out = Annotated[Path | None, typer.Option(help="The folder for results; by default results/STUDY.", show_default=False)]
Format = Annotated[str, typer.Option(help="table, json or csv.")]


def command(
    context: typer.Context,
    study: StudyFile,
    out: Out = None,
    jobs: Jobs = -1,
    parallel: Parallel = None,
    cluster: Cluster = None,
    format: Format = "table",
    report: Report = None,
    plots: Plots = None,
    quiet: Quiet = False,
) -> None:
    """Compare strategies, predictors, risks and fleets on many traces, as medians with their spread.

    Every run is kept as soon as it is done: interrupted, the same command goes on.
    """
    from placer.progress import Progress
    from placer.report.text.study import BY, FORMATS
    from placer.studies import conduct, locally, on_cluster, read_study, spread_of, units_of
    from placer.studies.execute import RESULTS

    render = FORMATS[one_of("--format", format, FORMATS)]
    folder = out or Path("results") / study.stem
    refuse_unwritable("--out", folder / RESULTS)
    refuse_unwritable("--report", report)
    runner = on_cluster(parallel, cluster) if parallel else locally(jobs)
    progress = Progress(quiet=quiet)
    units = units_of(read_study(study), progress.say)
    with progress.task(study.stem) as advance:
        results = conduct(units, folder, runner=runner, advance=advance)
    progress.say(f"written: {folder / RESULTS}")
    spread = spread_of(results, BY)
    if report is not None or plots is not None:
        from placer.report.html import deliver
        from placer.report.html.study import page_of_study

        deliver(page_of_study(study.stem, spread, results), report, plots, made_by=command_line(context))
    typer.echo(render(spread), nl=False)
