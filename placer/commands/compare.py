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

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="The study: a TOML file.", show_default=False)]
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
    """Compare strategies, predictors, risks and fleets on many traces, by medians and ranges.

    Every result is saved as soon as it is ready. The same command continues after an interrupt.
    """
    from placer.progress import Progress
    from placer.report.files import write_files
    from placer.report.text.study import FORMATS
    from placer.studies import BY, cluster_executor, execute, local_executor, read_study, summarize, tasks_of_study
    from placer.studies.execute import RESULTS

    render = FORMATS[one_of("--format", format, FORMATS)]
    folder = out or Path("results") / study.stem
    refuse_unwritable("--out", folder / RESULTS)
    refuse_unwritable("--report", report)
    executor = cluster_executor(parallel, cluster) if parallel else local_executor(jobs)
    progress = Progress(quiet=quiet)
    tasks = tasks_of_study(read_study(study), progress.say)
    with progress.task(study.stem) as advance:
        results = execute(tasks, folder, executor=executor, advance=advance)
    progress.say(f"written: {folder / RESULTS}")
    statistics = summarize(results, BY)
    text = render(statistics)
    if report is not None or plots is not None:
        from placer.report.html import page_files
        from placer.report.html.study import page_of_study

        page = page_of_study(study.stem, statistics, results)
        write_files(page_files(page, report, plots, made_by=command_line(context)))
    typer.echo(text, nl=False)
