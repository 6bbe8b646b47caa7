"""`placer compare STUDY`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from placer.commands import options
from profiles import InputError

if TYPE_CHECKING:
    import pandas as pd

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="The study: a TOML file.", show_default=False)]
Format = Annotated[str, typer.Option(help="table, json or csv.")]


def command(
    context: typer.Context,
    study: StudyFile,
    budget: options.Budget = None,
    out: options.ResultsFolder = None,
    jobs: options.Jobs = -1,
    format: Format = "table",
    report: options.Report = None,
    plots: options.Plots = None,
    loads: options.Loads = None,
    ignore_columns: options.IgnoreColumns = False,
    skip_empty_stays: options.SkipEmptyStays = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare strategies, predictors, budgets and fleets on many traces, by medians and ranges.

    If the study lists no budgets and contention-aware exceeds the budget, it is also placed for smaller ones. Every
    result is stored as soon as it is ready; after an interruption, the same command resumes."""
    from placer.model.catalogue import DEFAULT_BUDGET_PCT
    from placer.placing import RISK_DIVISORS
    from placer.progress import Progress
    from placer.report.text.study import STUDY_FORMATS, misses_budget
    from placer.studies import GROUP_COLUMNS, execute, read_study, summarize, tasks_of_study
    from placer.studies.execute import RESULTS_FILE
    from profiles.aside import write_files

    options.refuse_bad_budget(budget)
    render = STUDY_FORMATS[options.one_of("--format", format, STUDY_FORMATS)]
    folder = options.results_folder(out, study)
    options.refuse_unwritable("--out", folder / RESULTS_FILE)
    options.refuse_unwritable("--report", report)
    options.refuse_unwritable_folder("--plots", plots)
    progress = Progress(quiet=quiet)
    read = read_study(study)
    reading = options.trace_options(ignore_columns, skip_empty_stays, progress.say, loads)
    if budget is not None and read.risks:
        raise InputError.of("--budget", f"{study} has risks", hint="a budget chooses the risk by itself: leave out one")

    def evaluated(budgets: Sequence[float]) -> pd.DataFrame:
        tasks = tasks_of_study(read.model_copy(update={"budgets": tuple(budgets)}), progress.say, reading)
        with progress.task(study.stem) as advance:
            return execute(tasks, folder, jobs=jobs, advance=advance)

    asked = read.budgets if budget is None else (budget,)
    results = evaluated(asked)
    if misses_budget(summarize(results, GROUP_COLUMNS)) and (budget is not None or not read.budgets):
        largest = DEFAULT_BUDGET_PCT if budget is None else budget
        results = evaluated([largest, *(largest / divisor for divisor in RISK_DIVISORS)])
    progress.say(f"written: {folder / RESULTS_FILE}")
    statistics = summarize(results, GROUP_COLUMNS)
    text = render(statistics)
    if report is not None or plots is not None:
        from placer.report.html import page_files
        from placer.report.html.study import page_of_study

        page = page_of_study(study.stem, statistics, results)
        write_files(page_files(page, report, plots, made_by=options.command_line(context)))
    typer.echo(text, nl=False)
